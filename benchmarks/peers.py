"""The same mutants before ``torch.autograd.gradcheck`` and ``jax.test_util.check_grads``.

Each is emitted by gradspec's own target as an ``override``, so that what is compared are
the wrong backward and the quotients of the right forward. Tolerances are the defaults.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from benchmarks.exact import Values, plain_points
from benchmarks.mutants import Mutant
from gradspec.checks.check import check
from gradspec.driver.cache import import_module
from gradspec.ir.rule import Chosen, Definition, Input, Kind, Origin, Role, Rule
from gradspec.ir.walk import follows_surrogate
from gradspec.plan.planning import plan_module
from gradspec.source import Source
from gradspec.targets.emitting import emit

ELEMENTS = 5
_WHOLE: dict[Kind, type] = {Kind.BOOL: bool, Kind.INT: int}

Function = Callable[..., Any]
LetsPass: TypeAlias = Mapping[int, Mapping[str, bool]]
"""By the place of a mutant and the name of a peer."""
Check = Callable[[Function, Rule, Sequence[np.ndarray[Any, Any]]], bool]


def by_gradcheck(
    function: Function, rule: Rule, columns: Sequence[np.ndarray[Any, Any]]
) -> bool:
    """Whether torch lets it pass."""
    import torch

    tensors = [
        torch.tensor(column).requires_grad_(variable.kind is Kind.FLOAT)
        for variable, column in zip(rule.tensor_inputs, columns, strict=True)
    ]
    return bool(torch.autograd.gradcheck(function, tensors, raise_exception=False))


def by_check_grads(
    function: Function, rule: Rule, columns: Sequence[np.ndarray[Any, Any]]
) -> bool:
    """Whether JAX lets it pass: reverse mode, in double precision."""
    import jax
    from jax.test_util import check_grads

    places = [k for k, v in enumerate(rule.tensor_inputs) if v.kind is Kind.FLOAT]

    def of_floats(*floats: Any) -> Any:
        given: list[Any] = list(columns)
        for place, value in zip(places, floats, strict=True):
            given[place] = value
        return function(*given)

    with jax.enable_x64(True):
        floats = [jax.numpy.asarray(columns[place]) for place in places]
        try:
            check_grads(of_floats, floats, order=1, modes=("rev",))
        except AssertionError:
            return False
    return True


PEERS: dict[str, tuple[str, Check]] = {
    "torch.autograd.gradcheck": ("torch", by_gradcheck),
    "jax.test_util.check_grads": ("jax", by_check_grads),
}


def has_quotients(rule: Rule) -> bool:
    """Quotients of the forward can judge the backward: no surrogates."""
    return not follows_surrogate(rule) and not rule.overrides


def passed(mutants: Sequence[Mutant]) -> LetsPass:
    """Which peers let each mutant pass, by its place; without those whose right backward
    some peer does not let pass either (or cannot compute)."""
    found = {name: _passed(mutants, *peer) for name, peer in PEERS.items()}
    return {
        k: {name: of[k] for name, of in found.items()}
        for k in range(len(mutants))
        if all(k in of for of in found.values())
    }


def _passed(mutants: Sequence[Mutant], target: str, peer: Check) -> dict[int, bool]:
    rules = [
        _overridden(m, f"{word}_{k}", values)
        for k, m in enumerate(mutants)
        for word, values in (("wrong", m.values), ("right", m.truths))
    ]
    plan = plan_module(Source("mutants.grad", ""), tuple(rules))
    emitted = emit(plan, target, trace=False)
    assert emitted.value is not None, emitted.diagnostics
    module = import_module(emitted.value)
    found: dict[int, bool] = {}
    for k, mutant in enumerate(mutants):
        wrong, right = (getattr(module, f"{w}_{k}", None) for w in ("wrong", "right"))
        points = plain_points(mutant.rule, 4 * ELEMENTS)
        if wrong is None or right is None or not points:
            continue
        if _passes(mutant.rule, right, points, peer):
            found[k] = _passes(mutant.rule, wrong, points, peer)
    return found


def _overridden(
    mutant: Mutant, name: str, values: tuple[tuple[str, Any], ...]
) -> Chosen:
    what, origin = Role.COTANGENT, Origin.OVERRIDE
    wrong = (
        Definition(f"d{n}", what, value, origin=origin, reason="a mutant")
        for n, value in values
    )
    changed = mutant.rule.redefine(*wrong)
    changed = replace(changed, name=name, saves=(), recomputes=())
    checked = check(replace(changed, examples=()), budget=0.0).value
    assert checked is not None
    return Chosen(checked, checked.rule)


def _passes(
    rule: Rule, function: Function, points: tuple[Values, ...], peer: Check
) -> bool:
    names = [i.name for i in rule.static_inputs]
    usual = Counter(tuple(p[n] for n in names) for p in points).most_common(1)[0][0]
    same = [p for p in points if tuple(p[n] for n in names) == usual][:ELEMENTS]
    statics = {
        i.name: _number(i.kind, v)
        for i, v in zip(rule.static_inputs, usual, strict=True)
    }
    columns = [_column(i, [p[i.name] for p in same]) for i in rule.tensor_inputs]
    return peer(lambda *given: function(*given, **statics), rule, columns)


def _number(kind: Kind, value: Fraction) -> int | float:
    return int(value) if kind is Kind.STATIC_INT else float(value)


def _column(variable: Input, values: list[Fraction]) -> np.ndarray[Any, Any]:
    """A column of values; one of them if the variable is a scalar."""
    given = values if variable.shape.batch else values[0]
    column = np.array(given, dtype=object)
    return column.astype(_WHOLE.get(variable.kind, float))
