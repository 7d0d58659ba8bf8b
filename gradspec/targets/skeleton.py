"""The frame of a generated module: header, imports, `__all__`, helpers, definitions."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from gradspec.plan.shadowing import bare, taken, told_apart
from gradspec.primitives.lookup import rows
from gradspec.primitives.row import Helper
from gradspec.targets.layout import statement
from gradspec.targets.lines import Lines
from gradspec.targets.tokens import whole_lines


def module_text(
    header: Lines, imports: Iterable[str], names: Lines, definitions: list[Lines]
) -> str:
    """The whole text. ``definitions`` are functions, classes and helpers, in order."""
    public_names = ", ".join(f'"{bare(name)}"' for name in names)
    public = taken("\n".join(names))
    texts = [_definition(lines, public) for lines in definitions]
    own = public | taken("\n".join(line for lines in definitions for line in lines))
    if own and any("builtins." in text for text in texts):
        imports = (*imports, "import builtins")
    parts = [
        laid_out(header),
        "from __future__ import annotations",
        *_import_groups(tuple(imports)),
        statement(f"__all__ = [{public_names}]"),
    ]
    return "\n\n".join(parts) + "".join(f"\n\n\n{text}" for text in texts) + "\n"


def _definition(lines: Lines, public: frozenset[str]) -> str:
    """The text of a definition. Where names of the author are Python's own, words that
    are Python's say so (`plan.shadowing`).
    """
    text = "\n".join(lines)
    words = public | taken(text)
    apart = bare(told_apart(text, words)) if words else text
    if apart == text:
        return laid_out(lines)
    # helpers have statements over several lines, which stay so
    whole, rows = whole_lines(apart), apart.split("\n")
    return "\n".join(_laid_out(r) if n in whole else r for n, r in enumerate(rows))


def laid_out(lines: Lines) -> str:
    """Logical lines as text of at most 88 columns. A docstring is one line of its own,
    with line ends, and stays as it is.
    """
    return "\n".join(_laid_out(line) for line in lines)


def _laid_out(line: str) -> str:
    text = line.lstrip(" ")
    if not text or text.startswith(('"""', 'r"""')):
        return line
    return statement(text, (len(line) - len(text)) // 4)


def _import_groups(imports: Iterable[str]) -> Lines:
    """The standard library, then the framework and what it goes with."""
    lines = sorted(_merged(imports), key=_import_key)
    groups = [
        [line for line in lines if _is_standard(line)],
        [line for line in lines if not _is_standard(line)],
    ]
    return ["\n".join(group) for group in groups if group]


def _merged(imports: Iterable[str]) -> Lines:
    """One line for all that is taken from a module."""
    plain = [line for line in dict.fromkeys(imports) if not line.startswith("from")]
    taken: dict[str, set[str]] = {}
    for line in imports:
        if line.startswith("from"):
            _, module, _, names = line.split(maxsplit=3)
            taken.setdefault(module, set()).update(names.split(", "))
    return [*plain, *(f"from {m} import {', '.join(sorted(taken[m]))}" for m in taken)]


def _is_standard(line: str) -> bool:
    return line.split()[1].split(".", maxsplit=1)[0] in sys.stdlib_module_names


def _import_key(line: str) -> tuple[bool, str]:
    """Plain imports before ``from`` imports, each by name."""
    return line.startswith("from"), line.split()[1]


def used_helpers(helpers: Iterable[Helper], text: str) -> tuple[Helper, ...]:
    """Those that are called in ``text``, or by one that is; in the order given. A constant,
    in capitals, is named.
    """
    found: dict[str, Helper] = {}
    todo = [text]
    while todo:
        calling = todo.pop()
        for helper in helpers:
            called = helper.name if helper.name.isupper() else f"{helper.name}("
            if helper.name not in found and called in calling:
                found[helper.name] = helper
                todo.append(helper.text)
    return tuple(dict.fromkeys(h for h in helpers if h.name in found))


def table_helpers(target: str) -> tuple[Helper, ...]:
    """All functions that the table of primitives has for a target, also those of
    primitives that only gradspec itself has words for.
    """
    spellings = (row.spellings.get(target) for row in rows())
    own = (spelling for spelling in spellings if isinstance(spelling, Helper))
    return tuple(dict.fromkeys(helper for one in own for helper in one.whole()))
