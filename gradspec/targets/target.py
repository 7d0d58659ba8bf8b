"""The interface of targets, which emit the programs of rules as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from gradspec.primitives.row import Foreign

if TYPE_CHECKING:
    from gradspec.plan.cost import CostSummary
    from gradspec.plan.program import Operators, Program

CORE, SPECIAL, AXES, FOREIGN = "_gradspec", "_special", "_axes", "_foreign"
"""The files of a runtime: its core, special functions, operations on named axes, and
calls of functions of other modules."""


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

    lines: list[str]
    public: tuple[str, ...] = ()


class Page:
    """Collects the imports and names of a module during emission.

    ``path`` of the module is relative to the folder of its runtime; ``taken`` are names
    that no invented name may equal: those of rules and of their values.
    """

    def __init__(self, path: str, taken: Iterable[str]) -> None:
        self.path = path
        self._dots = "." * (path.count("/") + 1)
        self._taken = set(taken)
        self._own: dict[str, set[str]] = {}
        self._functions: dict[str, dict[str, None]] = {}
        self._foreign: dict[Foreign, str] = {}
        self._slopes: dict[Foreign, tuple[str, ...]] = {}

    def core(self, name: str) -> str:
        """``name`` of the runtime's core, imported."""
        return self._runtime(CORE, name)

    def special(self, name: str) -> str:
        """``name`` of the runtime's special functions, imported."""
        return self._runtime(SPECIAL, name)

    def axes(self, name: str) -> str:
        """``name`` of the runtime's functions for named axes, imported."""
        return self._runtime(AXES, name)

    def foreign(self, called: Foreign, slopes: Callable[[], tuple[str, ...]]) -> str:
        """The module's name of a foreign function, which it finds when it is imported.
        ``slopes`` are the texts of its derivatives, which may name the function."""
        if called not in self._foreign:
            self._foreign[called] = self.fresh(f"_{called.name}")
            self._slopes[called] = slopes()
        return self._foreign[called]

    def foreign_mark(self, name: str) -> str:
        """``name`` of the runtime's decorators for foreign functions, imported."""
        return self._runtime(FOREIGN, name)

    @property
    def assignments(self) -> tuple[str, ...]:
        """The lines that find the foreign functions."""
        lines = []
        for called, name in self._foreign.items():
            how = "foreign" if called.is_own else "foreign_numpy"
            text = f"{called.path}({', '.join(called.arguments)})"
            given = "".join(f", {slope}" for slope in self._slopes[called])
            lines.append(f'{name} = {self._runtime(FOREIGN, how)}("{text}"{given})')
        return tuple(lines)

    def fresh(self, name: str) -> str:
        """``name`` as a module-level name, or ``name2``, ``name3``, … if it is used."""
        candidate, number = name, 2
        while candidate in self._taken:
            candidate, number = f"{name}{number}", number + 1
        self._taken.add(candidate)
        return candidate

    def own(self, path: str, name: str) -> str:
        """``name`` from a module of the framework: ``page.own("torch", "Tensor")``."""
        self._own.setdefault(path, set()).add(name)
        return name

    @property
    def imports(self) -> tuple[str, ...]:
        """Import lines of names of the framework and the standard library."""
        own = self._own.items()
        return tuple(f"from {path} import {', '.join(sorted(n))}" for path, n in own)

    @property
    def relative(self) -> tuple[str, ...]:
        """Import lines of the runtime; each renamed name has a line of its own."""
        lines = []
        for module, names in sorted(self._functions.items()):
            head = f"from {self._dots}{module} import"
            own = sorted((n for n in names if " as " not in n), key=_kind)
            groups = [name for name in names if " as " in name]
            groups += [", ".join(own)] if own else []
            groups.sort(key=lambda group: _kind(_first(group)))
            lines += [f"{head} {group}" for group in groups]
        return tuple(lines)

    @property
    def runtime(self) -> frozenset[str]:
        """The files of the runtime that the module imports: ``_gradspec.py``, …"""
        return frozenset(f"{module}.py" for module in self._functions)

    def _runtime(self, module: str, name: str) -> str:
        """A name of the runtime, renamed if a rule or a value has it."""
        alias = name
        while alias in self._taken:
            alias += "_"
        text = name if alias == name else f"{name} as {alias}"
        self._functions.setdefault(module, {}).setdefault(text)
        return alias


def _first(group: str) -> str:
    return group.split(",", maxsplit=1)[0].split(maxsplit=1)[0]


def _kind(name: str) -> tuple[int, str]:
    """Constants, classes, functions, each by name: as isort has them."""
    return 0 if name.isupper() else 1 if name[:1].isupper() else 2, name


class Target(Protocol):
    """The interface of a target, implemented by a module with these names."""

    @property
    def OPERATORS(self) -> Operators:
        """The facts about the target on which planning depends, with its spellings of
        primitives."""
        ...

    @property
    def MODULES(self) -> Mapping[str, str]:
        """Import lines by the name to which each binds a module. A line is emitted
        where the code refers to the name.
        """
        ...

    def runtime_files(self) -> Mapping[str, str]:
        """The texts of the target's runtime by the names of its files, which modules
        import; asked of other packages' targets (gradspec's are in `gradspec.runtime`).
        """
        ...

    def definitions(
        self, program: Program, page: Page, *, trace: bool
    ) -> list[Definition]:
        """The definitions of a rule in the module. With ``trace`` they print their
        values.
        """
        ...
