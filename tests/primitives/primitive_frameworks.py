"""The table's spellings run in a real framework, and their error in each precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from gradspec.primitives.lookup import primitive
from gradspec.primitives.row import (
    Expand,
    Infix,
    Missing,
    Prefix,
    Runtime,
    Spelling,
    Template,
)
from tests.primitives.primitive_truth import (
    Meaning,
    Point,
    nearest,
    partial_truth,
    points,
    truth,
)

_FILES = {"special": "special", "core": "gradspec"}


@dataclass(frozen=True)
class Framework(Meaning):
    """``tensor`` makes an array of the framework, ``where`` chooses between two."""

    target: str
    module: ModuleType
    tensor: Callable[[np.ndarray], Any]
    where: Callable[[Any, Any, Any], Any]

    def run(self, name: str, columns: list[np.ndarray]) -> np.ndarray:
        """The primitive of whole columns of arguments."""
        return np.asarray(self.call(name, self.arguments(name, columns)))

    def arguments(self, name: str, columns: list[np.ndarray]) -> list[Any]:
        """An integer argument (an order) is one Python number for all."""
        types = primitive(name).argument_types
        return [
            int(column[0]) if type == "int" else self.tensor(column)
            for type, column in zip(types, columns, strict=True)
        ]

    def call(self, name: str, args: list[Any]) -> Any:
        """As the table spells it; Python numbers beside tensors become tensors."""
        spelling = primitive(name).spellings[self.target]
        if not isinstance(spelling, Infix | Prefix | Expand):
            args = self._lifted(name, args)
        return self._function(name, spelling)(*args)

    def _lifted(self, name: str, args: list[Any]) -> list[Any]:
        if all(hasattr(a, "dtype") for a in args):
            return args
        like = next(a for a in args if hasattr(a, "dtype"))
        types = primitive(name).argument_types
        if all(type == "int" or a is like for type, a in zip(types, args, strict=True)):
            return args
        plain = np.asarray(like.detach() if hasattr(like, "detach") else like)
        return [
            (
                self.tensor(np.full(plain.shape, a, plain.dtype))
                if type == "real" and not hasattr(a, "dtype")
                else a
            )
            for type, a in zip(types, args, strict=True)
        ]

    def _function(self, name: str, spelling: Spelling) -> Callable[..., Any]:
        params = primitive(name).params
        match spelling:
            case Infix(symbol=symbol):
                return self._compiled(f"x {symbol} y", params, ())
            case Prefix(symbol=symbol):
                return self._compiled(f"{symbol}x", params, ())
            case Template(text=text, imports=imports):
                filled = text.format(x="x", y="y", z="z")
                return self._compiled(filled, params, imports)
            case Runtime(name=function, module=module):
                path = f"gradspec.runtime.{self.target}._{_FILES[module]}"
                return getattr(import_module(path), function)  # type: ignore[no-any-return]
            case Expand(formula=formula):
                return lambda *args: self(
                    formula, **dict(zip(params, args, strict=True))
                )
            case Missing(reason=reason):
                raise AssertionError(reason)

    def _compiled(
        self, text: str, params: tuple[str, ...], imports: tuple[str, ...]
    ) -> Callable[..., Any]:
        function = eval(f"lambda {', '.join(params)}: {text}", self._scope(imports))
        return function  # type: ignore[no-any-return]

    def _scope(self, imports: tuple[str, ...]) -> dict[str, Any]:
        short = {"numpy": "np", "jax": "jnp"}.get(self.target, self.target)
        scope: dict[str, Any] = {short: self.module}
        if self.target == "jax":
            exec("import jax", scope)
        for line in imports:
            exec(line, scope)
        return scope

    # --- as a reading of formulas

    def number(self, value: Fraction) -> Any:
        return int(value) if value.denominator == 1 else float(value)

    def apply(self, name: str, args: list[Any]) -> Any:
        if any(hasattr(a, "dtype") for a in args):
            return self.call(name, args)
        spelling = primitive(name).spellings["python"]
        return self._function(name, spelling)(*args)

    def select(self, condition: Any, then: Callable[[], Any], other: Any) -> Any:
        with np.errstate(all="ignore"):
            return self.where(condition, then(), other())


# --- errors ----------------------------------------------------------------------------


def groups(name: str, stride: int) -> list[tuple[Point, ...]]:
    """The row's points, apart by order where the first argument is one."""
    chosen = points(name)[::stride]
    if name != "polygamma":
        return [chosen]
    orders = sorted({p[0] for p in chosen})
    return [tuple(p for p in chosen if p[0] == n) for n in orders]


def forward_error(framework: Framework, name: str, dtype: type) -> tuple[float, Point]:
    """The largest error over the points whose value is normal: relative in float64, in
    units in the last place in float32. With it, where.
    """
    worst: tuple[float, Point] = (0.0, ())
    for group in groups(name, 1 if primitive(name).arity == 1 else 3):
        rounded = tuple(tuple(float(dtype(v)) for v in p) for p in group)
        columns = [np.array(c, dtype) for c in zip(*rounded, strict=True)]
        values = framework.run(name, columns)
        assert values.dtype == dtype, f"{values.dtype} of {dtype.__name__}"
        true = np.array([nearest(truth(name, p)) for p in rounded])
        worst = max(worst, _largest(values.astype(float), true, rounded, dtype))
    return worst


def partial_error(
    framework: Framework, name: str, position: int, gradients: np.ndarray, group: Any
) -> tuple[float, Point]:
    """The largest relative error of gradients that a framework found by itself."""
    row = primitive(name)
    true = np.array([nearest(partial_truth(row, position, p)) for p in group])
    return _largest(gradients, true, group, np.float64)


def _largest(
    values: np.ndarray, true: np.ndarray, at: Any, dtype: type
) -> tuple[float, Point]:
    limits = np.finfo(dtype)
    low, high = float(limits.tiny) * 1e8, float(limits.max) / 1e8
    zero = true == 0
    assert np.array_equal(values[zero], true[zero])
    normal = (np.abs(true) > low) & (np.abs(true) < high)
    unit = np.spacing(np.abs(true[normal]).astype(dtype)).astype(float)
    scale = unit if dtype is np.float32 else np.abs(true[normal])
    errors = np.abs(values[normal] - true[normal]) / scale
    errors[~np.isfinite(errors)] = np.inf
    if not errors.size:
        return 0.0, ()
    where = int(errors.argmax())
    return float(errors[where]), tuple(np.array(at)[normal][where])


# --- what every framework's test asks ---------------------------------------------------

FLOAT64 = 1e-12
"""Relative error allowed of a forward value in float64, for every row and target."""

FLOAT32 = 4.0
"""Units in the last place allowed in float32, but for the rows that a test lists."""

INFINITE = {
    "exp": (0.0, np.inf),
    "expm1": (-1.0, np.inf),
    "exp2": (0.0, np.inf),
    "log": (np.nan, np.inf),
    "log1p": (np.nan, np.inf),
    "sigmoid": (0.0, 1.0),
    "logsigmoid": (-np.inf, 0.0),
    "softplus": (0.0, np.inf),
    "square": (np.inf, np.inf),
    "reciprocal": (0.0, 0.0),
    "sqrt": (np.nan, np.inf),
    "rsqrt": (np.nan, 0.0),
    "cbrt": (-np.inf, np.inf),
    "abs": (np.inf, np.inf),
    "relu": (0.0, np.inf),
    "sign": (-1.0, 1.0),
    "floor": (-np.inf, np.inf),
    "round": (-np.inf, np.inf),
    "trunc": (-np.inf, np.inf),
    "sinc": (0.0, 0.0),
    "sinc_slope": (0.0, 0.0),
    "atan": (-np.pi / 2, np.pi / 2),
    "sinh": (-np.inf, np.inf),
    "cosh": (np.inf, np.inf),
    "tanh": (-1.0, 1.0),
    "asinh": (-np.inf, np.inf),
    "acosh": (np.nan, np.inf),
    "erf": (-1.0, 1.0),
    "erfc": (2.0, 0.0),
    "erfcx": (np.inf, 0.0),
    "erfcx_slope": (-np.inf, 0.0),
    "ndtr": (0.0, 1.0),
    "log_ndtr": (-np.inf, 0.0),
    "inverse_mills": (np.inf, 0.0),
    "i0": (np.inf, np.inf),
    "i1": (-np.inf, np.inf),
    "i1_slope": (np.inf, np.inf),
    "i0e": (0.0, 0.0),
    "i1e": (0.0, 0.0),
    "i0e_slope": (0.0, 0.0),
    "i1e_slope": (0.0, 0.0),
}
"""Limits at minus and plus infinity."""


def at_infinity(framework: Framework, name: str) -> None:
    with np.errstate(all="ignore"):
        values = framework.run(name, [np.array([-np.inf, np.inf])])
    assert np.allclose(values, INFINITE[name], rtol=1e-15, equal_nan=True), values


ODD = ("sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "erf", "expm1")
"""Functions that are -0.0 at -0.0."""


def keeps_the_sign_of_zero(framework: Framework, name: str) -> None:
    values = framework.run(name, [np.array([-0.0, 0.0])])
    assert values.tolist() == [0.0, 0.0]
    assert np.signbit(values).tolist() == [True, False]


def vanishing_gives_way(framework: Framework) -> None:
    """What the stabiliser puts where an overflow times 0 has a limit."""
    x = np.array([np.inf, -np.inf, np.nan, np.inf, 2.0, -0.0])
    y = np.array([0.0, 0.0, 0.0, 2.0, 0.0, -1.0])
    with np.errstate(all="ignore"):
        product = framework.run("vanishing", [x, y])
    np.testing.assert_array_equal(product, [0.0, 0.0, np.nan, np.inf, 0.0, 0.0])


def at_nan(framework: Framework, name: str) -> None:
    """NaN in any one argument gives NaN."""
    row = primitive(name)
    for position, type in enumerate(row.argument_types):
        if type != "real" or (name, position) in _NAN_UNUSED:
            continue
        columns = [np.array([0.5]) for _ in row.params]
        if name == "polygamma":
            columns[0] = np.array([1.0])
        columns[position] = np.array([np.nan])
        with np.errstate(all="ignore"):
            assert np.isnan(framework.run(name, columns)).all(), position


# What is not looked at does not matter: heaviside(x, y) only has y at x = 0.
_NAN_UNUSED = (("heaviside", 1),)
