"""Why a form was chosen, in the terms of what was measured."""

from __future__ import annotations

from math import isinf, isnan

from gradspec.ir.expr import Expr
from gradspec.stabilise.choose import Choice
from gradspec.stabilise.measure import GOOD, Stratum, Trial


def reason(
    trial: Trial, written: Expr, choice: Choice, fine: Trial | None = None
) -> str:
    """One line: what was wrong with the form written, and how good the chosen one is.

    What float32 gains; else what float64 does."""
    other = _in_double(choice)
    if fine is None or other is None or not _gains(other) or _gains(choice):
        return _reason(trial, written, choice)
    return f"in float64 {_reason(fine, written, other)}"


def _in_double(choice: Choice) -> Choice | None:
    if choice.fine is None:
        return None
    before, after = choice.fine
    return Choice(choice.form, after, before)


def _reason(trial: Trial, written: Expr, choice: Choice) -> str:
    before, after = choice.written, choice.score
    now = f"now at most {_ulp(after.whole.worst)} ULP"
    if after.whole.bad < before.whole.bad:
        return f"{_fault(trial, written, before.whole)}; {_still(after.whole, now)}"
    if after.gaps < before.gaps:
        return f"undefined at {_first_gap(trial, written)}; now its limit there"
    if before.whole.worst > max(GOOD, after.whole.worst):
        where = _at(trial, before.whole.at)
        lost = _ulp(before.whole.worst)
        return f"lost digits at {where} ({lost} ULP); {now}"
    if after.noisy < before.noisy:
        return f"passed through an infinity; {now}"
    return f"as accurate (at most {_ulp(after.whole.worst)} ULP) and simpler"


def gains(choice: Choice) -> bool:
    """Whether the chosen form is more accurate, not only simpler."""
    other = _in_double(choice)
    return _gains(choice) or (other is not None and _gains(other))


def _gains(choice: Choice) -> bool:
    before, after = choice.written, choice.score
    return (
        after.whole.bad < before.whole.bad
        or after.gaps < before.gaps
        or after.noisy < before.noisy
        or before.whole.worst > max(GOOD, after.whole.worst)
    )


def _fault(trial: Trial, written: Expr, stratum: Stratum) -> str:
    value = trial.value(written, stratum.at)
    what = "overflowed" if isnan(value) or isinf(value) else "vanished"
    where = _at(trial, stratum.at)
    return f"{what} at {where}: {stratum.bad} of {stratum.count} points wrong"


def _still(after: Stratum, now: str) -> str:
    return now if after.bad == 0 else f"now {after.bad}"


def _first_gap(trial: Trial, written: Expr) -> str:
    return _at(trial, trial.first_gap(written))


def _at(trial: Trial, index: int) -> str:
    """The inputs at a point, without upstream gradients: ``x = 100``."""
    row = trial.points.rows[index]
    shown = [name for name in row if name in trial.variables]
    return ", ".join(f"{name} = {row[name]:.6g}" for name in shown) or "every point"


def _ulp(value: float) -> str:
    """Errors were counted from the rounded truth, itself half an ULP off at most."""
    value += 0.5
    return f"{value:.1f}" if value < 100 else f"{value:.1e}"
