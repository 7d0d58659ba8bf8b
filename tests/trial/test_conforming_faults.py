"""Modules that are wrong in a way that one feature alone may show."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gradspec.driver import conforming
from gradspec.driver.run import compile_source
from gradspec.options import Options
from gradspec.source import Source
from gradspec.trial.features import FEATURES

PULLED = "return 5.0 * dy * beta * (x * x)"
NUMPY = {
    "an upstream gradient that is no factor": (
        *("nonlinear_marker", "3.0 * dy * dy * np", "3.0 * np"),
        {"f_vjp", "float64"},
    ),
    "statics of the first call": (
        *("static_marker", PULLED),
        f"beta = _FIRST.setdefault('beta', beta)\n        {PULLED}",
        {"other calls between"},
    ),
    "an upstream gradient that is changed in place": (
        *("static_marker", PULLED, f"dy *= 1.5\n        {PULLED}"),
        {"pullback twice"},
    ),
    "an input that is changed in place": (
        *("static_marker", PULLED, PULLED.replace("(x * x)", "np.square(x, out=x)")),
        {"pullback twice"},
    ),
    "single precision": (
        *("static_marker", PULLED),
        PULLED.replace("(x * x)", "np.float32(x * x / 3) * 3"),
        {"float64"},
    ),
    "another value": (
        *("static_marker", "return beta * x**n", "return 1 + beta * x**n"),
        {"values", "f_vjp, values"},
    ),
    "a gradient of an integer": (
        *("integer_marker", "dy), None, None", "dy), dy, None"),
        {"f_vjp"},
    ),
    "a sum that is left out": (
        *("pair_marker", "sum_to(product * x, y)", "product * x"),
        {"f_vjp"},
    ),
}
"""A rule, what its class has and what it could have instead, and cells of that."""


def _broken(given: conforming.Subject, target: str, text: str) -> conforming.Subject:
    return replace(given, modules={target: replace(given.modules[target], text=text)})


@pytest.mark.parametrize("fault", NUMPY)
def test_faults_of_numpy_modules(fault: str) -> None:
    rule, text, other, shown = NUMPY[fault]
    given = conforming.markers(Options(("numpy",)))
    cases = tuple(c for c in given.cases if c["rule"] == rule)
    own = f"class _{rule.title().replace('_', '')}("
    head, found, rest = given.modules["numpy"].text.partition(own)
    assert found and text in rest
    module = f"{head}_FIRST: dict = {{}}\n\n{found}{rest.replace(text, other, 1)}"
    broken = replace(_broken(given, "numpy", module), cases=cases)
    matrix = conforming.matrix("numpy", (broken,), FEATURES["numpy"])
    assert matrix.failed
    assert shown <= {c.feature for c in matrix.cells if c.failed}


TORCH = {
    "exact_marker": (
        ("softplus(x, threshold=40.0)", "relu(x)"),
        {"values", "inference mode", "func.vjp, values", "vmap, values"},
    ),
    "nonlinear_marker": (("3.0 * dy * dy", "3.0"), {"backward"}),
    "static_marker": (
        (
            "_StaticMarker.call(x, beta, n)",
            "_StaticMarker.call(x, _FIRST.setdefault('beta', beta), n)",
        ),
        {"other calls between"},
    ),
    "integer_marker": (
        ("5.0 * dy * n.to", "5.0 * dy.as_strided(dy.shape, _steps(dy)) * n.to"),
        {"upstream gradients of other strides"},
    ),
    "axis_marker": (
        ("5.0 * dy * g * x * m", "15.0 * dy * g * (x / 3).float() * m"),
        {"float64"},
    ),
}
"""By rule, what its module has and what it could have instead, and cells of that."""


def test_faults_of_torch_modules() -> None:
    """One for each rule."""
    pytest.importorskip("torch")
    given = conforming.markers(Options(("torch",)))
    module = given.modules["torch"].text
    for (text, other), _ in TORCH.values():
        assert text in module
        module = module.replace(text, other)
    module += (
        "\n_FIRST = {}\n\ndef _steps(x):\n    return torch.empty(x.shape).stride()\n"
    )
    wanted = set().union(*(shown for _, shown in TORCH.values()))
    features = tuple(f for f in FEATURES["torch"] if f.name in wanted)
    cases = tuple(c for c in given.cases if c["rule"] in TORCH)
    broken = replace(_broken(given, "torch", module), cases=cases, ways=("rule",))
    matrix = conforming.matrix("torch", (broken,), features)
    failed = {(c.rule, c.feature) for c in matrix.cells if c.failed}
    for rule, (_, shown) in TORCH.items():
        assert {(rule, name) for name in shown} <= failed, rule


def test_a_rule_that_takes_no_gradient_has_none_to_lose() -> None:
    source = Source("f.grad", "rule scaled(n: int) -> y:\n    y = 2.5 * n\n")
    result, _ = compile_source(source, "f.grad", Options(("numpy",)))
    (module,) = result.modules
    cases = conforming.cases(source, ".", Options(("numpy",)), True).value or ()
    given = conforming.Subject({"numpy": module}, cases, conforming.DOUBTED)
    matrix = conforming.matrix("numpy", (given,), FEATURES["numpy"])
    assert matrix.rules == ("scaled",)
    assert {(c.state, c.failed) for c in matrix.cells} == {("none", False)}
