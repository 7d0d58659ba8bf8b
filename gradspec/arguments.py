"""Arguments and options that commands share; those of a compilation and of an audit are
made from the fields of `gradspec.options`. Their defaults are those of the table
``[tool.gradspec]`` of a project's ``pyproject.toml``, if it has one.
"""

from __future__ import annotations

import functools
import math
import os
import sys
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import Field, fields, replace
from pathlib import Path
from typing import Any, NoReturn

import click

from gradspec.options import is_budget
from gradspec.targets import TARGETS, known_targets

Command = Callable[..., Any]

DTYPES = ("float16", "bfloat16", "float32", "float64")

_FRAMEWORKS = {
    "pytorch": "torch",
    "pt": "torch",
    "tensorflow": "tf",
    "keras": "tf",
    "np": "numpy",
    "jnp": "jax",
}
"""Targets by other names of their frameworks."""


def options(
    kind: type[Any], *names: str, is_needed: bool = True
) -> Callable[[Command], Command]:
    """Options for fields of ``kind``, an object of which the command takes by the name
    of its class in lower case: ``options`` or ``auditoptions``. Another decorator of
    the same kind may have set other fields of it. Targets are required if ``is_needed``.
    """
    by_name = {one.name: one for one in fields(kind)}
    into = kind.__name__.lower()

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def call_with_options(**values: Any) -> Any:
            given = {name: values.pop(name) for name in names}
            return command(
                **values | {into: replace(values.get(into, kind()), **given)}
            )

        for name in reversed(names):
            _option(by_name[name], is_needed)(call_with_options)
        return call_with_options

    return decorate


def _option(one: Field[Any], is_needed: bool) -> Callable[[Command], Command]:
    more = dict(one.metadata)
    flag = more.pop("flag") or f"--{one.name.replace('_', '-')}"
    least, most = more.pop("least", None), more.pop("most", None)
    if one.name in _READERS:
        texts: Any = one.default
        more |= {"callback": _READERS[one.name], "multiple": True}
        if one.name == "targets":
            more |= {"required": is_needed}
        else:
            more |= {"default": texts, "show_default": bool(texts)}
    elif isinstance(one.default, bool):
        more["is_flag"] = True
    else:
        is_whole = isinstance(one.default, int)
        if is_whole:
            more["type"] = click.IntRange(least, most)
        else:
            more["type"] = Number(least, most, min_open=True)
        more |= {"default": one.default, "show_default": True}
    return click.option(flag, one.name, **more)


class Number(click.FloatRange):
    """A number of a range: nan is none, whatever the range."""

    def convert(self, value: Any, *where: Any) -> float:
        number: float = super().convert(value, *where)
        if math.isnan(number):
            self.fail("nan is not a number", *where)
        return number


def _targets(
    context: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    """``torch,tf`` → both, in a fixed order; ``all`` → every target. None is required
    of a stage that comes before targets."""
    if not value:
        if context.params.get("stage") in ("rule", "plan"):
            return ()
        raise click.MissingParameter(ctx=context, param=parameter)
    names = _names_in(value)
    known = known_targets(names)
    for name in names:
        if name not in (*known, "all"):
            meant = _FRAMEWORKS.get(name.lower())
            advice = f"write {meant}; " if meant else ""
            raise click.BadParameter(
                f"{name!r} is not a target; {advice}choose from"
                f" {', '.join((*known, 'all'))}"
            )
    if not names:
        raise click.BadParameter("name at least one target")
    every = TARGETS if "all" in names else ()
    return tuple(name for name in known if name in names or name in every)


def _dtypes(
    context: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    """``float32,float64`` → both, from the narrowest on."""
    names = _names_in(value)
    for name in names:
        if name not in DTYPES:
            raise click.BadParameter(
                f"{name!r} is not a format; choose from {', '.join(DTYPES)}"
            )
    if not names:
        raise click.BadParameter("name at least one format")
    return tuple(name for name in DTYPES if name in names)


def _codes(
    context: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    """``GS434,gs441`` → both, in upper case."""
    from gradspec.report.diagnostics import page

    names = [name.upper() for name in _names_in(value)]
    for name in names:
        if page(name) is None:
            raise click.BadParameter(
                f"there is no code {name}; `gradspec explain` lists them"
            )
    return tuple(sorted(names))


def _names_in(value: tuple[str, ...]) -> list[str]:
    """The names of an option that may come several times, with several names each."""
    names = (name.strip() for text in value for name in text.split(","))
    return [name for name in names if name]


_READERS = {"targets": _targets, "dtypes": _dtypes, "ignored": _codes}
"""Functions that read the text of an option, by field."""


# --- options of the command line alone ------------------------------------------------

paths = click.argument("paths", nargs=-1, required=True, metavar="PATH...")
optional_paths = click.argument("paths", nargs=-1, metavar="[PATH]...")


stage = click.option(
    "--emit",
    "stage",
    type=click.Choice(("rule", "plan", "program")),
    is_eager=True,
    help="Print a stage of each rule and write nothing: the complete rule, the plan of"
    " its arrays (both need no target), or its program for each target.",
)


def style(*names: str) -> Callable[[Command], Command]:
    """``--format``, one of the names."""
    return click.option(
        "--format",
        "style",
        type=click.Choice(["text", *names]),
        default="text",
        show_default=True,
        help="How findings are printed.",
    )


_LOOK = 0.3
"""Seconds between two looks at the files that `--watch` watches."""


def watch(command: Callable[..., int]) -> Callable[..., NoReturn]:
    """With `--watch` the command runs again whenever a rule file has changed."""

    @click.option(
        "--watch", is_flag=True, help="Run again when a file changes, until Ctrl-C."
    )
    @functools.wraps(command)
    def repeat(paths: tuple[str, ...], watch: bool, **more: Any) -> NoReturn:
        if not watch:
            sys.exit(command(paths, **more))
        try:
            while True:
                before = _stamps(paths)
                command(paths, **more)
                while _stamps(paths) == before:
                    time.sleep(_LOOK)
        except KeyboardInterrupt as stopped:
            if stopped.args:  # a signal, not Ctrl-C
                raise
        sys.exit(0)

    return repeat


def _stamps(paths: tuple[str, ...]) -> dict[str, tuple[int, int]]:
    """The time and size of every rule file below the paths, and beside those that are
    files."""
    found = {}
    for path in map(Path, paths):
        files = path.rglob("*.grad") if path.is_dir() else path.parent.glob("*.grad")
        for file in files:
            try:
                status = file.stat()
            except OSError:  # it has just gone
                continue
            found[f"{file}"] = status.st_mtime_ns, status.st_size
    return found


jobs = click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    metavar="N",
    help="Worker processes; 0 for one per core.",
)
quiet = click.option("-q", "--quiet", is_flag=True, help="Print findings only.")


def folder(flag: str, help: str, **more: Any) -> Callable[[Command], Command]:
    """An option that names a folder for output."""
    kind = click.Path(file_okay=False)
    return click.option(flag, metavar="DIR", type=kind, help=help, **more)


# --- the table of pyproject.toml ------------------------------------------------------


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
    if "ignore" in found:
        found["ignored"] = found.pop("ignore")
    return {
        command: {name: found[name] for name in names if name in found}
        for command, names in _TAKEN.items()
    }


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(part, str) for part in value)


_TEXTS = "a list of texts"
_KEYS: dict[str, tuple[str, Callable[[object], bool]]] = {
    "paths": (_TEXTS, _is_list_of_texts),
    "targets": (_TEXTS, _is_list_of_texts),
    "out": ("a text", lambda value: isinstance(value, str)),
    "strict": ("true or false", lambda value: isinstance(value, bool)),
    "budget": ("a number of seconds", is_budget),
    "ignore": ("a list of codes", _is_list_of_texts),
}

_TAKEN = {
    "compile": ("paths", "targets", "out", "strict", "budget", "ignored"),
    "check": ("paths", "strict", "budget", "ignored"),
    "test": ("paths", "targets", "budget", "ignored"),
    "audit": ("paths", "targets", "budget", "ignored"),
    "fmt": ("paths",),
}
"""Parameters of each command that the table sets."""

COMMANDS = frozenset(_TAKEN)
