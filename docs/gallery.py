"""The gallery of the site: a page for every shipped rule, made by the compiler.

`docs/conf.py` calls `write_gallery`; the pages are MyST texts with pictures beside them.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pictures import draw_rule

from gradspec.checks.witness import witnesses
from gradspec.diagnostics import Outcome
from gradspec.driver import cache
from gradspec.driver.discover import Entry, discover, read_entry
from gradspec.driver.load import load
from gradspec.driver.run import each_file
from gradspec.ir.plain import use_shelf
from gradspec.ir.rule import Judged, Rule, Status
from gradspec.notebook.formulas import forward_formulas, gradient_formulas
from gradspec.options import Options
from gradspec.pipeline import check_module, emit_module, stabilise_rule
from gradspec.report.diagnostics import render
from gradspec.report.summary import evidence_of
from gradspec.syntax import nodes
from gradspec.syntax.parse import parse
from gradspec.targets.target import Emitted

TARGETS = {"torch": "PyTorch", "tf": "TensorFlow", "jax": "JAX", "numpy": "NumPy"}
OPTIONS = Options(tuple(TARGETS))


@dataclass(frozen=True, slots=True)
class Card:
    """What the page of a family shows of a rule: its name, the first sentence of its
    docstring, and the word under its picture (empty where it has none)."""

    name: str
    words: str
    picture: str


def write_gallery(rules: Path, out: Path, accuracy: Path, jobs: int) -> int:
    """Write the pages of all rules below a folder (or of one file), and their number.
    ``accuracy`` is the page with the measured figures.

    Raises:
        ValueError: a rule has an error.
    """
    found = discover([str(rules)])
    entries = found.value or ()
    work = partial(_family, out, accuracy.read_text("utf-8"))
    outcomes = each_file(work, entries, jobs, print, is_guarded=False)
    lines = ["# Gallery", "", "Every shipped rule, with its proof and its code.", ""]
    count, wrong = 0, [*found.diagnostics]
    for entry, outcome in zip(entries, outcomes, strict=True):
        wrong += outcome.diagnostics
        family = entry.below.removesuffix(".grad")
        names = (f"[{c.name}]({family}/{c.name}.md)" for c in outcome.value or ())
        lines += [f"**[{family}]({family}.md)**: {', '.join(names)}", ""]
        count += len(outcome.value or ())
    if wrong:
        raise ValueError("\n".join(map(render, wrong)))
    out.mkdir(parents=True, exist_ok=True)
    (out / "index.md").write_text("\n".join(lines), "utf-8")
    return count


def _family(out: Path, accuracy: str, entry: Entry) -> Outcome[tuple[Card, ...]]:
    """The cards of a file, whose rules' pages are written."""
    source = read_entry(entry).value
    assert source is not None
    here, family = replace(source, path=entry.below), entry.below.removesuffix(".grad")
    with use_shelf(cache.rules()):
        loaded = load(source, entry.root)
        module, tree = loaded.module, parse(source).value
        if module is None or tree is None:
            return Outcome(None, loaded.diagnostics)
        judged, found = check_module(module, OPTIONS)
        if any(d.is_error for d in found):
            return Outcome(None, found)
        written = {i.name: i for i in tree.items if isinstance(i, nodes.RuleDef)}
        cards = []
        for one in judged:
            emitted = emit_module(here, (one,), OPTIONS, module.defs).value or ()
            path = out / family / f"{one.rule.name}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            picture = _picture(one.rule, emitted, path.with_suffix(".svg"))
            texts = {m.target: m.text for m in emitted}
            lines = _page(family, one, written[one.rule.name], texts, picture)
            text = "\n".join([*lines, *_accuracy(one.rule, accuracy)])
            path.write_text(text, "utf-8")
            words = re.split(r"(?<=\.)\s|\n\n", _doc(one.rule))[0]
            cards.append(Card(one.rule.name, words, picture))
    text = "\n".join(_family_page(family, cards))
    (out / f"{family}.md").write_text(text, "utf-8")
    return Outcome(tuple(cards))


def _picture(rule: Rule, emitted: Iterable[Emitted], path: Path) -> str:
    for module in emitted:
        if module.target == "numpy":
            return draw_rule(rule, cache.import_module(module), path)
    return ""


def _family_page(family: str, cards: Iterable[Card]) -> Iterator[str]:
    yield from ("---", "orphan: true", "---", f"# {family}", "")
    yield from ("[Gallery](/docs/gallery/index.md)", "")
    yield from ("::::{grid} 1 2 2 3", ":gutter: 2", "")
    for card in cards:
        page = f"/docs/gallery/{family}/{card.name}"
        yield from (f":::{{grid-item-card}} {card.name}", ":link-type: doc")
        yield f":link: {page}"
        if card.picture:
            yield f":img-top: {page}.svg"
        yield from ("", card.words, ":::", "")
    yield from ("::::", "")


def _page(
    family: str,
    judged: Judged,
    definition: nodes.RuleDef,
    texts: dict[str, str],
    picture: str,
) -> Iterator[str]:
    rule = judged.rule
    yield from ("---", "orphan: true", "---", f"# {rule.name}", "")
    yield f"[Gallery](/docs/gallery/index.md) › [{family}](/docs/gallery/{family}.md)"
    yield ""
    yield from (_doc(rule), "")
    for formula in forward_formulas(rule, definition):
        yield from ("```{math}", formula, "```")
    yield from ("", "## Gradients", "")
    for one in gradient_formulas(judged, definition):
        fence, text = ("{math}", one.latex) if one.latex else ("text", one.text)
        yield from (f"```{fence}", text, "```")
    yield ""
    points = {w.input: w.points for w in witnesses(rule).value or ()}
    for verdict in judged.verdicts:
        if verdict.status is not Status.NONE:
            yield f"- {evidence_of(verdict, points.get(verdict.input, 0))}"
    if picture:
        yield from ("", f"![{picture} of {rule.name}]({rule.name}.svg)")
    chosen, _ = stabilise_rule(judged, OPTIONS)
    if chosen.rewrites:
        yield from ("", "## Evaluation", "")
        yield from (f"- `{r.name}`: {_plain(r.reason)}" for r in chosen.rewrites)
    yield from ("", "## Rule", "", "```grad", rule.text.rstrip(), "```")
    yield from ("", "## Emitted code", "", "::::{tab-set}", ":sync-group: target", "")
    for target, title in TARGETS.items():
        if target in texts:
            yield from (f":::{{tab-item}} {title}", f":sync: {target}", "", "```python")
            yield from (texts[target].rstrip(), "```", ":::", "")
    yield from ("::::", "")


def _doc(rule: Rule) -> str:
    return _plain(textwrap.dedent(rule.doc or "").strip())


def _plain(text: str) -> str:
    """The text without a meaning for Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>#|$~])", r"\\\1", text)


def _accuracy(rule: Rule, figures: str) -> Iterator[str]:
    """The rule's lines of the table of what is not good."""
    if rule.has_axes:
        return
    head, rows = figures.partition("## What is not good")[2].split("\n| --- ", 1)
    own = [r for r in rows.splitlines() if r.startswith(f"| {rule.name} |")]
    yield from ("## Accuracy", "")
    if own:
        yield from (head.splitlines()[-1], "|" + " --- |" * 8, *own)
    else:
        yield "Nothing of this rule is among what was measured not to be good."
    yield from (
        "",
        "[How it is measured, beside the frameworks' own](/benchmarks/accuracy.md)",
        "",
    )
