"""Peak memory of emitted rules over axes on NumPy: forward and backward, and forward mode.

    python benchmarks/peaks.py [FILE...]

In units of inputs, outputs and gradients together (for forward mode: tangents). A named
axis has 48 elements, a window 3, batch axes together 48; a tenth of the numbers are exactly 0, at
which rectifiers have their kinks. Without files: the shipped rules and `peaks.grad`.
"""

from __future__ import annotations

import sys
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # found as a script, too

import numpy as np  # noqa: E402

import gradspec  # noqa: E402

FILES = (*sorted(ROOT.glob("rules/tensor/*.grad")), ROOT / "benchmarks" / "peaks.grad")
LIMIT = 4.0
SIZE, BATCH, WINDOW = 48, 48, 3
LEAST = 1e5
"""Bytes that any rule may take."""

_PAIRS = "differences of rows: their sums apart lose the digits of a common offset"
_PREFIXES = "sums of prefixes are sums under a condition until there are recurrences"

_WINDOWS = SIZE - WINDOW + 1
_SIZES = "segment_sum segment_mean segment_max pad pad_reflect pad_replicate"

FITTING: dict[str, dict[str, float]] = {
    "conv1d": {"m": _WINDOWS},
    "conv1d_channels": {"m": _WINDOWS},
    "conv1d_strided": {"s": 1, "d": 1, "m": _WINDOWS},
    "conv1d_transposed": {"n": SIZE + WINDOW - 1},
    "unfold": {"k": WINDOW, "s": 1, "m": _WINDOWS},
    "pixel_shuffle": {"a": SIZE, "b": SIZE},
    "quantile": {"q": 0.5},
    **{name: {"m": SIZE} for name in _SIZES.split()},
    **{f"upsample_{name}": {"m": SIZE} for name in ("nearest", "linear")},
}
"""Sizes of outputs that the inputs fit to, and a level that is one."""

ALLOWED = {
    **dict.fromkeys(("pairwise_squared_distance", "rbf_kernel"), _PAIRS),
    "sparsemax": _PREFIXES,
    "pixel_shuffle": "positions on several axes are taken one axis after the other",
}
"""Rules that may take more, each with the reason."""


@dataclass(frozen=True, slots=True)
class Line:
    """The peaks of one rule."""

    rule: str
    backward: float
    tangent: float

    @property
    def is_good(self) -> bool:
        """True if neither exceeds the limit, unless a reason is given."""
        return self.rule in ALLOWED or max(self.backward, self.tangent) <= LIMIT


def lines(path: Path) -> Iterator[Line]:
    """The peaks of every rule over axes in a file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = gradspec.load(path)
    for rule in vars(module).values():
        if isinstance(rule, type) and getattr(rule, "_axes", None):
            yield _line(rule)


def arguments(rule: Any, size: int, batch: int) -> list[Any]:
    """An array for each input; other numbers for each run of positions."""
    random = np.random.default_rng(7)
    named = {a for text in rule._axes.values() for a in text.split() if a.isalpha()}
    found: list[Any] = []
    for name, kind in rule._kinds.items():
        axes = [batch if a == "..." else a for a in rule._axes.get(name, "").split()]
        shape = tuple(int(a) if str(a).isdigit() else size for a in axes)
        if kind in ("floating", "nograd"):
            value = np.asarray(random.uniform(0.05, 1.0, shape))
            value[random.random(shape) < 0.1 * bool(shape)] = 0.0
            found.append(value)
        elif kind == "integer":
            found.append(random.integers(0, size, shape))
        elif kind == "boolean":
            found.append(random.random(shape) < 0.5)
        else:
            found.append(1.5 if kind == "number" else size if name in named else 2)
    return found


def _line(rule: Any) -> Line:
    values = arguments(rule, SIZE, BATCH)
    for place, name in enumerate(rule._kinds):
        values[place] = FITTING.get(rule._name, {}).get(name, values[place])
        if name == "w" and "conv" in rule._name:
            values[place] = values[place][..., :WINDOW]
    arrays = [v for v in values if isinstance(v, np.ndarray)]
    outputs, pullback = rule(*values).vjp()
    results = outputs if isinstance(outputs, tuple) else (outputs,)
    given = [r for k, r in enumerate(results) if k not in rule._constant]
    above = [np.ones(np.shape(result)) for result in given]
    held = [*arrays, *results, *(g for g in pullback(*above) if g is not None)]
    unit = max(LEAST, sum(array.nbytes for array in held))
    tangents = [np.ones(a.shape) if a.dtype.kind == "f" else None for a in arrays]
    del outputs, pullback, held

    def both() -> None:
        _, pullback = rule(*values).vjp()
        pullback(*above)

    along = given and (rule.pushforward or rule.pullback)
    pushed = _peak(lambda: rule(*values).jvp(tangents)) if along else 0.0
    return Line(rule._name, _peak(both) / unit, pushed / unit)


def _peak(call: Callable[[], object]) -> float:
    tracemalloc.start()
    try:
        call()
        return float(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


def main() -> int:
    paths = [Path(name) for name in sys.argv[1:]] or FILES
    found = [line for path in paths for line in lines(path)]
    for line in sorted(found, key=lambda line: -max(line.backward, line.tangent)):
        reason = ALLOWED.get(line.rule, "" if line.is_good else "MORE")
        print(f"{line.rule:28} {line.backward:6.1f} {line.tangent:6.1f}  {reason}")
    good = sum(line.is_good for line in found)
    print(f"{good} of {len(found)} within {LIMIT:g} times what they are given and give")
    return int(good < len(found))


if __name__ == "__main__":
    sys.exit(main())
