"""Gradients over axes and of small algebra, as people wrote them by hand.

That the true ones are proved is pinned in `tests/contract/rules.tsv`; wrong versions are
refused in `test_corpus`. Values and gradients of a fifth of the rules (``GRADSPEC_CORPUS=all``:
of every rule) are those of torch's autograd at several shapes, on NumPy and, file by file,
on another target.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradspec
from tests.calling import Array, called, tuple_of
from tests.corpus.ranked.case import Case, Trial, trials
from tests.corpus.ranked.references import CASES
from tests.corpus.texts import INDEXED, only, tried

torch = pytest.importorskip("torch")

RELATIVE = 1e-10
JOBS = [
    pytest.param(path, target, id=f"{path.stem}-{target}")
    for k, path in enumerate(INDEXED)
    for target in ("numpy", ("torch", "tf")[k % 2])
]


@pytest.mark.parametrize(("path", "target"), JOBS)
def test_values_and_gradients_are_those_of_autograd(path: Path, target: str) -> None:
    rules = tried(path)
    text = only(path.read_text("utf-8"), rules)
    with warnings.catch_warnings():  # verdicts and findings are pinned in the contract
        warnings.simplefilter("ignore", gradspec.GradspecWarning)
        module = gradspec.load(text, target)
    for rule in rules:
        spec = CASES[path.stem, rule]
        for trial in trials(rule, spec):
            shapes = {name: array.shape for name, array in trial.arrays.items()}
            try:
                _compare_all(target, module, rule, spec, trial)
            except Exception as fault:
                raise AssertionError(f"{rule}, {shapes}") from fault


def _compare_all(target: str, module: Any, rule: str, spec: Case, trial: Trial) -> None:
    asked = [given.is_differentiated for given in spec.inputs.values()]
    inputs = {
        name: torch.tensor(array, requires_grad=want)
        for (name, array), want in zip(trial.arrays.items(), asked, strict=True)
    }
    outputs = tuple_of(spec.forward(**inputs, **trial.statics))
    rng = np.random.default_rng(7)
    above = [rng.standard_normal(tuple(o.shape)) for o in outputs]
    slopes = iter(
        torch.autograd.grad(
            outputs,
            [x for x in inputs.values() if x.requires_grad],
            [torch.as_tensor(g, dtype=torch.float64) for g in above],
            allow_unused=True,
            materialize_grads=True,
        )
    )
    arrays = trial.arrays.values()
    values, gradients = called(
        target, module, rule, arrays, above, asked, trial.statics
    )
    for output, value in zip(outputs, values, strict=True):
        _compare("value", value, output.detach().numpy())
    for name, want, found in zip(inputs, asked, gradients, strict=True):
        _compare(f"d{name}", found, next(slopes).numpy() if want else None)


def _compare(name: str, got: Array | None, want: Array | None) -> None:
    if want is None or got is None:
        assert got is want, f"{name}: a gradient where there is none, or none"
        return
    assert got.shape == want.shape, name
    scale = max(1.0, float(np.max(np.abs(want), initial=0.0)))
    np.testing.assert_allclose(got, want, 0.0, RELATIVE * scale, err_msg=name)
