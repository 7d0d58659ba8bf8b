"""Index-level rewrites: what they make, and that it is the same function."""

from __future__ import annotations

import pytest

from gradspec.ir.expr import Expr, show
from gradspec.ir.rule import Rule
from gradspec.ir.unroll import unroll
from gradspec.stabilise.names import Names, Quantity, Scope, inline_lets
from gradspec.stabilise.reductions import IndexedProposals, forms
from gradspec.stabilise.rewriting import Search
from gradspec.symbolic.enclose import enclose
from tests.derive.rules import rules

HEADER = "rule f(x[..., n], z[..., n], k[..., n]: bool) -> y{axes}:\n"


def lowered(forward: str, axes: str = "") -> Rule:
    index = "[i]" if axes else ""
    return rules(HEADER.format(axes=axes) + f"    y{index} = {forward}\n")["f"]


def made(rule: Rule) -> tuple[Expr, ...]:
    *locals_, last = rule.forward
    scope = Scope(("x", "z", "k", "y", *last.indices))
    whole = inline_lets(last.value, {let.name: let for let in locals_}, scope)
    return tuple(dict.fromkeys(forms(whole, scope)))


def texts(forward: str, axes: str = "") -> tuple[str, ...]:
    return tuple(show(form) for form in made(lowered(forward, axes)))


SOFTMAX = "exp(x[i]) / sum(exp(x[j]) for j)"
LSE = "logsumexp(x[j] for j)"


def test_a_softmax_has_its_largest_exponent_taken_off() -> None:
    assert texts(SOFTMAX, "[..., n]") == (
        "exp(x[i] - max(x[j] for j)) / sum(exp(x[j] - max(x[l] for l)) for j)",
    )


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("log(sum(exp(x[j]) for j))", LSE),
        ("log(mean(exp(x[j]) for j))", f"{LSE} - log(n)"),
        ("log(sum(exp(x[j]) for j) / n)", f"{LSE} - log(n)"),
        ("x[0] - log(sum(exp(x[j]) for j))", f"x[0] - {LSE}"),
        ("-log(exp(x[0]) / sum(exp(x[j]) for j))", f"{LSE} - x[0]"),
        (
            "log(sum(exp(x[j] - max(x[l] for l)) for j)) + max(x[j] for j)",
            f"{LSE} - max(x[l] for l) + max(x[j] for j)",
        ),
    ],
)
def test_logarithms_of_sums_of_exponentials(written: str, meant: str) -> None:
    assert meant in texts(written)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (
            "mean(x[i]**2 for i) - mean(x[i] for i)**2",
            "mean((x[j] - mean(x[l] for l))**2 for j)",
        ),
        (
            "sum(x[i] * x[i] for i) / n - (sum(x[i] for i) / n)**2",
            "mean((x[j] - mean(x[l] for l))**2 for j)",
        ),
        (
            "(sum(x[i]**2 for i) - sum(x[i] for i)**2 / n) / (n - 1)",
            "sum((x[j] - mean(x[l] for l))**2 for j) / (n - 1)",
        ),
        (
            "sum(x[i]**2 for i) - n * mean(x[i] for i)**2",
            "sum((x[j] - mean(x[l] for l))**2 for j)",
        ),
        (
            "mean(x[i] * z[i] for i) - mean(z[i] for i) * mean(x[i] for i)",
            "mean((x[j] - mean(x[l] for l)) * (z[j] - mean(z[l] for l)) for j)",
        ),
    ],
)
def test_second_moments_are_centred(written: str, meant: str) -> None:
    assert meant in texts(written)


@pytest.mark.parametrize(
    "other",
    [
        "mean(x[i]**2 for i) - sum(x[i] for i)**2 / n",
        "mean(x[i]**2 for i) - mean(z[i] for i)**2",
        "mean(x[i]**2 for i) + mean(x[i] for i)**2",
        "mean(x[i] * z[i] for i) - mean(x[i] for i)**2",
        "log(1 + sum(x[j] for j))",
        "sqrt(sum(x[i] * z[i] for i))",
        "exp(x[0]) / (1 + sum(exp(x[j]) for j))",
    ],
)
def test_what_only_looks_like_it_is_left(other: str) -> None:
    assert texts(other) == ()


POINT = {"x": ("1/2", "-2", "3"), "z": ("3/4", "1/3", "-1")}
WRITTEN = [
    (SOFTMAX, "[..., n]"),
    ("log(exp(x[i]) / sum(exp(x[j]) for j))", "[..., n]"),
    ("exp(x[i]) / sum(exp(x[j]) for j if j <= i)", "[..., n]"),
    ("(exp(x[i]) if k[i] else 0) / sum(exp(x[j]) if k[j] else 0 for j)", "[..., n]"),
    ("x[i] / sqrt(sum(x[j]**2 for j))", "[..., n]"),
    ("sum(i * exp(x[i]) for i) / sum(exp(x[i]) for i)", ""),
    ("log(sum((2 + z[j]) * exp(x[j]) for j))", ""),
    ("-log(exp(x[0]) / (exp(x[0]) + sum(exp(z[j]) for j)))", ""),
    ("3 * sum(x[i]**2 for i) / n - 3 * mean(x[i] for i)**2", ""),
    (
        "sum(x[i]*z[i] for i) / (sqrt(sum(x[i]**2 for i)) * sqrt(sum(z[i]**2 for i)))",
        "",
    ),
    (f"sum({SOFTMAX} * log({SOFTMAX}) for i)", ""),
    ("mean(x[i]**2 for i if i > 0) - mean(x[i] for i if i > 0)**2", ""),
]


@pytest.mark.parametrize(("written", "axes"), WRITTEN)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_form_is_the_same_function(written: str, axes: str, size: int) -> None:
    """By balls, at points at which both are defined."""
    rule = lowered(written, axes)
    for form in made(rule):
        for exact, other in zip(
            _closed(rule, rule.forward[-1].value, size),
            _closed(rule, form, size),
            strict=True,
        ):
            point = _point(size)
            left, right = (enclose(e, point, 256) for e in (exact, other))
            if left.is_finite():
                assert right.is_finite() and left.overlaps(right), show(form)
                assert float(right.rad()) < 1e-20


def _point(size: int) -> dict[str, object]:
    from fractions import Fraction

    point: dict[str, object] = {}
    for name, values in POINT.items():
        point |= {f"{name}[{i}]": Fraction(v) for i, v in enumerate(values[:size])}
    return point | {f"k[{i}]": i != 1 for i in range(size)}


def _closed(rule: Rule, value: Expr, size: int) -> tuple[Expr, ...]:
    from dataclasses import replace

    other = rule.redefine(replace(rule.forward[-1], value=value))
    scalars = unroll(other, {"n": size}).rule
    names = Names(scalars)
    return tuple(names.close(let.value) for let in scalars.forward)


WEIGHTED = (
    "rule f(x[..., n], z[..., n], w[n]: nograd) -> y:\n    assume {known}\n{body}"
)


@pytest.mark.parametrize(
    ("known", "written", "meant"),
    [
        (
            "w[i] > 0, sum(w[i] for i) == 1",
            "sum(w[i] * x[i]**2 for i) - sum(w[i] * x[i] for i)**2",
            "sum(w[j] * (x[j] - sum(w[l] * x[l] for l))**2 for j)",
        ),
        (
            "w[i] > 0",
            "sum(w[i] * x[i] * z[i] for i) / sum(w[i] for i)"
            " - sum(x[i] * w[i] for i) * sum(w[j] * z[j] for j) / sum(w[i] for i)**2",
            "sum(w[j] * ((x[j] - sum(w[l] * x[l] for l) / sum(w[l] for l))"
            " * (z[j] - sum(w[l] * z[l] for l) / sum(w[l] for l))) for j)"
            " / sum(w[j] for j)",
        ),
        ("w[i] > 0", "sum(w[i] * x[i]**2 for i) - sum(w[i] * x[i] for i)**2", None),
    ],
)
def test_weighted_moments_are_centred_where_weights_sum_to_one(
    known: str, written: str, meant: str | None
) -> None:
    rule = rules(WEIGHTED.format(known=known, body=f"    y = {written}\n"))["f"]
    proposals = IndexedProposals(Search(lambda _: False), rule)
    of = Quantity("y", rule.forward[-1].value, (), ())
    found = [show(form) for form in proposals.near(of.value, of, rule)]
    assert (meant in found) if meant else not any("- sum" in one for one in found)
