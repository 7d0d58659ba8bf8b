"""What each primitive costs on each target, beside what its row says of it.

    python benchmarks/costs.py [--target torch,tf]

A rule for each primitive is compiled as it is written and run on 65,536 numbers of
float32 by one thread (JAX: compiled, a million), less what a call takes on one number, in
multiplications of that target. The time of the process counts, so others may work beside
it. A line for each: the time, and the cost of the row (`primitives/row.py`), starred where
these are more than twice apart. ``select`` is a choice by a condition that varies, ``lt`` a comparison.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # found as a script, too

from primitives import rule  # noqa: E402

from gradspec.driver.discover import discover  # noqa: E402
from gradspec.driver.run import compile_entries  # noqa: E402
from gradspec.options import Options  # noqa: E402
from gradspec.primitives.lookup import (  # noqa: E402
    ROWS,
    is_primitive,
    primitive,
)
from gradspec.primitives.row import Primitive  # noqa: E402

TARGETS = ("numpy", "torch", "tf", "jax")
SIZE, REPEATS, ROUNDS = 65_536, 10, 9
_LONGER = {"jax": 16}
"""How many times longer arrays are where a call takes more than the numbers."""

_APART = 2.0

Thunk = Callable[[], object]
Function = Callable[..., Any]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default=",".join(TARGETS))
    chosen = parser.parse_args(arguments)
    for target in chosen.target.split(","):
        for name, cost in measured(target).items():
            told = said(name)
            row = "-" if told is None else f"{told:g}"
            apart = told is not None and max(cost / told, told / cost) > _APART
            print(f"{target:6} {name:20} {cost:8.3g} {row:>6}{' *' * apart}")
    return 0


def said(name: str) -> float | None:
    """What the row says; nothing of a choice, nor where it has no number."""
    if not is_primitive(name):
        return None
    return primitive(name).cost


def measured(target: str) -> dict[str, float]:
    """The cost of every primitive on a target."""
    size = SIZE * _LONGER.get(target, 1)
    emitted, (run, plain) = _emitted(target), RUNNERS[target]()
    seconds = {
        row.name: _seconds(getattr(emitted, f"p_{row.name}"), _columns(row, size), run)
        for row in functions()
    }
    x, y = _columns(primitive("sub"), size)
    seconds["lt"] = _seconds(plain["lt"], [x, y], run)
    seconds["select"] = _seconds(plain["select"], [x < y, x, y], run)
    return {name: taken / seconds["mul"] for name, taken in seconds.items()}


def functions() -> Iterator[Primitive]:
    """Functions of numbers; no constants, no conditions."""
    yield from (row for row in ROWS if row.result == "real" and row.arity)


def _emitted(target: str) -> ModuleType:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "primitives.grad"
        path.write_text("\n".join(map(rule, functions())), encoding="utf-8")
        options = Options((target,), as_written=True, budget=60.0)
        entries = discover([str(path)]).value or ()
        (result,) = compile_entries(entries, options, 1, lambda _: None)
        faults = [d.headline for d in result.diagnostics if d.is_error]
        if faults:
            raise SystemExit(faults[0])
        made = Path(folder) / f"emitted_{target}.py"
        made.write_text(result.modules[0].text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(made.stem, made)
        assert spec is not None and spec.loader is not None
        found = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
        return found


def _seconds(function: Function, columns: list[Any], run: Function) -> float:
    """Of all numbers, less what a call takes that has one."""
    return _least(run(function, columns)) - _least(
        run(function, [column[:1] for column in columns])
    )


def _least(thunk: Thunk) -> float:
    thunk()
    times = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        for _ in range(REPEATS):
            thunk()
        times.append((time.process_time() - begun) / REPEATS)
    return min(times)


def _columns(row: Primitive, size: int) -> list[Any]:
    """Numbers of both signs where there are any, those of the domain else."""
    random = np.random.Generator(np.random.PCG64(20260101))
    count = sum(kind == "real" for kind in row.argument_types)
    low, high = _RANGES.get(row.name, (0.1, 0.9) if row.domain else (-8.0, 8.0))
    return [random.uniform(low, high, size).astype(np.float32) for _ in range(count)]


_POSITIVE = ("log", "log2", "log10", "sqrt", "rsqrt", "pow", "xlogy", "lgamma", "gamma")
_RANGES = dict.fromkeys((*_POSITIVE, "digamma", "polygamma"), (0.01, 20.0))
_RANGES |= {"acosh": (1.5, 20.0), "log1p": (-0.9, 20.0), "div": (0.5, 8.0)}


Runner = tuple[Function, Mapping[str, Function]]
"""How a function of columns is made a thunk, and plain functions of the framework."""


def _numpy() -> Runner:
    def run(function: Function, columns: list[Any]) -> Thunk:
        def thunk() -> object:
            with np.errstate(all="ignore"):
                return function(*columns)

        return thunk

    return run, {"lt": np.less, "select": np.where}


def _torch() -> Runner:
    import torch

    torch.set_num_threads(1)

    def run(function: Function, columns: list[Any]) -> Thunk:
        inputs = [torch.from_numpy(column) for column in columns]
        return lambda: function(*inputs)

    return run, {"lt": torch.lt, "select": torch.where}


def _tf() -> Runner:
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)

    def run(function: Function, columns: list[Any]) -> Thunk:
        inputs = [tf.constant(column) for column in columns]
        return lambda: function(*inputs).numpy()

    return run, {"lt": tf.less, "select": tf.where}


def _jax() -> Runner:
    import jax

    def run(function: Function, columns: list[Any]) -> Thunk:
        compiled = jax.jit(function)
        inputs = [jax.numpy.asarray(column) for column in columns]
        return lambda: compiled(*inputs).block_until_ready()

    return run, {"lt": jax.numpy.less, "select": jax.numpy.where}


RUNNERS: Mapping[str, Callable[[], Runner]] = {
    "numpy": _numpy,
    "torch": _torch,
    "tf": _tf,
    "jax": _jax,
}


if __name__ == "__main__":
    raise SystemExit(main())
