"""Mathematics that grows: each ends within its budget and is right. (Memory is
limited by the system: a child begins with the peak of the process that started it, so that
it cannot be read here.)"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from functools import reduce
from pathlib import Path

import pytest

from gradspec.driver.cache import import_module
from gradspec.driver.discover import discover
from gradspec.driver.run import compile_entries
from gradspec.options import Options

BUDGET = 1.0

Value = Callable[..., float]


def _chain(length: int) -> str:
    lines = [f"    a{i + 1} = a{i} * a{i} + sin(a{i})" for i in range(length)]
    return "\n".join(("rule f(x) -> y:", "    a0 = x", *lines, f"    y = a{length}"))


def _chained(length: int) -> Value:
    return lambda x: reduce(lambda a, _: a * a + math.sin(a), range(length), x)


def _nested(levels: int) -> str:
    text = "x"
    for _ in range(levels):
        text = f"max(min(abs({text}), 3), -1)"
    return f"rule f(x) -> y:\n    y = {text}\n"


def _names(count: int) -> str:
    return ", ".join(f"x{k}" for k in range(count))


THIRTY = [f"x{k}" for k in range(30)]
FACTORS = " * ".join(f"(x + {k})" for k in range(200))
OUTPUTS = "\n".join(f"    y{k} = sin({k + 1} * x) * z" for k in range(100))

CASES: dict[str, tuple[str, tuple[float, ...], Value]] = {
    **{f"a chain of {n}": (_chain(n), (-0.3,), _chained(n)) for n in (16, 24, 32, 40)},
    "bounds inside bounds": (_nested(20), (-2.0,), lambda x: abs(x)),
    "200 factors": (
        f"rule f(x) -> y:\n    y = {FACTORS}\n",
        (-0.5,),
        lambda x: math.prod(x + k for k in range(200)),
    ),
    "30 factors": (
        f"rule f({_names(30)}) -> y:\n    y = {' * '.join(THIRTY)}\n",
        tuple(0.5 + k / 30 for k in range(30)),
        lambda *x: math.prod(x),
    ),
    "30 inputs": (
        f"rule f({_names(30)}) -> y:\n    y = log({' + '.join(f'exp({x})' for x in THIRTY)})\n",
        tuple(k / 7 for k in range(30)),
        lambda *x: math.log(sum(map(math.exp, x))),
    ),
    "100 outputs": (
        "rule f(x, z) -> (" + _names(100).replace("x", "y") + f"):\n{OUTPUTS}\n",
        (0.3, 0.7),
        lambda x, z: math.sin(x) * z,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_grows_ends(tmp_path: Path, name: str) -> None:
    text, point, value = CASES[name]
    (tmp_path / "f.grad").write_text(text, "utf-8")
    entries = discover([str(tmp_path)]).value or ()
    options = Options(("numpy",), budget=BUDGET)
    (result,) = compile_entries(entries, options, 1, lambda _: None, True)
    codes = {d.code for d in result.diagnostics}
    assert codes <= {"GS441", "GS442", "GS443", "GS463"}
    (module,) = result.modules
    found = import_module(module).f(*point)
    first = found[0] if isinstance(found, tuple) else found
    assert math.isclose(float(first), value(*point), rel_tol=1e-9)


def test_many_rules_have_a_budget_each(tmp_path: Path) -> None:
    rules = (
        f"rule f{k}(x) -> y:\n    y = exp({k + 1} * x) / (1 + exp({k + 1} * x))\n"
        for k in range(100)
    )
    (tmp_path / "f.grad").write_text("\n".join(rules), "utf-8")
    entries = discover([str(tmp_path)]).value or ()
    options = Options(("numpy",), budget=BUDGET)
    (result,) = compile_entries(entries, options, 1, lambda _: None, True)
    assert result.diagnostics == ()
    assert len(result.rules) == 100


def test_a_worker_has_no_more_than_its_memory() -> None:
    program = (
        "from gradspec.symbolic.limit import expendable, run_limited\n"
        "expendable()\n"
        "print(run_limited(9.0, lambda: len(bytearray(2 << 30))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "Shortage.MEMORY"
