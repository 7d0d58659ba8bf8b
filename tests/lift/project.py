"""A project of many files in the manner of real ones, kept as one text.

A line `### path` begins a file; a comment `# = verdict` on the line of a class or function
is the verdict that is expected.
"""

from __future__ import annotations

import re
from pathlib import Path

TEXT = Path(__file__).with_suffix(".txt").read_text("utf-8")
_SITE = re.compile(r"^\s*(?:class|def) (\w+).*# = ([\w ]+)$", re.MULTILINE)


def sections() -> dict[str, str]:
    """The text of each file."""
    parts = re.split(r"^### (.+)\n", TEXT, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def unpack(folder: Path) -> None:
    """Write the files."""
    for name, text in sections().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")


def expected() -> dict[tuple[str, str], str]:
    """Verdicts by file and site."""
    return {
        (name, site): verdict
        for name, text in sections().items()
        for site, verdict in _SITE.findall(text)
    }
