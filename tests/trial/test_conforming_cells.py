"""Cells of the conformance matrix that are quick, and one of each kind that is slow.

They are as pinned in `tests/contract/cells.tsv`; the whole matrix is
`python benchmarks/conformance.py`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from gradspec.driver import conforming
from gradspec.driver.runners import FRAMEWORKS
from gradspec.options import Options
from gradspec.trial.features import FEATURES
from tests.contract.cells import changed
from tests.contract.tables import told

SLOW = {
    "torch": (
        "compile, fullgraph",
        "compiled autograd",
        "export, strict",
        "compile of func.jvp, one input at a time",
        "compile of vmap over one input, backward",
        "compile of jvp of jvp",
        "export, saved and loaded",
        "export, double backward",
        "DDP",
        "FSDP2",
        "DTensor",
    ),
    "tf": (
        "SavedModel, in a fresh process",
        "Keras layer, fitted",
        "MirroredStrategy, two devices",
        "tf.function, unknown ranks",
        "while loop",
        "vectorized_map",
    ),
    "jax": (
        "jit of hessian",
        "vmap in vmap",
        "grad of vmap over one input",
        "remat with a policy",
        "scan",
        "cond",
        "while, forward mode",
        "export",
        "export, sizes unknown",
        "checkify",
        "shard_map, sums over devices",
        "shard_map, inputs that devices share",
    ),
}
QUICK = {
    "torch": ("eager", "torch.func"),
    "tf": ("eager",),
    "jax": ("eager",),
}
UNSUPPORTED = {"functionalize"}
"""What torch has for no `autograd.Function` at all: plain code is asked, too."""


def _subject(
    target: str, rules: tuple[str, ...], ways: tuple[str, ...]
) -> conforming.Subject:
    pytest.importorskip(FRAMEWORKS[target][0])
    given = conforming.markers(Options((target,)))
    cases = tuple(c for c in given.cases if c["rule"] in rules)
    return replace(given, cases=cases, ways=ways)


@pytest.mark.parametrize("target", QUICK)
def test_quick_features(target: str) -> None:
    features = tuple(
        f
        for f in FEATURES[target]
        if f.group in QUICK[target] and f.name not in UNSUPPORTED
    )
    given = _subject(target, ("pair_marker", "axis_marker"), conforming.DOUBTED)
    found = changed(conforming.matrix(target, (given,), features))
    assert not found, told(found)


@pytest.mark.parametrize("target", SLOW)
def test_slow_features(target: str) -> None:
    features = tuple(f for f in FEATURES[target] if f.name in SLOW[target])
    assert len(features) == len(SLOW[target])
    given = _subject(target, ("pair_marker",), ("rule",))
    found = changed(conforming.matrix(target, (given,), features))
    assert not found, told(found)


BROKEN = {
    "an output outside the batch": (
        *("joint_marker", "batched_with(z, x, w)", "z"),
        {"grad of vmap over one input": "wrong"},
    ),
    "inputs that devices share": (
        *("joint_marker", "_joint_marker.calls(x, w)", "_joint_marker(x, w)"),
        {"shard_map, inputs that devices share": "error"},
    ),
    "a rule that does not last": (
        *("surrogate_marker", "by=lasting", "by=jax.custom_jvp"),
        {"scan, second derivative of a product": "error"},
    ),
}
"""A rule, what its module has and what it could have instead, and the cells of that."""


@pytest.mark.parametrize("fault", BROKEN)
def test_what_the_markers_show(fault: str) -> None:
    rule, text, other, states = BROKEN[fault]
    given = _subject("jax", (rule,), ("rule",))
    module = given.modules["jax"]
    assert text in module.text
    broken = replace(module, text=module.text.replace(text, other))
    features = tuple(f for f in FEATURES["jax"] if f.name in states)
    matrix = conforming.matrix(
        "jax", (replace(given, modules={"jax": broken}),), features
    )
    assert {cell.feature: cell.state for cell in matrix.cells} == states


def test_what_no_function_can_is_no_failure() -> None:
    """The rule cannot, and neither can the least `autograd.Function` by hand."""
    features = tuple(f for f in FEATURES["torch"] if f.name in UNSUPPORTED)
    given = _subject("torch", ("pair_marker",), conforming.DOUBTED)
    (cell,) = conforming.matrix("torch", (given,), features).cells
    assert (cell.state, cell.plain, cell.failed) == ("error", "error", False)
    assert cell.message == cell.plain_message


@pytest.mark.parametrize("target", SLOW)
def test_plain_code_beside_rules(target: str) -> None:
    """It has the derivative of the forward expression, to third order."""
    first = FEATURES[target][0]
    features = tuple(f for f in FEATURES[target] if f.group == first.group)
    features = tuple(f for f in features if f.order == 3 or f is first)
    rules = ("static_marker", "surrogate_marker", "result_marker", "axis_marker")
    given = _subject(target, rules, conforming.Subject({}, ()).ways)
    matrix = conforming.matrix(target, (given,), features)
    assert {(c.state, c.plain) for c in matrix.cells} == {("ok", "ok")}
