"""Large arrays are evaluated in blocks, with the results of whole ones, bit for bit."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gradspec.targets import numpy as target
from tests.targets.emission import RULES, imported, planned

SIZE = 3 * (1 << 17) + (1 << 10)
"""Several blocks, the last of them short, and no element left over by vector loops."""


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return imported(target.module(planned(RULES)), "numpy_rules_in_blocks")


@pytest.fixture
def blocks(rules: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of arrays that were split."""
    made: list[int] = []
    split = rules._blocks

    def spy(*arrays: Any) -> Any:
        made.append(len(arrays))
        return split(*arrays)

    monkeypatch.setattr(rules, "_blocks", spy)
    return made


def _randn(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


Case = tuple[str, tuple[Any, ...], dict[str, Any]]
CASES: dict[str, Case] = {
    "exact": ("swish", (_randn(SIZE),), {}),
    "static": ("swish", (_randn(SIZE),), {"beta": 1.7}),
    "two axes": ("swish", (_randn(SIZE // 64, 64),), {}),
    "float64": ("swish", (_randn(SIZE, dtype=np.float64),), {}),
    "float16": ("swish", (_randn(SIZE, dtype=np.float16),), {}),
    "several": ("complex_op", (_randn(SIZE), _randn(SIZE, seed=1)), {}),
    "surrogate": ("spike", (_randn(SIZE),), {}),
    "softplus": ("log1pexp", (30 * _randn(SIZE),), {}),
    "no gradient": (
        "bce",
        (
            np.random.default_rng(2).uniform(0.1, 0.9, SIZE),
            np.random.default_rng(3).uniform(0, 1, SIZE),
        ),
        {},
    ),
    "choice": ("guarded", (_randn(SIZE),), {}),
}


def _all(rules: ModuleType, case: Case) -> list[np.ndarray]:
    """Outputs of both functions, then gradients."""
    name, inputs, statics = case
    value = getattr(rules, name)(*inputs, **statics)
    outputs, pullback = getattr(rules, f"{name}_vjp")(*inputs, **statics)
    values = outputs if isinstance(outputs, tuple) else (outputs,)
    upstream = [
        _randn(*y.shape, dtype=y.dtype, seed=k + 5) for k, y in enumerate(values)
    ]
    gradients = pullback(*upstream)
    first = value if isinstance(value, tuple) else (value,)
    return [*first, *values, *(g for g in gradients if g is not None)]


@pytest.mark.parametrize("case", CASES)
def test_blocks_give_the_bits_of_whole_arrays(
    rules: ModuleType, blocks: list[int], monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    blocked = _all(rules, CASES[case])
    assert len(blocks) >= 2
    count = len(blocks)
    monkeypatch.setattr(rules, "_BLOCK", 1 << 60)
    plain = _all(rules, CASES[case])
    assert len(blocks) == count
    for one, other in zip(blocked, plain, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "inputs",
    (
        (_randn(SIZE // 64, 64), _randn(64)),
        (_randn(64, SIZE // 64).T, _randn(SIZE // 64, 64)),
        (_randn(SIZE), 2.0),
        (_randn(1000), _randn(1000)),
    ),
    ids=("broadcast", "transposed", "number", "small"),
)
def test_what_is_not_alike_is_not_split(
    rules: ModuleType, blocks: list[int], inputs: tuple[Any, ...]
) -> None:
    _, pullback = rules.complex_op_vjp(*inputs)
    pullback(1.0, 1.0)
    rules.complex_op(*inputs)
    assert not blocks


ROWS = """
rule weights(x[..., n]) -> y[..., n]:
    y[i] = exp(x[i]) / sum(exp(x[j]) for j)

rule moments(x[..., n], g[n]) -> (m, y[..., n]):
    m = mean(x[j] for j)
    y[i] = g[i] * (x[i] - m)

rule total(x[..., n], y[..., n]) -> z:
    z = sum(exp(x[i]) * y[i] for i)
"""


@pytest.mark.parametrize("dtype", (np.float16, np.float32, np.float64))
@pytest.mark.parametrize(
    "shape", ((6000, 100), (80, 100, 128), (1, 1 << 20), (2, 280000))
)
def test_rows_are_computed_some_at_a_time(
    monkeypatch: pytest.MonkeyPatch, dtype: Any, shape: tuple[int, ...]
) -> None:
    rules = _rows()
    x, g = _randn(*shape, dtype=dtype), _randn(shape[-1], dtype=dtype, seed=1)
    blocked = [rules.weights(x), *rules.moments(x, g)]
    out = tuple(np.empty_like(value) for value in blocked[1:])
    rules.moments(x, g, out=out)
    monkeypatch.setattr(rules, "_BLOCK", 1 << 60)
    plain = [rules.weights(x), *rules.moments(x, g)]
    for one, other in zip([*blocked, *out], [*plain, *plain[1:]], strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@cache
def _rows() -> ModuleType:
    return imported(target.module(planned(ROWS)), "numpy_rows_in_blocks")


def test_what_has_no_rows_of_its_own_is_not_split() -> None:
    x = _randn(1 << 9, 1 << 9)
    for given in (x.T, x[:, ::2], x[None, :, ::2], x.reshape(-1)):
        found = _rows().weights(given)
        np.testing.assert_allclose(found.sum(-1), 1.0, 1e-4)
    two = _rows().total(x, x[0])
    np.testing.assert_allclose(two, (np.exp(x) * x[0]).sum(-1), 1e-3, 1e-2)


def test_an_upstream_gradient_that_is_one_number(
    rules: ModuleType, blocks: list[int]
) -> None:
    x = _randn(SIZE // 64, 64)
    _, pullback = rules.swish_vjp(x)
    (one,) = pullback(1.0)
    (other,) = pullback(np.ones_like(x))
    np.testing.assert_array_equal(one, other)
    assert blocks == [1, 2, 2]


def test_the_arguments_are_not_changed(rules: ModuleType, blocks: list[int]) -> None:
    x = _randn(SIZE)
    before = x.copy()
    y, pullback = rules.swish_vjp(x)
    upstream = np.ones_like(y)
    pullback(upstream)
    np.testing.assert_array_equal(x, before)
    assert not np.shares_memory(x, y)
    assert (upstream == 1).all()


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
@pytest.mark.parametrize(
    "given",
    (
        lambda x: (x, x[::-1]),
        lambda x: (1.0, x),
        lambda x: (x, 0.0),
        lambda x: (x[:, None], x[None, :64]),
    ),
    ids=("arrays", "number first", "number second", "broadcast"),
)
def test_a_choice_by_bits_is_that_of_numpy(
    rules: ModuleType, dtype: Any, given: Callable[[np.ndarray], tuple[Any, Any]]
) -> None:
    x = _randn(4096, dtype=dtype)
    x[::7], x[1::7], x[2::7] = np.nan, np.inf, -0.0
    one, other = given(x)
    condition = np.broadcast_to(
        np.arange(4096) % 3 == 0, np.shape(np.add(one, other))[::-1]
    ).T
    found = rules._where(np.ascontiguousarray(condition), one, other)
    expected = np.where(condition, one, other)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
    np.testing.assert_array_equal(found, expected)


EDGES = [-np.inf, -1e30, -100.0, -88.8, -20.0, -0.0, 0.5, 20.0, 100.0, 1e30, np.inf]


@pytest.mark.parametrize("dtype", (np.float32, np.float64))
def test_logarithms_of_sums_at_the_edges(dtype: Any) -> None:
    text = "rule both(a, b) -> y:\n    y = logaddexp(a, b)\n"
    text += "\nrule one(a) -> y:\n    y = softplus(a)\n"
    module = imported(target.module(planned(text)), "numpy_logaddexp")
    a, b = (v.ravel() for v in np.meshgrid(*[np.array(EDGES, dtype)] * 2))
    with np.errstate(all="raise", under="ignore"):
        both, one = module.both(a, b), module.one(a)
    with np.errstate(all="ignore"):
        np.testing.assert_array_max_ulp(both, np.logaddexp(a, b).astype(dtype), 2)
        np.testing.assert_array_max_ulp(one, np.logaddexp(dtype(0), a), 2)
    assert np.isnan(module.both(np.array([np.nan, 1.0], dtype), dtype(np.nan))).all()


# --- threads -------------------------------------------------------------------------------


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Callable[[ModuleType], set[int]]:
    """Makes a module use three threads, one block in a row; gives those that it used."""

    def of(module: Any) -> set[int]:
        used: set[int] = set()
        joined = module._joined

        def spy(part: Callable[..., Any], *given: Any) -> Any:
            def noted(at: slice, *place: Any) -> Any:
                used.add(threading.get_ident())
                return part(at, *place)

            return joined(noted, *given)

        monkeypatch.setattr(module, "_joined", spy)
        monkeypatch.setattr(module, "_RUN", 1)
        monkeypatch.setenv("OMP_NUM_THREADS", "3")
        return used

    return of


@pytest.mark.parametrize("case", CASES)
def test_threads_give_the_same_bits(
    rules: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    threads: Callable[[ModuleType], set[int]],
    case: str,
) -> None:
    plain = _all(rules, CASES[case])
    monkeypatch.setattr(rules, "_BLOCK", 1 << 12)
    used = threads(rules)
    found = _all(rules, CASES[case])
    assert len(used) > 1
    for one, other in zip(found, plain, strict=True):
        np.testing.assert_array_equal(one, other)


def test_one_thread_where_no_other_is_wanted_or_can_be_started(
    rules: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    threads: Callable[[ModuleType], set[int]],
) -> None:
    x = _randn(SIZE)
    expected = rules.swish(x)
    used = threads(rules)

    def refuse(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        np.testing.assert_array_equal(rules.swish(x), expected)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    np.testing.assert_array_equal(rules.swish(x), expected)
    assert used == {threading.get_ident()}


@pytest.mark.parametrize(
    ("allowed", "asked", "expected"),
    (({0}, None, 1), ({0, 1, 2}, None, 3), (set(range(64)), None, 8), ({0}, "2", 2)),
)
def test_as_many_threads_as_the_process_may_use(
    rules: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    allowed: set[int],
    asked: str | None,
    expected: int,
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if asked is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", asked)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: allowed, raising=False)
    everybody, used = threading.Barrier(expected), set()

    def work(_: slice) -> None:
        if threading.get_ident() not in used:
            used.add(threading.get_ident())
            everybody.wait(10)

    parts = [slice(k, k + 1) for k in range(20 * rules._RUN)]
    rules._on_all_cores(work, parts)
    assert len(used) == expected


FORKING = """
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import rules

x = np.linspace(-9.0, 9.0, 2 * rules._RUN * rules._BLOCK, dtype=np.float32)
expected = rules.swish(x)
with ProcessPoolExecutor(2, mp_context=get_context("fork")) as workers:
    found = list(workers.map(rules.swish, [x, x]))
for one in (*found, rules.swish(x)):
    np.testing.assert_array_equal(one, expected)
print("as before")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_process_forks_before_and_after(tmp_path: Path) -> None:
    """In a process of its own: this one has the frameworks' threads."""
    (tmp_path / "rules.py").write_text(target.module(planned(RULES)))
    command = [sys.executable, "-W", "ignore", "-c", FORKING]
    done = subprocess.run(
        command, check=False, cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.stderr) == ("as before\n", "")


def test_threads_of_the_caller(rules: ModuleType) -> None:
    x = _randn(2 * rules._RUN * rules._BLOCK)
    expected = rules.swish(x)
    with ThreadPoolExecutor(3) as callers:
        for one in callers.map(rules.swish, [x] * 4):
            np.testing.assert_array_equal(one, expected)


def test_warnings_and_faults_of_threads_are_the_callers(
    rules: ModuleType, threads: Callable[[ModuleType], set[int]]
) -> None:
    x = np.full(SIZE, 3e38, np.float32)
    threads(rules)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        rules.complex_op(x, x)
    with np.errstate(over="ignore"):
        assert np.isinf(rules.complex_op(x, x)[1]).all()


SUMS = """
rule scaled(x[..., n], g[n], b[n]) -> y[..., n]:
    y[i] = g[i] * x[i] / sqrt(mean(x[j]**2 for j) + 1) + b[i]
"""


@pytest.mark.parametrize("shape", ((6000, 100), (80, 100, 128), (3, 280000)))
def test_rows_go_back_some_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
    threads: Callable[[ModuleType], set[int]],
    shape: tuple[int, ...],
) -> None:
    rules = imported(target.module(planned(SUMS)), "numpy_rows_back")
    x, dy = _randn(*shape), _randn(*shape, seed=1)
    g, b = _randn(2, shape[-1], seed=2)
    used = threads(rules)
    y, pullback = rules.scaled_vjp(x, g, b)
    found = [y, *pullback(dy)]
    assert len(used) > 1
    monkeypatch.setattr(rules, "_BLOCK", 1 << 60)
    y, pullback = rules.scaled_vjp(x, g, b)
    plain = [y, *pullback(dy)]
    for one, other in zip(found[:2], plain[:2], strict=True):
        np.testing.assert_array_equal(one, other)
    exact = rules.scaled_vjp(*(v.astype(np.float64) for v in (x, g, b)))[1](dy)
    for one, other in zip(found[2:], exact[1:], strict=True):
        assert (one.shape, one.dtype) == (g.shape, g.dtype)
        np.testing.assert_allclose(one, other, 1e-4, 1e-3)
