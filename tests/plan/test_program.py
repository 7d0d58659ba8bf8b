"""What the program of a rule keeps, shares and computes again, and what that costs."""

from __future__ import annotations

from functools import cache
from importlib import import_module

import pytest

from gradspec.plan.cost import CostSummary, Work, cost_summary
from gradspec.plan.program import Program, program
from gradspec.targets import TARGETS
from tests.targets.ranked_numpy import lowered, planned

RULES = """
rule softplus_of(x) -> y:
    y = softplus(x)
    dx = dy * sigmoid(x)

rule scaled(x, beta: static = 1.0) -> y:
    b = 2 * beta
    y = x + sigmoid(b * x)

rule grow(x) -> y:
    y = exp(x)

rule grow_again(x) -> y:
    y = exp(x)
    recompute y

rule polar(r, t) -> (x, y):
    x = r * cos(t)
    y = r * sin(t)

rule square_of(x) -> y:
    y = x**2

rule gate(x) -> y:
    u = exp(-x)
    y = x * u
    dx = dy * u * (1 - x)
    save u

rule root(x) -> y:
    assume x > 0
    y = sqrt(x)

rule centred(x[..., n]) -> y[..., n]:
    m = mean(x[j]**2 for j)
    y[i] = x[i] / sqrt(m + 1)

rule reverse(x) -> y:
    y = exp(x)
    override dx = -dy * y because "adversarial"

rule clipped(x) -> y:
    y = x
    override dx = clip(dy, -1, 1) because "no large gradients"
"""


@cache
def programs(target: str) -> dict[str, Program]:
    operators = import_module(f"gradspec.targets.{target}").OPERATORS
    return {
        plan.name: program(plan, operators) for plan in planned(lowered(RULES)).rules
    }


def cost(target: str, name: str) -> CostSummary:
    plans = {plan.name: plan for plan in planned(lowered(RULES)).rules}
    return cost_summary(programs(target)[name], plans[name])


targets = pytest.mark.parametrize("target", TARGETS)


@targets
@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("softplus_of", {"x"}),
        ("scaled", {"x"}),
        ("grow", {"y"}),
        ("polar", {"r", "t"}),
        ("root", {"y"}),
        ("clipped", set()),
    ],
)
def test_inputs_and_outputs_are_all_that_is_kept(
    target: str, name: str, kept: set[str]
) -> None:
    found = programs(target)[name]
    assert set(found.backward.residuals) == kept
    assert found.residual_locals == ()


@pytest.mark.parametrize("target", ["numpy", "torch", "tf"])
def test_what_the_author_saves_and_statistics_of_rows_are_kept(target: str) -> None:
    assert programs(target)["gate"].residual_locals == ("u",)
    assert programs(target)["centred"].residual_locals == ("m",)
    assert cost(target, "gate").beyond == (("u", 4),)


def test_jax_keeps_what_it_likes() -> None:
    gate = programs("jax")["gate"]
    assert gate.residual_locals == () and gate.backward.residuals == ("x",)
    assert cost("jax", "gate").beyond is None
    assert gate.pushes is not None


def test_a_declared_gradient_is_not_taken_from_outputs_that_are_differentiated() -> (
    None
):
    kept = {t: programs(t)["reverse"].backward.residuals for t in TARGETS}
    assert kept == {"numpy": ("y",), "torch": ("x",), "tf": ("y",), "jax": ("x",)}


@targets
def test_a_gradient_that_is_not_linear_has_no_pushforward(target: str) -> None:
    found = programs(target)["clipped"]
    assert not found.is_linear and found.pushforward is None and found.pushes is None
    assert "not linear" in found.no_pushforward
    assert programs(target)["grow"].pushforward is not None


@targets
def test_what_two_outputs_have_in_common_is_computed_once(target: str) -> None:
    steps = [s.name for s in programs(target)["polar"].backward.statements]
    assert {"cos_t", "sin_t"} <= set(steps) and len(set(steps)) == len(steps)


@targets
def test_numbers(target: str) -> None:
    assert programs(target)["scaled"].numbers == {"beta", "b"}
    sizes = programs(target)["centred"].numbers
    assert sizes == (frozenset() if target == "tf" else {"n"})


@targets
def test_a_square_by_hand(target: str) -> None:
    # y = x * x: one call, reads x twice and writes y.
    # dx = 2 * dy * x: two calls; 2 * dy reads one and writes one, … * x two and one.
    found = cost(target, "square_of")
    assert (found.forward, found.backward) == (Work(1, 0, 3, 2), Work(2, 0, 5, 3))
    assert found.kept == ("x",)


@targets
def test_numbers_cost_nothing(target: str) -> None:
    # b * x, sigmoid, x + …: three calls, one of them transcendental.
    found = cost(target, "scaled")
    assert found.forward == Work(3, 1, 2 + 2 + 3, 2)


@targets
def test_an_output_that_is_recomputed_is_no_residual(target: str) -> None:
    assert programs(target)["grow"].backward.residuals == ("y",)
    assert programs(target)["grow_again"].backward.residuals == ("x",)
