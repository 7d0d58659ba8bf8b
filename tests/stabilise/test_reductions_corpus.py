"""Every ranked rule of the corpus stays the function that it is, gradients too."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import count

import pytest

from gradspec.derive.indexed import indexed_cotangents
from gradspec.ir.elements import OutOfRange
from gradspec.ir.expr import Expr
from gradspec.ir.rule import Complete, Judged, Kind, Rule
from gradspec.ir.unroll import axis_names, index_inputs, unroll
from gradspec.primitives.lookup import primitive
from gradspec.stabilise.names import Names
from gradspec.stabilise.stabilise import stabilise
from gradspec.symbolic.enclose import enclose
from tests.derive.rules import RULES, rules
from tests.ir.well_formed import verify

_VALUES = ("1/2", "-2", "3", "5/4", "-1/3", "7/8", "-3/2", "2/5", "9/4", "1/7", "-5/6")


@pytest.mark.parametrize("name", RULES)
def test_a_stabilised_rule_is_the_same_function(name: str) -> None:
    rule = _complete(RULES[name])
    stable = stabilise(Judged(rule, ())).rule
    assert verify(stable, lambda op: len(primitive(op).params)) == ()
    for size in (2, 3):
        _compare(rule, stable, size)


def _complete(text: str) -> Complete:
    rule = list(rules(text).values())[-1]
    found = indexed_cotangents(rule).values()
    return Complete.of(rule, *(d for d in found if d.name not in rule.values))


def _compare(rule: Rule, stable: Rule, size: int) -> None:
    sizes = dict.fromkeys(axis_names(rule), size)
    pointing = index_inputs(rule)
    integers = {
        variable.name: [1, 0, 1][:size] if variable.shape.axes else 1
        for variable in rule.inputs
        if variable.name in pointing
    }
    try:
        first, second = (unroll(r, sizes, integers).rule for r in (rule, stable))
    except OutOfRange:  # the rule wants longer axes
        assert size == 2
        return
    point = _point(first)
    exact, chosen = dict(_closed(first)), dict(_closed(second))
    for name, value in chosen.items():
        left, right = enclose(exact[name], point, 256), enclose(value, point, 256)
        if left.is_finite():
            assert right.is_finite() and left.overlaps(right), name
            assert float(right.rad()) < 1e-20


def _closed(rule: Rule) -> Iterator[tuple[str, Expr]]:
    names = Names(rule)
    for let in rule.forward:
        yield let.name, names.close(let.value)
    for entry in rule.backward:
        yield entry.name, names.close(entry.value)


def _point(rule: Rule) -> dict[str, object]:
    numbers = (Fraction(_VALUES[k % len(_VALUES)]) + k // len(_VALUES) for k in count())
    upstream = [f"d{output.name}" for output in rule.outputs]
    values = {
        i.name: i.name.endswith("[0]") if i.kind is Kind.BOOL else next(numbers)
        for i in rule.inputs
    }
    given = {i.name: i.default for i in rule.static_inputs if i.default is not None}
    return {**values, **given, **{name: next(numbers) for name in upstream}}
