"""The pages behind ``gradspec explain``: one Markdown file per code."""

from __future__ import annotations

import re
from pathlib import Path

_FOLDER = Path(__file__).parent.parent / "explain"
_CODE = re.compile(r"GS\d{3}")


def page(code: str) -> str | None:
    """The page of a code (any case), None when there is none."""
    code = code.upper()
    if not _CODE.fullmatch(code):
        return None
    path = _FOLDER / f"{code}.md"
    return path.read_text("utf-8") if path.is_file() else None


def codes() -> tuple[str, ...]:
    """All codes that have a page, in order."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("GS*.md")))


def listing() -> str:
    """A line per code: the pages' titles."""
    titles = (_FOLDER.joinpath(f"{code}.md").open(encoding="utf-8") for code in codes())
    lines = []
    for file in titles:
        with file:
            lines.append(file.readline().removeprefix("# ").rstrip())
    return "\n".join(lines)
