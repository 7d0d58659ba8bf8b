"""Values used twice have names; the author's names stay."""

from __future__ import annotations

from gradspec.plan import sharing
from gradspec.plan.sharing import forward, pushforward
from tests.plan.building import WORDS, rule, text

NUMBERS = frozenset({"k", "c"})


def lines(block: object) -> list[str]:
    """The statements as text."""
    statements = block.statements  # type: ignore[attr-defined]
    return [f"{s.name} = {text(s.value, NUMBERS)}" for s in statements]


def test_a_value_used_once_stands_in_its_place() -> None:
    plan = rule("x", {"y": "exp(x) + 1"}, "y", {"dx": "dy * exp(x)"})
    assert lines(forward(plan, WORDS)) == ["y = np.exp(x) + 1.0"]


def test_a_value_used_twice_has_a_name_made_from_what_it_is() -> None:
    plan = rule("x", {"y": "exp(x) / (1 + exp(x))"}, "y", {"dx": "dy"})
    assert lines(forward(plan, WORDS)) == [
        "exp_x = np.exp(x)",
        "y = exp_x / (1.0 + exp_x)",
    ]


def test_locals_keep_their_names_and_unused_ones_go() -> None:
    lets = {"e": "exp(x)", "unused": "sin(x)", "y": "e + 1"}
    plan = rule("x", lets, "y", {"dx": "dy * e"})
    assert lines(forward(plan, WORDS)) == ["e = np.exp(x)", "y = e + 1.0"]
    assert lines(sharing.backward(plan, WORDS, by_output=False)) == [
        "e = np.exp(x)",
        "dx = dy * e",
    ]


def test_a_constant_local_keeps_its_name() -> None:
    lets = {"c": "1.5", "y": "c * x + c"}
    plan = rule("x", lets, "y", {"dx": "dy * c"})
    assert lines(forward(plan, WORDS)) == ["c = 1.5", "y = c * x + c"]
    assert lines(sharing.backward(plan, WORDS, by_output=False)) == [
        "c = 1.5",
        "dx = dy * c",
    ]


def test_a_derived_expression_equal_to_a_constant_local_uses_it() -> None:
    lets = {"c": "2 * pi", "y": "c * x"}
    plan = rule("x", lets, "y", {"dx": "dy * (2 * pi)"})
    found = lines(sharing.backward(plan, WORDS, by_output=False))
    assert found == ["c = 2.0 * math.pi", "dx = dy * c"]


def test_invented_names_never_shadow() -> None:
    plan = rule(
        "exp_x:nograd x", {"y": "exp(x) * (1 + exp(x)) + exp_x"}, "y", {"dx": "dy"}
    )
    names = [s.name for s in forward(plan, WORDS).statements]
    assert names == ["exp", "y"]


def test_an_output_is_kept_where_the_gradient_multiplies_with_it() -> None:
    plan = rule("x", {"y": "exp(x)"}, "y", {"dx": "dy * exp(x)"})
    backward = sharing.backward(plan, WORDS, by_output=False)
    assert (lines(backward), backward.residuals) == (["dx = dy * y"], ("y",))


def test_save_and_recompute_are_obeyed() -> None:
    lets = {"e": "exp(x)", "y": "e + x"}
    plain = rule("x", lets, "y", {"dx": "dy * (e + 1)"})
    saving = rule("x", lets, "y", {"dx": "dy * (e + 1)"}, saves=("e",))
    assert sharing.backward(plain, WORDS, by_output=False).residuals == ("x",)
    assert sharing.backward(saving, WORDS, by_output=False).residuals == ("e",)
    again = rule("x", {"y": "exp(x)"}, "y", {"dx": "dy * y"}, recomputes=("y",))
    assert sharing.backward(again, WORDS, by_output=False).residuals == ("x",)


def test_terms_of_different_shapes_stay_apart() -> None:
    plan = rule(
        "x y",
        {"z": "x * y", "w": "3 * y"},
        "z w",
        {"dx": "dz * y", "dy": "dz * x + dw * 3"},
    )
    dx, dy = sharing.backward(plan, WORDS, by_output=False).gradients
    assert dx is not None and dy is not None
    assert [term.spans for term in dx] == [("x", "y")]
    assert [term.spans for term in dy] == [("x", "y"), ("y",)]


def test_terms_of_one_shape_are_the_authors_expression() -> None:
    plan = rule("x", {"z": "2 * x", "w": "3 * x"}, "z w", {"dx": "4 * dz + 3 * dw"})
    assert lines(sharing.backward(plan, WORDS, by_output=False)) == [
        "dx = 4.0 * dz + 3.0 * dw"
    ]
    (split,) = sharing.backward(plan, WORDS, by_output=True).gradients
    assert split is not None and [term.upstream for term in split] == [("dz",), ("dw",)]


def test_rank_0_inputs_give_no_shape() -> None:
    plan = rule("x a[]", {"y": "a * x"}, "y", {"dx": "dy * a", "da": "dy * x"})
    dx, da = sharing.backward(plan, WORDS, by_output=False).gradients
    assert dx is not None and dx[0].spans == ("x",)
    assert da is not None and da[0].spans == ("x",)


def test_steps_say_which_gradients_need_them() -> None:
    plan = rule(
        "x y",
        {"z": "sin(x) * y"},
        "z",
        {"dx": "dz * cos(x) * y + cos(x)*dz", "dy": "dz * sin(x)"},
    )
    steps = {
        s.name: s for s in sharing.backward(plan, WORDS, by_output=False).statements
    }
    assert steps["cos_x"].inputs == ("x",)
    assert steps["cos_x"].upstream == ()
    assert steps["dy"].upstream == ("dz",)


def test_tangents_follow_from_the_gradients() -> None:
    plan = rule(
        "x y",
        {"z": "x * y", "w": "3 * y"},
        "z w",
        {"dx": "dz * y", "dy": "dz * x + dw * 3"},
    )
    found = lines(pushforward(plan, WORDS))
    assert found == ["z_dot = x_dot * y + y_dot * x", "w_dot = y_dot * 3.0"]


def test_a_gradient_that_is_not_linear_has_no_tangent() -> None:
    backward = {"dx": "clip(dy, -1, 1)"}
    plan = rule("x", {"y": "x"}, "y", backward, overrides=frozenset({"dx"}))
    assert plan.tangents is None
    assert (
        plan.no_tangents == "the override of dx is not linear in the upstream gradient"
    )


def test_what_two_gradients_share_has_the_name_of_neither_where_each_may_be_absent() -> (
    None
):
    """The name would be reset before the second gradient is made of it."""
    backward = {"da": "dy * cos(a + b)", "db": "dy * cos(a + b)"}
    plan = rule("a b", {"y": "sin(a + b)"}, "y", backward)
    names = [s.name for s in sharing.backward(plan, WORDS, by_output=True).statements]
    assert not {"da", "db"} & set(names)
    assert "da" in [
        s.name for s in sharing.backward(plan, WORDS, by_output=False).statements
    ]
