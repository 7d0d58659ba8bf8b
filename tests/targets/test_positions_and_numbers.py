"""Positions that need not exist, and Python numbers where a function wants an array: on all
targets the values and gradients of the formula, and no exception.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gradspec.ir.rule import Kind, Rule
from tests.calling import by_target, called, cotangent
from tests.targets.emission import module_of

torch = pytest.importorskip("torch")
fuzz = pytest.importorskip("benchmarks.fuzz_axes")

TEXT = """
rule gathered_mean(x[n], t[m]: int) -> z:
    z = mean(x[t[j]] for j)

rule gathered_squares(x[..., n], t[m]: int) -> z[...]:
    z = sum(x[t[j]]**2 for j) + sum(x[t[j]] for j)

rule gathered_peak(x[n], t[m]: int) -> z:
    z = max(x[t[j]] for j) + logsumexp(x[t[j]] for j)

rule gathered_rows(x[n, d], t[m]: int, w[d]) -> z[d]:
    z[i] = sum(x[t[j], i] for j) * w[i]

rule gathered_beside(w[..., n, 3], t[..., n]: int) -> z[..., n, n]:
    z[i, j] = w[j, 1] + w[t[i], 0]

rule gathered_first(x[..., n], t[..., n]: int) -> z[..., n]:
    z[i] = x[i] * x[t[0]] + max(x[t[j]] * x[j] for j)

rule counted(w[m], t[n]: int) -> z[m]:
    z[i] = sum((1 if t[j] == i else 0) for j) * w[i] + sum(2 for j if t[j] == i)

rule named_root(x) -> y:
    c = sqrt(2)
    y = max(x, c) + min(c, x) + hypot(x, c) + atan2(x, c) + logaddexp(x, c)

rule named_choice(x) -> y:
    c = log(3)
    d = digamma(0.7)
    y = (x if c <= 1 else 2 * x) + digamma(c) * x + lgamma(c) * x + max(d, x)

rule named_static(x, a: static = 1.5) -> y:
    c = sqrt(a)
    d = 1 / a
    y = max(x, c) + hypot(d, x) + (x if c <= 1 else x**2) + digamma(c) * x + x**d

rule named_of_size(x[n]) -> y[n]:
    c = 1 / n
    d = log(n)
    y[i] = x[i]**c + max(x[i], d) + (x[i] if d > 1 else c)

rule root_of_size(x[n], k: static int = 3) -> (y[n], z):
    y[i] = x[i]**(1 / n) + x[i]**(1 / k)
    z = prod(x[j] for j)**(1 / n)

rule equal_branches(w[m], a: static = 1.5) -> v[m]:
    v[i] = abs((a if i > 2 else a)) * w[i] + (a - (a if i != 1 else a)) * w[i]

rule static_by_index(x[n, m], a: static = 1.5, b: static = 0.5) -> v[n, m]:
    v[i, j] = x[i, j] * (a if i > 1 else b) * exp(a if j == 0 else 0)

rule choice_of_sums(x[..., n], w[n], k: static int = 2) -> o[...]:
    o = x[0] * sum(x[i] * w[i] for i if k == 3)

rule alias_saved(w[m], A[n, m], u[n]: nograd) -> z[m]:
    q[i] = u[i]
    r[i, j] = A[j, i]
    z[i] = sum(r[i, j] * mean(q[k] for k) for j) * w[i]

rule ignored(x[n], t[]: int, ignore: static int = -100) -> loss:
    loss = (log(sum(exp(x[j]) for j)) - x[t]) if t != ignore else 0

rule ignored_in_batch(x[..., n], t[...]: int, ignore: static int = -100) -> loss[...]:
    loss = (log(sum(exp(x[j]) for j)) - x[t]) if t != ignore else 0

rule ignored_rows(x[b, n], t[b]: int) -> loss:
    loss = sum((logsumexp(x[i, j] for j) - x[i, t[i]]) if t[i] >= 0 else 0 for i)

rule ignored_by_local(x[b, n], t[b]: int) -> loss:
    l[i] = -x[i, t[i]]
    loss = sum(l[i] for i if t[i] >= 0) / sum((1 if t[i] >= 0 else 0) for i)

rule ignored_through(x[n], w[n], t[m]: int) -> y[m]:
    u[i] = x[i] * w[i]
    y[j] = u[t[j]]**2 if 0 <= t[j] < n else 0

rule ignored_rows_of_table(x[b, d], c[n, d], t[b]: int) -> loss:
    loss = sum((x[i, l] - c[t[i], l])**2 if t[i] >= 0 else 0 for i, l)

rule gathered_edges(x[n, d], t[m]: int, s[m]: int) -> (y[m], e):
    y[i] = sum((x[t[i], j] - x[s[i], j])**2 for j)
    e = sum((y[i] - 1)**2 / 2 for i)

rule gathered_pairs(x[..., n, d], t[m]: int, s[m]: int) -> y[..., m]:
    y[i] = exp(-sum(abs(x[t[i], j] - x[s[i], j]) for j)) * x[t[i], 0]

rule ignored_divisor(x[n], t[m]: int) -> y[m]:
    y[j] = 1 / x[t[j]] + log(x[t[j]]) if 0 <= t[j] and t[j] < n else 0

rule ignored_pair(x[..., n], t[m]: int, s[m]: int) -> y[..., m]:
    y[j] = x[t[j]] * x[s[j]] if t[j] >= 0 and s[j] >= 0 else 1

rule beside_shift(x[n], s[n]: int) -> v[n]:
    v[i] = x[s[i]] * (x[i + 1] if i + 1 < n else 0)

rule before_shift(x[n], s[n]: int) -> v[n]:
    v[i] = (x[i - 1] if i > 0 else 1) * x[s[i]]

rule histogram(x[n], t[n]: int, k: static int = 3) -> y[k]:
    y[i] = sum(x[j] for j if t[j] == i)

rule histogram_in_batch(x[..., n], t[..., n]: int, k: static int = 2) -> y[..., k]:
    y[i] = sum(x[j]**2 for j if t[j] == i)

rule histogram_of_rows(x[n, d], t[n]: int, k: static int = 2) -> y[k, d]:
    y[i, l] = sum(x[j, l] for j if t[j] == i)

rule largest_k(x[..., n], k: static int = 2) -> y[..., k]:
    r[j] = sum((1 if x[l] > x[j] else 0) for l)
    y[i] = sum(x[j] for j if r[j] == i)

rule by_rank(x[n], w[n]) -> y[n]:
    r[j] = sum((1 if x[l] > x[j] else 0) for l)
    y[i] = w[r[i]] * x[i]

rule strided(x[n], p: static int = 2, q: static int = 2) -> y[p, q]:
    y[i, j] = x[2 * i + j]

rule strided_rows(x[..., n], p: static int = 2) -> y[..., p]:
    y[i] = max(x[2 * i], x[2 * i + 1])

rule joined(a[n], b[m], k: static int = 7) -> y[k]:
    y[i] = a[i] if i < n else b[i - n]

rule joined_rows(a[n, d], b[m, d], k: static int = 7) -> y[k, d]:
    y[i, c] = b[i - n, c] if i >= n else a[i, c]**2

rule overlaid(a[..., n], b[m]) -> y[..., n]:
    y[i] = a[i] * b[i] if i < m else log(a[i])

rule apart(x[..., n], w[n], v[...]) -> (y[..., n], o[..., n], s[...]):
    y[i] = x[i] * w[i]
    o[i] = w[i]**2
    s = v * w[0]

rule grouped(x[n], t[n]: int, s[m]) -> y[m]:
    y[c] = sum(s[c] * x[j]**2 for j if t[j] == c)

rule given_in_sum(x[n], t[n]: int, g[n]: int, s[m, n]) -> y:
    y = sum(x[j] * log(s[c, e]) for j, c, e if c == t[j] and e == g[j])

rule given_in_batch(x[..., n], t[...]: int) -> (y[...], z[...]):
    y = sum(x[c]**2 for c if c == t)
    z = sum(max(x[j] - y + 1, 0) for j if j != t)

rule sum_of_output(x[n], z[m]) -> (y[n, m], o[n]):
    y[i, j] = x[i] + z[j]
    o[i] = sum(y[i, j] for j) * x[i]

rule sums_of_outputs(x[n], z[m], w[m]) -> (y[n, m], o[m], s):
    y[i, j] = x[i] * w[j] + z[j]
    o[j] = sum(y[i, j] for i)
    s = sum(y[i, j] * x[i] for i, j) + sum(o[j]**2 for j)

rule sum_of_shifted(x[..., n], w[n, n]) -> (y[..., n, n], o[...]):
    y[i, j] = (w[i - 1, i] if i > 0 else 2) + x[i] + x[j]
    o = sum(y[j, i] * 3 for i, j) + x[0]

rule gathered_and_summed(x[n, d], t[m]: int) -> (y[m, d], o[d], p[m]):
    y[j, c] = x[t[j], c] * 2
    o[c] = sum(y[j, c] for j)
    p[j] = sum(y[j, c] for c)

rule sums_of_sums(x[..., n], w[..., m], v[m]) -> (y[..., m, m], o[..., m, m]):
    y[i, j] = x[0] / mean(x[l] for l) + w[i] * v[j]
    o[i, j] = sum(y[l, j] for l) + y[i, i] - sum(y[i, l] for l)

rule rows_of_two_axes(A[m, d], u[n], v[m]) -> (y[n], z[m]):
    y[i] = (sum(A[i, j] for j) if i < m else 0) + u[i]
    z[i] = sum(A[i, j] for j) + v[i]

rule sum_over_batch(x[..., n], b[], w[n]) -> (y[..., n], o[...]):
    y[i] = x[i] * w[i] + b
    o = sum(y[i] for i)

rule sum_of_prefixes(x[n], w[m]) -> (y[n, m], o[m]):
    y[i, k] = sum(x[j] * w[k] for j if j <= i)
    o[k] = sum(y[i, k] for i)

rule sum_of_components(x[n], s[]) -> (c[n, 3], o[n], q):
    c[i, k] = x[i] if k == 0 else s * x[i] if k == 1 else s
    o[i] = sum(c[i, k] for k)
    q = sum(o[i] for i)

rule constants_compared(x[n], w[n]) -> (y, z[n], o):
    y = sum(3 if sqrt(3) < 1 and x[i] > 1 else 2 for i) * x[0]
    z[i] = x[i] if sqrt(2) > 1 else w[i]
    o = mean((x[i] if log(2) > 1 else 3) for i)

rule constant_outputs(A[n, m]) -> (y[n], z[], o[m]):
    y[i] = 2
    z = 3 * n
    o[j] = A[0, j]

rule constant_in_batch(x[..., n, m], k: static int = 1) -> (y[..., n], z[...], s[]):
    y[i] = sum(x[i, j] for j) if k < 2 else 0
    z = sum(x[i, j] for i, j) if k > 2 else 0
    s = k
"""
RULES = {rule.name: rule for rule in fuzz.all_of(TEXT)}
SIZES = {"n": 4, "m": 3, "d": 2, "b": 4, "k": 7, "p": 2, "q": 3}
INTEGERS = {
    "gathered": [1, 3, 1],
    "counted": [0, 2, 9, -1],
    "gathered_beside": [3, 0, 1, 1],
    "gathered_first": [3, 0, 1, 1],
    "ignored": -100,
    "ignored_in_batch": [[2], [-100]],
    "ignored_rows": [1, -100, 0, 3],
    "ignored_by_local": [-100, 2, 9 - 9, -1],
    "ignored_through": [-7, 3, 4],
    "ignored_divisor": [4, -1, 2],
    "ignored_pair": [-100, 1, 0],
    "grouped": [2, 0, 3, -1],
    "given_in_sum": [2, -1, 0, 3],
    "given_in_batch": [3, -100],
    "histogram": [1, 5, -1, 1],
    "histogram_in_batch": [[0, 1, 2, -100], [1, 1, 0, 0]],
}


def arrays(rule: Rule) -> dict[str, Any]:
    """Positive numbers, none twice; integers from the table, by the longest name."""
    random = np.random.default_rng(len(rule.name))
    found: dict[str, Any] = {}
    for i in rule.tensor_inputs:
        batch = (2,) if i.shape.batch and rule.has_axes and i.name != "v" else ()
        own = [size if isinstance(size, int) else SIZES[size] for size in i.shape.axes]
        found[i.name] = random.uniform(0.2, 1.8, (*batch, *own))
        if i.kind is Kind.INT:
            keys = [key for key in INTEGERS if rule.name.startswith(key)]
            table = INTEGERS[max(keys, key=len)] if keys else None
            found[i.name] = np.array(table if i.name == "t" else [2, 0, 1, 3])
            found[i.name] = found[i.name][..., : own[0]] if own else found[i.name]
    return found


@by_target
def test_values_and_gradients_are_those_of_the_formula(target: str) -> None:
    wrong = {}
    # JAX compiles every operation of every shape: it takes a third of the rules
    rules = dict(list(RULES.items())[:: 3 if target == "jax" else 1])
    (module,) = fuzz.planned(rules.values(), [target])
    for name, rule in rules.items():
        given = arrays(rule)
        statics = {s.name: float(s.default) for s in rule.static_inputs}
        whole = {s.name for s in rule.static_inputs if s.kind is Kind.STATIC_INT}
        statics = {n: int(v) if n in whole else v for n, v in statics.items()}
        sizes = {**SIZES, **{n: int(v) for n, v in statics.items() if n in whole}}
        want = fuzz.expected(rule, fuzz.Point(given, statics, sizes))
        try:
            outputs, found = called(
                target, module, name, given.values(), statics=statics
            )
        except Exception as fault:
            wrong[name] = repr(fault)[:200]
            continue
        shapes = [fuzz.shape_of(rule, o, given, sizes) for o in rule.outputs]
        if rule.has_axes and [o.shape for o in outputs] != shapes:
            wrong[name] = f"{[o.shape for o in outputs]}, not {shapes}"
            continue
        full = [y.expand(o.shape) for y, o in zip(want.outputs, outputs, strict=True)]
        above = [torch.tensor(cotangent(o)) for o in outputs]
        slopes = fuzz.Expected(full, want.leaves).gradients(above)
        near = [
            np.allclose(o, y.detach(), 1e-9) for o, y in zip(outputs, full, strict=True)
        ]
        pairs = zip(given, found, strict=True)
        near += [np.allclose(g, slopes[n], 1e-9) for n, g in pairs if n in slopes]
        if not all(near):
            wrong[name] = f"{outputs} {found}, not {full} {slopes}"
    assert not wrong, "\n".join(f"{name}: {what}" for name, what in wrong.items())


ONCE_AT_FAULT = (70645, 71772, 81048, 100327, 100581, 100792)
"""Extrema and what is compared with them by sums of another order, positions read before
the condition that permits them, shapes by a Python number, an extremum of nothing."""


@pytest.mark.torch
def test_random_rules_have_the_values_and_gradients_of_their_formulas() -> None:
    found = [
        (one and one.text, what)
        for one, what in fuzz.faults([*range(12, 24), *ONCE_AT_FAULT])
    ]
    assert not found


SINGULAR = """
rule logs(x[n], w[n, m]) -> y[m]:
    y[i] = sum(x[j] * w[j, i] * log(j) for j if j > 0)

rule powers(x[n]) -> y[n]:
    y[i] = sum(x[i]**j for j in 2000)
"""


@by_target
def test_what_is_infinite_where_a_condition_fails(target: str) -> None:
    """The logarithm of position 0, and 0 to the power -1 in a gradient."""
    module, x, w = (
        module_of(SINGULAR, target),
        np.array([0.0, 0.5, 2.0]),
        np.ones((3, 2)),
    )
    (y,), (dx, _) = called(target, module, "logs", (x, w), (np.ones(2),))
    np.testing.assert_allclose(y, [2 * np.log(2)] * 2)
    np.testing.assert_allclose(dx, [0, 0, 2 * np.log(2)], atol=1e-12)
    (y,), (dx,) = called(target, module, "powers", (x[:2],), (np.ones(2),))
    np.testing.assert_allclose(y, [1, 2])
    np.testing.assert_allclose(dx, [1, 4])
