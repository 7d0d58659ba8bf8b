"""The files of the corpora, their wrong versions, and which of their rules a run tries.

``GRADSPEC_CORPUS=all pytest tests/corpus tests/contract`` tries all (minutes); without it
what takes long is done for a share, which the hash of a name chooses.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gradspec.diagnostics import Diagnostic
from gradspec.options import Options
from gradspec.pipeline import check_rule, lower_module, read_module
from gradspec.source import Source

HERE = Path(__file__).parent
ELEMENTWISE = tuple(sorted(HERE.glob("rules/*.grad")))
INDEXED = tuple(sorted(HERE.glob("ranked/rules/*.grad")))
SHARED = HERE / "rules" / "shared.grad"
"""What other files import."""

SHARE = 5
"""Of the rules and wrong versions that take long a run tries one of so many."""

IS_WHOLE = os.environ.get("GRADSPEC_CORPUS") == "all"
REFUSED = ("GS401", "GS402", "GS416", "GS431")
"""Not the derivative; at a kink, between neither of the one-sided slopes; up to rounding."""

_WRONG = "    # wrong: "


def is_tried(name: str, share: int = SHARE) -> bool:
    """One name of ``share``, or every name."""
    return IS_WHOLE or zlib.crc32(name.encode()) % share == 0


def names(path: Path) -> tuple[str, ...]:
    """The rules of a file."""
    text = path.read_text("utf-8")
    return tuple(re.findall(r"^rule (\w+)", text, re.MULTILINE))


def tried(path: Path) -> tuple[str, ...]:
    """The names of a file's rules that are tried."""
    return tuple(name for name in names(path) if is_tried(name))


def only(text: str, rules: Iterable[str]) -> str:
    """Some rules of a text, those that they call, and its functions."""
    blocks = re.split(r"\n(?=(?:rule|def) )", text)
    heads = {m[1]: b for b in blocks if (m := re.match(r"rule (\w+)\(", b))}
    wanted = {*rules}
    while more := {n for n in heads if _is_called(n, heads, wanted)} - wanted:
        wanted |= more
    left = [b for name, b in heads.items() if name not in wanted]
    return "\n".join(b for b in blocks if b not in left) + "\n"


def _is_called(name: str, heads: dict[str, str], wanted: set[str]) -> bool:
    call = re.compile(rf"\b{name}\(")
    return any(call.search(heads[w]) for w in wanted)


# --- wrong versions --------------------------------------------------------------------


@dataclass(frozen=True)
class Mutant:
    """A file in which one statement of one rule is another, as a `# wrong:` comment says."""

    path: Path
    rule: str
    statement: str
    text: str


def mutants(path: Path) -> tuple[Mutant, ...]:
    """Every wrong version that a file has, with the rules that it calls."""
    lines = path.read_text("utf-8").splitlines()
    found = []
    for at, line in enumerate(lines):
        if line.startswith(_WRONG):
            start = max(k for k in range(at) if lines[k].startswith("rule "))
            rule = re.split(r"\W", lines[start], maxsplit=2)[1]
            wrong = line.removeprefix(_WRONG)
            text = only(_mutated(lines, start, at, wrong), (rule,))
            found.append(Mutant(path, rule, wrong, text))
    return tuple(found)


def _mutated(lines: list[str], start: int, at: int, wrong: str) -> str:
    """The file with the statement of the same target replaced."""
    head = f"    {wrong.partition(' = ')[0]} = "
    first = next(k for k in range(start, at) if lines[k].startswith(head))
    last = first
    while _depth(lines[first : last + 1]) > 0:
        last += 1
    return "\n".join([*lines[:first], f"    {wrong}", *lines[last + 1 :], ""])


def _depth(lines: list[str]) -> int:
    code = "".join(line.partition("#")[0] for line in lines)
    return code.count("(") - code.count(")")


def wrong(path: Path, whole: bool = IS_WHOLE) -> tuple[Mutant, ...]:
    """The wrong versions that are tried: half; of indexed rules, whose proofs take a
    minute, that of the least hash for each rule that is tried."""
    every = mutants(path)
    if whole:
        return every
    if path in ELEMENTWISE:
        return tuple(m for m in every if is_tried(f"{m.rule} {m.statement}", 2))
    by_rule: dict[str, Mutant] = {}
    for mutant in sorted(every, key=lambda m: zlib.crc32(m.statement.encode())):
        if mutant.rule in tried(path):
            by_rule.setdefault(mutant.rule, mutant)
    return tuple(by_rule.values())


def refusals(mutant: Mutant) -> tuple[Diagnostic, ...]:
    """The errors for which a wrong version is refused."""
    imported = {}
    if f'"{SHARED.name}"' in mutant.text:
        imported = {SHARED.name: _lowered(SHARED.name, SHARED.read_text("utf-8"), {})}
    module = _lowered(mutant.path.name, mutant.text, imported)
    (rule,) = (rule for rule in module.rules if rule.name == mutant.rule)
    outcome = check_rule(rule, Options(("numpy",)))
    return tuple(d for d in outcome.diagnostics if d.code in REFUSED)


def _lowered(name: str, text: str, imports: dict[str, object]) -> object:
    parsed = read_module(Source(name, text))
    assert parsed.value is not None and not parsed.failed, parsed.diagnostics
    lowered = lower_module(parsed.value, imports)
    assert lowered.value is not None and not lowered.failed, lowered.diagnostics
    return lowered.value
