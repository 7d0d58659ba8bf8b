"""Indices to axes: what array operations named indices become."""

from __future__ import annotations

from dataclasses import astuple

import pytest

from gradspec.ir.rule import Chosen, Judged
from gradspec.plan.arrays import Einsum, Expand, Expr, Name, Permute
from gradspec.plan.axes import Value, align, expand_axes, frames
from gradspec.plan.operations import expander
from gradspec.plan.plan import RulePlan
from gradspec.plan.planning import plan_module
from gradspec.primitives.lookup import spellings
from gradspec.source import Source
from gradspec.targets.axes import matrix_product
from tests.plan.building import text as shown
from tests.targets.ranked_numpy import lowered, planned


def _value(name: str, axes: str, batched: bool = True) -> Value:
    return Value(Name(name), tuple(axes), batched)


def plan(rule: str) -> RulePlan:
    (found,) = planned(lowered(rule)).rules
    return found


def text(found: RulePlan, value: Expr) -> str:
    sizes = frozenset(size.name for size in found.sizes)
    return shown(
        expander(spellings("numpy"), sizes)(value), sizes, found.tensor_inputs[0].name
    )


def output(rule: str) -> str:
    """The last statement's value, in NumPy."""
    return text(plan(rule), plan(rule).forward[-1].value)


def gradient(rule: str, of: str) -> str:
    found = plan(rule)
    group = next(g for g in found.gradients if g and g.input == of)
    return text(found, group.whole)


# --- alignment -------------------------------------------------------------------------


def test_a_missing_index_is_an_axis_of_size_1() -> None:
    value = _value("x", "i")
    assert align(value, ("i", "j")) == Expand(Name("x"), (-1,))
    assert align(value, ("j", "i")) == Expand(Name("x"), (-2,))


def test_in_front_of_a_value_without_batch_axes_broadcasting_supplies_it() -> None:
    assert align(_value("w", "i", False), ("j", "i")) == Name("w")
    assert align(_value("w", "i", False), ("i", "j")) == Expand(Name("w"), (-1,))


def test_axes_come_into_the_order_of_the_frame() -> None:
    assert align(_value("x", "ij"), ("j", "i")) == Permute(Name("x"), (-1, -2))


def test_the_frame_transposes_as_little_as_it_can() -> None:
    values = [_value("x", "ik"), _value("y", "jk")]
    assert frames(values, ("i", "k", "j"))[0] == ("i", "j", "k")
    assert frames([_value("x", "ji"), _value("y", "ji")], ("i", "j"))[0] == ("j", "i")
    assert frames([_value("x", "i"), _value("y", "j")], ("j", "i"))[0] == ("j", "i")


def test_new_axes_are_one_operation() -> None:
    assert expand_axes(Expand(Name("x"), (-1,)), (-1,)) == Expand(Name("x"), (-2, -1))
    assert expand_axes(Expand(Name("x"), (-2,)), (-1,)) == Expand(Name("x"), (-3, -1))


# --- contractions ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("inputs", "result", "product"),
    [
        (("...l", "il"), "...i", (0, 1, False, True)),
        (("...l", "li"), "...i", (0, 1, False, False)),
        (("il", "...l"), "...i", (1, 0, False, True)),
        (("...l", "l"), "...", (0, 1, False, False)),
        (("...ik", "...kj"), "...ij", (0, 1, False, False)),
        (("...ki", "...kj"), "...ij", (0, 1, True, False)),
        (("...ik", "...jk"), "...ij", (0, 1, False, True)),
        (("...ik", "...jk"), "...ji", (1, 0, False, True)),
        (("...hik", "...hjk"), "...hij", (0, 1, False, True)),
        (("...ik", "...k"), "...i", (0, 1, False, False, True)),
        (("...k", "...ki"), "...i", (1, 0, True, False, True)),
        (("...k", "...k"), "...", None),
        (("...ik", "...jk"), "ij", None),
        (("...ij", "...ij"), "...i", None),
        (("...ijk", "...jk"), "...i", None),
    ],
)
def test_contractions_that_are_matrix_products(
    inputs: tuple[str, str], result: str, product: tuple[object, ...] | None
) -> None:
    found = matrix_product(Einsum((Name("a"), Name("b")), inputs, result))
    if product is None:
        assert found is None
    else:
        assert found is not None
        assert astuple(found) == (*product, False)[:5]


# --- whole rules -----------------------------------------------------------------------

LINEAR = """
rule linear(x[..., k], w[m, k], b[m]) -> y[..., m]:
    y[i] = sum(x[l] * w[i, l] for l) + b[i]
    dx[l] = sum(dy[i] * w[i, l] for i)
    dw[i, l] = dy[i] * x[l]
    db[i] = dy[i]
"""


def test_linear_is_matrix_products() -> None:
    assert output(LINEAR) == "x @ w.swapaxes(-1, -2) + b"
    assert gradient(LINEAR, "x") == "dy @ w"


def test_the_gradient_of_an_input_without_batch_axes_is_summed_as_a_contraction() -> (
    None
):
    assert gradient(LINEAR, "w") == 'batch_contraction("i", "j", "ij", dy, x)'
    assert gradient(LINEAR, "b") == "batch_sum(dy, 1)"


def test_equal_values_are_one_whatever_their_indices() -> None:
    found = plan(
        "rule f(x[..., n]) -> y[..., n]:\n"
        "    y[i] = exp(x[i]) / sum(exp(x[j]) for j)\n"
        "    dx[i] = y[i] * (dy[i] - sum(dy[k] * y[k] for k))\n"
    )
    value = text(found, found.forward[-1].value)
    assert value == "np.exp(x) / np.exp(x).sum(axis=-1)[..., None]"


def test_a_statistic_of_a_row_is_kept() -> None:
    found = plan(
        "rule f(x[..., n]) -> y[..., n]:\n"
        "    m = mean(x[j] for j)\n"
        "    c[i] = x[i] - m\n"
        "    y[i] = c[i]**2\n"
        "    s[i] = 3 * dy[i] * c[i]\n"
        "    dx[i] = s[i] - mean(s[j] for j)\n"
    )
    values = {let.name: text(found, let.value) for let in found.forward}
    assert values["m"] == "x.mean(axis=-1)"
    assert found.saved == ("m",)
    assert (
        text(found, found.backward_locals[0].value) == "3.0 * dy * (x - m[..., None])"
    )


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("f(x[..., n]) -> y:\n y = x[0]", "x[..., 0]"),
        ("f(x[..., n, 3]) -> y[..., n]:\n y[i] = x[i, 2]", "x[..., 2]"),
        ("f(x[..., 3, n]) -> y[..., n]:\n y[i] = x[1, i]", "x[..., 1, :]"),
        ("f(x[n, n]) -> y[n]:\n y[i] = x[i, i]", "np.diagonal(x, axis1=-2, axis2=-1)"),
        ("f(x[n, m]) -> y[m, n]:\n y[j, i] = x[i, j]", "x.swapaxes(-1, -2)"),
        ("f(x[n], z[m]) -> y[n, m]:\n y[i, j] = x[i] * z[j]", "x[..., None] * z"),
        (
            "f(x[..., n], t: int) -> y:\n y = x[t]",
            "gather(x, t[..., None], -1)[..., 0]",
        ),
        ("f(x[n], t[..., m]: int) -> y[..., m]:\n y[i] = x[t[i]]", "take(x, t, -1)"),
        (
            "f(x[..., n]) -> y[..., n]:\n y[i] = sum(x[j] for j if j <= i)",
            "np.cumsum(x, axis=-1)",
        ),
        (
            "f(x[..., n]) -> y[..., n]:\n y[i] = x[n - 1 - i]",
            "take(x, n - 1 - np.arange(n), -1)",
        ),
        (
            "f(x[..., n, k], w[..., n]) -> y[..., k]:\n y[j] = sum(w[i] * x[i, j] for i)",
            "(x.swapaxes(-1, -2) @ w[..., None])[..., 0]",
        ),
        (
            "f(x[..., n], w[n]) -> y:\n y = mean(x[i] * w[i] for i)",
            "x @ w / n",
        ),
    ],
)
def test_what_indexing_becomes(rule: str, expected: str) -> None:
    assert forward(rule) == expected


def forward(rule: str) -> str:
    """The output of a rule whose gradients are left out of the question."""
    found = plan(f"rule {rule}\n")
    return text(found, found.forward[-1].value)


def test_a_sum_over_given_positions_is_a_scatter() -> None:
    found = (
        "rule f(w[v, d], t[..., n]: int) -> y[..., n, d]:\n"
        "    y[i, k] = w[t[i], k]\n"
        "    dw[a, k] = sum(dy[i, k] for i if t[i] == a)\n"
    )
    assert gradient(found, "w") == "scatter_add_all(t, dy, v, 1, 1)"


def test_a_contraction_of_two_factors_at_a_time() -> None:
    found = (
        "rule f(x[..., n], a[k, n, m], y[..., m]) -> z[..., k]:\n"
        "    z[i] = sum(x[p] * a[i, p, q] * y[q] for p, q)\n"
        "    dx[p] = sum(dz[i] * a[i, p, q] * y[q] for i, q)\n"
        "    da[i, p, q] = dz[i] * x[p] * y[q]\n"
        "    dy[q] = sum(dz[i] * a[i, p, q] * x[p] for i, p)\n"
    )
    assert 'np.einsum("...k,ikj->...ij", x, a, optimize=True)' in output(found)
    assert "batch_contraction(" in gradient(found, "a")


def test_a_condition_narrows_one_factor_of_a_contraction() -> None:
    found = (
        "rule f(p[..., n, n], v[..., n, d]) -> y[..., n, d]:\n"
        "    y[i, k] = sum(p[i, j] * v[j, k] for j if j <= i)\n"
        "    dp[i, j] = sum(dy[i, k] * v[j, k] for k) if j <= i else 0\n"
        "    dv[j, k] = sum(p[i, j] * dy[i, k] for i if j <= i)\n"
    )
    assert output(found) == (
        "np.where(np.arange(n) <= np.arange(n)[..., None], p, 0.0) @ v"
    )


def test_without_a_floating_input_nothing_is_emitted() -> None:
    rule = "rule f(t[..., n]: int) -> y:\n y = sum(t[i] for i)\n"
    (found,) = planned(lowered(rule)).unplanned
    assert "floating input" in found.reason


def test_nothing_unchecked_is_emitted() -> None:
    rules = lowered("rule f(x[n]) -> y[n]:\n y[i] = x[i]\n")
    source = Source("rules.grad", "")
    (found,) = plan_module(source, (Chosen(Judged(rules[0], ()), rules[0]),)).unplanned
    assert found.reason == "its gradients are not checked yet"
