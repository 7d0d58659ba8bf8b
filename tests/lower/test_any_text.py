"""Whatever a file says, lowering answers with rules and faults, never an exception."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from gradspec.lower.lowering import lower
from gradspec.source import Source
from gradspec.syntax.parse import parse
from tests.ir.well_formed import verify
from tests.lower.grad_text import arity

TEXT = Path(__file__).with_name("first_file.grad").read_text("utf-8")
WORDS = re.findall(r"\w+|\s+|[^\w\s]", TEXT)
NAMES = [k for k, word in enumerate(WORDS) if re.fullmatch(r"\w+|[-+*/<>]", word)]
SPARE = sorted({WORDS[k] for k in NAMES})


def swaps() -> st.SearchStrategy[list[tuple[int, str]]]:
    pair = st.tuples(st.sampled_from(NAMES), st.sampled_from(SPARE))
    return st.lists(pair, min_size=1, max_size=6)


@given(swaps())
def test_words_put_in_each_others_places(changes: list[tuple[int, str]]) -> None:
    words = list(WORDS)
    for place, word in changes:
        words[place] = word
    outcome = parse(Source("a.grad", "".join(words)))
    if outcome.value is None:
        return
    made = lower(outcome.value, {})
    assert made.value is not None
    for rule in made.value.rules:
        assert verify(rule, arity) == ()
    faulty = {d.labels[0].span.start for d in made.diagnostics}
    assert bool(made.value.failed) == bool(faulty or outcome.value.broken)
