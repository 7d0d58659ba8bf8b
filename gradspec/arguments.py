"""Arguments and options that commands share; those of a compilation and of an audit are
made from the fields of `gradspec.options`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import Field, fields, replace
from typing import Any

import click

from gradspec.targets import TARGETS, outside_targets

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


def options(kind: type[Any], *names: str) -> Callable[[Command], Command]:
    """Options for fields of ``kind``, an object of which the command takes by the name
    of its class in lower case: ``options`` or ``auditoptions``. Another decorator of
    the same kind may have set other fields of it.
    """
    by_name = {one.name: one for one in fields(kind)}
    into = kind.__name__.lower()

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def filled(**values: Any) -> Any:
            given = {name: values.pop(name) for name in names}
            return command(
                **values | {into: replace(values.get(into, kind()), **given)}
            )

        for name in reversed(names):
            _option(by_name[name])(filled)
        return filled

    return decorate


def _option(one: Field[Any]) -> Callable[[Command], Command]:
    more = dict(one.metadata)
    flag = more.pop("flag") or f"--{one.name.replace('_', '-')}"
    least, most = more.pop("least", None), more.pop("most", None)
    if one.name in _READERS:
        more |= {"callback": _READERS[one.name], "required": one.name == "targets"}
        if not more["required"]:
            texts: Any = one.default
            more |= {"default": ",".join(texts), "show_default": bool(texts)}
    elif isinstance(one.default, bool):
        more["is_flag"] = True
    else:
        is_whole = isinstance(one.default, int)
        if is_whole:
            more["type"] = click.IntRange(least, most)
        else:
            more["type"] = click.FloatRange(least, most, min_open=True)
        more |= {"default": one.default, "show_default": True}
    return click.option(flag, one.name, **more)


def _targets(
    context: click.Context, parameter: click.Parameter, value: str
) -> tuple[str, ...]:
    """``torch,tf`` → both, in a fixed order; ``all`` → every target."""
    names = _listed(value)
    known = (*TARGETS, *_outside_targets(names))
    if names == ["all"]:
        return TARGETS
    for name in names:
        if name not in known:
            meant = _FRAMEWORKS.get(name.lower())
            advice = f"write {meant}; " if meant else ""
            raise click.BadParameter(
                f"{name!r} is not a target; {advice}choose from"
                f" {', '.join((*known, 'all'))}"
            )
    if not names:
        raise click.BadParameter("name at least one target")
    return tuple(name for name in known if name in names)


def _outside_targets(names: Iterable[str]) -> tuple[str, ...]:
    """Targets of other packages; looked up only when one is requested."""
    if all(name in (*TARGETS, "all") for name in names):
        return ()
    return outside_targets()


def _dtypes(
    context: click.Context, parameter: click.Parameter, value: str
) -> tuple[str, ...]:
    """``float32,float64`` → both, from the narrowest on."""
    names = _listed(value)
    for name in names:
        if name not in DTYPES:
            raise click.BadParameter(
                f"{name!r} is not a format; choose from {', '.join(DTYPES)}"
            )
    if not names:
        raise click.BadParameter("name at least one format")
    return tuple(name for name in DTYPES if name in names)


def _codes(
    context: click.Context, parameter: click.Parameter, value: str
) -> tuple[str, ...]:
    """``GS434,gs441`` → both, in upper case."""
    from gradspec.report import explain

    names = [name.upper() for name in _listed(value)]
    for name in names:
        if explain.page(name) is None:
            raise click.BadParameter(
                f"there is no code {name}; `gradspec explain` lists them"
            )
    return tuple(sorted(names))


def _listed(value: str) -> list[str]:
    return [name.strip() for name in value.split(",") if name.strip()]


_READERS = {"targets": _targets, "dtypes": _dtypes, "ignored": _codes}
"""Functions that read the text of an option, by field."""


# --- options of the command line alone ------------------------------------------------

paths = click.argument("paths", nargs=-1, required=True, metavar="PATH...")
optional_paths = click.argument("paths", nargs=-1, metavar="[PATH]...")


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
