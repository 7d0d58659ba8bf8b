"""Rules compiled to real modules, for the tests of the targets.

The modules are imported from files, as a user imports them.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType

from gradspec.checks.check import check
from gradspec.derive.complete import complete
from gradspec.driver.cache import Shelf
from gradspec.driver.imported import put
from gradspec.ir.plain import remembered, shelved
from gradspec.ir.rule import CheckedRule, Rule
from gradspec.lower.lowering import lower
from gradspec.options import BUDGET_SECONDS
from gradspec.plan.plan import ModulePlan
from gradspec.plan.planning import plan_module
from gradspec.source import Source
from gradspec.stabilise.stabilise import stabilise
from gradspec.syntax.parse import parse
from gradspec.targets import emit
from gradspec.targets.target import Emitted
from gradspec.trial.loading import imported as load


@cache
def planned(text: str, path: str = "rules.grad") -> ModulePlan:
    """The plan of the rules of ``text``. What this run has chosen for a rule already, in
    another test or by another worker, is chosen: the workers begin at different ends."""
    folder = os.environ.get("GRADSPEC_TEST_SHELF")
    with shelved(Shelf(Path(folder)) if folder else None):
        return planned_anew(text, path)


@cache
def planned_apart(text: str) -> ModulePlan:
    """A second plan of ``text``, for which all was worked out again, once for the targets
    together: whoever asks is in the group `APART`, which one worker runs."""
    return planned_anew(text)


APART = "planned apart"


def planned_anew(text: str, path: str = "rules.grad") -> ModulePlan:
    """The plan of the rules of ``text``, with nothing that is known of them."""
    source = Source(path, text)
    parsed = parse(source)
    assert parsed.value is not None, parsed.diagnostics
    lowered = lower(parsed.value, {})
    assert lowered.value is not None, lowered.diagnostics
    order = -1 if os.environ.get("PYTEST_XDIST_WORKER", "").endswith("1") else 1
    rules = [_chosen(rule) for rule in lowered.value.rules[::order]]
    assert not lowered.diagnostics, lowered.diagnostics
    return plan_module(source, tuple(rules[::order]))


def _chosen(rule: Rule) -> CheckedRule:
    completed = complete(rule)
    assert completed.value is not None, completed.diagnostics
    checked = check(completed.value, BUDGET_SECONDS).value
    assert checked is not None, rule.name

    def work() -> CheckedRule:
        return replace(stabilise(checked), verdicts=(), second=())

    bare, stage = replace(checked, verdicts=(), second=()), ("planned",)
    found = remembered(
        checked.rule, stage, bare, work, lambda x: isinstance(x, CheckedRule)
    )
    return replace(found, verdicts=checked.verdicts, second=checked.second)


@cache
def emitted_module(rules: str, target: str, trace: bool = False) -> Emitted:
    """The rules of ``rules``, emitted for ``target``."""
    outcome = emit(planned(rules), target, trace=trace)
    assert outcome.value is not None, outcome.diagnostics
    return outcome.value


def imported(emitted: Emitted) -> ModuleType:
    """The emitted module with its runtime, as a package of its own."""
    return load(str(put(Path(tempfile.mkdtemp()), emitted)))


@cache
def module_of(rules: str, target: str) -> ModuleType:
    """The rules of ``rules`` as a module of ``target``."""
    return imported(emitted_module(rules, target))


def numpy_module(rules: str) -> ModuleType:
    return module_of(rules, "numpy")


def torch_module(rules: str) -> ModuleType:
    return module_of(rules, "torch")


def tf_module(rules: str) -> ModuleType:
    return module_of(rules, "tf")


def jax_module(rules: str) -> ModuleType:
    return module_of(rules, "jax")


def torch_text(rules: str) -> str:
    return emitted_module(rules, "torch").text


def tf_text(rules: str) -> str:
    return emitted_module(rules, "tf").text


def jax_text(rules: str) -> str:
    return emitted_module(rules, "jax").text


RULES = '''
def sigma(t) = 1 / (1 + exp(-t))

rule log1pexp(x) -> y:
    """Softplus: the logarithm of one plus e to the x."""
    y = log(1 + exp(x))
    dx = dy * (1 - 1 / (1 + exp(x)))

rule complex_op(x, y) -> (z, w):
    z = x * y + sin(x)
    w = y**2
    dx = dz * (y + cos(x))
    dy = dz * x + dw * 2 * y

rule swish(x, beta: static = 1.0) -> y:
    y = x * sigma(beta * x)

rule spike(v, k: static = 25.0) -> s:
    s = 1 if v > 0 else 0
    surrogate s = v / (1 + k * abs(v))

rule reverse_gradient(x, scale: static = 1.0) -> y:
    y = x
    override dx = -scale * dy because "domain-adversarial training"

rule clip_gradient(x, limit: static = 1.0) -> y:
    y = x
    override dx = clip(dy, -limit, limit) because "exploding gradients"

rule keep_positive(x) -> y:
    y = x
    override dx = dy * dy * x because "a gradient that is not linear in its upstream"

rule bce(p, t: nograd) -> loss:
    assume 0 < p, p < 1, 0 <= t, t <= 1
    loss = -(t * log(p) + (1 - t) * log(1 - p))

rule power(x, n: int, on: bool) -> y:
    assume x > 0
    y = x**n if on else 0

rule power_of(x, n: static int = 3) -> y:
    y = x**n

rule square(x[]) -> y[]:
    y = x**2

rule product(x[], y[]) -> z[]:
    z = x * y

rule scaled(x, a[]) -> y:
    y = a * x

rule parts(x) -> (y, sgn: nograd, up: bool, side: int):
    y = x**2
    sgn = sign(x)
    up = x > 0
    side = 1 if x > 0 else 2

rule sums(x, y) -> (s, d):
    s = x + y
    d = x - y

rule mixed(x, y) -> (z, w):
    z = x * y
    w = y
    override dx = dz * dw because "mixes both upstream gradients"

rule levels(x) -> y:
    y = 0.1 if x > 0 else 0.2

rule constants(x, y) -> (z, c):
    z = max(0, x) + min(y, 1.5)
    c = 0.3
    override dx = 2 because "whatever comes from above"

rule tanh_of(x) -> y:
    y = tanh(x)
    dx = dy * (1 - y**2)

rule guarded(x) -> y:
    y = sqrt(x) if x > 0 else 0

rule sign_step(x) -> y:
    y = 1 if x > 0 else -1
    surrogate y = sigma(x)

rule piecewise(x) -> y:
    y = 2 * x if x > 0 else x
    dx = 2 * dy if x > 0 else dy

rule edges(x, y) -> z:
    z = max(0, x) + atan2(1, y) + (0.1 if y > 0 else x)

rule shared(x, y) -> (z, w):
    z = exp(x * y)
    w = sin(x * y) * exp(x * y)

rule counts(n: int) -> y:
    y = sqrt(n) + 0.5

rule labels(t: nograd, b: bool) -> y:
    y = t * 2 if b else 0.1

rule saver(x) -> y:
    e = exp(x)
    y = e / (1 + e)
    dx = dy * e / (1 + e)**2
    save e

rule copy2(x) -> (a, b):
    a = x
    b = x

rule same(x) -> (a, b):
    a = exp(x)
    b = exp(x)

rule branch(x, k: static int = 1) -> y:
    y = sin(x) if k > 0 else 2

rule branches(x, y, k: static int = 1) -> (z, w):
    z = sin(x) * y if k > 0 else (x if k < -1 else 0)
    w = 1 if k > 0 else x

rule step2(x, y) -> z:
    z = 1 if x > y else 0

rule boolout(x, y) -> (z, on: bool, k: int):
    z = x + y
    on = x > y
    k = 3

rule maskf(b: bool, n: int, x) -> y:
    y = (x if b else 0) + n * x
'''
"""One rule for each thing that a target must get right."""
