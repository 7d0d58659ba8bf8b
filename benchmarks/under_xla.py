"""Which shipped rules lose digits under XLA, that TensorFlow alone has.

    python benchmarks/under_xla.py [rule ...]

Emitted TensorFlow rules in float32, eager and with `jit_compile=True`, each against the
same rule in float64, at 4,096 points for each: outputs, then gradients. A line for each
that XLA makes worse. Those with "blocks" go through XLA when they are large.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import tensorflow as tf

import gradspec

RULES = Path(__file__).parents[1] / "rules"
FILES = ("activations", "losses", "special", "stable")
POINTS, GOOD, TWICE = 4096, 4.5, 2.0
TINY, HUGE = 1.2e-38, 3e38


def main(asked: frozenset[str]) -> None:
    for path in sorted(p for f in FILES for p in (RULES / f).glob("*.grad")):
        module = gradspec.load(path, target="tf")
        text = Path(str(module.__file__)).read_text("utf-8")
        for name in module.__all__:
            is_rule = inspect.isfunction(getattr(module, name))
            if is_rule and (not asked or name in asked):
                for line in _lines(module, name):
                    blocks = f"@_in_blocks\ndef _{name}(" in text
                    print(f"{path.stem}.{name} {line}{' blocks' * blocks}", flush=True)


def _lines(module: ModuleType, name: str) -> Iterator[str]:
    rule = getattr(module, name)
    kinds = inspect.signature(rule).parameters.values()
    numbers = [p for p in kinds if p.kind is not p.KEYWORD_ONLY]
    drawn = _drawn(len(numbers))
    single = tuple(tf.constant(x) for x in drawn)
    double = tuple(tf.constant(x.astype(np.float64)) for x in drawn)
    run = _passes(rule)
    try:
        plain, true = run(*single), run(*double)
        compiled = tf.function(run, jit_compile=True, autograph=False)(*single)
    except (TypeError, ValueError, tf.errors.OpError) as error:
        yield f"not measured: {str(error).splitlines()[0][:60]}"
        return
    for number, values in enumerate(zip(plain, compiled, true, strict=True)):
        eager, xla, truth = (value.numpy() for value in values)
        (most, lost), (worst, wrong) = _errors(eager, truth), _errors(xla, truth)
        if wrong > lost or worst > max(GOOD, TWICE * most):
            yield f"{number}: {most:.1f} ULP, {lost} bad; XLA {worst:.1f}, {wrong}"


def _passes(rule: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
    """Outputs and gradients."""

    def run(*inputs: Any) -> tuple[Any, ...]:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = rule(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        found = tape.gradient(list(outputs), inputs)
        return (*outputs, *(g for g in found if g is not None))

    return run


def _drawn(inputs: int) -> np.ndarray:
    """Magnitudes of the core; of several inputs some nearly equal; some in (0, 1)."""
    random = np.random.default_rng(0)
    shape, part = (inputs, POINTS), POINTS // 4
    drawn = 2.0 ** random.uniform(-12, 7, shape)
    near = 1 + 0.1 * random.standard_normal((inputs, part))
    drawn[:, :part] = drawn[:1, :part] * near
    drawn[:, : 2 * part] *= np.sign(random.standard_normal((inputs, 2 * part)))
    drawn[:, -part:] = random.uniform(0, 1, (inputs, part))
    return drawn.astype(np.float32)


def _errors(value: np.ndarray, true: np.ndarray) -> tuple[float, int]:
    """The largest error in ULP, and how many are NaN, infinite or 0 for a normal number."""
    size = np.abs(true)
    normal = np.isfinite(true) & (size > TINY) & (size < HUGE)
    bad = normal & (~np.isfinite(value) | (value == 0))
    rest = normal & ~bad
    steps = np.spacing(size[rest].astype(np.float32)).astype(np.float64)
    errors = np.abs(value[rest].astype(np.float64) - true[rest]) / steps
    return float(errors.max(initial=0)), int(bad.sum())


if __name__ == "__main__":
    main(frozenset(sys.argv[1:]))
