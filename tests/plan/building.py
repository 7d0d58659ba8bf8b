"""Rules built by hand from formulas, for the tests of planning."""

from __future__ import annotations

from fractions import Fraction

from gradspec.ir.rule import (
    Chosen,
    Complete,
    Definition,
    Input,
    Judged,
    Kind,
    Origin,
    Output,
    Role,
    Shape,
    Status,
    Verdict,
)
from gradspec.plan.arrays import Expr
from gradspec.plan.plan import RulePlan
from gradspec.plan.planning import plan_rule
from gradspec.plan.sharing import Words
from gradspec.primitives.lookup import formula
from gradspec.targets.expressions import Scope, render
from gradspec.targets.numpy.dialect import DIALECT
from gradspec.targets.target import Page

WORDS = Words(lambda expr: expr, frozenset({"np"}))


def text(expr: Expr, scalars: frozenset[str] = frozenset(), like: str = "x") -> str:
    """The expression in NumPy."""
    return render(expr, Scope(DIALECT, Page("f.py", ()), scalars, scalars, like))


def rule(
    inputs: str,
    forward: dict[str, str],
    outputs: str,
    backward: dict[str, str],
    *,
    overrides: frozenset[str] = frozenset(),
    saves: tuple[str, ...] = (),
    recomputes: tuple[str, ...] = (),
) -> RulePlan:
    """The plan of a rule. ``inputs`` as ``"x t:nograd k:static u[]"``."""
    variables = tuple(_input(text) for text in inputs.split())
    definitions = [
        Definition(n, Role.OUTPUT if n in outputs.split() else Role.LOCAL, formula(v))
        for n, v in forward.items()
    ]
    for name, value in backward.items():
        origin = Origin.OVERRIDE if name in overrides else Origin.DERIVED
        cotangent = Definition(name, Role.COTANGENT, formula(value), origin=origin)
        definitions.append(cotangent)
    rule = Complete(
        name="f",
        doc=None,
        inputs=variables,
        outputs=tuple(Output(o, Kind.FLOAT, Shape()) for o in outputs.split()),
        definitions=tuple(definitions),
        saves=saves,
        recomputes=recomputes,
    )
    verdicts = (Verdict(variable.name, Status.DERIVED) for variable in variables)
    return plan_rule(Chosen(Judged(rule, tuple(verdicts)), rule))


def _input(text: str) -> Input:
    name, _, kind = text.partition(":")
    shape = Shape(batch=not name.endswith("[]"))
    default = Fraction(1) if kind == "static" else None
    return Input(name.removesuffix("[]"), Kind(kind or "float"), shape, default)
