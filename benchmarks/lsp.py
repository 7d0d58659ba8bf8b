"""Times of the language server with a real client, as a table: `python benchmarks/lsp.py`.

First the round trips, then the work of each answer by itself, in milliseconds of the
processor: round trips on a machine with other work say little. The cache is empty.
An edit of a rule changes a constant each time, so
that no verdict of it is known.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from lsprotocol import types as lsp

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from tests.editor.client import Editor  # noqa: E402

FILE = ROOT / "rules" / "activations" / "smooth.grad"
WRITTEN = "y = x * tanh(log(1 + exp(x)))"
TIMES = 9


def _without_examples(text: str) -> str:
    """Other constants have other values."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.strip().startswith("example"))


async def _median(edit: Callable[[int], Awaitable[object]]) -> str:
    times = []
    for step in range(TIMES):
        begun = time.perf_counter()
        await edit(step)
        times.append(1e3 * (time.perf_counter() - begun))
        await asyncio.sleep(1.0)  # what is searched later has ended
    return f"{statistics.median(times):.0f} (up to {max(times):.0f})"


async def _rows(folder: Path) -> list[tuple[str, str]]:
    editor, text = Editor(), _without_examples(FILE.read_text("utf-8"))
    assert WRITTEN in text
    begun = time.perf_counter()
    await editor.start(folder)
    rows = [("start", f"{1e3 * (time.perf_counter() - begun):.0f}")]
    begun = time.perf_counter()
    uri = editor.open(folder / FILE.name, text)
    await editor.codes(uri, lambda _: True)
    told = f"{1e3 * (time.perf_counter() - begun):.0f}"
    rows.append((f"first verdicts of {text.count('rule ')} rules, no cache", told))

    async def error(step: int) -> None:
        editor.change(uri, text.replace(WRITTEN, f"y = x * tanh(log({step} + exp(x))"))
        await editor.codes(uri, bool)

    async def name(step: int) -> None:
        editor.change(uri, text.replace(WRITTEN, f"y = x * tanh(log({step} + exp(z)))"))
        await editor.codes(uri, bool)

    async def rule(step: int) -> None:
        editor.change(uri, text.replace(WRITTEN, f"y = {step + 2} * x * tanh(x)"))
        await editor.codes(uri, lambda codes: not codes)

    async def wrong(step: int) -> None:
        line = f"{WRITTEN}\n    dx = {step + 2} * dy * tanh(log(1 + exp(x)))"
        editor.change(uri, text.replace(WRITTEN, line))
        await editor.codes(uri, bool)

    rows.append(("a syntax error is shown", await _median(error)))
    rows.append(("an unknown name is shown", await _median(name)))
    editor.change(uri, text)
    await editor.codes(uri, lambda codes: not codes)
    rows.append(
        ("one rule edited, to its verdict (150 of it delay)", await _median(rule))
    )
    rows.append(
        ("a wrong gradient, to its fixes (150 of it delay)", await _median(wrong))
    )
    editor.change(uri, text)
    await editor.codes(uri, lambda codes: not codes)

    async def hover(_: int) -> None:
        at = editor.at(uri, text, "rule mi|sh(")
        assert await editor.client.text_document_hover_async(lsp.HoverParams(**at))

    rows.append(("hover", await _median(hover)))
    await editor.stop()
    return rows


def _work() -> list[tuple[str, str]]:
    from gradspec.driver.checking import check_source
    from gradspec.driver.load import load
    from gradspec.options import Options
    from gradspec.source import Source

    text = _without_examples(FILE.read_text("utf-8"))
    quick, whole = Options(searches=False), Options()
    edits: dict[str, tuple[str, Options | None]] = {
        "the first check": (WRITTEN, quick),
        "a syntax error": ("y = x * tanh(log({} + exp(x))", None),
        "an unknown name": ("y = x * tanh(log({} + exp(z)))", None),
        "a name with three that are like it": ("y = x * tanhh({} * x)", None),
        "one rule edited": ("y = {} * x * tanh(x)", quick),
        "a wrong gradient": (f"{WRITTEN}\n    dx = {{}} * dy * tanh(x)", quick),
        "evaluations too": ("y = {} * x * tanh(2 * x)", whole),
    }
    rows = []
    for what, (line, options) in edits.items():
        times = []
        for step in range(1 if line == WRITTEN else TIMES):
            new = text.replace(WRITTEN, line.format(step + 2))
            source, begun = Source(f"work/{FILE.name}", new), time.process_time()
            if options is None:
                assert load(source, "work").diagnostics
            else:
                check_source(source, FILE.name, options)
            times.append(1e3 * (time.process_time() - begun))
        rows.append((f"work: {what}", f"{statistics.median(times):.0f}"))
    return rows


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GRADSPEC_CACHE_DIR"] = f"{folder}/cache"
        rows = asyncio.run(_rows(Path(folder)))
        os.environ["GRADSPEC_CACHE_DIR"] = f"{folder}/other"
        rows += _work()
    print("| round trip | ms |\n| --- | --- |")
    for what, told in rows:
        print(f"| {what} | {told} |")


if __name__ == "__main__":
    main()
