"""Assignment of the arguments of a call to parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from gradspec.ir.rule import Input, Rule
from gradspec.lower.context import Context
from gradspec.lower.findings import near
from gradspec.lower.library import signature
from gradspec.lower.module import Function
from gradspec.primitives.row import Primitive
from gradspec.source import Span
from gradspec.syntax import nodes


@dataclass(frozen=True, slots=True)
class Slots:
    """``positional`` in order, ``by_keyword`` only so; ``optional`` may be left out."""

    positional: tuple[str, ...]
    by_keyword: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return self.positional + self.by_keyword


def slots(callee: Rule | Function | Primitive) -> Slots:
    """Statics of a rule are passed by keyword; everything else either way."""
    match callee:
        case Primitive(params=params, least_arity=least):
            return Slots(params, (), params[least:])
        case Function(parameters=parameters):
            return Slots(tuple(p.name for p in parameters))
        case Rule(tensor_inputs=tensors, static_inputs=statics):
            return Slots(_names(tensors), _names(statics), _defaulted(statics))


def _names(inputs: tuple[Input, ...]) -> tuple[str, ...]:
    return tuple(i.name for i in inputs)


def _defaulted(inputs: tuple[Input, ...]) -> tuple[str, ...]:
    return tuple(i.name for i in inputs if i.default is not None)


def bind(
    node: nodes.Call, callee: Rule | Function | Primitive, cx: Context
) -> Mapping[str, nodes.Expr] | None:
    """Parameter name → argument; None if they do not fit (which has been reported)."""
    wanted = slots(callee)
    fault = _too_many(node, callee, wanted) or _bad_keyword(node, callee, wanted)
    bound = dict(zip(wanted.positional, node.args, strict=False))
    bound.update((k.name, k.value) for k in node.keywords)
    fault = fault or _missing(node, callee, wanted, bound)
    if fault is None:
        return _left_out(node, callee) | bound
    cx.findings.error(
        "GS203",
        fault.headline,
        fault.span,
        label=fault.label,
        help=fault.help or f"call it as `{signature(callee)}`",
        notes=(f"its signature: {signature(callee)}",) if fault.help else (),
    )
    return None


def _left_out(
    node: nodes.Call, callee: Rule | Function | Primitive
) -> dict[str, nodes.Expr]:
    """The default values of a built-in's omitted optional arguments."""
    match callee:
        case Primitive(params=params, least_arity=least, optional=values):
            return {
                name: nodes.Number(Fraction(value), str(value), span=node.span)
                for name, value in zip(params[least:], values, strict=True)
            }
        case _:
            return {}


@dataclass(frozen=True, slots=True)
class _Fault:
    headline: str
    span: Span
    label: str = ""
    help: str = ""


def _arguments(number: int) -> str:
    return f"{number or 'no'} argument{'s' if number != 1 else ''}"


def _too_many(
    node: nodes.Call, callee: Rule | Function | Primitive, wanted: Slots
) -> _Fault | None:
    allowed, given = len(wanted.positional), len(node.args)
    if given <= allowed:
        return None
    extra = node.args[allowed].span
    if given <= len(wanted.names):
        name = wanted.by_keyword[0]
        return _Fault(
            f"`{name}` of `{callee.name}` is static and is passed by keyword",
            extra,
            help=f"write `{name}=…`",
        )
    headline = f"`{callee.name}` takes {_arguments(allowed)}, and {given} are given"
    help = ""
    if callee.name in ("min", "max"):
        first, *rest = (_letter(k) for k in range(given))
        help = f"nest the calls: {_nested(callee.name, first, rest)}"
    elif callee.name == "log":
        help = "the logarithm to base b is `log(x) / log(b)`, or `log2(x)`, `log10(x)`"
    return _Fault(headline, extra, "one too many", help)


def _letter(k: int) -> str:
    return "abcdefgh"[k] if k < 8 else "…"


def _nested(name: str, first: str, rest: list[str]) -> str:
    for letter in rest:
        first = f"{name}({first}, {letter})"
    return first


def _bad_keyword(
    node: nodes.Call, callee: Rule | Function | Primitive, wanted: Slots
) -> _Fault | None:
    taken = list(wanted.positional[: len(node.args)])
    for keyword in node.keywords:
        if keyword.name not in wanted.names:
            return _Fault(
                f"`{callee.name}` has no argument `{keyword.name}`",
                keyword.span,
                help=near(keyword.name, wanted.names),
            )
        if keyword.name in taken:
            return _Fault(
                f"argument `{keyword.name}` of `{callee.name}` is given twice",
                keyword.span,
            )
        taken.append(keyword.name)
    return None


def _missing(
    node: nodes.Call,
    callee: Rule | Function | Primitive,
    wanted: Slots,
    bound: Mapping[str, nodes.Expr],
) -> _Fault | None:
    missing = [n for n in wanted.names if n not in bound and n not in wanted.optional]
    if not missing:
        return None
    listed = ", ".join(f"`{name}`" for name in missing)
    takes = _arguments(len(wanted.positional))
    static = [name for name in missing if name in wanted.by_keyword]
    return _Fault(
        f"`{callee.name}` takes {takes}, and {listed}"
        f" {'is' if len(missing) == 1 else 'are'} missing",
        node.span,
        help=f"pass it by keyword: `{static[0]}=…`" if static else "",
    )
