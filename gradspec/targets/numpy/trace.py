"""What a traced NumPy module prints."""

from __future__ import annotations

from collections.abc import Iterable

from gradspec.plan.program import Program
from gradspec.targets.lines import Lines


def traced(program: Program, values: Iterable[str]) -> Lines:
    """A line that prints the values with their names."""
    shown = ", ".join(f"{name} = {{{name}}}" for name in values)
    return [f'print(f"{program.name}: {shown}")'] if shown else []
