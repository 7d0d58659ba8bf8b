"""Arguments and options that commands share."""

from __future__ import annotations

from collections.abc import Iterable

import click

from gradspec.options import AUDIT_POINTS, BUDGET_SECONDS
from gradspec.targets import TARGETS, outside_targets

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


report = click.option(
    "--report",
    is_flag=True,
    help="Tell what each rule keeps, calls, reads and writes on each target.",
)

paths = click.argument("paths", nargs=-1, required=True, metavar="PATH...")
optional_paths = click.argument("paths", nargs=-1, metavar="[PATH]...")
conformance = click.option(
    "--conformance",
    is_flag=True,
    help="Take the rules, and built-in markers, through every feature of a framework.",
)
targets = click.option(
    "--target",
    "targets",
    callback=_targets,
    required=True,
    metavar="T[,T]",
    help="numpy, torch, tf, jax, several with commas, or all.",
)
style = click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json", "github"]),
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
verbose = click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Print a line per file on standard error.",
)
quiet = click.option("-q", "--quiet", is_flag=True, help="Print findings only.")
as_written = click.option(
    "--as-written",
    is_flag=True,
    help="Evaluate every formula as it stands; look for nothing more accurate.",
)
boundaries = click.option(
    "--boundaries",
    is_flag=True,
    help="Show what each rule does at kinks, jumps, poles and the ends of its domain.",
)
strict = click.option(
    "--strict", is_flag=True, help="A cotangent that only agrees is an error."
)
budget = click.option(
    "--budget",
    type=click.FloatRange(min=0.0, min_open=True),
    default=BUDGET_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="Effort for one rule: steps of its proofs and searches, its longest time.",
)
evidence = click.option(
    "--evidence", is_flag=True, help="Say of each verdict what it rests on, in a line."
)

second_order = click.option(
    "--order",
    type=click.IntRange(1, 2),
    default=1,
    show_default=True,
    help="2: the derivative of the backward is checked too.",
)

ignored = click.option(
    "--ignore",
    "ignored",
    callback=_codes,
    default="",
    metavar="CODE[,CODE]",
    help="Do not report these warnings and notes (GS416, an error, too).",
)

# --- of audits ------------------------------------------------------------------------

dtypes = click.option(
    "--dtype",
    "dtypes",
    callback=_dtypes,
    default="float32",
    show_default=True,
    metavar="F[,F]",
    help=f"Formats: {', '.join(DTYPES)}.",
)
order = click.option(
    "--order",
    type=click.IntRange(0, 2),
    default=1,
    show_default=True,
    help="Highest derivative: 0 values, 1 gradients, 2 second derivatives too.",
)
points = click.option(
    "--points",
    type=click.IntRange(min=20),
    default=AUDIT_POINTS,
    show_default=True,
    metavar="N",
    help="About how many in each stratum (16-bit formats: all inputs).",
)
audit_style = click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="A table, or a document for machines.",
)
plot = click.option(
    "--plot",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Draw the error against the input: DIR/<rule>.svg.",
)
values = click.option(
    "--values",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Write every point: DIR/<rule>.<target>.<format>.csv.",
)
limit = click.option(
    "--fail-over",
    "limit",
    type=click.FloatRange(min=0.0),
    metavar="T",
    help="Fail on an error beyond so many tolerances (4 is good), or no number.",
)
explained = click.option(
    "--explain",
    "explained",
    metavar="RULE",
    help="Only this rule, and why its evaluations were chosen.",
)
