"""Which operations of the frameworks a rule can say: the page docs/operations.md.

    python benchmarks/operations.py [--write]

The table docs/operations.csv has an entry for each rule in the lists of PyTorch
(`derivatives.yaml`), JAX (primitives with a jvp or a transpose, `jax.scipy.special` and
the linear algebra), TensorFlow (`RegisterGradient`) and ChainRules.jl, as they were read
for it, and how the operation is said. It was decided by reading; what is shipped is
checked by the tests, which compile and try every rule of `rules/`.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parents[1] / "docs"
PAGE, TABLE = DOCS / "operations.md", DOCS / "operations.csv"

LIBRARIES = {
    "pytorch": "PyTorch",
    "jax": "JAX",
    "tensorflow": "TensorFlow",
    "chainrules": "ChainRules.jl",
}

SAID = {
    "rule": "a shipped rule, or one beside it",
    "built-in": "a built-in function",
    "formula": "a formula",
    "recurrence": "a recurrence",
    "equation": "an equation",
    "order": "an order statistic",
    "extern": "a foreign function",
    "no": "**not said**",
}
"""The ways in which an operation is said; all other entries are not in scope."""


class Entry(NamedTuple):
    """An operation of a library: ``said`` is one of `SAID`, or says why it is not
    counted; ``how`` the name of a rule or built-in, or a phrase."""

    library: str
    operation: str
    said: str
    how: str


def entries() -> list[Entry]:
    """The rows of the table."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [Entry(**row) for row in csv.DictReader(file)]


def page() -> str:
    """The page, as Markdown."""
    return "\n".join(_lines(entries())) + "\n"


def _lines(every: list[Entry]) -> Iterator[str]:
    scope = [entry for entry in every if entry.said in SAID]
    said = sum(entry.said != "no" for entry in scope)
    yield "# Which operations can be said"
    yield ""
    yield (
        f"Of {len(scope):,} operations in the lists of differentiation rules of PyTorch, JAX,"
        f" TensorFlow and ChainRules.jl, a rule can say {said:,}. The decision on each is in"
        " [operations.csv](operations.csv); this page is written from it by"
        " `python benchmarks/operations.py --write`."
    )
    yield ""
    yield "| said by | " + " | ".join(LIBRARIES.values()) + " | all |"
    yield "| --- |" + " --- |" * (len(LIBRARIES) + 1)
    count = Counter((entry.said, entry.library) for entry in scope)
    for way, words in SAID.items():
        numbers = [count[way, library] for library in LIBRARIES]
        yield f"| {words} | " + " | ".join(map(str, [*numbers, sum(numbers)])) + " |"
    totals = [sum(e.library == library for e in scope) for library in LIBRARIES]
    yield "| *in scope* | " + " | ".join(map(str, [*totals, len(scope)])) + " |"
    yield ""
    left = len(every) - len(scope)
    yield (
        f"{left} more entries are not counted: backward, in-place and backend forms of other"
        " entries, and what is no mathematics (devices, storage, control flow, sparse formats)."
    )
    yield ""
    yield "## What cannot be said, and the way round it"
    yield ""
    yield "| operations | reason, and what to do |"
    yield "| --- | --- |"
    reasons: dict[str, list[str]] = {}
    for entry in scope:
        if entry.said == "no":
            reasons.setdefault(entry.how, []).append(_short(entry))
    for reason, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
        named = ", ".join(f"`{name}`" for name in dict.fromkeys(names))
        yield f"| {named} | {reason} |"
    yield ""
    yield "## Where a shipped rule is"
    yield ""
    for library, title in LIBRARIES.items():
        rows = [e for e in scope if e.library == library and e.said == "rule"]
        named = ", ".join(
            f"`{_short(e)}`" + ("" if _short(e) == e.how else f" (`{e.how}`)")
            for e in rows
        )
        yield f"**{title}**: {named}."
        yield ""


def _short(entry: Entry) -> str:
    name = entry.operation.split("|")[-1]
    return name.split(":")[-1] if entry.library == "jax" else name


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page(), end="")
