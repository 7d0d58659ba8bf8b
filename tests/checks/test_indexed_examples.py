"""Examples with vectors, matrices and batches."""

from __future__ import annotations

import pytest

from tests.checks.written import checked, codes

SOFTMAX = """
rule softmax(x[..., n]) -> y[..., n]:
    y[i] = exp(x[i]) / sum(exp(x[j]) for j)
    dx[i] = y[i] * (dy[i] - sum(dy[j] * y[j] for j))
    example {}
"""
LINEAR = """
rule linear(x[..., k], w[m, k]) -> y[..., m]:
    y[i] = sum(x[l] * w[i, l] for l)
    dx[l] = sum(dy[i] * w[i, l] for i)
    dw[i, l] = dy[i] * x[l]
    example {}
"""
NLL = """
rule nll(x[..., n], t[...]: int) -> loss[...]:
    loss = log(sum(exp(x[j]) for j)) - x[t]
    dx[i] = dloss * (exp(x[i]) / sum(exp(x[j]) for j) - (1 if i == t else 0))
    example {}
"""

RIGHT = [
    SOFTMAX.format("x = [1, 2, 3]: y = [0.0900306, 0.2447285, 0.6652410]"),
    SOFTMAX.format(
        "x = [[1, 2, 3], [1, 1, 1]], dy = [1, 0, 0]: dx = [[0.0819251, -0.0220330,"
        " -0.0598920], [0.2222222, -0.1111111, -0.1111111]]"
    ),
    SOFTMAX.format("x = [7]: y = [1], dx = [0]"),
    LINEAR.format(
        "x = [1, 2], w = [[1, 0], [0, 1], [1, 1]]: y = [1, 2, 3], dx = [2, 2],"
        " dw = [[1, 2], [1, 2], [1, 2]]"
    ),
    # the gradient of w is summed over the batch that it does not have
    LINEAR.format(
        "x = [[1, 2], [10, 20]], w = [[1, 0]], dy = [[1], [2]]: y = [[1], [10]],"
        " dw = [[21, 42]], dx = [[1, 0], [2, 0]]"
    ),
    NLL.format("x = [0, 0], t = 1: loss = 0.6931472, dx = [0.5, -0.5]"),
    NLL.format(
        "x = [[0, 0], [0, 0]], t = [1, 0]: loss = [0.6931472, 0.6931472],"
        " dx = [[0.5, -0.5], [-0.5, 0.5]]"
    ),
    # one row, two labels: batch axes broadcast, and the gradient is summed back
    NLL.format("x = [0, 0], t = [1, 0]: loss = [0.69, 0.69], dx = [0, 0]"),
]

WRONG = [
    (SOFTMAX.format("x = [0, 0]: y = [0.5, 0.6]"), "y[1] is 0.5, not 0.6"),
    (SOFTMAX.format("x = [[0, 0]]: dx = [[0, 1]]"), "dx[0, 1] is 0, not 1"),
    (LINEAR.format("x = [1, 2], w = [[1, 3]]: y = [8]"), "y[0] is 7, not 8"),
    (
        LINEAR.format("x = [[1, 2], [1, 2]], w = [[1, 0]]: dw = [[1, 2]]"),
        "dw[0, 0] is 2, not 1",
    ),
    (LINEAR.format("x = [[1, 2]], w = [[1, 0]]: y = [1]"), "y has shape [1, 1]"),
    (NLL.format("x = [0, 0], t = 0: dx = [0.5, -0.5]"), "dx[0] is -0.5, not 0.5"),
]


@pytest.mark.parametrize("text", RIGHT)
def test_what_is_right_passes(text: str) -> None:
    assert codes(text) == ()


@pytest.mark.parametrize(("text", "told"), WRONG)
def test_what_is_wrong_is_told_with_its_place(text: str, told: str) -> None:
    (found,) = checked(text).diagnostics
    assert found.code == "GS409"
    assert told in found.labels[0].message


def test_an_output_without_batch_axes_counts_once() -> None:
    text = """
        rule both(x[n], w[..., n]) -> (y[..., n], s[]):
            y[i] = x[i] * w[i]
            s = sum(x[i] for i)
            dx[i] = dy[i] * w[i] + ds
            example x = [1, 2], w = [[1, 2], [3, 4]], ds = 10: s = 3, dx = [14, 16]
    """
    assert codes(text) == ()


def test_examples_outside_the_assumptions() -> None:
    text = """
        rule r(p[..., n]) -> y[...]:
            assume p[i] > 0
            y = sum(log(p[i]) for i)
            dp[i] = dy / p[i]
            example p = [[1, 1], [1, {}]]: y = [0, {}]
    """
    assert codes(text.format("1", "0")) == ()
    assert "GS412" in codes(text.format("-1", "0"))


def test_statics_as_shifts_and_as_sizes() -> None:
    text = """
        rule lag(x[n], k: static int = 1) -> y[n]:
            y[i] = x[i - k] if i >= k else 0
            dx[i] = dy[i + k] if i + k < n else 0
            example x = [1, 2, 3]: y = [0, 1, 2]
            example x = [1, 2, 3], k = 2: y = [0, 0, 1], dx = [1, 0, 0]
    """
    assert codes(text) == ()
    text = """
        rule windows(x[n], m: static int) -> y[m]:
            y[i] = x[i + 0] + x[i + 1]
            example x = [1, 2, 3], m = 2: y = [3, 5], dx = [1, 2, 1]
    """
    assert codes(text) == ()
    assert codes(text.replace("m = 2", "m = 3").replace("[3, 5]", "[3, 5, 1]")) == (
        "GS409",
    )


def test_labels_out_of_range_give_no_value() -> None:
    (found,) = checked(NLL.format("x = [0, 0], t = 2: loss = 1")).diagnostics
    assert "loss is undefined, not 1" in found.labels[0].message


def test_derived_gradients_are_compared_too() -> None:
    text = """
        rule square(x[..., n]) -> y[...]:
            y = sum(x[i]**2 for i)
            example x = [1, 2]: y = 5, dx = [2, {}]
    """
    assert codes(text.format(4)) == ()
    assert codes(text.format(5)) == ("GS409",)
