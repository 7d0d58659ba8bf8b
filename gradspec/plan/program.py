"""From a neutral plan to what one target computes: expanded, shared, named.

Each function takes the plan of a rule and the target's :class:`Vocabulary` and returns
statements in which repeated values have names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gradspec.plan.array import Expr
from gradspec.plan.plan import Backward, Block, RulePlan


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What a target lacks and what it has taken.

    ``expand`` writes out the primitives that the target has no function for
    (`targets.expansion.expander(target)`); ``reserved`` are the names that its text uses
    itself (``np``, ``ctx``, …), so that no value may have them.
    """

    expand: Callable[[Expr], Expr]
    reserved: frozenset[str]


def forward(plan: RulePlan, words: Vocabulary, keep: tuple[str, ...] = ()) -> Block:
    """The outputs; the locals in ``keep`` are bound to their names as well."""
    raise NotImplementedError


def surrogate(plan: RulePlan, words: Vocabulary) -> Block:
    """The outputs, each with its surrogate in place of its forward where it has one."""
    raise NotImplementedError


def joined_backward(plan: RulePlan, words: Vocabulary) -> Backward:
    """Gradients with one term for each shape: for targets whose upstream gradients are
    all present.
    """
    raise NotImplementedError


def split_backward(plan: RulePlan, words: Vocabulary) -> Backward:
    """Gradients with one term for each output: for targets where an upstream gradient
    may be absent. A step's ``upstream`` says where it may stand.
    """
    raise NotImplementedError


def tangents(plan: RulePlan, words: Vocabulary) -> Block:
    """The outputs, then their tangents, from the inputs and ``<input>_dot``. Only where
    ``plan.tangents`` is there.
    """
    raise NotImplementedError


def pushforward(plan: RulePlan, words: Vocabulary) -> Block:
    """The tangents alone."""
    raise NotImplementedError
