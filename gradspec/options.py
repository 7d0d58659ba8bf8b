"""The options of a compilation."""

from __future__ import annotations

from dataclasses import dataclass

BUDGET_SECONDS = 10.0
"""Seconds that the proofs and searches of one rule may take, by default."""

AUDIT_POINTS = 4000
"""Points of an audit in each stratum, by default."""


@dataclass(frozen=True, slots=True)
class Options:
    """``strict``: a cotangent that only agrees is an error. ``trace``: emitted modules
    print the values that pass through them. ``budget``: seconds a rule for proof and
    search. ``order``: 2 to have second derivatives checked too. ``as_written``: no
    other evaluation is sought. ``report``: the cost of each rule is reported.
    ``ignored``: codes of diagnostics that are not reported (see `gradspec.ignoring`).
    """

    targets: tuple[str, ...] = ()
    strict: bool = False
    trace: bool = False
    budget: float = BUDGET_SECONDS
    order: int = 1
    as_written: bool = False
    report: bool = False
    ignored: tuple[str, ...] = ()


SIDES = ("emitted", "native", "written")
"""The implementations that an audit measures."""


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """``points``: about how many in each stratum. ``order``: of the highest derivative
    measured. ``rules``: names; all where there is none. ``sides``: what is measured
    beside the emitted functions, the framework's own and the formulas as written.
    """

    dtypes: tuple[str, ...] = ("float32",)
    order: int = 1
    points: int = AUDIT_POINTS
    jobs: int = 1
    rules: tuple[str, ...] = ()
    sides: tuple[str, ...] = SIDES
