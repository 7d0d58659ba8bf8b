"""Targets: one package each, which turns the programs of rules into text.

A target is any object with the interface :class:`gradspec.targets.target.Target`. Those
of other packages are found by the entry point group ``gradspec.targets`` and loaded on
request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradspec.diagnostics import Outcome
    from gradspec.plan.plan import ModulePlan
    from gradspec.targets.target import Emitted

TARGETS = ("numpy", "torch", "tf", "jax")
GROUP = "gradspec.targets"


def outside_targets() -> tuple[str, ...]:
    """The names of the targets that other installed packages offer."""
    from importlib.metadata import entry_points

    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def emit(
    plan: ModulePlan, target: str, *, trace: bool = False, costs: bool = False
) -> Outcome[Emitted]:
    """ModulePlan → Emitted. With ``trace`` the module prints its values, with ``costs``
    it comes with the cost summaries of its rules.

    A rule that the target does not support (GS501), or that has a name reserved by the
    emitted text (GS503), is an error and is left out; one that cannot be emitted yet is
    a warning (GS502). ValueError when there is no such target.
    """
    from gradspec.targets.emitting import emit_module

    return emit_module(plan, target, trace=trace, costs=costs)
