"""The wrong versions that the corpus writes beside its rules, as `# wrong:` comments."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

RULES = Path(__file__).parent / "rules"
_WRONG = "    # wrong: "


@dataclass(frozen=True)
class Mutant:
    """A file in which one statement of one rule is another."""

    rule: str
    statement: str
    text: str


def mutants(path: Path) -> tuple[Mutant, ...]:
    """Every mutant of a file; each holds the other rules no longer than it needs them."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return tuple(
        Mutant(_rule(lines, at), line.removeprefix(_WRONG), _mutated(lines, at))
        for at, line in enumerate(lines)
        if line.startswith(_WRONG)
    )


def _start(lines: list[str], at: int) -> int:
    return max(k for k in range(at) if lines[k].startswith("rule "))


def _rule(lines: list[str], at: int) -> str:
    found = re.match(r"rule (\w+)", lines[_start(lines, at)])
    assert found
    return found[1]


def _mutated(lines: list[str], at: int) -> str:
    """The file with the statement of the same target replaced."""
    wrong = lines[at].removeprefix(_WRONG)
    head = f"    {wrong.partition(' = ')[0]} = "
    first = next(k for k in range(_start(lines, at), at) if lines[k].startswith(head))
    last = first
    while _depth(lines[first : last + 1]) > 0:
        last += 1
    return "\n".join([*lines[:first], f"    {wrong}", *lines[last + 1 :], ""])


def _depth(lines: list[str]) -> int:
    code = "".join(line.partition("#")[0] for line in lines)
    return code.count("(") - code.count(")")
