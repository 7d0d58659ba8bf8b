"""Errors of gradients of differences in float32, beside autograd of the plain formula.

    python benchmarks/offsets.py [RULE...]

Data have a common offset, or are wide with close pairs. An error is the largest of the
elements, relative to the largest element of that gradient, of all inputs the worst; the
truth is autograd of the formula in float64. ``opposite`` is offset against itself.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # found as a script, too

import numpy as np  # noqa: E402
import torch  # noqa: E402

import gradspec  # noqa: E402

RULES = ROOT / "benchmarks" / "offsets.grad"
TARGETS = ("numpy", "torch")
BOUND = 4.0
"""The error that is allowed, in units of the plain formula's own."""

Arrays = dict[str, Any]


def _differences(x: Any, z: Any) -> Any:
    return x[..., :, None, :] - z[..., None, :, :]


def _squares(x: Any, z: Any) -> Any:
    return (_differences(x, z) ** 2).sum(-1)


def _masked(value: Any, w: Any) -> Any:
    is_in = (w > 0.5).reshape(*w.shape, *(1,) * (value.ndim - w.ndim))
    return torch.where(is_in, value, 0.0)


def _matern(x: Any, z: Any) -> Any:
    r = (5 * _squares(x, z)).sqrt()
    return (1 + r + r**2 / 3) * torch.exp(-r)


def _chamfer(x: Any, z: Any) -> Any:
    q = _squares(x, z)
    return q.amin(1).sum() + q.amin(0).sum()


def _lennard_jones(x: Any) -> Any:
    i, j = torch.triu_indices(len(x), len(x), 1)
    r = ((x[i] - x[j]) ** 2).sum(-1)
    return (1 / r**6 - 1 / r**3).sum()


def _gravity(x: Any, mass: Any) -> Any:
    terms = mass[:, None] * mass / (1e-4 + _squares(x, x)).sqrt()
    return -terms[~torch.eye(len(x), dtype=torch.bool)].sum()


def _forces(x: Any, mass: Any) -> Any:
    steps = -_differences(x, x)
    below = (1e-4 + (steps**2).sum(-1)) ** 1.5
    return (mass[:, None] * steps / below[..., None]).sum(1)


PLAIN: Mapping[str, Callable[..., Any]] = {
    "rbf": lambda x, z: torch.exp(-_squares(x, z) / 2),
    "cdist": lambda x, z: _squares(x, z).sqrt(),
    "squared_distance": _squares,
    "matern": _matern,
    "chamfer": _chamfer,
    "hausdorff": lambda x, z: _squares(x, z).sqrt().amin(1).sum(),
    "lennard_jones": _lennard_jones,
    "gravity": _gravity,
    "forces": _forces,
    "transport": lambda x, z, w: (w * _squares(x, z)).sum(),
    "laplacian": lambda x, w: 0.5 * (w[..., None] * _differences(x, x) ** 2).sum(),
    "automatic_relevance": lambda x, z, w: torch.exp(
        -(w * _differences(x, z) ** 2).sum(-1)
    ),
    "translation": lambda x, w, z: -_squares(x + w, z).sqrt(),
    "opposite": lambda x, z: _squares(x, -z),
    "products": lambda x, z, w: (w * (x[:, None] - z) * (x - x.mean())[:, None]).sum(),
    "pull": lambda x, z, w: (w * (x[:, None] - z)).sum(1),
    "masked": lambda x, z, w: _masked(_differences(x, z), w).sum(1),
    "weighted_mask": lambda x, z, w: _masked(w * _squares(x, z), w).sum(),
    "spread": lambda x, w: (w * (x - x.mean(-1, keepdim=True)) ** 2).sum(-1),
}

SHAPES: Mapping[str, Mapping[str, str]] = {
    "lennard_jones": {"x": "nd"},
    "gravity": {"x": "nd", "mass": "n"},
    "forces": {"x": "nd", "mass": "n"},
    "transport": {"x": "nd", "z": "md", "w": "nm"},
    "laplacian": {"x": "nd", "w": "nn"},
    "automatic_relevance": {"x": "bnd", "z": "bmd", "w": "d"},
    "translation": {"x": "nd", "w": "nd", "z": "md"},
    "masked": {"x": "nd", "z": "md", "w": "nm"},
    "weighted_mask": {"x": "nd", "z": "md", "w": "nm"},
    "products": {"x": "n", "z": "m", "w": "nm"},
    "pull": {"x": "n", "z": "m", "w": "nm"},
    "spread": {"x": "bn", "w": "n"},
}
SIZES = {"n": 27, "m": 18, "d": 3, "b": 2}


@dataclass(frozen=True, slots=True)
class Condition:
    """Points around ``offset``; or pairs ``spread`` apart in data that wide."""

    offset: float
    spread: float
    width: float = 0.0

    def __str__(self) -> str:
        wide = f" in {self.width:g}" if self.width else f" + {self.offset:g}"
        return f"{self.spread:g}{wide}"

    def arrays(self, rule: str) -> Arrays:
        """The inputs of a rule, in float32."""
        random = np.random.default_rng(7)
        shapes = SHAPES.get(rule, {"x": "nd", "z": "md"})
        found: Arrays = {}
        for name, axes in shapes.items():
            shape = tuple(SIZES[axis] for axis in axes)
            if name in ("x", "z"):
                value = self.spread * random.normal(size=shape)
                if rule == "lennard_jones":  # on a lattice, for it is singular
                    value = 0.02 * value + 1.1 * np.mgrid[:3, :3, :3].reshape(3, -1).T
                value += self.width * np.resize(np.linspace(-1, 1, 7)[:, None], shape)
                sign = -1 if (rule, name) == ("opposite", "z") else 1
                value = sign * (value + self.offset)
            else:
                value = random.uniform(0.1, 1.0, shape)
                value *= self.spread if rule == "translation" else 1.0
            found[name] = value.astype(np.float32)
        return found


CONDITIONS = (
    *(Condition(offset, spread) for spread in (1.0, 0.01) for offset in (0, 100, 1000)),
    Condition(0, 0.01, 100.0),
    Condition(0, 1e-4),
)


def _by_autograd(function: Callable[..., Any], arrays: Arrays, dtype: Any) -> list[Any]:
    args = [torch.tensor(a, dtype=dtype, requires_grad=True) for a in arrays.values()]
    y = function(*args)
    weights = torch.from_numpy(_weights(tuple(y.shape))).to(dtype)
    found = torch.autograd.grad(
        (y * weights).sum(), args, allow_unused=True, materialize_grads=True
    )
    return [gradient.double().numpy() for gradient in found]


def _weights(shape: tuple[int, ...]) -> Any:
    """The cotangent of an output."""
    random = np.random.default_rng(8)
    return random.uniform(0.5, 1.5, shape).astype(np.float32)


def _emitted(module: Any, target: str, rule: str, arrays: Arrays) -> list[Any]:
    if target == "torch":
        return _by_autograd(getattr(module, rule), arrays, torch.float32)
    y, pullback = getattr(module, f"{rule}_vjp")(*arrays.values())
    found = pullback(_weights(np.shape(y)))
    return list(found) if isinstance(found, tuple) else [found]


def _error(found: list[Any], truth: list[Any]) -> float:
    return max(
        float(np.max(np.abs(np.float64(a) - b)) / np.max(np.abs(b)))
        for a, b in zip(found, truth, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Line:
    """Errors of one rule under one condition."""

    rule: str
    condition: Condition
    plain: float
    emitted: Mapping[str, float]

    @property
    def is_good(self) -> bool:
        """True if no error exceeds the bound, an ulp aside."""
        most = BOUND * self.plain + float(np.finfo(np.float32).eps)
        return all(error <= most for error in self.emitted.values())


def lines(rules: list[str]) -> Iterator[Line]:
    """The errors of rules under every condition."""
    parts = RULES.read_text().split("\n\n")
    text = "\n\n".join(part for part in parts if part[5 : part.find("(")] in rules)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 1 / r at equal points
        modules = {t: gradspec.load(text + "\n", target=t) for t in TARGETS}
    for rule in rules:
        for condition in CONDITIONS:
            if rule == "lennard_jones" and condition.width:
                continue  # a lattice has no close pairs
            arrays = condition.arrays(rule)
            truth = _by_autograd(PLAIN[rule], arrays, torch.float64)
            plain = _by_autograd(PLAIN[rule], arrays, torch.float32)
            errors = {
                target: _error(_emitted(module, target, rule, arrays), truth)
                for target, module in modules.items()
            }
            yield Line(rule, condition, _error(plain, truth), errors)


def main() -> None:
    found = list(lines(sys.argv[1:] or list(PLAIN)))
    print(
        f"{'rule':20} {'data':>12} {'plain':>8}" + "".join(f"{t:>9}" for t in TARGETS)
    )
    for line in found:
        errors = "".join(f"{line.emitted[t]:9.0e}" for t in TARGETS)
        mark = "" if line.is_good else " *"
        print(f"{line.rule:20} {line.condition!s:>12} {line.plain:8.0e}{errors}{mark}")
    good = sum(line.is_good for line in found)
    print(f"{good} of {len(found)} within {BOUND:g} times the plain formula's error")


if __name__ == "__main__":
    main()
