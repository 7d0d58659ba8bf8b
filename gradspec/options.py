"""The options of a compilation and of an audit, with what the command line says of
them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

BUDGET_SECONDS = 10.0
"""Seconds that the proofs and searches of one rule may take, by default."""

LARGEST_BUDGET = 1e6


def is_budget(value: object) -> bool:
    """True if the value is a number of seconds that a rule may be given."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 < value <= LARGEST_BUDGET  # type: ignore[operator]


def _option(default: object, help: str, flag: str = "", **more: Any) -> Any:
    """A field that `gradspec.arguments` makes an option of: ``flag`` is its name there,
    ``more`` may hold a ``metavar``, ``least`` and ``most``.
    """
    return field(default=default, metadata={"help": help, "flag": flag, **more})


@dataclass(frozen=True, slots=True)
class Options:
    """``ignored``: codes of diagnostics that are not reported (see
    `diagnostics.not_ignored`). If not ``searches``, rules are checked and nothing more:
    no evaluations are looked for, which takes most of the time.
    """

    targets: tuple[str, ...] = _option(
        (),
        "numpy, torch, tf, jax, several with commas, or all.",
        "--target",
        metavar="T[,T]",
    )
    strict: bool = _option(False, "A cotangent that only agrees is an error.")
    trace: bool = _option(False, "Emit modules that print what passes through.")
    checked: bool = _option(False, "Emit modules that check each `assume` at a call.")
    budget: float = _option(
        BUDGET_SECONDS,
        "Effort for one rule: steps of its proofs and searches.",
        metavar="SECONDS",
        least=0.0,
        most=LARGEST_BUDGET,
    )
    order: int = _option(
        1, "2: the derivative of the backward is checked too.", least=1, most=2
    )
    as_written: bool = _option(
        False, "Evaluate every formula as it stands; look for nothing more accurate."
    )
    report: bool = _option(
        False, "Tell what each rule keeps, calls, reads and writes on each target."
    )
    ignored: tuple[str, ...] = _option(
        (),
        "Do not report these warnings and notes (GS416, an error, too).",
        "--ignore",
        metavar="CODE[,CODE]",
    )
    searches: bool = True


SIDES = ("emitted", "native", "written")
"""The implementations that an audit measures."""


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """``rules``: names; all where there is none. ``sides``: what is measured beside the
    emitted functions, the framework's own and the formulas as written.
    """

    dtypes: tuple[str, ...] = _option(
        ("float32",),
        "Formats: float16, bfloat16, float32, float64.",
        "--dtype",
        metavar="F[,F]",
    )
    order: int = _option(
        1,
        "Highest derivative: 0 values, 1 gradients, 2 second derivatives too.",
        least=0,
        most=2,
    )
    points: int = _option(
        4000,
        "About how many in each stratum (16-bit formats: all inputs).",
        metavar="N",
        least=20,
    )
    jobs: int = 1
    rules: tuple[str, ...] = ()
    sides: tuple[str, ...] = SIDES
