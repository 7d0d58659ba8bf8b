"""Gradients that people wrote by hand in public projects, as rules.

That the true ones are proved is pinned in `tests/contract/rules.tsv`; values and gradients
are those of mpmath on every target, for half of the rules of the formulas as written, for a
fifth of the evaluations that were chosen for them (``GRADSPEC_CORPUS=all``: for every rule);
wrong versions, as bugs would have them, are refused with a witness.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import mpmath
import pytest

import gradspec
from gradspec.diagnostics import Diagnostic
from gradspec.options import Options
from gradspec.pipeline import check_rule, lower_module, read_module
from gradspec.source import Source
from tests.corpus.case import truth
from tests.corpus.mutants import RULES, mutants
from tests.corpus.ranked.choosing import only
from tests.corpus.references import CASES
from tests.corpus.share import is_tried

RELATIVE = 1e-10
_REFUSED = ("GS401", "GS402", "GS416", "GS431")
"""Not the derivative; at a kink, between neither of the one-sided slopes; up to rounding."""
FILES = tuple(sorted(RULES.glob("*.grad")))
WRITTEN, CHOSEN = "written", "chosen"
"""Formulas as they stand, and the evaluations that are chosen for them: a search, which
takes some ten times as long as all the rest."""
_LOSE_DIGITS = ("gelu", "softplus_beta")
"""More than are compared, as they are written: only their chosen evaluations are tried."""


def _is_job(how: str, rule: str) -> bool:
    if how == WRITTEN:
        return rule not in _LOSE_DIGITS and is_tried(rule, 2)
    return rule in _LOSE_DIGITS or is_tried(rule, 5)


JOBS = tuple(
    (how, file, rule, k)
    for how in (WRITTEN, CHOSEN)
    for (file, rule), case in CASES.items()
    if _is_job(how, rule)
    for k in range(len(case.statics))
)
_PACKAGES = {"numpy": "scipy", "torch": "torch", "tf": "tensorflow"}
_RUNNER = Path(__file__).parent / "runner.py"


# hundreds of rules are compiled before the first number is compared
pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, targets = tmp_path_factory.mktemp("corpus"), list(_PACKAGES)
    for how in (WRITTEN, CHOSEN):
        rules = folder / f"rules-{how}"
        rules.mkdir()
        for path in RULES.glob("*.grad"):
            text = path.read_text("utf-8")
            if path.stem != "shared":  # which others import
                tried = (rule for h, f, rule, _ in JOBS if (h, f) == (how, path.stem))
                text = only(text, tuple(tried))
            (rules / path.name).write_text(text, "utf-8")
        gradspec.compile_paths(rules, targets, folder / how, as_written=how == WRITTEN)
    return folder


@pytest.fixture(scope="module", params=("numpy", "torch", "tf"))
def numbers(request: pytest.FixtureRequest, compiled: Path) -> Any:
    target = request.param
    if importlib.util.find_spec(_PACKAGES[target]) is None:
        pytest.skip(f"{_PACKAGES[target]} is not installed")
    jobs = json.dumps([_job(*job) for job in JOBS])
    command = [sys.executable, str(_RUNNER), target, str(compiled)]
    done = subprocess.run(
        command, input=jobs, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(zip(JOBS, json.loads(done.stdout), strict=True))


def _job(how: str, file: str, rule: str, setting: int) -> dict[str, Any]:
    spec = CASES[file, rule]
    return {
        "package": how,
        "file": file,
        "rule": rule,
        "statics": dict(spec.statics[setting]),
        "inputs": {name: _told(values) for name, values in spec.points.items()},
        "upstream": {name: _told(values) for name, values in spec.upstream().items()},
    }


def _told(values: tuple[Any, ...]) -> list[Any]:
    return [v if isinstance(v, int) else float(v).hex() for v in values]


def test_every_rule_of_the_corpus_has_a_reference() -> None:
    rules = {
        (path.stem, line.split()[1].partition("(")[0])
        for path in FILES
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("rule ")
    }
    assert rules == set(CASES)


@pytest.mark.xdist_group("corpus")  # one worker compiles them
@pytest.mark.parametrize("job", JOBS, ids=lambda job: "-".join(map(str, job)))
def test_values_and_gradients(job: tuple[str, str, str, int], numbers: Any) -> None:
    _, file, rule, setting = job
    spec = CASES[file, rule]
    got = numbers[job]
    assert "fault" not in got, got["fault"]
    want = truth(spec, spec.statics[setting])
    for name, column, values in zip(
        want.values, got["outputs"], want.values.values(), strict=True
    ):
        _compare(name, column, values)
    for (name, values), column in zip(
        want.gradients.items(), got["gradients"], strict=True
    ):
        _compare(f"d{name}", column, values)


def _compare(name: str, column: list[str] | None, want: list[Any] | None) -> None:
    if want is None:
        assert column is None, f"{name} takes no gradient"
        return
    if column is None:  # frameworks' way of saying zero everywhere
        assert not any(want), f"{name} got no gradient"
        return
    assert len(column) == len(want), f"{name} has another shape"
    for place, (text, true) in enumerate(zip(column, want, strict=True)):
        value = mpmath.mpf(float.fromhex(text))
        assert abs(value - true) <= RELATIVE * abs(true), (
            f"{name} at point {place} is {float(value)!r}, truth {float(true)!r}"
        )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_wrong_gradients_are_refused_with_a_witness(path: Path) -> None:
    accepted = []
    for mutant in mutants(path):
        outcome = dict(_checked(path, mutant.text, mutant.rule))[mutant.rule]
        refused = [d for d in outcome.diagnostics if d.code in _REFUSED]
        if not refused:
            accepted.append((mutant.rule, mutant.statement))
        for found in refused:
            assert " = " in " ".join(_said(found)), found
    assert not accepted


def _said(found: Diagnostic) -> tuple[str, ...]:
    return found.headline, *(label.message for label in found.labels), *found.notes


def _checked(path: Path, text: str, only: str | None = None) -> Any:
    """Each rule of a text (or one of them) and what the checker says of it."""
    imported = {}
    if path.name == "odd.grad":
        shared = path.with_name("shared.grad")
        imported = {"shared.grad": _lowered(shared.name, shared.read_text("utf-8"), {})}
    lowered = _lowered(path.name, text, imported)
    options = Options(("numpy",))
    for rule in lowered.rules:
        if only in (None, rule.name):
            yield rule.name, check_rule(rule, options)


def _lowered(name: str, text: str, imports: Any) -> Any:
    parsed = read_module(Source(name, text))
    assert parsed.value is not None and not parsed.failed, parsed.diagnostics
    lowered = lower_module(parsed.value, imports)
    assert lowered.value is not None and not lowered.failed, lowered.diagnostics
    return lowered.value
