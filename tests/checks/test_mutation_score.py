"""A fixed sample of the published mutation score: nothing wrong may survive in it.

`benchmarks/mutation.py` looks at all of it.
"""

from __future__ import annotations

from mpmath import mp

from benchmarks import score
from benchmarks.exact import equivalent, points
from benchmarks.library import library
from benchmarks.mutants import cotangents
from gradspec.derive.vjp import cotangents as derived
from gradspec.ir.calls import expand
from gradspec.ir.rule import Status

SAMPLE, SAMPLE_OF_DISGUISES = 101, 61  # one of so many: a few of every kind
RULES = tuple(rule for rule in library() if score.is_worth_it(rule))


def test_no_wrong_gradient_of_the_sample_survives() -> None:
    fates = [score.fate(mutant) for mutant in score.all_mutants(RULES)[::SAMPLE]]
    assert len(fates) >= 35
    assert not [f for f in fates if f.outcome == score.SURVIVED]
    assert sum(f.outcome == score.KILLED for f in fates) >= 0.8 * len(fates)


def test_no_right_gradient_in_disguise_is_refused() -> None:
    seen = list(score.disguised(RULES, SAMPLE_OF_DISGUISES, 2.0))
    assert len(seen) >= 10
    assert not [s for s in seen if s.status is not Status.PROVED]


def test_the_second_reading_agrees_with_the_derivative() -> None:
    """What calls a mutant equivalent finds true cotangents equal, others not."""
    for rule in RULES[::23]:
        places = points(rule, count=20)
        for name, value in cotangents(rule).items():
            assert equivalent(value, expand(derived(rule)[name]), places), rule.name


def test_survivors_would_be_counted() -> None:
    mutant, *_ = score.all_mutants(RULES)
    assert not score._is_right(mutant)


def test_thresholds_that_are_off_by_a_millionth() -> None:
    names = ("ste_sign", "quantise_log2", "fake_quantise")
    rules = [rule for rule in RULES if rule.name in names]
    assert len(rules) == len(names)
    shifted = [m for m in score.all_mutants(rules) if "shifted" in m.kind]
    assert all(score.fate(m).outcome == score.KILLED for m in shifted[:8])
    assert mp.dps == 15  # precision is raised for a while only
