"""What a target is: something that turns a plan into text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from gradspec.plan.account import Account
from gradspec.plan.plan import ModulePlan


@dataclass(frozen=True, slots=True)
class EmittedModule:
    """The text of one generated module.

    ``path`` is relative to the target's folder, ``/`` as separator:
    ``activations.py``, ``losses/robust.py``. ``accounts`` say what its rules cost, if
    that was asked for.
    """

    target: str
    path: str
    text: str
    accounts: tuple[Account, ...] = ()


class Target(Protocol):
    """The interface of a target; a module with these names is one.

    ``RESERVED`` are the names that its text uses itself: rules' names and variables that
    collide are renamed before it sees the plan. A target that writes the operations of
    `plan.ranked` says so with ``EMITS_NAMED_AXES = True``. One that can tell what a rule
    costs has ``account(plan: RulePlan) -> Account`` (`plan.account`). One that is told
    tangents, and transposes them, says ``TRANSPOSES_TANGENTS = True`` (`plan.outside`).
    """

    @property
    def RESERVED(self) -> frozenset[str]: ...

    def module(self, plan: ModulePlan) -> str:
        """The text of a module."""
        ...

    def traced_module(self, plan: ModulePlan) -> str:
        """The same module, printing what goes through each rule."""
        ...
