"""Which rules of the corpus a run tries, and what the checker says of wrong versions.

``GRADSPEC_CORPUS=all pytest tests/corpus/ranked`` tries every rule on every target and
every wrong version (minutes); without it a fifth of the rules, which the hash of a name
chooses, and one wrong version of each.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from pathlib import Path

from gradspec.diagnostics import Diagnostic, Outcome
from gradspec.ir.rule import CheckedRule
from gradspec.options import Options
from gradspec.pipeline import check_rule, lower_module, read_module
from gradspec.source import Source
from tests.corpus.mutants import Mutant, mutants
from tests.corpus.share import IS_WHOLE, is_tried

FILES = tuple(sorted((Path(__file__).parent / "rules").glob("*.grad")))
_SHARE = 5
_REFUSED = ("GS401", "GS402", "GS416", "GS431")
"""Not the derivative; at a kink, between neither of the one-sided slopes; up to rounding."""


def chosen(path: Path) -> tuple[str, ...]:
    """The names of a file's rules that are tried."""
    names = re.findall(r"^rule (\w+)", path.read_text("utf-8"), re.MULTILINE)
    return tuple(name for name in names if is_tried(name, _SHARE))


def only(text: str, rules: tuple[str, ...]) -> str:
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


def wrong(path: Path) -> tuple[Mutant, ...]:
    """Wrong versions of the chosen rules: all, or of each that of the least hash."""
    tried = chosen(path)
    every = [mutant for mutant in mutants(path) if mutant.rule in tried]
    if IS_WHOLE:
        return tuple(every)
    by_rule: dict[str, Mutant] = {}
    for mutant in sorted(every, key=lambda m: zlib.crc32(m.statement.encode())):
        by_rule.setdefault(mutant.rule, mutant)
    return tuple(by_rule.values())


def accepted(some: Iterable[Mutant]) -> tuple[Mutant, ...]:
    """Those that are not refused with a witness."""
    return tuple(mutant for mutant in some if not _is_refused(mutant))


def _is_refused(mutant: Mutant) -> bool:
    outcome = _checked(only(mutant.text, (mutant.rule,)))
    refusals = [d for d in outcome.diagnostics if d.code in _REFUSED]
    return bool(refusals) and all(" = " in _said(found) for found in refusals)


def _said(found: Diagnostic) -> str:
    labels = (label.message for label in found.labels)
    return " ".join((found.headline, *labels, *found.notes))


def _checked(text: str) -> Outcome[CheckedRule]:
    """The last rule of a text, which must be well formed."""
    parsed = read_module(Source("corpus.grad", text))
    assert parsed.value is not None and not parsed.failed, parsed.diagnostics
    lowered = lower_module(parsed.value, {})
    told = [d.headline for d in lowered.diagnostics]
    assert lowered.value is not None and not lowered.failed, told
    return check_rule(lowered.value.rules[-1], Options(("numpy",)))
