"""NumPy modules: for each rule ``f`` the functions ``f``, ``f_vjp`` and ``f_jvp``."""

from __future__ import annotations

from dataclasses import replace

from gradspec.plan.account import Account
from gradspec.plan.account import account as booked
from gradspec.plan.array import Expr
from gradspec.plan.at_hand import with_outputs_at_hand
from gradspec.plan.plan import ModulePlan, RulePlan
from gradspec.plan.program import Vocabulary, forward, joined_backward, tangents
from gradspec.source import Source
from gradspec.targets import numpy_texts as texts
from gradspec.targets.docstring import module_docstring
from gradspec.targets.expansion import expander, with_slopes
from gradspec.targets.lines import Lines
from gradspec.targets.numpy_cheaper import cheaper
from gradspec.targets.numpy_double import doubled, shorter_value
from gradspec.targets.numpy_logistic import with_one_exponential, with_shares
from gradspec.targets.numpy_parts import Functions, values_of
from gradspec.targets.numpy_pullback import vjp_lines
from gradspec.targets.numpy_rule import jvp_lines, value_lines
from gradspec.targets.python import Needs, needs
from gradspec.targets.signature import fresh, scalars
from gradspec.targets.skeleton import laid_out, module_text, used_helpers
from gradspec.targets.unasked import answered

RESERVED = texts.RESERVED
EMITS_NAMED_AXES = True

_TYPES = ("import numpy as np", "import numpy.typing as npt")


def module(plan: ModulePlan) -> str:
    """The text of the module."""
    return _module(plan, [_functions(rule, plan, False) for rule in plan.rules])


def traced_module(plan: ModulePlan) -> str:
    """The same, printing what goes through each rule."""
    return _module(plan, [_functions(rule, plan, True) for rule in plan.rules])


def _module(plan: ModulePlan, rules: list[Functions]) -> str:
    wants = Needs((*_TYPES, "from collections.abc import Callable, Sequence"))
    definitions: list[Lines] = []
    public: list[str] = []
    for rule in rules:
        wants |= needs(rule.values, rule.scope)
        if rule.double is not None:
            wants |= needs(rule.double.pulled, rule.double.scope)
        if rule.narrow is not None:
            wants |= needs(values_of(rule.narrow), rule.scope)
        definitions += [value_lines(rule), vjp_lines(rule), jvp_lines(rule)]
        public += [rule.plan.name, rule.vjp, rule.jvp]
    text = "\n".join(laid_out(lines) for lines in definitions)
    helpers = used_helpers((*texts.HELPERS, *wants.helpers), text)
    wants |= Needs(tuple(line for helper in helpers for line in helper.imports))
    if "operator.index(" in text:
        wants |= Needs(("import operator",))
    if "partial(" in text:
        wants |= Needs(("from functools import partial",))
    return module_text(
        module_docstring(plan),
        wants.imports,
        public,
        [*(helper.text.strip().splitlines() for helper in helpers), *definitions],
    )


def account(plan: RulePlan) -> Account:
    """What the rule costs; the pullback holds what it uses."""
    functions = _functions(plan, ModulePlan(Source("", ""), "", "", (plan,)), False)
    ends = {i.name for i in plan.inputs} | {o.name for o in plan.outputs}
    residuals = functions.backward.residuals
    return booked(
        plan,
        functions.forward,
        functions.backward,
        (name for name in residuals if name in ends),
        (name for name in residuals if name not in ends),
    )


def _functions(rule: RulePlan, plan: ModulePlan, is_traced: bool) -> Functions:
    numbers = scalars(rule)
    words = Vocabulary(cheaper(expander("numpy", numbers), numbers), RESERVED)
    rule = answered(with_outputs_at_hand(rule))
    rules = {other.name for other in plan.rules}
    outputs = {output.name for output in rule.outputs}
    keep = tuple(name for name in rule.saved if name not in outputs)
    ahead = _in_words(words, [let.value for let in rule.forward], numbers)
    behind = _in_words(words, [g.whole for g in rule.gradients if g], numbers)
    made = Functions(
        plan=with_slopes(rule, words.expand),
        value=forward(rule, ahead),
        forward=forward(rule, ahead, keep),
        backward=joined_backward(rule, behind),
        tangents=None if rule.tangents is None else tangents(rule, words),
        vjp=fresh(f"{rule.name}_vjp", rules),
        jvp=fresh(f"{rule.name}_jvp", rules),
        is_traced=is_traced,
    )
    short = shorter_value(made, RESERVED)
    return replace(made, double=doubled(made, RESERVED), narrow=short)


def _in_words(
    words: Vocabulary, values: list[Expr], scalars: frozenset[str]
) -> Vocabulary:
    """The words for the values of one pass."""
    return with_shares(with_one_exponential(words, values), values, scalars)
