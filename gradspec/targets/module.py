"""The frame of a generated module: header, imports, ``__all__``, definitions."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from gradspec.plan.plan import ModulePlan
from gradspec.targets.docstring import module_docstring
from gradspec.targets.layout import WIDTH, statement
from gradspec.targets.lines import Lines
from gradspec.targets.page import Page
from gradspec.targets.target import Definition


def module_text(plan: ModulePlan, page: Page, definitions: Iterable[Definition]) -> str:
    """The whole text, of lines of at most 88 columns."""
    definitions = tuple(definitions)
    names = sorted((n for d in definitions for n in d.public), key=_public_key)
    public = ", ".join(f'"{name}"' for name in names)
    parts = [
        module_docstring(plan),
        "from __future__ import annotations",
        *_import_groups(page),
        statement(f"__all__ = [{public}]"),
    ]
    texts = [laid_out(d.lines) for d in definitions]
    return "\n\n".join(parts) + "".join(f"\n\n\n{text}" for text in texts) + "\n"


def laid_out(lines: Lines) -> str:
    """Logical lines as text. A docstring is a single entry with line ends, and stays as
    it is.
    """
    return "\n".join(map(_laid_out, lines))


def _laid_out(line: str) -> str:
    text = line.lstrip(" ")
    if not text or text.startswith(('"""', 'r"""')):
        return line
    return statement(text, (len(line) - len(text)) // 4)


def _import_groups(page: Page) -> Lines:
    """The standard library, the framework, the runtime."""
    lines = sorted(_merged(page.imports), key=_import_key)
    groups = [
        [line for line in lines if _is_standard(line)],
        [line for line in lines if not _is_standard(line)],
        [*page.relative],
    ]
    return ["\n".join(map(_import, group)) for group in groups if group]


def _import(line: str) -> str:
    """An import; one that is too long has one name per line."""
    if len(line) <= WIDTH:
        return line
    head, _, names = line.partition(" import ")
    rows = "".join(f"    {name},\n" for name in names.split(", "))
    return f"{head} import (\n{rows})"


def _public_key(name: str) -> tuple[bool, str]:
    """Classes before functions, each by name."""
    return not name[:1].isupper(), name


def _merged(imports: Iterable[str]) -> Lines:
    """One import line for all names from the same module."""
    imports = tuple(imports)
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
