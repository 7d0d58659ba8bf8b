"""What emitted elementwise rules keep for their backward pass, and the peak of both passes.

    python benchmarks/memory.py             every shipped elementwise rule
    python benchmarks/memory.py --write     also into benchmarks/memory.md
    python benchmarks/memory.py rules/activations

Bytes an element, in float32, beyond inputs and outputs: of the emitted function, of the
formula as written (which the framework differentiates), of the framework's own function
where there is one. How each is measured stands in `benchmarks/kept.py`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # found as a script, too

import numpy as np  # noqa: E402

from benchmarks import kept  # noqa: E402
from benchmarks.library import complete_rules  # noqa: E402
from gradspec.driver import cache  # noqa: E402
from gradspec.driver.discover import Entry, discover  # noqa: E402
from gradspec.driver.run import compile_entries  # noqa: E402
from gradspec.ir.rule import Kind, Rule  # noqa: E402
from gradspec.ir.walk import (  # noqa: E402
    closed_outputs,
    expand,
)
from gradspec.measure.frameworks import audit  # noqa: E402
from gradspec.measure.quantities import is_derivative, written_program  # noqa: E402
from gradspec.options import Options  # noqa: E402
from gradspec.primitives.lookup import is_function  # noqa: E402

PAGE = ROOT / "benchmarks" / "memory.md"
TARGETS = ("torch", "tf", "jax", "numpy")
ELEMENTS = 4096
PEAK_ELEMENTS = 1 << 22
"""Elements, at which peaks are measured on torch, TensorFlow and NumPy."""
BLOCKS = 4.0
"""Bytes an element of that many which the blocks at hand may take."""
_WHOLE = {Kind.INT: np.int64, Kind.BOOL: np.bool_}

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Line:
    """One rule: bytes an element by column (`COLUMNS`), where there is one."""

    rule: str
    cells: Mapping[str, float] = field(default_factory=dict)


COLUMNS = {
    "torch": "torch",
    "torch written": "as written",
    "torch native": "native",
    "tf graph": "TF graph",
    "tf tape": "TF tape",
    "tf written": "as written",
    "jax": "JAX",
    "jax written": "as written",
    "torch peak": "torch peak",
    "torch native peak": "native peak",
    "tf peak": "TF peak",
    "tf native peak": "native peak",
    "jax peak": "JAX peak",
    "jax native peak": "native peak",
    "numpy peak": "NumPy peak",
}
"""The columns of the page by what they show."""

EMITTED = ("torch", "tf graph", "tf tape", "jax")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args(arguments)
    found = tuple(measured(chosen.paths or [str(ROOT / "rules")]))
    text = page(found)
    print(text)
    if chosen.write:
        PAGE.write_text(text, encoding="utf-8")
    return 0


def measured(
    paths: Iterable[str], targets: Sequence[str] = TARGETS, dtype: str = "float32"
) -> Iterator[Line]:
    """All elementwise rules of the paths that have a gradient."""
    entries = discover(tuple(map(str, paths))).value or ()
    results = compile_entries(entries, Options(TARGETS), 1, lambda _: None)
    for entry, result in zip(entries, results, strict=True):
        modules = {
            m.target: cache.import_module(m)
            for m in result.modules
            if m.target in targets
        }
        for rule in _rules(entry):
            yield Line(rule.name, dict(_cells(rule, modules, dtype)))


def _rules(entry: Entry) -> tuple[Rule, ...]:
    rules = complete_rules(Path(entry.display))
    return tuple(r for r in rules if any(i.takes_gradient for i in r.inputs))


def _cells(
    rule: Rule, modules: Mapping[str, ModuleType], dtype: str
) -> Iterator[tuple[str, float]]:
    for target, module in modules.items():
        if hasattr(module, rule.name):
            yield from _OF[target](rule, getattr(module, rule.name), module, dtype)


# --- frameworks -------------------------------------------------------------------------


def _columns(rule: Rule, elements: int) -> list[Any]:
    """An array for each tensor input: of rank 0 where the rule asks for it."""
    draw = np.random.default_rng(0)
    found = []
    for i in rule.tensor_inputs:
        shape = (elements,) if i.shape.batch else ()
        kind = _WHOLE.get(i.kind)
        found.append(
            np.asarray(draw.uniform(0.2, 0.8, shape), "float32")
            if kind is None
            else np.ones(shape, kind)
        )
    return found


def _statics(rule: Rule) -> dict[str, float]:
    """The defaults; 1 where there is none."""
    return {
        i.name: (int if i.kind is Kind.STATIC_INT else float)(
            1 if i.default is None else i.default
        )
        for i in rule.static_inputs
    }


def _torch(
    rule: Rule, function: Function, _: ModuleType, dtype: str
) -> Iterator[tuple[str, float]]:
    import torch

    def tensors(elements: int) -> list[Any]:
        found = []
        for i, column in zip(rule.tensor_inputs, _columns(rule, elements), strict=True):
            tensor = torch.from_numpy(column)
            if tensor.is_floating_point():
                tensor = tensor.to(getattr(torch, dtype))
            found.append(tensor.requires_grad_(i.takes_gradient))
        return found

    sides = _sides(rule, function, "torch", dtype)
    few, many = tensors(ELEMENTS), tensors(PEAK_ELEMENTS)
    for side, call in sides.items():
        yield f"torch{side}", kept.by_torch(call, few) / ELEMENTS
        if side != " written":
            peak = kept.peak_by_torch(call, many) / PEAK_ELEMENTS
            yield f"torch{side} peak", peak


def _tf(
    rule: Rule, function: Function, _: ModuleType, dtype: str
) -> Iterator[tuple[str, float]]:
    import tensorflow as tf

    def tensors(elements: int) -> list[Any]:
        inputs = [tf.constant(column) for column in _columns(rule, elements)]
        return [tf.cast(x, dtype) if x.dtype.is_floating else x for x in inputs]

    sides = _sides(rule, function, "tf", dtype)
    few, many = tensors(ELEMENTS), tensors(PEAK_ELEMENTS)
    yield "tf graph", kept.by_tf(sides[""], few) / ELEMENTS
    yield "tf tape", kept.by_tape(sides[""], few) / ELEMENTS
    if " written" in sides:
        yield "tf written", kept.by_tf(sides[" written"], few) / ELEMENTS
    for side in sides.keys() - {" written"}:
        yield f"tf{side} peak", kept.peak_by_tf(sides[side], many) / PEAK_ELEMENTS


def _jax(
    rule: Rule, function: Function, _: ModuleType, dtype: str
) -> Iterator[tuple[str, float]]:
    import jax.numpy as jnp

    inputs = [jnp.asarray(column) for column in _columns(rule, ELEMENTS)]
    inputs = [
        x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x for x in inputs
    ]
    for side, call in _sides(rule, function, "jax", dtype).items():
        if side != " native":
            yield f"jax{side}", kept.by_jax(call, inputs) / ELEMENTS
        if side != " written":
            yield f"jax{side} peak", kept.peak_by_jax(call, inputs) / ELEMENTS


def _numpy(
    rule: Rule, function: Function, module: ModuleType, dtype: str
) -> Iterator[tuple[str, float]]:
    """Outputs and gradients included, which its peak has to hold."""
    inputs = _columns(rule, PEAK_ELEMENTS)
    statics = _statics(rule)
    pulled = getattr(module, f"{rule.name}_vjp")

    def both() -> Any:
        value, pullback = pulled(*inputs, **statics)
        outputs = kept.several(value)
        pairs = zip(rule.outputs, outputs, strict=True)
        return pullback(*[np.ones_like(y) for o, y in pairs if o.takes_gradient])

    yield "numpy peak", kept.peak_by_numpy(both) / PEAK_ELEMENTS


_OF = {"torch": _torch, "tf": _tf, "jax": _jax, "numpy": _numpy}


def _sides(
    rule: Rule, function: Function, target: str, dtype: str
) -> dict[str, Function]:
    """The emitted function, the formula as written, the framework's own."""
    runner = _runner(target)
    statics = _statics(rule)
    sides = {"": lambda *inputs: function(*inputs, **statics)}
    if is_derivative(rule):
        outputs = {n: expand(e) for n, e in closed_outputs(rule).items()}
        case = {
            "written": written_program(outputs),
            "inputs": [[i.name, i.kind.value] for i in rule.tensor_inputs],
            "dtype": dtype,
            "rule": rule.name,
            "named": is_function(rule.name),
            "statics": statics,
        }
        whole = any(i.kind.value in ("int", "bool") for i in rule.tensor_inputs)
        if target != "tf" or not whole:  # it multiplies no float by an integer
            with suppress(NotImplementedError):  # a function that the framework lacks
                sides[" written"] = _written(runner, case, statics)
        native = runner.Setting.library().native(case)
        if native is not None:
            sides[" native"] = lambda *inputs: native(*inputs, **statics)
    return sides


def _written(runner: ModuleType, case: Any, statics: Mapping[str, float]) -> Function:
    number = partial(audit.constant, runner.Setting, case)
    formula = audit.as_written(runner.Setting.library(), case, number)
    return lambda *inputs: formula(
        *inputs, **{n: number(v) for n, v in statics.items()}
    )


def _runner(target: str) -> ModuleType:
    """The runner of a target, which knows the framework's functions."""
    return import_module(f"gradspec.measure.frameworks.on_{target}")


# --- the page ---------------------------------------------------------------------------

HEAD = """\
# What elementwise rules keep

`python benchmarks/memory.py --write`: bytes an element in float32 that are kept between
the forward and the backward pass beyond inputs and outputs, of the emitted function
(torch: saved tensors; TF: what a `tf.function` hands to its backward graph, and what is
alive under an eager tape; JAX: the arrays in the function that `jax.vjp` gives), of the
formula as written with the framework's differentiation, and of its own function. Peaks
are the most bytes an element allocated at once in forward and backward, outputs and
gradients among them (torch: its profiler; TF: eager tensors alive; JAX: XLA's account of
both passes compiled together; NumPy: `tracemalloc`). Those of torch, TF and NumPy are at
4,194,304 elements. (What XLA takes inside an operation of TF's is no tensor:
`python benchmarks/resident.py` compares the whole process's memory.)

{totals}
"""


def page(found: Sequence[Line]) -> str:
    """The page: totals, then a table."""
    heads = [*COLUMNS.values()]
    lines = [
        HEAD.format(totals="\n".join(f"* {line}" for line in totals(found))),
        f"| rule | {' | '.join(heads)} |",
        f"| --- |{' --- |' * len(heads)}",
    ]
    for line in sorted(found, key=lambda line: line.rule):
        cells = (_cell(line.cells.get(column)) for column in COLUMNS)
        lines.append(f"| {line.rule} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(value: float | None) -> str:
    return "" if value is None else f"{round(value, 1):g}"


def totals(found: Sequence[Line]) -> Iterator[str]:
    """How many rules keep nothing, and how peaks compare."""
    for column in (*EMITTED, "torch written", "tf written", "jax written"):
        values = [line.cells[column] for line in found if column in line.cells]
        none = sum(round(value, 1) == 0 for value in values)
        if values:
            most = max(values)
            yield f"{column}: {none} of {len(values)} keep nothing; at most {most:.4g}"
    for target in ("torch", "tf", "jax"):
        yield from _beside_native(found, f"{target} peak", f"{target} native peak")


def _beside_native(found: Sequence[Line], ours: str, native: str) -> Iterator[str]:
    both = {
        line.rule: (line.cells[ours], line.cells[native])
        for line in found
        if native in line.cells
    }
    above = sorted(rule for rule, (own, other) in both.items() if own > other + BLOCKS)
    if both:
        count = f"{len(both) - len(above)} of {len(both)}"
        names = f" (higher: {', '.join(above)})" if above else ""
        yield f"{ours} no higher than the native function's (+ {BLOCKS:g}): {count}{names}"


if __name__ == "__main__":
    raise SystemExit(main())
