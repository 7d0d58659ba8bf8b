"""Plots of value and gradient."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradspec

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

TEXT = """
def half(t) = t / 2

rule quarter(x) -> y:
    y = half(half(x))

rule logs(p, q: static = 2.0) -> (y, z):
    assume 0 < p, p <= q
    y = log(half(p))
    z = p * p

rule pick(x, k: int, b: bool, w: param = 2.0) -> y:
    y = (x * k if b else w) * w

rule labelled(t: nograd, x) -> y:
    y = t * x

rule inverse(x) -> y:
    y = 1 / x

rule total(x[..., n]) -> y[...]:
    y = sum(x[i] for i)
"""


@pytest.fixture(scope="module")
def rules() -> Any:
    return gradspec.load(TEXT)


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    from matplotlib import pyplot

    yield
    pyplot.close("all")


def _curves(ax: Any) -> dict[str, tuple[Any, Any]]:
    return {line.get_label(): line.get_data() for line in ax.get_lines()}


def test_value_and_gradient(rules: Any) -> None:
    ax = rules.quarter.plot()
    curves = _curves(ax)
    x, y = curves["y"]
    assert (x[0], x[-1], *curves) == (-5, 5, "y", "dx")
    np.testing.assert_allclose(y, x / 4)
    np.testing.assert_allclose(curves["dx"][1], 0.25)
    assert (ax.get_title(), ax.get_xlabel()) == ("quarter", "x")


def test_the_axis_is_the_domain(rules: Any) -> None:
    """An end that is no part of it is left out; a static has its default."""
    curves = _curves(rules.logs.plot())
    x, _ = curves["y"]
    assert 0 < x[0] < 0.01 and x[-1] == 2
    np.testing.assert_allclose(curves["dp of y"][1], 1 / x)
    np.testing.assert_allclose(curves["dp of z"][1], 2 * x)
    assert _curves(rules.logs.plot(q=3.0))["y"][0][-1] == 3
    assert [*_curves(rules.logs.plot(between=(1, 2)))["y"][0][[0, -1]]] == [1, 2]


def test_other_inputs(rules: Any) -> None:
    ax = rules.pick.plot()
    np.testing.assert_allclose(_curves(ax)["dx"][1], 2.0)
    assert ax.get_title() == "pick, k = 1, b = 1, w = 2"
    np.testing.assert_allclose(
        _curves(rules.pick.plot(x=3.0, b=False))["dw"][1][-1], 10
    )
    x, y = _curves(gradspec.plot(rules.pick, over="w", k=2))["y"]
    np.testing.assert_allclose(y, 2 * x)
    assert rules.labelled.plot().get_xlabel() == "x"
    assert [*_curves(rules.labelled.plot(over="t"))] == ["y"]


def test_a_pole_is_cut(rules: Any) -> None:
    ax = rules.inverse.plot()
    low, high = ax.get_ylim()
    assert -50 < low < high < 50
    assert np.isnan(_curves(ax)["y"][1]).sum() == 1


def test_given_axes_are_drawn_in(rules: Any) -> None:
    from matplotlib import pyplot

    ax = pyplot.subplots()[1]
    assert rules.quarter.plot(ax=ax) is ax


@pytest.mark.parametrize(
    ("function", "inputs", "fault", "words"),
    [
        ("total", {}, ValueError, "total has axes"),
        ("quarter", {"x": 1.0}, ValueError, "no input of real numbers"),
        ("logs", {"over": "q"}, ValueError, "q of logs is no input of real numbers"),
        ("quarter", {"z": 1.0}, TypeError, "quarter has no input 'z'"),
        ("quarter_vjp", {}, TypeError, "plot takes the function of a rule"),
    ],
)
def test_refusals(
    rules: Any, function: str, inputs: dict[str, Any], fault: type, words: str
) -> None:
    with pytest.raises(fault, match=words):
        gradspec.plot(getattr(rules, function), **inputs)


def test_without_matplotlib(rules: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'gradspec\[plot\]'"):
        rules.quarter.plot()


def test_a_module_of_the_output_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "logs.grad").write_text(TEXT)
    gradspec.compile_paths(tmp_path / "logs.grad", out=tmp_path / "drawn")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("drawn.numpy.logs")
    assert not hasattr(module.quarter, "plot")
    assert [*_curves(gradspec.plot(module.quarter))] == ["y", "dx"]


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(name, marks=getattr(pytest.mark, name))
        for name in ("torch", "tf", "jax")
    ],
)
def test_other_targets(rules: Any, target: str) -> None:
    pytest.importorskip({"tf": "tensorflow"}.get(target, target))
    module = gradspec.load(TEXT, target)
    for name in ("logs", "pick", "labelled"):
        expected = _curves(getattr(rules, name).plot())
        found = _curves(getattr(module, name).plot())
        assert [*found] == [*expected]
        for label, (_, y) in expected.items():
            np.testing.assert_allclose(found[label][1], y, rtol=1e-5, atol=1e-6)
