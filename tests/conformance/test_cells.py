"""Cells of the conformance matrix of the marker rules, as pinned in
`tests/contract/cells.tsv`; the whole matrix is `python benchmarks/conformance.py`. A
feature that goes the way of another is run there alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest

from gradspec.measure import conformance
from gradspec.measure.features import FEATURES as OF_RULES
from gradspec.measure.jobs import FRAMEWORKS, Subject
from gradspec.options import Options
from tests.conformance.features import FEATURES, RUNNERS
from tests.contract.cells import changed
from tests.contract.tables import told

QUICK = ("eager", "torch.func")
"""Groups whose cells are all run."""

SLOW = {
    "numpy": (),
    "torch": (
        "compile, fullgraph",
        "compile of vmap over one input, backward",
        "compile of jvp of jvp",
        "compile of func.jvp, one input at a time",
        "compiled autograd",
        "export, dynamic sizes",
        "export, strict",
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
"""One feature of each kind that is slow."""


@cache
def _markers(target: str) -> Subject:
    return conformance.markers(Options((target,)))


def _run(
    target: str, names: set[str], given: Sequence[Subject], ways: tuple[str, ...]
) -> conformance.Matrix:
    """The matrix of some features, of one process."""
    pytest.importorskip(FRAMEWORKS[target][0])
    features = tuple(
        replace(f, group="all") for f in FEATURES[target] if f.name in names
    )
    assert len(features) == len(names)
    return conformance.matrix(
        target, tuple(given), features, ways, runner=RUNNERS[target]
    )


def _subject(target: str, *rules: str) -> Subject:
    given = _markers(target)
    cases = tuple(c for c in given.cases if c["rule"].removesuffix("_marker") in rules)
    return replace(given, cases=cases)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("target", FEATURES)
def test_cells(target: str) -> None:
    quick = {f.name for f in FEATURES[target] if f.group in QUICK}
    given = _subject(target, "pair")
    matrix = _run(target, quick | {*SLOW[target]}, [given], conformance.DOUBTED)
    found = changed(matrix)
    assert not found, told(found)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("target", FEATURES)
def test_features_of_rules(target: str) -> None:
    """A rule with axes and a surrogate; plain code beside them has the derivatives of the
    forward expression, to third order."""
    eager = [f for f in OF_RULES[target] if f.group == "eager"]
    given = _subject(target, "axis", "surrogate")
    names = {f.name for f in eager if not f.exact}
    matrix = _run(target, names, [given], conformance.EVERY)
    found = changed(matrix)
    assert not found, told(found)
    whole = {f.name for f in eager if f.order == 3 or f.name == "values"}
    plain = {c.plain for c in matrix.cells if c.feature in whole}
    assert plain == {"none" if target == "numpy" else "ok"}


# --- faults that few features show -------------------------------------------------------

PULLED = "return 5.0 * dy * beta * (x * x)"
FAULTS = {
    "numpy": {
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
            *("static_marker", PULLED),
            PULLED.replace("(x * x)", "np.square(x, out=x)"),
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
    },
    "torch": {
        "another value": (
            *("exact_marker", "softplus(x, threshold=40.0)", "relu(x)"),
            {"values", "inference mode", "func.vjp, values", "vmap, values"},
        ),
        "an upstream gradient that is no factor": (
            *("nonlinear_marker", "3.0 * dy * dy", "3.0"),
            {"backward"},
        ),
        "statics of the first call": (
            *("static_marker", "_StaticMarker.call(x, beta, n)"),
            "_StaticMarker.call(x, _FIRST.setdefault('beta', beta), n)",
            {"other calls between"},
        ),
        "strides that are taken for granted": (
            *("integer_marker", "5.0 * dy * n.to"),
            "5.0 * dy.as_strided(dy.shape, torch.empty(dy.shape).stride()) * n.to",
            {"upstream gradients of other strides"},
        ),
        "single precision": (
            *("axis_marker", "5.0 * dy * g * x * m"),
            "15.0 * dy * g * (x / 3).float() * m",
            {"float64"},
        ),
    },
    "jax": {
        "an output outside the batch": (
            *("joint_marker", "batched_with(z, x, w)", "z"),
            {"grad of vmap over one input"},
        ),
        "inputs that devices share": (
            *("joint_marker", "_joint_marker.calls(x, w)", "_joint_marker(x, w)"),
            {"shard_map, inputs that devices share"},
        ),
        "a rule that does not last": (
            *("surrogate_marker", "by=lasting", "by=jax.custom_jvp"),
            {"scan, second derivative of a product"},
        ),
    },
}
"""A rule, what its code has and what it could have instead, and features of which each
must fail."""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("target", FAULTS)
def test_faults_show(target: str) -> None:
    """The emitted text is spoiled behind the compiler's back."""
    broken = []
    for rule, text, other, _ in FAULTS[target].values():
        given = _subject(target, rule.removesuffix("_marker"))
        module = given.modules[target]
        own = f"class _{rule.title().replace('_', '')}("
        start = max(module.text.find(own), 0)
        head, rest = module.text[:start], module.text[start:]
        assert text in rest
        spoiled = f"{head}{rest.replace(text, other, 1)}\n_FIRST: dict = {{}}\n"
        broken.append(replace(given, modules={target: replace(module, text=spoiled)}))
    names = set().union(*(shown for *_, shown in FAULTS[target].values()))
    matrix = _run(target, names, broken, ("rule",))
    count = len(matrix.features)
    for place, (fault, (*_, shown)) in enumerate(FAULTS[target].items()):
        cells = matrix.cells[place * count : (place + 1) * count]
        assert shown <= {c.feature for c in cells if c.failed}, fault
