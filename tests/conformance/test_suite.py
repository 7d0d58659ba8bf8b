"""The conformance suite tells a rule that is kept from one that is lost."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from gradspec.driver.cache import Shelf
from gradspec.driver.run import compile_source
from gradspec.measure import conformance, jobs
from gradspec.measure.features import FEATURES as OF_RULES
from gradspec.measure.features import Feature
from gradspec.measure.jobs import Subject, script_of
from gradspec.options import Options
from gradspec.source import Source
from tests.conformance.features import FEATURES


@pytest.mark.parametrize("target", FEATURES)
def test_every_feature_has_its_function(target: str) -> None:
    own = script_of(target)
    files = [own, own.with_name("shared.py"), *Path(__file__).parent.glob("*.py")]
    texts = [p.read_text("utf-8") for p in files]
    written = set(re.findall(r'"([^"\n]+)"', "\n".join(texts)))
    assert {f.name for f in FEATURES[target]} <= written
    names = [f.name for f in FEATURES[target]]
    assert len(set(names)) == len(names)


@cache
def _markers(target: str) -> Subject:
    return conformance.markers(Options((target,)))


def _matrix(
    target: str,
    wanted: tuple[str, ...],
    given: Subject,
    ways: tuple[str, ...] = conformance.EVERY,
) -> conformance.Matrix:
    features = tuple(f for f in OF_RULES[target] if f.name in wanted)
    assert len(features) == len(wanted)
    return conformance.matrix(target, (given,), features, ways)


def _subject_of(given: Subject, target: str, text: str) -> Subject:
    return replace(given, modules={target: replace(given.modules[target], text=text)})


def test_a_marker_says_something() -> None:
    """Every declared gradient is another than that of the forward expression, in each
    order and in half precision.
    """
    for case in _markers("numpy").cases:
        for order in ("first", "second", "third"):
            if case["rule"] in ("exact_marker", "result_marker"):
                continue
            pairs = zip(case[order].values(), case["bare"][order].values(), strict=True)
            assert any(_apart(one, other) > 0.1 for (_, one), (_, other) in pairs)


def _apart(one: list[float], other: list[float]) -> float:
    """Relative to the largest element."""
    differences = (abs(a - b) for a, b in zip(one, other, strict=True))
    return max(differences) / max(map(abs, one))


def test_no_upstream_gradient_is_like_another() -> None:
    """Of a gradient that lacks the factor, ones would show nothing."""
    for case in _markers("numpy").cases:
        for _, flat in case["upstream"].values():
            assert len({1.0, *flat}) == len(flat) + 1, case["rule"]


def test_each_of_two_inputs_is_broadcast() -> None:
    cases = {c["rule"]: c for c in _markers("numpy").cases}
    pair = cases["pair_marker"]
    assert [list(pair["given"][name][0]) for name in "xy"] == [[2, 1], [3]]
    assert {n: list(v[0]) for n, v in pair["values"].items()} == {"z": [2, 3], "w": [3]}
    assert (pair["batched"], pair["rows"]) == (["x"], ["z"])


def test_what_is_lost_shows() -> None:
    """A module that leaves differentiation to JAX, one that dies, one that is wrong, one
    whose gradient is declared in a form that cannot be differentiated."""
    pytest.importorskip("jax")
    given = _markers("jax")
    lost = (
        "import os\nimport jax\nimport jax.numpy as jnp\n\n"
        "def nonlinear_marker(x):\n    return jnp.sin(x)\n\n"
        "def exact_marker(x):\n    os._exit(3)\n\n"
        "def integer_marker(x, n, on):\n    return 7 * x\n\n"
        "def surrogate_marker(v, *, k=2.0):\n    raise ValueError('no such thing')\n\n"
        "@jax.custom_vjp\ndef core(x):\n    return 1.5 * x**2\n\n"
        "def backward(x, dy):\n"
        "    y = jax.lax.stop_gradient(7.5 * x**2 - 1.5 * x**2) + 1.5 * x**2\n"
        "    return (dy * y,)\n\n"
        "core.defvjp(lambda x: (core(x), x), backward)\n\n"
        "def static_marker(x, *, beta=1.5, n=2):\n    return core(x)\n"
    )
    states = {
        "nonlinear_marker": ["dropped", "dropped"],
        "exact_marker": ["error", "error"],
        "integer_marker": ["wrong", "wrong"],
        "surrogate_marker": ["error", "error"],
        "static_marker": ["ok", "wrong"],
    }
    cases = tuple(c for c in given.cases if c["rule"] in states)
    broken = replace(_subject_of(given, "jax", lost), cases=cases)
    cells = _matrix("jax", ("grad", "grad of grad"), broken, ("rule",)).cells
    for rule, wanted in states.items():
        assert [cell.state for cell in cells if cell.rule == rule] == wanted, rule
    messages = {cell.rule: cell.message for cell in cells}
    assert "ended with 3" in messages["exact_marker"]
    assert "no such thing" in messages["surrogate_marker"]


def test_a_users_rule_stands_beside_the_markers(tmp_path: Path) -> None:
    rule = tmp_path / "mine.grad"
    rule.write_text(
        "rule mine(x, y) -> z:\n"
        "    assume x > 0\n"
        "    z = sqrt(x) * y\n"
        '    override dy = 2 * dz * sqrt(x) because "twice"\n'
    )
    child = subprocess.run(
        [
            *(sys.executable, "-m", "gradspec", "test", "--conformance"),
            *("--target", "numpy", "--format", "json", str(rule)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    (matrix,) = json.loads(child.stdout)
    assert {cell["state"] for cell in matrix["cells"]} == {"ok", "none"}
    assert len(matrix["rules"]) == 10
    cells = [cell for cell in matrix["cells"] if cell["rule"] == "mine"]
    assert [cell["state"] for cell in cells] == ["ok"] * len(OF_RULES["numpy"])


def test_what_was_ok_is_kept_while_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = _markers("numpy")
    cases = tuple(c for c in given.cases if c["rule"] == "nonlinear_marker")
    given, features = replace(given, cases=cases), OF_RULES["numpy"]
    before = Shelf(tmp_path / "kept")
    first = conformance.matrix("numpy", (given,), features, kept=before)
    assert {c.state for c in first.cells} == {"ok", "none"}
    (entry,) = (tmp_path / "kept").iterdir()
    kept = entry.read_bytes()
    run: list[object] = []
    child = jobs.runners.run
    spy = lambda *a: run.append(a) or child(*a)  # noqa: E731
    monkeypatch.setattr(jobs.runners, "run", spy)
    assert conformance.matrix("numpy", (given,), features, kept=before) == first
    assert not run
    entry.write_bytes(kept.replace(b'"rule"', b'"rude"'))
    assert conformance.matrix("numpy", (given,), features, kept=before) == first
    assert run and entry.read_bytes() == kept
    other = given.modules["numpy"].text + "\n\nraise ValueError('dead')\n"
    broken = _subject_of(given, "numpy", other)
    third = conformance.matrix("numpy", (broken,), features, kept=before)
    assert {c.state for c in third.cells} == {"error", "none"}


def test_the_table_reads_as_it_is_written() -> None:
    marks = {f.name: f for f in FEATURES["torch"]}
    assert marks["forward AD"] == Feature("eager", "forward AD", 1, forward=True)
    assert marks["autocast to bfloat16"].half
    assert marks["compile of hessian"].order == 2
    assert marks["compile of jvp of jvp"] == Feature(
        "compile, forward", "compile of jvp of jvp", 2, forward=True
    )
    assert marks["empty tensors"].order == 0


def test_a_rule_that_takes_no_gradient_has_none_to_lose() -> None:
    source = Source("f.grad", "rule scaled(n: int) -> y:\n    y = 2.5 * n\n")
    result, _ = compile_source(source, "f.grad", Options(("numpy",)))
    (module,) = result.modules
    cases = jobs.cases(source, ".", Options(("numpy",)), True).value or ()
    given = Subject("f.grad", {"numpy": module}, cases)
    ways = conformance.DOUBTED
    matrix = conformance.matrix("numpy", (given,), OF_RULES["numpy"], ways)
    assert matrix.rules == ("scaled",)
    assert {(c.state, c.failed) for c in matrix.cells} == {("none", False)}
