"""The table ``[tool.gradspec]`` of a project's ``pyproject.toml``."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

FILE = "pyproject.toml"


class WrongSettings(Exception):
    """The table cannot be used; the message names the file, the key and what it
    takes."""


def defaults(folder: Path) -> dict[str, dict[str, Any]]:
    """The settings that hold in ``folder``, those of the nearest table in it or above,
    as defaults of each command's options. Paths are relative to the file.

    Raises:
        WrongSettings: the file cannot be read, or a key or value is unknown.
    """
    for above in (folder, *folder.parents):
        if (above / FILE).is_file():
            table = _table(above / FILE)
            if table is not None:
                return _by_command(table, above, folder)
    return {}


def _table(file: Path) -> Mapping[str, Any] | None:
    try:
        document = tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as fault:
        raise WrongSettings(f"cannot read {file}: {fault}") from fault
    tools = document.get("tool")
    table = tools.get("gradspec") if isinstance(tools, dict) else None
    if table is None or isinstance(table, dict):
        return table
    raise WrongSettings(f"{file}: tool.gradspec is not a table")


def _by_command(
    table: Mapping[str, Any], above: Path, folder: Path
) -> dict[str, dict[str, Any]]:
    for key, value in table.items():
        if key not in _KEYS:
            known = ", ".join(_KEYS)
            raise WrongSettings(
                f"{above / FILE}: [tool.gradspec] has no key {key!r}; it has {known}"
            )
        takes, is_right = _KEYS[key]
        if not is_right(value):
            raise WrongSettings(f"{above / FILE}: {key} of [tool.gradspec] is {takes}")

    def here(path: str) -> str:
        return Path(os.path.relpath(above / path, folder)).as_posix()

    found = dict(table)
    if "paths" in found:
        found["paths"] = [here(path) for path in found["paths"]]
    if "out" in found:
        found["out"] = here(found["out"])
    if "targets" in found:
        found["targets"] = ",".join(found["targets"])
    if "ignore" in found:
        found["ignored"] = ",".join(found.pop("ignore"))
    return {
        command: {name: found[name] for name in names if name in found}
        for command, names in _TAKEN.items()
    }


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


_TEXTS = "a list of texts"
_KEYS: dict[str, tuple[str, Callable[[object], bool]]] = {
    "paths": (_TEXTS, _is_list_of_texts),
    "targets": (_TEXTS, _is_list_of_texts),
    "out": ("a text", lambda value: isinstance(value, str)),
    "strict": ("true or false", lambda value: isinstance(value, bool)),
    "budget": ("a number of seconds", _is_positive),
    "ignore": ("a list of codes", _is_list_of_texts),
}

_TAKEN = {
    "compile": ("paths", "targets", "out", "strict", "budget", "ignored"),
    "check": ("paths", "strict", "budget", "ignored"),
    "test": ("paths", "targets", "budget"),
    "audit": ("paths", "targets", "budget"),
    "fmt": ("paths",),
}
"""Parameters of each command that the table sets."""

COMMANDS = frozenset(_TAKEN)
