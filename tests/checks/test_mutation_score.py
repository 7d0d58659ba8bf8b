"""A fixed sample of the published mutation score: nothing wrong may survive in it.

`benchmarks/mutation.py` looks at all of it.
"""

from __future__ import annotations

from fractions import Fraction

import pytest
from mpmath import mp

from benchmarks import peers, ranked_mutation, score
from benchmarks.exact import equivalent, points
from benchmarks.library import library
from benchmarks.mutants import cotangents, is_rounding
from gradspec.derive.vjp import cotangents as derived
from gradspec.ir.rule import Status
from gradspec.ir.walk import expand

SAMPLE, SAMPLE_OF_DISGUISES = 101, 61  # one of so many: a few of every kind
SAMPLE_WITH_AXES = 397
RULES = tuple(rule for rule in library() if score.is_worth_it(rule))


def test_no_wrong_gradient_of_the_sample_survives() -> None:
    fates = [score.fate(mutant) for mutant in score.all_mutants(RULES)[::SAMPLE]]
    assert len(fates) >= 35
    assert not [f for f in fates if f.outcome == score.SURVIVED]
    assert sum(f.outcome == score.KILLED for f in fates) >= 0.8 * len(fates)


def test_no_wrong_gradient_with_axes_of_the_sample_survives() -> None:
    every = ranked_mutation.all_mutants(ranked_mutation.ranked())
    fates = [ranked_mutation.fate(m, 1.0) for m in every[::SAMPLE_WITH_AXES]]
    assert len(fates) >= 7
    assert not [f for f in fates if f.outcome == score.SURVIVED]
    assert sum(f.outcome == score.KILLED for f in fates) >= 0.7 * len(fates)


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


def test_survivors_with_axes_would_be_counted() -> None:
    """The second reading, at sizes of its own, tells a wrong one from the truth."""
    (rule,) = (r for r in ranked_mutation.ranked() if r.name == "total_variation")
    every = ranked_mutation.all_mutants([rule])
    outcomes = {ranked_mutation._is_right(m) for m in every if "factor" in m.kind}
    assert outcomes == {False}


def test_a_cotangent_that_asks_for_too_much_is_killed() -> None:
    """What survived when there were no means to tell it: `x[-1]` at every size."""
    (rule,) = (r for r in ranked_mutation.ranked() if r.name == "total_variation")
    dropped = [m for m in ranked_mutation.all_mutants([rule]) if "dropped" in m.kind]
    outcomes = {ranked_mutation.fate(m, 1.0).outcome for m in dropped}
    assert score.KILLED in outcomes and score.SURVIVED not in outcomes


def test_the_peers_are_asked_the_same() -> None:
    """Both see another sign, neither one part in 10**12."""
    (rule,) = (r for r in RULES if r.name == "silu")
    mutants = score.all_mutants([rule])
    asked = [
        next(m for m in mutants if kind in m.kind)
        for kind in ("sign of a term", "factor 1 ± 1e-12")
    ]
    lets_pass = peers.passed(asked)
    assert lets_pass == {
        0: dict.fromkeys(peers.PEERS, False),
        1: dict.fromkeys(peers.PEERS, True),
    }


@pytest.mark.parametrize(
    ("short", "value", "expected"),
    [
        ("0.3989422804", "0.39894228041", True),
        ("0.39894228042", "0.39894228041", False),
        ("0.398942281", "0.3989422809", False),
        ("3.14159265359", "3.141592653589", True),
    ],
)
def test_roundings_are_no_mutants(short: str, value: str, expected: bool) -> None:
    assert is_rounding(Fraction(short), Fraction(value)) is expected
