"""Eager TensorFlow in operations alone: `tf.raw_ops`.

An operator or a function of TensorFlow converts its arguments, asks for overrides and
names what it does, which takes 10 to 25 µs; the operation takes 9. It adopts the type of
the tensor among its arguments, so Python numbers may stand at any place. Where TensorFlow
has a derivative as one operation, that is one in place of three.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gradspec.plan.array import Expr, Literal, Name, Op, names
from gradspec.plan.plan import RulePlan
from gradspec.primitives.row import Helper, Template
from gradspec.targets.python import ATOM, UNARY, Dialect, Text

RAW = """\
_raw = tf.raw_ops
\"\"\"Operations alone: operators and functions take twice as long for short tensors.\"\"\"
"""

_UNARY = {
    "neg": "Neg",
    "not": "LogicalNot",
    "exp": "Exp",
    "expm1": "Expm1",
    "log": "Log",
    "log1p": "Log1p",
    "square": "Square",
    "sqrt": "Sqrt",
    "rsqrt": "Rsqrt",
    "abs": "Abs",
    "sign": "Sign",
    "floor": "Floor",
    "ceil": "Ceil",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "erfc": "Erfc",
}
_BINARY = {
    "add": "AddV2",
    "sub": "Sub",
    "mul": "Mul",
    "times": "MulNoNan",
    "div": "RealDiv",
    "pow": "Pow",
    "max": "Maximum",
    "min": "Minimum",
    "lt": "Less",
    "le": "LessEqual",
    "gt": "Greater",
    "ge": "GreaterEqual",
    "eq": "Equal",
    "ne": "NotEqual",
    "and": "LogicalAnd",
    "or": "LogicalOr",
    "xlogy": "Xlogy",
    "xlog1py": "Xlog1py",
}
_CLIP = "_raw.ClipByValue(t={x}, clip_value_min={y}, clip_value_max={z})"

SPELLED: Mapping[str, Template] = {
    **{name: Template(f"_raw.{op}(x={{x}})") for name, op in _UNARY.items()},
    **{name: Template(f"_raw.{op}(x={{x}}, y={{y}})") for name, op in _BINARY.items()},
    "clip": Template(_CLIP),
    "softplus": Template("_raw.Softplus(features={x})"),
    "relu": Template("_raw.Relu(features={x})"),
    # of an infinity the operation makes a NaN in float64
    "erf": Template(f"_raw.Erf(x={_CLIP.format(x='{x}', y='-6.0', z='6.0')})"),
}
"""Functions that lose digits in float32 lose none that it has in float64."""


SCALED = Helper(
    "_scaled",
    '''\
def _scaled(x: tf.Tensor, factor: float) -> tf.Tensor:
    """``x * factor``, which by 1 is no operation."""
    return x if factor == 1.0 else _raw.Mul(x=x, y=factor)
''',
)


def raw(dialect: Dialect, plan: RulePlan) -> Dialect:
    """How short eager tensors in float64 are computed with."""

    def spelled(name: str, scalars: tuple[bool, ...]) -> Template | None:
        return SPELLED.get(name) or dialect.variants(name, scalars)

    def lifts(name: str, scalars: tuple[bool, ...]) -> tuple[bool, ...]:
        if name == "where" and not all(scalars):
            return (False,) * len(scalars)
        return dialect.lifts(name, scalars)

    def fused(node: Op, texts: Mapping[Expr, Text]) -> Text | None:
        found = _scaled(node, texts) or _softplus(node, texts)
        return found or _derivative(node, texts, plan)

    return replace(
        dialect,
        where="_raw.SelectV2(condition={c}, t={x}, e={y})",
        is_nan="_raw.IsNan(x={x})",
        variants=spelled,
        lifts=lifts,
        fused=fused,
    )


def _scaled(node: Op, texts: Mapping[Expr, Text]) -> Text | None:
    """A product with a static parameter, or a quotient by one: they are mostly 1."""
    match node:
        case Op("mul", (factor, x)) | Op("mul", (x, factor)) if (
            _is_static(factor, texts) and not texts[x].is_scalar
        ):
            return Text(f"_scaled({texts[x].text}, {texts[factor].text})", ATOM)
        case Op("div", (x, factor)) if (
            _is_static(factor, texts) and not texts[x].is_scalar
        ):
            over = f"1.0 / {texts[factor].within(UNARY)}"
            return Text(f"_scaled({texts[x].text}, {over})", ATOM)
        case _:
            return None


def _softplus(node: Op, texts: Mapping[Expr, Text]) -> Text | None:
    """``log1p(exp(x))``; below -34 the operation leaves the logarithm out."""
    match node:
        case Op("log1p", (Op("exp", (x,)),)) if not texts[x].is_scalar:
            return Text(f"_raw.Softplus(features={texts[x].text})", ATOM)
        case _:
            return None


def _is_static(factor: Expr, texts: Mapping[Expr, Text]) -> bool:
    return texts[factor].is_scalar and bool(names(factor))


def _derivative(node: Op, texts: Mapping[Expr, Text], plan: RulePlan) -> Text | None:
    """A product or a quotient that is one operation, of tensors of one shape."""
    for dy, x, call in _calls(node, texts):
        parts = (dy, x)
        if all(_is_whole(p, plan) and not texts[p].is_scalar for p in parts):
            return Text(call, ATOM)
    return None


def _is_whole(expr: Expr, plan: RulePlan) -> bool:
    """Whether the value has the shape to which all inputs broadcast."""
    inputs = {i.name for i in plan.tensors}
    if len(inputs) == 1 or {*names(expr)} >= inputs:
        return True
    only = len(plan.outputs) == 1 and isinstance(expr, Name)
    return only and {*names(expr)} <= {*plan.upstream}


def _calls(node: Op, texts: Mapping[Expr, Text]) -> Iterator[tuple[Expr, Expr, str]]:
    """The upstream gradient, what it goes through, and the operation."""
    match node:
        case Op("mul", (dy, Op("sigmoid", (x,)))):
            yield dy, x, _softplus_grad(texts[dy].text, texts[x].text)
        case Op("mul", (dy, Op("sub", (Literal(value=1), Op("square", (y,)))))):
            yield dy, y, f"_raw.TanhGrad(y={texts[y].text}, dy={texts[dy].text})"
        case Op("mul", (dy, Op("mul", (y, Op("sub", (Literal(value=1), z)))))):
            if y == z:
                call = f"_raw.SigmoidGrad(y={texts[y].text}, dy={texts[dy].text})"
                yield dy, y, call
        case Op("div", (dy, Op("add", (Op("exp", (x,)), Literal(value=1))))) | Op(
            "div", (dy, Op("add", (Literal(value=1), Op("exp", (x,)))))
        ):
            yield dy, x, _softplus_grad(texts[dy].text, _minus(x, texts))
        case _:
            return


def _minus(x: Expr, texts: Mapping[Expr, Text]) -> str:
    match x:
        case Op("neg", (y,)):
            return texts[y].text
        case Op("sub", (a, b)):
            return f"_raw.Sub(x={texts[b].text}, y={texts[a].text})"
        case _:
            return f"_raw.Neg(x={texts[x].text})"


def _softplus_grad(dy: str, x: str) -> str:
    """``dy * sigmoid(x)``"""
    return f"_raw.SoftplusGrad(gradients={dy}, features={x})"
