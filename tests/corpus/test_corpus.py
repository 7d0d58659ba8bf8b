"""Gradients that people wrote by hand in public projects, as rules.

That the true ones are proved is pinned in `tests/contract/rules.tsv`. `values.tsv` has values
and gradients that owe nothing to gradspec: of elementwise rules by mpmath at 50 digits, of
indexed rules by torch's autograd in float64, at several shapes (`reference.py` makes rows for
a new rule). Every rule is compared on NumPy, elementwise ones as written; a fifth of all rules
(``GRADSPEC_CORPUS=all``: every rule) in the evaluations that were chosen for them, on another
target, file by file. Wrong versions, as bugs would have them, are refused with a witness.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import gradspec
from tests.contract.call import call
from tests.contract.comparing import found
from tests.contract.tables import COLUMNS, Row, read
from tests.corpus.reference import elementwise, indexed
from tests.corpus.texts import (
    ELEMENTWISE,
    HERE,
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
pytestmark = [pytest.mark.shared_cache, pytest.mark.timeout(600)]
by_file = pytest.mark.parametrize("path", ELEMENTWISE, ids=lambda path: path.stem)


def _name(path: Path) -> str:
    return path.relative_to(HERE).with_suffix("").as_posix()


ROWS: dict[str, dict[str, list[Row]]] = {
    _name(path): {rule: [] for rule in names(path)} for path in (*ELEMENTWISE, *INDEXED)
}
for one in read("values", HERE):
    ROWS[one["file"]][one["rule"]].append(one)


def _load(given: Path | str, target: str, as_written: bool = False) -> ModuleType:
    with warnings.catch_warnings():  # verdicts and findings are pinned in the contract
        warnings.simplefilter("ignore", gradspec.GradspecWarning)
        return gradspec.load(given, target, as_written=as_written)


def test_every_rule_of_the_corpus_has_a_reference() -> None:
    assert [
        (f, r) for f, rules in ROWS.items() for r, rows in rules.items() if not rows
    ] == []


@by_file
def test_values_and_gradients_as_written(path: Path) -> None:
    rules = [rule for rule in names(path) if rule not in LOSE_DIGITS]
    _compare("numpy", path, rules, _load(path, "numpy", True))


@by_file
def test_values_and_gradients_as_chosen(path: Path, tmp_path: Path) -> None:
    rules = [r for r in names(path) if r in LOSE_DIGITS or is_tried(r)]
    text = path.read_text("utf-8")
    (tmp_path / path.name).write_text(text if path == SHARED else only(text, rules))
    if path != SHARED:
        (tmp_path / SHARED.name).write_text(SHARED.read_text("utf-8"))
    target = TARGETS[ELEMENTWISE.index(path) % 3]
    _compare(target, path, rules, _load(tmp_path / path.name, target))


@pytest.mark.parametrize(
    ("path", "target"),
    [
        pytest.param(path, target, id=f"{path.stem}-{target}")
        for k, path in enumerate(INDEXED)
        for target in ("numpy", TARGETS[k % 2])
    ],
)
def test_values_and_gradients_of_indexed_rules(path: Path, target: str) -> None:
    rules = [rule for rule in names(path) if target == "numpy" or is_tried(rule)]
    module = _load(only(path.read_text("utf-8"), rules), target)
    _compare(target, path, rules, module)


def _compare(target: str, path: Path, rules: list[str], module: ModuleType) -> None:
    assert rules
    faults = [
        f"{rule} {row['call']}: {fault}"
        for rule in rules
        for row in ROWS[_name(path)][rule]
        for fault in _faults(target, module, rule, row, path in INDEXED)
    ]
    assert faults == []


def _faults(
    target: str, module: ModuleType, rule: str, row: Row, is_indexed: bool
) -> Iterator[str]:
    """An element is compared by its own size, or, of a sum, by that of the largest."""
    spec = call(row)
    outputs, gradients = found(target, module, rule, spec)
    pairs: list[tuple[str, Any, Any]] = [
        *zip(spec.outputs, spec.outputs.values(), outputs, strict=True),
        *((f"d{n}", spec.gradients.get(n), gradients[n]) for n in spec.inputs),
    ]
    for name, want, got in pairs:
        if want is None or got is None:
            if got is not want:
                yield f"{name}: a gradient where there is none, or none"
            continue
        scale = (
            max(1.0, float(np.abs(want).max(initial=0))) if is_indexed else abs(want)
        )
        if got.shape != want.shape or not np.all(abs(got - want) <= RELATIVE * scale):
            yield f"{name}: is {got.tolist()}, truth {want.tolist()}"


def test_rows_are_made_anew_as_they_are() -> None:
    """Of a derivative, a declared gradient with a static, two outputs, and of axes."""
    from mpmath import digamma, exp, log

    (first,) = ROWS["rules/special"]["psi"]
    made = [elementwise("rules/special", "psi", lambda x: digamma(x), _points(first))]
    rows = [first, ROWS["rules/control"]["scale_gradient"][1]]
    made += [
        elementwise(
            *("rules/control", "scale_gradient", lambda x, scale: x, _points(rows[1])),
            statics=call(rows[1]).statics,
            gradients={"x": lambda x, dy, scale: scale * dy},
        )
    ]
    rows += [ROWS["rules/assorted"]["log_softmax2"][0]]
    total = lambda a, b: log(exp(a) + exp(b))  # noqa: E731
    pair = lambda a, b: (a - total(a, b), b - total(a, b))  # noqa: E731
    outs = tuple(call(rows[2]).outputs)
    points = _points(rows[2])
    made += [elementwise("rules/assorted", "log_softmax2", pair, points, names=outs)]
    torch = pytest.importorskip("torch")
    rows += [ROWS["ranked/rules/sequences"]["cumulative_logsumexp"][0]]
    inputs = call(rows[3]).inputs
    made += [indexed("s", "r", lambda x: torch.logcumsumexp(x, -1), inputs)]
    for row, text in zip(rows, made, strict=True):
        was = call(row)
        now = call(dict(zip(COLUMNS["values"], text.split("\t"), strict=True)))
        assert was.statics == now.statics
        for part in ("inputs", "upstream", "outputs", "gradients"):
            one, other = getattr(was, part), getattr(now, part)
            assert list(map(str, one)) == list(map(str, other)) or part == "upstream"
            for x, y in zip(one.values(), other.values(), strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-13)


def _points(row: Row) -> dict[str, Any]:
    return {name: array.tolist() for name, array in call(row).inputs.items()}


@pytest.mark.parametrize("path", (*ELEMENTWISE, *INDEXED), ids=lambda path: path.stem)
def test_wrong_gradients_are_refused_with_a_witness(path: Path) -> None:
    some = wrong(path)
    assert some or path in ELEMENTWISE
    accepted = []
    for mutant in some:
        told = [
            (d.headline, *(label.message for label in d.labels), *d.notes)
            for d in refusals(mutant)
        ]
        if not told or not all(" = " in " ".join(words) for words in told):
            accepted.append((mutant.rule, mutant.statement))
    assert accepted == []
