"""Targets: one package each, which turns the programs of rules into text.

A target is any object with the interface :class:`gradspec.targets.target.Target`. Those
of other packages are found by the entry point group ``gradspec.targets`` and loaded on
request.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from gradspec.targets.target import Target

TARGETS = ("numpy", "torch", "tf", "jax")
GROUP = "gradspec.targets"


def outside_targets() -> tuple[str, ...]:
    """The names of the targets that other installed packages offer: identifiers, since
    modules go to a package of this name, other than those of gradspec's own."""
    from importlib.metadata import entry_points

    names = {point.name for point in entry_points(group=GROUP)}
    return tuple(sorted(name for name in names - {*TARGETS} if name.isidentifier()))


def known_targets(names: Iterable[str]) -> tuple[str, ...]:
    """The targets that there are, in order. Those of other packages are looked up only
    where names are not all of gradspec's own."""
    if all(name in (*TARGETS, "all") for name in names):
        return TARGETS
    return (*TARGETS, *outside_targets())


def target_named(name: str) -> Target:
    """The target of a name; ValueError if there is none."""
    if name in TARGETS:
        return cast("Target", import_module(f"gradspec.targets.{name}"))
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP, name=name):
        return cast("Target", point.load())
    known = ", ".join(known_targets((name,)))
    raise ValueError(f"{name!r} is not a target; there are {known}")
