"""All paths through a site, under the first hypothesis about ranks that fits."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, product

from gradspec.lift import of_jax, of_tf, of_torch
from gradspec.lift.conditions import Decisions, Key
from gradspec.lift.expressions import STEPS
from gradspec.lift.machine import Machine
from gradspec.lift.project import Module, Project
from gradspec.lift.reading import Lifted, Ranks, Reading, Site, is_call
from gradspec.lift.values import CannotLift, Fork, IsBroken, words
from gradspec.symbolic.limit import Effort

_MOST_PATHS, _MOST_FORKS, _MOST_HYPOTHESES = 8, 5, 90
_OF_SHAPES = ("shape", "gradient shape")
_OF_PATHS = ("dead", "python", "tangent")
_FINAL = words(
    "effort structure kernel communication autograd import random loop callback reshape"
    " function module unknown indexing aliasing"
)


def sites_of(module: Module, project: Project) -> Iterator[Site]:
    """Every hand-written gradient of a file, in its order."""
    machine = Machine("torch", Decisions({}, set()), False, project)
    places = tuple(_definitions(module.tree))
    found: list[Site] = []
    for finder in (of_torch.sites, of_tf.sites, of_jax.sites):
        project.effort = Effort(STEPS + 50 * len(places))
        found += finder(module, project, machine, iter(places))
    yield from sorted(found, key=lambda site: site.line)


def _definitions(tree: ast.Module) -> Iterator[tuple[ast.AST, tuple[ast.AST, ...]]]:
    """Every class, function and call with a name, with the classes and functions
    around it."""
    todo: list[tuple[ast.AST, tuple[ast.AST, ...]]] = [(tree, ())]
    while todo:
        node, around = todo.pop()
        is_scope = isinstance(node, ast.FunctionDef | ast.ClassDef)
        if is_scope or (isinstance(node, ast.Assign) and is_call(node.value)):
            yield node, around
        inner = (*around, node) if is_scope else around
        todo += [
            (c, inner)
            for c in ast.iter_child_nodes(node)
            if isinstance(c, ast.stmt | ast.ExceptHandler)
        ]


def hypotheses(names: Sequence[str], hints: Mapping[str, int]) -> Iterator[Ranks]:
    """Ranks of inputs, the likeliest first: elementwise; rows; fixed ranks, smaller ones
    first; then the same with square matrices. Of some the code says the rank."""
    count = len(names)
    if hints:
        yield from _ranks_with_hints(names, hints)
        return
    yield Ranks(((True, 0),) * count)
    yield Ranks(((True, 1),) * count)
    for ranks in product(((True, 1), (False, 1), (False, 0)), repeat=min(count, 4)):
        if count > 1 and ranks[0] == (True, 1) and len(set(ranks)) > 1:
            yield Ranks(ranks)
    for is_square in (False, True):
        if count > 4:
            for rank, number in product((2, 1, 3, 4), (1, 2)):
                fixed = (rank,) * number + (0,) * (count - number)
                yield Ranks(tuple((False, k) for k in fixed), is_square)
            continue
        most = {1: 5, 2: 5, 3: 4}.get(count, 3)
        order = "21034"
        every = [r for r in product(range(most), repeat=count) if max(r) > 0]
        every.sort(key=lambda r: (max(r) > 2, [order.index(str(k)) for k in r]))
        for fixed in every:
            if not is_square or max(fixed) > 1:
                yield Ranks(tuple((False, k) for k in fixed), is_square)


def _ranks_with_hints(
    names: Sequence[str], hints: Mapping[str, int]
) -> Iterator[Ranks]:
    most = max(hints.values())
    pools = [(hints[n],) if n in hints else (1, 0, *range(2, most + 1)) for n in names]
    for is_square in (False, True):
        for ranks in product(*pools):
            if not is_square or max(ranks) > 1:
                yield Ranks(tuple((False, k) for k in ranks), is_square)


@dataclass(frozen=True)
class Paths:
    """The paths of a site under one hypothesis."""

    lifted: tuple[Lifted, ...]
    ranks: Ranks


def lift_site(site: Site, project: Project) -> Iterator[Paths]:
    """The paths under each hypothesis that fits, lazily: a verdict looks at the next only
    if it has a doubt.

    Raises:
        CannotLift: no hypothesis fits.
    """
    first: CannotLift | None = None
    misfits: set[tuple[tuple[bool, int], ...]] = set()
    is_found = False
    tried = list(islice(hypotheses(*_arrays(site, project)), _MOST_HYPOTHESES))
    for ranks in tried:
        if ranks.with_more_axes().ranks in misfits and ranks.with_more_axes() != ranks:
            continue
        try:
            lifted = explore(site, project, ranks)
        except CannotLift as fault:
            if fault.kind == "gradient shape":
                misfits.add(ranks.ranks)
            if (
                first is None
                or (first.kind == "shape" and fault.kind == "gradient shape")
                or (first.kind == "shape" and fault.kind not in _OF_SHAPES)
            ):
                first = fault
            if fault.kind == "effort" or (fault.kind in _FINAL and not is_found):
                raise
        else:
            is_found = True
            yield Paths(lifted, ranks)
    if not is_found:
        assert first is not None
        raise first


def _arrays(site: Site, project: Project) -> tuple[list[str], dict[str, int]]:
    """The inputs with elements, and the ranks of those whose shapes are unpacked."""
    hints: dict[str, int] = {}
    names: list[str] = [""]
    for _ in range(3):
        ranks = Ranks(tuple((n not in hints, hints.get(n, 0)) for n in names))
        reading = Reading(site, project, ranks, {})
        with suppress(CannotLift, Fork):
            _read(reading)
        names = [v.name for v in reading.inputs if not v.is_static] or [""]
        found = {n: k for n, k in reading.machine.hints.items() if n in names}
        if not found:
            break
        hints |= found
    return names, hints


def explore(site: Site, project: Project, ranks: Ranks) -> tuple[Lifted, ...]:
    """All paths through conditions that the files leave open."""
    done: list[Lifted] = []
    faults: list[CannotLift] = []
    todo: list[dict[Key, bool]] = [{}]
    while todo:
        taken = todo.pop()
        reading = Reading(site, project, ranks, taken)
        try:
            _read(reading)
            done.append(reading.rule())
        except Fork as fork:
            if len(taken) >= _MOST_FORKS or len(done) + len(todo) >= _MOST_PATHS:
                raise CannotLift(
                    "branch", "too many open conditions", site.node
                ) from None
            todo += [{**taken, fork.key: False}, {**taken, fork.key: True}]
        except IsBroken as fault:
            if not taken:
                raise
            faults.append(fault)
        except CannotLift as fault:
            if fault.kind not in _OF_PATHS or not taken:
                raise
            faults.append(fault)
    if not done:
        every_broken = all(isinstance(f, IsBroken) for f in faults)
        raise faults[0] if every_broken else _first_other(faults)
    return tuple(done)


def _first_other(faults: Sequence[CannotLift]) -> CannotLift:
    return next(f for f in faults if not isinstance(f, IsBroken))


def _read(reading: Reading) -> None:
    try:
        reading.site.read(reading)
    except RecursionError:
        told = "expressions that are too deep"
        raise CannotLift("effort", told, reading.site.node) from None
