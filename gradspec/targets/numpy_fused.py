"""Operations that NumPy has a faster word for than one call for each.

| instead of | ns | there is | ns |
| --- | --- | --- | --- |
| ``minimum(x, 88.0)`` | 0.39 | ``x.clip(-inf, 88.0)`` | 0.13 |
| ``abs(ceil(x.clip(0.0, 1.0)))`` | 0.95 | ``greater(x, 0.0)`` into numbers, of no NaN | 0.51 |

(for an element of float32 in the cache, with AVX-512: `minimum` and `maximum` with a number
have no vector loop.) For few elements, where calls count, `clip` takes as long as two
functions, and the step is ``heaviside(x, 0.0)``, which takes a branch for each element.
``2.0 * x`` is ``x + x``, the same bits without a number to convert.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from gradspec.plan.array import Expr, Literal, Name, Op
from gradspec.primitives.row import Helper
from gradspec.primitives.table_bounds import FINITE
from gradspec.primitives.texts_elementary import NUMBER
from gradspec.targets.python import ATOM, SUM, Text


def fused(node: Op, texts: Mapping[Expr, Text]) -> Text | None:
    """A step, or a bound that is a number, of an array."""
    match node:
        case Op("ceil") if (x := stepped(node)) is not None:
            return _call("_step", x, texts)
        case Op(
            "mul", (Name() as x, Literal(value=2)) | (Literal(value=2), Name() as x)
        ):
            name = texts[x].text
            return None if texts[x].is_scalar else Text(f"{name} + {name}", SUM)
        case Op("clip", (x, Literal() as low, Literal() as high)) if _is_far(
            low
        ) or _is_far(high):
            return _call("_between", x, texts, low, high)
        case Op("min" | "max" as name, (x, Literal() as bound)) if _is_far(bound):
            word = "_at_most" if name == "min" else "_at_least"
            return _call(word, x, texts, bound)
        case _:
            return None


def stepped(node: Expr) -> Expr | None:
    """The array of whose elements it tells by 1 and 0 which are positive."""
    match node:
        case Op("ceil", (Op("min", (Op("max", (x, low)), high)),)) if low == Literal(
            Fraction(0)
        ) and high == Literal(Fraction(1)):
            return x
        case _:
            return None


def bounded(node: Expr) -> Expr | None:
    """The array of which a bound that is a number may leave all as it is: it is then
    given back itself.
    """
    match node:
        case Op("clip", (x, Literal() as low, Literal() as high)):
            return x if _is_far(low) or _is_far(high) else None
        case Op("min" | "max", (x, Literal() as bound)):
            return x if _is_far(bound) else None
        case Op(primitive=name, args=(x,)) if name == FINITE:
            return x
        case _:
            return None


def _call(name: str, x: Expr, texts: Mapping[Expr, Text], *others: Expr) -> Text | None:
    if texts[x].is_scalar:
        return None
    return Text(f"{name}({', '.join(texts[arg].text for arg in (x, *others))})", ATOM)


def _is_far(bound: Literal) -> bool:
    """Whether no integer is compared with it, and no zero."""
    return bound.value.denominator != 1 or abs(bound.value) >= 10000


AT_MOST = Helper(
    "_at_most",
    '''\
def _at_most(x: np.ndarray, bound: float) -> np.ndarray:
    """``np.minimum`` with a number, which takes three times as long for many; ``x``
    itself where that is below the bound.
    """
    if x.size < 1024:
        return np.minimum(x, _number(bound, x.dtype))
    return x if x.max() <= bound else x.clip(-np.inf, bound)
''',
    needs=(NUMBER,),
)

AT_LEAST = Helper(
    "_at_least",
    '''\
def _at_least(x: np.ndarray, bound: float) -> np.ndarray:
    """``np.maximum`` with a number, which takes three times as long for many; ``x``
    itself where that is above the bound.
    """
    if x.size < 1024:
        return np.maximum(x, _number(bound, x.dtype))
    return x if x.min() >= bound else x.clip(bound, np.inf)
''',
    needs=(NUMBER,),
)

BETWEEN = Helper(
    "_between",
    '''\
def _between(x: np.ndarray, low: float, high: float) -> np.ndarray:
    """The method `clip`, which takes as long as three functions of few elements; ``x``
    itself where that lies between the bounds.
    """
    if x.size < 1024:
        x = np.maximum(x, _number(low, x.dtype))
        return np.minimum(x, _number(high, x.dtype))
    return x if low <= x.min() and x.max() <= high else x.clip(low, high)
''',
    needs=(NUMBER,),
)

STEP = Helper(
    "_step",
    '''\
def _step(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """1 where ``x`` is positive, else 0; a NaN stays."""
    if x.size < 1024:
        return np.heaviside(x, _number(0.0, x.dtype))
    if np.isnan(x.min()):
        return np.abs(np.ceil(x.clip(0.0, 1.0)))
    out = np.empty_like(x) if out is None else out
    return np.greater(x, 0.0, out=out, casting="unsafe")
''',
)

HELPERS = (NUMBER, AT_MOST, AT_LEAST, BETWEEN, STEP)
