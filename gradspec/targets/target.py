"""The interface of targets, which emit the programs of rules as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gradspec.plan.cost import CostSummary
    from gradspec.plan.program import Operators, Program
    from gradspec.targets.lines import Lines
    from gradspec.targets.page import Page


@dataclass(frozen=True, slots=True)
class Emitted:
    """One generated module.

    ``path`` is relative to the target's folder, ``/`` as separator: ``activations.py``,
    ``losses/robust.py``. ``runtime`` are the files of the target's runtime that it
    imports: ``_gradspec.py``, ``_special.py``, ``_axes.py``. ``costs`` are the cost
    summaries of its rules, if requested.
    """

    target: str
    path: str
    text: str
    runtime: frozenset[str] = frozenset()
    costs: tuple[CostSummary, ...] = ()


@dataclass(frozen=True, slots=True)
class Definition:
    """A function or class of a module; ``public`` names go into ``__all__``."""

    lines: Lines
    public: tuple[str, ...] = ()


class Target(Protocol):
    """The interface of a target, implemented by a module with these names."""

    @property
    def OPERATORS(self) -> Operators: ...

    def definitions(
        self, program: Program, page: Page, *, trace: bool
    ) -> list[Definition]:
        """The definitions of a rule in the module. With ``trace`` they print their
        values.
        """
        ...
