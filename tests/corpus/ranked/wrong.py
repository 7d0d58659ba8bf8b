"""Wrong versions of the corpus's rules, and what the checker says of them.

``python -m tests.corpus.ranked.wrong`` judges every one of them (minutes); the tests one
of each rule.
"""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from gradspec.diagnostics import Diagnostic, Outcome
from gradspec.ir.rule import CheckedRule
from gradspec.options import Options
from gradspec.pipeline import check_rule, lower_module, read_module
from gradspec.source import Source
from tests.corpus.mutants import Mutant, mutants

FILES = tuple(sorted((Path(__file__).parent / "rules").glob("*.grad")))
_REFUSED = ("GS401", "GS402")
"""Not the derivative; at a kink, between neither of the one-sided slopes."""


def checked(text: str) -> Iterator[tuple[str, Outcome[CheckedRule]]]:
    """Each rule of a text and its verdicts."""
    parsed = read_module(Source("corpus.grad", text))
    assert parsed.value is not None and not parsed.failed, parsed.diagnostics
    lowered = lower_module(parsed.value, {})
    assert lowered.value is not None and not lowered.failed, [
        d.headline for d in lowered.diagnostics
    ]
    for rule in lowered.value.rules:
        yield rule.name, check_rule(rule, Options(("numpy",), budget=60.0))


def one_of_each_rule(path: Path) -> tuple[Mutant, ...]:
    """The wrong version of which the hash is least."""
    by_rule: dict[str, Mutant] = {}
    for mutant in sorted(mutants(path), key=lambda m: zlib.crc32(m.statement.encode())):
        by_rule.setdefault(mutant.rule, mutant)
    return tuple(by_rule.values())


def accepted(wrong: Iterable[Mutant]) -> tuple[Mutant, ...]:
    """Those that are not refused with a witness."""
    return tuple(mutant for mutant in wrong if not _is_refused(mutant))


def _is_refused(mutant: Mutant) -> bool:
    ((_, outcome),) = checked(_alone(mutant.text, mutant.rule))
    refusals = [d for d in outcome.diagnostics if d.code in _REFUSED]
    return bool(refusals) and all(" = " in _said(found) for found in refusals)


def _said(found: Diagnostic) -> str:
    labels = (label.message for label in found.labels)
    return " ".join((found.headline, *labels, *found.notes))


def _alone(text: str, rule: str) -> str:
    """The rule and the file's functions."""
    blocks = re.split(r"\n(?=(?:rule|def) )", text)
    kept = [b for b in blocks if not b.startswith("rule ") or f"rule {rule}(" in b]
    return "\n".join(kept) + "\n"


if __name__ == "__main__":
    every = tuple(mutant for path in FILES for mutant in mutants(path))
    found = accepted(every)
    for mutant in found:
        print(f"accepted: {mutant.rule}: {mutant.statement}")
    print(f"{len(every) - len(found)} of {len(every)} wrong versions refused")
    sys.exit(1 if found else 0)
