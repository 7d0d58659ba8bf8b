"""Very many axes, long contractions, deep sums: a verdict all the same, and soon."""

from __future__ import annotations

from string import ascii_lowercase

import pytest

from gradspec.checks.instances import instances
from gradspec.ir.rule import Status
from tests.checks.written import checked, written

_AXES = ", ".join(f"{c}{c}" for c in ascii_lowercase[:10])
_AT = ", ".join(ascii_lowercase[:10])
TEN = f"""
rule ten(x[{_AXES}]) -> y[{_AXES.rpartition(", ")[0]}]:
    y[{_AT.rpartition(", ")[0]}] = sum(x[{_AT}]**2 for j)
    dx[{_AT}] = {{}} * dy[{_AT.rpartition(", ")[0]}]
"""


def judged(text: str) -> tuple[Status, str]:
    outcome = checked(text, 10.0)
    assert outcome.value is not None
    verdict = outcome.value.verdicts[0]
    return verdict.status, verdict.sizes


def test_ten_axes_are_proved() -> None:
    assert judged(TEN.format(f"2 * x[{_AT}]")) == (Status.PROVED, "every size")


@pytest.mark.parametrize("axis", ["a", "e", "i", "j"])
def test_a_wrong_axis_among_ten_is_refuted(axis: str) -> None:
    at = ", ".join("z" if c == axis else c for c in ascii_lowercase[:10])
    (found,) = checked(TEN.format(f"2 * sum(x[{at}] for z)")).diagnostics
    assert found.code == "GS401"
    assert f"{axis}{axis} = 2" in found.labels[0].message


def test_very_many_axes_are_looked_at_two_by_two() -> None:
    known = instances(written(TEN.format(f"2 * x[{_AT}]")))
    assert len(known.small) == 1 + 10 + 45
    assert not known.is_whole


def chain(length: int) -> str:
    names = [ascii_lowercase[k] for k in range(length)]
    axes = [f"n{k}" for k in range(length + 1)]
    inputs = ", ".join(
        f"{name}[{axes[k]}, {axes[k + 1]}]" for k, name in enumerate(names)
    )
    at = [f"i{k}" for k in range(length + 1)]
    factors = [f"{name}[{at[k]}, {at[k + 1]}]" for k, name in enumerate(names)]
    inner = ", ".join(at[1:-1])
    rest = " * ".join(factors[1:])
    return (
        f"rule chain({inputs}) -> z[{axes[0]}, {axes[-1]}]:\n"
        f"    z[{at[0]}, {at[-1]}] = sum({' * '.join(factors)} for {inner})\n"
        f"    da[{at[0]}, {at[1]}] = "
        f"sum(dz[{at[0]}, {at[-1]}] * {rest} for {', '.join(at[2:])})\n"
    )


@pytest.mark.parametrize("length", [2, 4, 8])
def test_long_contractions(length: int) -> None:
    assert judged(chain(length))[0] is Status.PROVED


@pytest.mark.parametrize(
    "body",
    [
        "    y = sum(exp(sum(exp(sum(x[i] * x[j] * x[k] for k)) for j)) for i)\n",
        "    a = logsumexp(x[i] for i)\n"
        "    b = logsumexp(x[i] * a for i)\n"
        "    c = logsumexp(x[i] * b + a for i)\n"
        "    d = logsumexp(x[i] * c + b for i)\n"
        "    e = logsumexp(x[i] * d + c for i)\n"
        "    f = logsumexp(x[i] * e + d for i)\n"
        "    y = logsumexp(x[i] * f + e for i)\n",
        "    y = prod(prod(prod(x[i] + x[j] + x[k] for k) for j) for i)\n",
    ],
)
def test_deep_sums_are_derived(body: str) -> None:
    assert judged("rule deep(x[..., n]) -> y[...]:\n" + body)[0] is Status.DERIVED
