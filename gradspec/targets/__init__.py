"""Targets: one module each, which turns a plan into text.

A target is anything with what :class:`gradspec.targets.target.Target` asks for. Those of
other packages are found by the entry point group ``gradspec.targets`` and loaded when
asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradspec.diagnostics import Outcome
    from gradspec.plan.account import Account
    from gradspec.plan.plan import ModulePlan
    from gradspec.targets.target import EmittedModule

TARGETS = ("numpy", "torch", "tf", "jax")
GROUP = "gradspec.targets"


def outside_targets() -> tuple[str, ...]:
    """The names of the targets that other installed packages offer."""
    from importlib.metadata import entry_points

    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def transposes(target: str) -> bool:
    """Whether the target is told tangents, and transposes them to gradients. ValueError
    when there is no such target.
    """
    from gradspec.targets import emission

    return emission.transposes(target)


def accounts(plan: ModulePlan, target: str) -> tuple[Account, ...]:
    """What the rules of a module cost on a target, in their order."""
    from gradspec.targets import emission

    return emission.accounts(plan, target)


def emit(
    plan: ModulePlan, target: str, *, trace: bool = False
) -> Outcome[EmittedModule]:
    """ModulePlan → EmittedModule. With ``trace`` the module prints what goes through it.

    A rule that the target cannot do is an error (GS501) and is left out; one that cannot
    be emitted yet is a warning (GS502). ValueError when there is no such target.
    """
    from gradspec.targets.emission import emit_module

    return emit_module(plan, target, trace=trace)
