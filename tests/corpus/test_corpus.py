"""Gradients that people wrote by hand in public projects, as rules.

That the true ones are proved is pinned in `tests/contract/rules.tsv`. Values and gradients
are those of mpmath: of the formulas as written on NumPy, for every rule; of the evaluations
that were chosen for them, for a fifth of the rules (``GRADSPEC_CORPUS=all``: every rule), on
another target, file by file. Wrong versions, as bugs would have them, are refused with a
witness.
"""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import mpmath
import numpy as np
import pytest

import gradspec
from tests.calling import Array, called
from tests.corpus.case import Case, truth
from tests.corpus.references import CASES
from tests.corpus.texts import (
    ELEMENTWISE,
    INDEXED,
    SHARED,
    is_tried,
    names,
    only,
    refusals,
    wrong,
)

RELATIVE = 1e-10
LOSE_DIGITS = ("gelu", "softplus_beta")
"""More than are compared, as they are written: only their chosen evaluations are tried."""

TARGETS = ("torch", "tf", "jax")
OTHER = {path.stem: TARGETS[k % 3] for k, path in enumerate(ELEMENTWISE)}
"""By file: the target of the evaluations that were chosen."""

WRITTEN = [job for job in CASES if job[1] not in LOSE_DIGITS]
CHOSEN = [job for job in CASES if job[1] in LOSE_DIGITS or is_tried(job[1])]
pytestmark = [pytest.mark.shared_cache, pytest.mark.timeout(600)]


def _load(path: Path, target: str, as_written: bool) -> ModuleType:
    with warnings.catch_warnings():  # verdicts and findings are pinned in the contract
        warnings.simplefilter("ignore", gradspec.GradspecWarning)
        return gradspec.load(path, target, as_written=as_written)


@cache
def _written(file: str) -> ModuleType:
    return _load(SHARED.with_stem(file), "numpy", True)


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ModuleType]:
    folder, made = tmp_path_factory.mktemp("chosen"), {}
    for path in ELEMENTWISE:
        rules = [rule for file, rule in CHOSEN if file == path.stem]
        text = path.read_text("utf-8")
        (folder / path.name).write_text(text if path == SHARED else only(text, rules))
    for stem in {file for file, _ in CHOSEN}:
        target = OTHER[stem]
        made[stem] = _load(folder / f"{stem}.grad", target, False)
    return made


def test_every_rule_of_the_corpus_has_a_reference() -> None:
    rules = {(path.stem, name) for path in ELEMENTWISE for name in names(path)}
    assert rules == set(CASES)


@pytest.mark.parametrize("job", WRITTEN, ids="-".join)
def test_values_and_gradients_as_written(job: tuple[str, str]) -> None:
    _compare_all("numpy", _written(job[0]), job[1], CASES[job])


@pytest.mark.parametrize("job", CHOSEN, ids="-".join)
def test_values_and_gradients_as_chosen(
    job: tuple[str, str], chosen: dict[str, ModuleType]
) -> None:
    _compare_all(OTHER[job[0]], chosen[job[0]], job[1], CASES[job])


def _compare_all(target: str, module: ModuleType, rule: str, spec: Case) -> None:
    for statics in spec.statics:
        want = truth(spec, statics)
        above = spec.upstream()
        upstream = [
            np.array(above[name], float) if name in above else None
            for name in spec.outputs
        ]
        outputs, gradients = called(
            target,
            module,
            rule,
            map(np.array, spec.points.values()),
            upstream,
            [values is not None for values in want.gradients.values()],
            statics,
        )
        for name, got, values in zip(
            want.values, outputs, want.values.values(), strict=True
        ):
            _compare(name, got, values)
        for (name, values), got in zip(want.gradients.items(), gradients, strict=True):
            _compare(f"d{name}", got, values)


def _compare(name: str, got: Array | None, want: list[Any] | None) -> None:
    if want is None:
        assert got is None, f"{name} takes no gradient"
        return
    if got is None:  # frameworks' way of saying zero everywhere
        assert not any(want), f"{name} got no gradient"
        return
    assert got.shape == (len(want),), f"{name} has another shape"
    for place, (value, true) in enumerate(zip(got.tolist(), want, strict=True)):
        assert abs(mpmath.mpf(value) - true) <= RELATIVE * abs(true), (
            f"{name} at point {place} is {value!r}, truth {float(true)!r}"
        )


@pytest.mark.parametrize("path", (*ELEMENTWISE, *INDEXED), ids=lambda path: path.stem)
def test_wrong_gradients_are_refused_with_a_witness(path: Path) -> None:
    some = wrong(path)
    assert some or path in ELEMENTWISE
    accepted = []
    for mutant in some:
        found = refusals(mutant)
        told = [
            (d.headline, *(label.message for label in d.labels), *d.notes)
            for d in found
        ]
        if not told or not all(" = " in " ".join(words) for words in told):
            accepted.append((mutant.rule, mutant.statement))
    assert accepted == []
