"""Guesses at conditionals: branches that are right, chosen by a wrong condition."""

from __future__ import annotations

from collections.abc import Iterator

from gradspec.checks.guess import Case, Guess, put, quoted
from gradspec.ir.expr import Apply, Const, Expr, Ref, Select, apply
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import nodes
from gradspec.primitives.balls import truth
from gradspec.symbolic.breaks import RELATIONS
from gradspec.symbolic.enclose import program
from gradspec.symbolic.meant import PRECISION, Place, evaluate


def wrong_condition(case: Case) -> Guess | None:
    """Each point wants the value of one of the branches, but not the one it gets."""
    for place in case.places:
        if isinstance(place.node, Select):
            wanted = _wanted(case, place, place.node)
            if wanted:
                return _told(case, place, place.node, wanted)
    return None


def _wanted(case: Case, place: Place, node: Select) -> dict[int, bool]:
    """Which branch each point needs, where they differ; empty if neither will do."""
    points = case.scene.points
    branches = evaluate(node.then, points), evaluate(node.other, points)
    wanted: dict[int, bool] = {}
    for index, rows in enumerate(zip(place.meant, *branches, strict=True)):
        meant, *values = rows
        if meant is None:
            continue
        fits = [v is not None and bool(v.overlaps(meant)) for v in values]
        if not any(fits):
            return {}
        if not all(fits):
            wanted[index] = fits[0]
    return wanted


def _told(case: Case, place: Place, node: Select, wanted: dict[int, bool]) -> Guess:
    condition = node.condition
    for old, new in _changes(case, condition):
        changed = put(condition, old, new)
        if _chooses(case, changed, wanted):
            told = f"{quoted(old)} should be {quoted(new)} in the condition"
            whole = Select(changed, node.then, node.other)
            return Guess(f"{told} {quoted(condition)}", place, whole, old.span)
    told = f"the condition {quoted(condition)} takes the wrong branch"
    return Guess(told, place, part=condition.span)


def _chooses(case: Case, condition: Expr, wanted: dict[int, bool]) -> bool:
    """Whether the condition gives each point its branch, and each branch some point: a
    branch that is always taken needs no condition."""
    compiled = program(condition)
    points = case.scene.points
    sides = [truth(compiled.run(point, PRECISION)[0]) for point in points]
    is_choice = True in sides and False in sides
    return is_choice and all(sides[index] is side for index, side in wanted.items())


def _changes(case: Case, condition: Expr) -> Iterator[tuple[Expr, Expr]]:
    """One part of a condition for another."""
    for node in nodes(condition):
        match node:
            case Ref():
                yield node, apply("abs", node)
                yield node, tidy(apply("neg", node))
                yield from ((node, Ref(n)) for n in case.names if Ref(n) != node)
            case Apply(op=op, args=(left, right)) if op in RELATIONS:
                yield node, apply(op, right, left)
                yield node, apply(op, apply("abs", left), right)
                yield node, apply(op, apply("neg", left), right)
                limits = (apply(op, left, limit) for limit in _numbers(case))
                yield from ((node, changed) for changed in limits if changed != node)
            case _:
                continue


def _numbers(case: Case) -> tuple[Expr, ...]:
    """The numbers of the forward."""
    texts = case.claim.instance.forward.values()
    found = (n for text in texts for n in nodes(text) if isinstance(n, Const))
    return tuple(dict.fromkeys(found))
