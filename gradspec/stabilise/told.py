"""What is said of harm that no other form of an expression mends: where it begins and
how the author can avoid it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gradspec.diagnostics import Diagnostic, warning
from gradspec.ir.expr import Apply, Expr, const
from gradspec.ir.rule import CheckedRule, Declared, Harm, Override, Rule
from gradspec.ir.text import show
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import nodes, transform
from gradspec.source import Span

_LONGEST = 60  # characters of an operation that are shown


@dataclass(frozen=True, slots=True)
class _Words:
    code: str
    what: str
    why: str
    cure: str


_WORDS = {
    "saturation": _Words(
        "GS441",
        "a difference that vanishes",
        "both sides are equal in float32",
        "a difference that is small has to be a function of its own: `1 / cosh(x)**2` for"
        " `1 - tanh(x)**2`, `sigmoid(-x)` for `1 - sigmoid(x)`, `-expm1(x)` for"
        " `1 - exp(x)`, `erfc(x)` for `1 - erf(x)`; a polynomial is multiplied out",
    ),
    "square": _Words(
        "GS442",
        "a power that overflows though the result would not",
        "a part of it is beyond the range of float32",
        "divide by the largest part before squaring: `hypot(a, b)` for"
        " `sqrt(a**2 + b**2)`, `1 / (1 + (b / a)**2)` for `a**2 / (a**2 + b**2)`",
    ),
    "exponent": _Words(
        "GS443",
        "an exponential of a difference of large terms",
        "the large terms have lost the digits that their difference needs",
        "give the logarithm as the output and leave the exponential out, or bring the"
        " large terms together first",
    ),
    "guard": _Words(
        "GS444",
        "a guard that float32 does not hold",
        "the number next to 1 is 1 in float32",
        "guard the difference itself, `max(1 - p, 1e-15)`, or take a guard that float32"
        " holds, `1 - 1e-6`",
    ),
}


def unmended(checked: CheckedRule) -> Iterator[Diagnostic]:
    """One finding for each way in which a rule goes wrong: the first."""
    first: dict[str, Harm] = {}
    for harm in checked.harms:
        first.setdefault(harm.kind, harm)
    for harm in first.values():
        yield _finding(checked.rule, harm)


def _finding(rule: Rule, harm: Harm) -> Diagnostic:
    words = _WORDS[harm.kind]
    place = ", ".join(f"{name} = {value:.6g}" for name, value in harm.point)
    return warning(
        words.code,
        f"{harm.name} of {rule.name} has {words.what}",
        rule.source,
        _span(rule, harm),
        label=f"gives {_number(harm.value)} at {place}, where {_number(harm.true)} is"
        " right",
        notes=(f"the cause is `{_text(harm.culprit)}`: {words.why}",),
        help=words.cure,
    )


def _number(value: float) -> str:
    return f"{value:.6g}".replace("-0", "0") if value == 0 else f"{value:.6g}"


def _text(expr: Expr) -> str:
    text = show(transform(tidy(expr), _as_power))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _as_power(node: Expr) -> Expr:
    match node:
        case Apply(op="square", args=(base,)):
            return Apply("pow", (base, const(2)))
        case _:
            return node


def _span(rule: Rule, harm: Harm) -> Span:
    """The guilty operation where it stands in the text, else what it belongs to."""
    text = _texts(rule).get(harm.name)
    if text is None:
        return next(
            let.span for let in rule.forward if let.name == rule.outputs[0].name
        )
    value, span = text
    same = (n.span for n in nodes(value) if n == harm.culprit and n.span is not None)
    return next(same, span)


def _texts(rule: Rule) -> dict[str, tuple[Expr, Span]]:
    """What the author wrote, by name."""
    found = {let.name: (let.value, let.span) for let in rule.forward}
    for variable, entry in zip(rule.inputs, rule.backward, strict=True):
        if isinstance(entry, Declared | Override):
            found[f"d{variable.name}"] = entry.value, entry.span
    return found
