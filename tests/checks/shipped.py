"""The wrong gradients of `shipped/*.grad`, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FOLDER = Path(__file__).parent / "shipped"
_MARK = "#: "


@dataclass(frozen=True, slots=True)
class Shipped:
    """One rule with a gradient that is wrong as somebody's was.

    ``seen``: what and where; ``wrong``: what is wrong with it; ``words``: each must be
    in the diagnosis.
    """

    seen: str
    wrong: str
    words: tuple[str, ...]
    text: str

    @property
    def name(self) -> str:
        return self.text.partition("rule ")[2].partition("(")[0]


def shipped() -> tuple[Shipped, ...]:
    """All of them, in the order of the files."""
    return tuple(one for path in sorted(_FOLDER.glob("*.grad")) for one in _read(path))


def _read(path: Path) -> Iterator[Shipped]:
    for block in path.read_text("utf-8").split("\n\n"):
        lines = block.splitlines()
        heads = [line.removeprefix(_MARK) for line in lines if line.startswith(_MARK)]
        if heads:
            seen, wrong, words = heads
            text = "\n".join(line for line in lines if not line.startswith("#"))
            yield Shipped(seen, wrong, tuple(words.split(" & ")), text)
