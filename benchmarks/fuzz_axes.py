"""Random rules over axes, compiled and run: `fuzz_axes.py [N [SEED [GROUP]]]`.

Each rule is drawn from its own seed (`random_rules.py`), derived, planned, emitted for NumPy
and torch, and called at random sizes, batch shapes and statics. Values, gradients, and
tangents (by their product with a cotangent) are compared with torch's autograd of the
formula in float64 (`formula.py`). One rule in ten goes the whole way, through the checks and
the selection of evaluations; half of these have their derived gradients written out, so
that they are declared and judged. The others are planned as they are derived, in groups of
18. A fault is printed with its seed and its text: `fuzz_axes.py 1 SEED` tries it again. A
written gradient that is refused because it is neither proved nor compared everywhere (GS415)
is counted apart: it is no fault, and the rule is not called.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from types import ModuleType
from typing import Any

import numpy as np
import torch

import gradspec
from benchmarks.formula import Formula, Value
from benchmarks.random_rules import Input, drawn
from gradspec.derive.complete import complete
from gradspec.driver.cache import import_module
from gradspec.ir.expr import show
from gradspec.ir.rule import Chosen, Complete, Judged, Output, Rule, Status, Verdict
from gradspec.pipeline import lower_module, read_module
from gradspec.plan.planning import plan_module
from gradspec.source import Source
from gradspec.targets.emitting import emit

Arrays = Mapping[str, np.ndarray[Any, Any]]

TARGETS = ("numpy", "torch")
POINTS = 2
CLOSE = 1e-8
LONGEST = 4000
STATICS = ((1.5, 2), (2.0, 1), (0.5, 3))


class Fault(Exception):
    """What is wrong with a rule."""


class Undecided(Exception):
    """Why a true gradient is refused that was neither proved nor refuted."""


@dataclass
class Case:
    """A rule that was drawn, with what the compiler reads in it."""

    seed: int
    text: str
    inputs: list[Input]
    rule: Rule

    @property
    def name(self) -> str:
        return self.rule.name


Faults = Iterator[tuple[Case | None, str]]


def case(seed: int) -> Case:
    """The rule of a seed; raises :class:`Fault` if it is not accepted."""
    text, inputs = drawn(Random(seed), f"f{seed}")
    rule = read(text)
    if seed % 20 == 0:
        text = declared(text, rule)
        rule = read(text)
    return Case(seed, text, inputs, rule)


def read(text: str) -> Rule:
    (rule,) = all_of(text)
    return rule


def all_of(text: str) -> tuple[Rule, ...]:
    """The rules of a text; raises :class:`Fault` if they are not accepted."""
    parsed = read_module(Source("f.grad", text))
    lowered = lower_module(parsed.value, {}) if parsed.value else parsed
    for found in (*parsed.diagnostics, *lowered.diagnostics):
        if found.is_error:
            raise Fault(f"{found.code} {found.headline}")
    return tuple(lowered.value.rules)


def _completed(rule: Rule) -> Complete:
    found = complete(rule)
    if found.value is None:
        raise Fault(f"{rule.name}: {[d.headline for d in found.diagnostics]}")
    return found.value


def declared(text: str, rule: Rule) -> str:
    """The rule with its gradients written out, as they are derived."""

    def left(i: str, indices: tuple[str, ...]) -> str:
        return f"d{i}[{', '.join(indices)}]" if indices else f"d{i}"

    lines = [
        f"    {left(e.input, e.indices)} = {show(e.value)}\n"
        for e in _completed(rule).backward
        if e.is_derived
    ]
    whole = text + "".join(lines)
    return whole if len(whole) < LONGEST else text


# --- the point at which a rule is called ------------------------------------------------


@dataclass
class Point:
    """Arrays by input, statics, and the sizes of the axes."""

    arrays: dict[str, np.ndarray[Any, Any]]
    statics: dict[str, float]
    sizes: dict[str, int]


def point(one: Case, r: Random) -> Point:
    a, k = r.choice(STATICS)
    sizes = {"n": r.choice((2, 3, 4)), "m": r.choice((2, 3)), "3": 3}
    random = np.random.default_rng(r.randrange(2**32))
    batches = r.choice((((),), ((2,),), ((2, 1), (3,)), ((2,), (), (3, 1))))
    arrays = {}
    for i in one.inputs:
        batch = r.choice(batches) if i.is_batched else ()
        shape = (*batch, *(sizes[axis] for axis in i.axes))
        if i.points:
            low, high = (
                (-2, sizes[i.points] + 2) if i.is_loose else (0, sizes[i.points])
            )
            arrays[i.name] = random.integers(low, high, shape)
        else:
            drawn_ = random.uniform(0.1, 1.4, shape)
            flip = random.choice([1.0, 1.0, -1.0], shape)
            arrays[i.name] = drawn_ if i.is_positive else drawn_ * flip
    return Point(arrays, {"a": a, "k": k}, sizes)


# --- what it should give ----------------------------------------------------------------


@dataclass
class Expected:
    outputs: list[torch.Tensor]
    leaves: dict[str, torch.Tensor]

    def gradients(self, upstream: list[torch.Tensor]) -> dict[str, torch.Tensor]:
        total = sum(
            ((y * dy).sum() for y, dy in zip(self.outputs, upstream, strict=True)),
            torch.tensor(0.0),
        )
        leaves = [*self.leaves.values()]
        if not total.requires_grad:
            found = [None] * len(leaves)
        else:
            found = torch.autograd.grad(
                total, leaves, retain_graph=True, allow_unused=True
            )
        return {
            n: torch.zeros_like(x) if g is None else g
            for (n, x), g in zip(self.leaves.items(), found, strict=True)
        }


def expected(rule: Rule, at: Point) -> Expected:
    known, leaves = {}, {}
    for i in rule.tensor_inputs:
        tensor = torch.tensor(at.arrays[i.name], dtype=torch.float64)
        if i.takes_gradient:
            leaves[i.name] = tensor.requires_grad_()
        known[i.name] = Value(tensor, torch.tensor(True).expand(tensor.shape))
    for name, value in at.statics.items():
        known[name] = Value(
            torch.tensor(float(value), dtype=torch.float64), torch.tensor(True)
        )
    found = Formula(rule, at.sizes, known).outputs()
    if not all(bool(value.exists.all()) for value in found.values()):
        raise Fault("the formula uses elements that do not exist")
    return Expected([value.of for value in found.values()], leaves)


def shape_of(
    rule: Rule, output: Output, arrays: Arrays, sizes: Mapping[str, int]
) -> tuple[int, ...]:
    """The batch axes of the inputs that the output depends on, or of all if it depends
    on none, and its own axes.
    """
    known = [i for i in rule.tensor_inputs if i.shape.batch and output.shape.batch]
    used = [i for i in known if i.name in output.spans or not output.spans]
    batches = (
        arrays[i.name].shape[: arrays[i.name].ndim - len(i.shape.axes)] for i in used
    )
    own = (a if isinstance(a, int) else sizes[a] for a in output.shape.axes)
    return (*np.broadcast_shapes(*batches), *own)


# --- what it gives ----------------------------------------------------------------------


@dataclass
class Given:
    outputs: list[np.ndarray[Any, Any]]
    gradients: dict[str, np.ndarray[Any, Any]]


def cotangents(outputs: list[Any]) -> list[np.ndarray[Any, Any]]:
    return [np.cos(np.arange(np.size(y)) + 0.4).reshape(np.shape(y)) for y in outputs]


def several(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple | list) else [value]


def by_numpy(one: Case, module: ModuleType, at: Point) -> Given:
    args = [at.arrays[i.name] for i in one.inputs]
    with np.errstate(all="ignore"):
        y, pullback = getattr(module, f"{one.name}_vjp")(*args, **at.statics)
        upstream = cotangents(several(y))
        gradients = several(pullback(*upstream))
        pairs = zip(one.inputs, gradients, strict=True)
        found = {i.name: np.asarray(g) for i, g in pairs if not i.kind}
        moved = {
            n: np.sin(np.arange(g.size) + 1.0).reshape(g.shape)
            for n, g in found.items()
        }
        dots_ = tuple(moved.get(i.name) for i in one.inputs)
        along = getattr(module, f"{one.name}_jvp")(tuple(args), dots_, **at.statics)
    back = sum(float((g * moved[n]).sum()) for n, g in found.items())
    dots = zip(several(along[1]), upstream, strict=True)
    ahead = sum(float((np.asarray(d) * u).sum()) for d, u in dots)
    if not math.isclose(back, ahead, rel_tol=1e-7, abs_tol=1e-7):
        raise Fault(f"numpy: tangents give {ahead}, gradients {back}")
    return Given([np.asarray(v) for v in several(y)], found)


def by_torch(one: Case, module: ModuleType, at: Point) -> Given:
    args = {i.name: torch.tensor(at.arrays[i.name]) for i in one.inputs}
    leaves = {i.name: args[i.name].requires_grad_() for i in one.inputs if not i.kind}
    y = several(getattr(module, one.name)(*args.values(), **at.statics))
    upstream = cotangents([v.detach().numpy() for v in y])
    pairs = [
        (v, torch.tensor(u))
        for v, u in zip(y, upstream, strict=True)
        if v.requires_grad
    ]
    found: Any = [None] * len(leaves)
    if pairs:
        found = torch.autograd.grad(
            [v for v, _ in pairs],
            [*leaves.values()],
            [u for _, u in pairs],
            allow_unused=True,
        )
    named = zip(leaves.items(), found, strict=True)
    gradients = {
        n: np.zeros(x.shape) if g is None else g.numpy() for (n, x), g in named
    }
    return Given([v.detach().numpy() for v in y], gradients)


CALLS = {"numpy": by_numpy, "torch": by_torch}


# --- the comparison ---------------------------------------------------------------------


def differs(given: np.ndarray[Any, Any], wanted: torch.Tensor) -> bool:
    want = wanted.detach().numpy()
    scale = np.max(np.abs(want), initial=0.0) + 1e-3
    return bool(np.any(~(np.abs(given - want) <= CLOSE * scale)))


def compare(one: Case, target: str, module: ModuleType, at: Point) -> None:
    """Raises :class:`Fault` where the module gives something else than the formula."""
    want = expected(one.rule, at)
    if not all(bool(torch.isfinite(y).all()) for y in want.outputs):
        return
    try:
        given = CALLS[target](one, module, at)
    except Fault:
        raise
    except Exception as error:
        raise Fault(f"{target}: {type(error).__name__}: {error}") from error
    upstream = []
    pairs = zip(given.outputs, want.outputs, strict=True)
    for output, (y, wanted) in zip(one.rule.outputs, pairs, strict=True):
        shape = shape_of(one.rule, output, at.arrays, at.sizes)
        if y.shape != shape:
            raise Fault(f"{target}: shape {y.shape}, not {shape}")
        if differs(y, wanted.expand(shape)):
            raise Fault(f"{target}: value {y}, not {wanted.detach().numpy()}")
        upstream.append(torch.tensor(cotangents([y])[0]))
    gradients = want.gradients(upstream)
    for name, gradient in gradients.items():
        if bool(torch.isfinite(gradient).all()) and differs(
            given.gradients[name], gradient
        ):
            if is_at_border(one, at, upstream):
                return
            raise Fault(
                f"{target}: d{name} {given.gradients[name]}, not {gradient.numpy()}"
            )


def is_at_border(one: Case, at: Point, upstream: list[torch.Tensor]) -> bool:
    """True if the gradient jumps near the point: a tie, or an end of a branch."""
    found = []
    for step in (-1e-7, 0.0, 1e-7):
        moved = {
            n: x * (1 + step * np.cos(np.arange(x.size)).reshape(x.shape))
            if x.dtype.kind == "f"
            else x
            for n, x in at.arrays.items()
        }
        found.append(expected(one.rule, replace(at, arrays=moved)).gradients(upstream))
    return any(
        not torch.allclose(found[0][n], other[n], rtol=1e-4, atol=1e-5)
        for other in found[1:]
        for n in found[0]
    )


# --- the way through the compiler -------------------------------------------------------


def planned(rules: Iterable[Rule], targets: Iterable[str]) -> list[ModuleType]:
    """A module for each target with the rules as they are derived."""
    chosen = []
    for rule in map(_completed, rules):
        status = {True: Status.DERIVED, False: Status.NONE}
        verdicts = tuple(Verdict(i.name, status[i.takes_gradient]) for i in rule.inputs)
        chosen.append(Chosen(Judged(rule, verdicts), rule))
    plan = plan_module(Source("f.grad", ""), tuple(chosen))
    modules = []
    for target in targets:
        outcome = emit(plan, target, trace=False)
        if outcome.value is None or outcome.diagnostics:
            found = [d.headline for d in outcome.diagnostics]
            raise Fault(f"{target}: not emitted: {found}")
        modules.append(import_module(outcome.value))
    return modules


def searched(one: Case) -> list[ModuleType]:
    """A module for each target, after all checks and with evaluations selected."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return [gradspec.load(one.text, target, budget=60) for target in TARGETS]
        except gradspec.CompileError as error:
            wrong = {d.code for d in error.diagnostics if d.is_error}
            raise (Undecided if wrong == {"GS415"} else Fault)(str(error)) from error


def tried(group: list[Case], made: Callable[[list[Case]], list[ModuleType]]) -> Faults:
    """The faults of each rule of a group, which is compiled at once if that succeeds."""
    try:
        modules = made(group)
    except Exception as error:
        if len(group) == 1:
            yield group[0], f"{type(error).__name__}: {error}"
        else:
            half = len(group) // 2
            yield from tried(group[:half], made)
            yield from tried(group[half:], made)
        return
    for one in group:
        try:
            for target, module in zip(TARGETS, modules, strict=True):
                r = Random(one.seed)
                for _ in range(POINTS):
                    compare(one, target, module, point(one, r))
        except Exception as fault:
            yield one, f"{type(fault).__name__}: {fault}"


def faults(seeds: Iterable[int]) -> Faults:
    """The faults of the rules of these seeds."""
    group = []
    for seed in seeds:
        try:
            one = case(seed)
        except Exception as fault:
            yield None, f"seed {seed}: {type(fault).__name__}: {fault}"
            continue
        if seed % 10:
            group.append(one)
        else:
            yield from tried([one], lambda alone: searched(alone[0]))
    if group:
        yield from tried(group, lambda some: planned([c.rule for c in some], TARGETS))


def main(count: int = 200, seed: int = 0) -> None:
    found = tested = undecided = 0
    for start in range(seed, seed + count, 20):
        seeds = range(start, min(start + 20, seed + count))
        for one, what in faults(seeds):
            is_fault = not what.startswith(Undecided.__name__)
            found += is_fault
            undecided += not is_fault
            print(
                f"--- seed {one.seed}: {what}\n{one.text}" if one else what, flush=True
            )
        tested += len(seeds)
        told = f"{tested} rules, {found} with a fault, {undecided} refused undecided"
        print(told, file=sys.stderr, flush=True)
    print(told)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
