"""Ranked rules: cotangents proved, refuted with a witness, and what is odd besides."""

from __future__ import annotations

import pytest

from benchmarks.ranked_mutants import mutants
from benchmarks.ranked_mutation import fate
from benchmarks.score import KILLED, SURVIVED
from gradspec.checks import gradients
from gradspec.checks.check import check
from gradspec.checks.gradients import WronglyDerived, recheck
from gradspec.checks.instances import instances
from gradspec.derive.indexed import derived_cotangent
from gradspec.diagnostics import Diagnostic
from gradspec.ir.expr import Apply, Idx, Ref, const
from gradspec.ir.rule import Status
from gradspec.lower.lowering import lower
from gradspec.source import Source
from gradspec.syntax.parse import parse
from tests.checks.written import checked, codes, written

SOFTMAX = """
rule softmax(x[..., n]) -> y[..., n]:
    e[i] = exp(x[i] - max(x[j] for j))
    y[i] = e[i] / sum(e[j] for j)
    dx[i] = {}
"""
LINEAR = """
rule linear(x[..., k], w[m, k], b[m]) -> y[..., m]:
    y[i] = sum(x[l] * w[i, l] for l) + b[i]
    d{}
"""
NORM = """
rule layer_norm(x[..., n], eps: static = 1e-5) -> y[..., n]:
    assume eps > 0
    mu = mean(x[j] for j)
    r = rsqrt(mean((x[j] - mu)**2 for j) + eps)
    y[i] = (x[i] - mu) * r
    dx[i] = {}
"""
L2 = """
rule l2_normalize(x[..., n]) -> y[..., n]:
    s = sqrt(sum(x[j]**2 for j))
    y[i] = x[i] / s
    dx[i] = {}
"""
NLL = """
rule nll(x[..., n], t[...]: int) -> loss[...]:
    l = logsumexp(x[j] for j)
    loss = l - x[t]
    dx[i] = {}
"""
PRODUCT = """
rule product(a[n, k], b[k, m]) -> y[n, m]:
    y[i, j] = sum(a[i, l] * b[l, j] for l)
    d{}
"""
BILINEAR = """
rule bilinear(a[n, n], u[n], v[n]) -> y[]:
    y = sum(u[i] * a[i, j] * v[j] for i, j)
    da[i, j] = {}
"""
LAYER = """
rule layer(x[..., d], v[h, d], w[o, h]) -> y[..., o]:
    u[a] = sum(x[l] * v[a, l] for l)
    r[a] = {}
    y[i] = sum(r[a] * w[i, a] for a)
    g[a] = sum(dy[i] * w[i, a] for i){}
    dx[l] = sum(g[a] * v[a, l] for a)
"""
MEAN = """
rule average(x[..., n]) -> y[...]:
    y = mean(x[j] for j)
    dx[i] = {}
"""

RIGHT = [
    SOFTMAX.format("y[i] * (dy[i] - sum(dy[j] * y[j] for j))"),
    LINEAR.format("x[l] = sum(dy[i] * w[i, l] for i)"),
    LINEAR.format("w[i, l] = dy[i] * x[l]"),
    LINEAR.format("b[i] = dy[i]"),
    NORM.format("r * (dy[i] - mean(dy[j] for j) - y[i] * mean(dy[j] * y[j] for j))"),
    L2.format("(dy[i] - y[i] * sum(dy[j] * y[j] for j)) / s"),
    NLL.format("dloss * (exp(x[i] - l) - (1 if i == t else 0))"),
    PRODUCT.format("a[i, l] = sum(dy[i, j] * b[l, j] for j)"),
    BILINEAR.format("dy * u[i] * v[j]"),
    MEAN.format("dy / n"),
]

WRONG = [
    (SOFTMAX.format("y[i] * (dy[i] - dy[i] * y[i])"), ""),  # the sum is missing
    (SOFTMAX.format("y[i] * dy[i]"), ""),
    (SOFTMAX.format("y[i] * (dy[i] - sum(dy[j] for j))"), ""),
    (SOFTMAX.format("-y[i] * (dy[i] - sum(dy[j] * y[j] for j))"), "sign"),
    (LINEAR.format("x[l] = sum(w[i, l] for i)"), "upstream gradient dy"),
    (LINEAR.format("w[i, l] = 2 * dy[i] * x[l]"), "2 times"),
    (NORM.format("r * (dy[i] - mean(dy[j] for j))"), ""),  # a term of the norm
    (NORM.format("r * dy[i]"), ""),
    (L2.format("dy[i] / s"), ""),
    (L2.format("(dy[i] - x[i] * sum(dy[j] * y[j] for j)) / s"), ""),
    (NLL.format("dloss * exp(x[i] - l)"), ""),
    (NLL.format("dloss * (exp(x[i] - l) - (1 if i == 0 else 0))"), ""),
    (BILINEAR.format("dy * u[j] * v[i]"), "exchanged"),  # transposed
    (MEAN.format("dy"), "divide by n"),
    (MEAN.format("dy / n**2"), "divided by n"),
    (MEAN.format("dy / 2"), ""),  # right at one size only
]


@pytest.mark.parametrize("text", RIGHT)
def test_what_is_right_is_proved_for_every_size(text: str) -> None:
    outcome = checked(text, 10.0)
    assert outcome.diagnostics == ()
    assert outcome.value is not None
    verdicts = outcome.value.verdicts
    declared = next(v for v in verdicts if v.status is not Status.DERIVED and v.points)
    assert declared.status is Status.PROVED
    assert (declared.method, declared.sizes) == ("index calculus", "every size")
    assert declared.points > 30


@pytest.mark.parametrize(("text", "cause"), WRONG)
def test_what_is_wrong_is_refuted_with_a_witness(text: str, cause: str) -> None:
    (found,) = checked(text).diagnostics
    assert found.code == "GS401"
    assert "where the derivative is" in found.labels[0].message
    assert "n = " in found.labels[0].message or "k = " in found.labels[0].message
    assert cause in " ".join(found.notes)


def refuted(text: str) -> Diagnostic:
    (found,) = checked(text).diagnostics
    assert found.code == "GS401"
    return found


def test_the_witness_is_small_and_names_sizes_element_and_values() -> None:
    found = refuted(MEAN.format("dy"))
    assert found.headline == "dx of average is not the derivative"
    told = "dx[0] gives 1 at n = 2, dy = 1, where the derivative is 0.5"
    assert found.labels[0].message == told
    source = found.labels[0].source
    assert source.slice(found.labels[0].span) == "dy"


def test_the_witness_shows_matrices_and_indices() -> None:
    found = refuted(NLL.format("dloss * exp(x[i] - l)"))
    assert "n = 1, x = [1], t = 0, dloss = 1" in found.labels[0].message
    found = refuted(BILINEAR.format("dy * a[i, j]"))
    assert "a = [1]" not in found.labels[0].message
    assert "n = 1, a = [[1]], u = [2]" in found.labels[0].message


def test_axes_that_are_equal_at_small_sizes_only_are_told_apart() -> None:
    """``mean`` over 2 elements, written by hand."""
    found = refuted(MEAN.format("dy * (1 if n == 1 else 1 / 2 if n == 2 else 1 / 3)"))
    assert "n = 4" in found.labels[0].message


def test_another_inputs_derivative_is_recognised() -> None:
    found = refuted("""
        rule dot(x[n], w[n]) -> y[]:
            y = sum(x[i] * w[i] for i)
            dx[i] = dy * x[i]
    """)
    assert "it is the derivative by w, not by x" in found.notes


def test_surrogates_and_overrides_of_ranked_rules() -> None:
    text = """
        rule spike(v[n]) -> s[n]:
            s[i] = 1 if v[i] > 0 else 0
            surrogate s[i] = tanh(v[i])
            dv[i] = ds[i] * {}
    """
    outcome = checked(text.format("(1 - tanh(v[i])**2)"))
    assert outcome.diagnostics == ()
    assert outcome.value is not None
    verdict = outcome.value.verdicts[0]
    assert verdict.status is Status.PROVED
    assert verdict.through_surrogate
    notes = refuted(text.format("2")).notes
    assert "the derivative is that of the surrogate" in notes
    same = """
        rule scaled(x[n]) -> y[n]:
            y[i] = x[i]
            override dx[i] = dy[i] because "test"
    """
    assert codes(same) == ("GS406",)
    assert codes(same.replace("= dy[i]", "= -dy[i]")) == ()


@pytest.mark.parametrize(
    ("activation", "slope"),
    [
        ("max(u[a], 0)", " if u[a] > 0 else 0"),
        ("max(0, u[a])", " if u[a] >= 0 else 0"),
        ("max(u[a], 0)", " if r[a] > 0 else 0"),
        ("min(u[a], 2)", " if u[a] < 2 else 0"),
        ("max(u[a], 0.1 * u[a])", " * (1 if u[a] > 0 else 0.1)"),
        ("u[a] if u[a] > 0 else exp(u[a]) - 1", " * (1 if u[a] > 0 else r[a] + 1)"),
    ],
)
def test_a_layer_may_take_the_slope_of_one_side(activation: str, slope: str) -> None:
    outcome = checked(LAYER.format(activation, slope), 10.0)
    assert outcome.value is not None
    verdict = outcome.value.verdicts[0]
    assert (verdict.status, verdict.sizes) == (Status.PROVED, "every size")


@pytest.mark.parametrize(
    ("activation", "slope"),
    [
        ("max(u[a], 0)", " if u[a] > 1 else 0"),
        ("max(u[a], 0.1 * u[a])", " * (1 if u[a] > 0 else 0)"),
        ("max(u[a], 0.1 * u[a])", " * (1.1 if u[a] == 0 else 1 if u[a] > 0 else 0.1)"),
    ],
)
def test_a_layer_may_not_take_another(activation: str, slope: str) -> None:
    assert codes(LAYER.format(activation, slope))[0] in ("GS401", "GS402")


def test_ties_accept_what_lies_between_the_slopes() -> None:
    text = """
        rule top(x[..., n]) -> y[...]:
            y = max(x[j] for j)
            dx[i] = {}
    """
    shared = "dy * (1 if x[i] == y else 0) / sum(1 if x[j] == y else 0 for j)"
    assert codes(text.format(shared)) == ()
    assert codes(text.format("dy * (1 if x[i] == y else 0)")) == ()
    assert codes(text.format("dy * (2 if x[i] == y else 0)")) == ("GS401",)


def test_an_input_that_nothing_uses() -> None:
    text = "rule r(x[n], w[n]) -> y[n]:\n    y[i] = x[i]\n"
    assert codes(text) == ("GS408",)
    assert codes("rule r(x[n], like[m]) -> y[m]:\n    y[i] = x[0]\n") == ()
    assert codes("rule r(x, like[m]) -> y:\n    y = x * m\n") == ()


def test_a_step_over_an_axis_is_told_once() -> None:
    text = "rule r(x[n]) -> y[n]:\n    y[i] = floor(x[i]) * 2\n"
    found = checked(text).diagnostics
    if written(text).backward[0].is_derived:
        assert [d.code for d in found] == ["GS407"]
        assert found[0].headline == "the gradient of r by x is 0 everywhere"


def test_assumptions_that_nothing_satisfies() -> None:
    text = """
        rule r(p[n]) -> y[]:
            assume p[i] > 0, sum(p[i] for i) {} 0
            y = sum(log(p[i]) for i)
    """
    assert codes(text.format("<")) == ("GS410",)
    assert codes(text.format(">")) == ()


def test_sums_of_probabilities_can_be_assumed() -> None:
    text = """
        rule entropy(p[n]) -> y[]:
            assume p[i] > 0, sum(p[i] for i) == 1
            y = -sum(p[i] * log(p[i]) for i)
            dp[i] = -dy * (log(p[i]) + 1)
    """
    assert codes(text) == ()


def test_a_rule_that_is_undefined_on_a_part_of_its_domain() -> None:
    text = "rule r(x[n]) -> y[n]:\n    y[i] = log(x[i])\n"
    assert codes(text) == ("GS411",)
    assume = "rule r(x[n]) -> y[n]:\n    assume x[i] > 0\n    y[i] = log(x[i])\n"
    assert codes(assume) == ()


def test_cases_are_small_first_and_one_is_larger() -> None:
    known = instances(written(RIGHT[1]))
    assert known.small[0].sizes == {"k": 1, "m": 1}
    assert len(known.small) == 9
    assert known.larger[0].sizes == {"k": 4, "m": 5}
    assert known.is_whole
    indexed = instances(written(NLL.format("dloss * 0")))
    assert [c.integers["t"] for c in indexed.small] == [0, 0, 1, 0, 1, 2]


@pytest.fixture
def without_calculus(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second means of proof, where the first does not find the forms equal."""
    monkeypatch.setattr(gradients, "is_equal", lambda *_: False)


@pytest.mark.usefixtures("without_calculus")
@pytest.mark.parametrize("text", RIGHT)
def test_failing_the_calculus_each_element_is_proved(text: str) -> None:
    outcome = checked(text, 10.0)
    assert outcome.value is not None
    verdict = next(v for v in outcome.value.verdicts if v.points)
    assert (verdict.status, verdict.sizes) == (Status.AGREES, "sizes 1 to 3")


@pytest.mark.usefixtures("without_calculus")
def test_without_time_for_a_proof_it_agrees() -> None:
    outcome = checked(RIGHT[0], 0.0)
    assert outcome.value is not None
    verdict = outcome.value.verdicts[0]
    assert (verdict.status, verdict.sizes) == (Status.AGREES, "")
    assert verdict.points


@pytest.mark.parametrize(
    ("factor", "status", "code"),
    [(2, Status.PROVED, []), (3, Status.AGREES, ["GS421"])],
)
def test_fixed_sizes_too_large_to_unroll(
    factor: int, status: Status, code: list[str]
) -> None:
    outcome = checked(
        "rule f(x[..., 4000]) -> y:\n    y = sum(x[i]**2 for i)\n"
        f"    dx[i] = {factor} * dy * x[i]\n"
    )
    assert outcome.value is not None
    assert [verdict.status for verdict in outcome.value.verdicts] == [status]
    assert [d.code for d in outcome.diagnostics] == code


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ("y[i] * dy[i]", "y[i] * dy[i] - y[i] * sum(dy[j] * y[j] for j)"),
        ("exp(dy[i] * y[i])", "y[i] * (dy[i] - sum(dy[j] * y[j] for j))"),
    ],
)
def test_the_cure_is_the_line_with_its_term_or_the_derived_one(
    wrong: str, line: str
) -> None:
    assert f"`dx[i] = {line}`" in refuted(SOFTMAX.format(wrong)).help


@pytest.mark.usefixtures("without_calculus")
def test_many_index_values_are_taken_at_smaller_sizes() -> None:
    text = """
        rule rows(w[v, d], t[n]: int, s[n]: int) -> y[n, d]:
            y[i, j] = w[t[i], j] * w[s[i], j]
            dw[k, j] = sum((dy[i, j] * w[s[i], j] if t[i] == k else 0)
                + (dy[i, j] * w[t[i], j] if s[i] == k else 0) for i)
    """
    outcome = checked(text, 10.0)
    assert outcome.value is not None
    verdict = outcome.value.verdicts[0]
    assert (verdict.status, verdict.sizes) == (Status.AGREES, "sizes 1 to 2")
    assert verdict.points > 100


def test_a_wrong_derivation_of_ours_does_not_pass() -> None:
    module = parse(Source("t.grad", "rule r(x[n]) -> y[n]:\n    y[i] = x[i]**2\n"))
    assert module.value is not None
    lowered = lower(module.value, {})
    assert lowered.value is not None
    rule = lowered.value.rules[0]
    index = (Idx("i"),)
    for factor, is_right in ((2, True), (3, False)):
        times = Apply("mul", (const(factor), Ref("x", index)))
        value = Apply("mul", (Ref("dy", index), times))
        made = rule.redefine(derived_cotangent(rule.inputs[0], value, ("i",)))
        if is_right:
            recheck(made, instances(made))
            assert check(made).diagnostics == ()
        else:
            with pytest.raises(WronglyDerived):
                recheck(made, instances(made))


@pytest.mark.parametrize("text", RIGHT)
def test_no_wrong_mutant_survives(text: str) -> None:
    made = list(mutants(written(text)))[::5]
    outcomes = [fate(mutant, 0.5).outcome for mutant in made]
    assert SURVIVED not in outcomes
    assert outcomes.count(KILLED) >= 0.6 * len(outcomes) > 1


RECTIFIED = """
rule layer(x[d], w[d, h]) -> y[]:
    z[c] = sum(x[l] * w[l, c] for l)
    y = sum(max(z[c], 0) for c)
    dx[l] = sum(w[l, c] * dy * ({} if z[c] == 0 else 1) for c if z[c] >= 0)
"""


@pytest.mark.parametrize("slope", ["0", "0.5", "1"])
def test_where_kinks_meet_each_has_a_slope_of_its_own(slope: str) -> None:
    """All of them meet at x = 0, where moving x alone turns some on and others off."""
    assert codes(RECTIFIED.format(slope)) == ()


@pytest.mark.parametrize("slope", ["-1", "2", "dy"])
def test_where_kinks_meet_what_is_no_slope_of_any_is_refuted(slope: str) -> None:
    assert set(codes(RECTIFIED.format(slope))) & {"GS401", "GS402"}
