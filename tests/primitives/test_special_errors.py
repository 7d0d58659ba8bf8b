"""Special functions within 4 ULP in both precisions, tails included, on every target."""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from flint import arb

from benchmarks import special_coefficients
from gradspec.audit.measure import Truth, errors
from gradspec.primitives.lookup import primitive
from tests.primitives.primitive_frameworks import Framework
from tests.primitives.primitive_truth import exact, precision

MOST = {"ndtr": 4.5, "log_ndtr": 4.5}
"""ULP; 4 of the others. (The frameworks' own have hundreds in the tail.)"""

UNIT, POSITIVE, REAL = (0.0, 1.0), (1e-37, 1e37), (-1e37, 1e37)
FUNCTIONS = {
    "erfc": REAL,
    "erfcx": REAL,
    "erfcx_slope": REAL,
    "ndtr": REAL,
    "log_ndtr": REAL,
    "inverse_mills": REAL,
    "exp_neg_square": REAL,
    "exp_neg_half_square": REAL,
    "erfinv": (-1.0, 1.0),
    "erfcinv": (0.0, 2.0),
    "ndtri": UNIT,
    "ndtri_slope": UNIT,
    "digamma": POSITIVE,
    "i1": (-88.0, 88.0),
    "i1_slope": (-88.0, 88.0),
    "i0e": REAL,
    "i1e": REAL,
    "i0e_slope": REAL,
    "i1e_slope": REAL,
}
"""Where each is measured."""


def _numpy() -> Framework:
    pytest.importorskip("scipy")
    return Framework("numpy", np, np.asarray, np.where)


def _torch() -> Framework:
    torch: ModuleType = pytest.importorskip("torch")
    return Framework(
        "torch", torch, lambda a: torch.from_numpy(np.array(a)), torch.where
    )


def _tf() -> Framework:
    tf: ModuleType = pytest.importorskip("tensorflow")
    return Framework("tf", tf, tf.constant, tf.where)


FRAMEWORKS = {"numpy": _numpy, "torch": _torch, "tf": _tf}

targets = pytest.mark.parametrize(
    "target",
    [
        "numpy",
        pytest.param("torch", marks=pytest.mark.torch),
        pytest.param("tf", marks=pytest.mark.tf),
    ],
)


@cache
def _points(name: str, dtype: str) -> tuple[Any, Truth]:
    """Some by exponent over the whole range, some in its middle; with the truth."""
    low, high = FUNCTIONS[name]
    draw = np.random.Generator(np.random.PCG64(5))
    whole = np.ldexp(1.0 + draw.random(150), draw.integers(-120, 120, 150))
    middle = draw.uniform(0.0, 30.0, 150)
    x = np.concatenate([whole, -whole, middle, -middle, draw.random(60)])
    x = x.astype(dtype).astype(float)
    x = x[(x > low) & (x < high)]
    row = primitive(name)
    assert row.ball is not None
    with precision(400):
        balls = [row.ball(exact(float(v))) for v in x]
        high_parts = [float(b.mid()) for b in balls]
        rests = zip(balls, high_parts, strict=True)
        low_parts = [
            float(b.mid() - arb(h)) if abs(h) < 1e300 else 0.0 for b, h in rests
        ]
    return x, Truth(np.array(high_parts), np.array(low_parts))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@targets
@pytest.mark.parametrize("name", FUNCTIONS)
def test_at_most_four_ulp_and_no_bad_point(name: str, target: str, dtype: str) -> None:
    x, truth = _points(name, dtype)
    with np.errstate(all="ignore"):
        values = FRAMEWORKS[target]().run(name, [x.astype(dtype)])
    found = errors(np.asarray(values, np.float64), truth, dtype)
    assert found.measured.sum() > 100
    assert not found.bad.any(), x[found.bad][:3]
    worst = int(found.ulp.argmax())
    assert found.ulp[worst] <= MOST.get(name, 4.0), (x[worst], values[worst])


@pytest.mark.parametrize("module", special_coefficients.MODULES)
def test_tables_are_what_the_script_finds(module: str) -> None:
    path = special_coefficients.FOLDER / f"{module}.py"
    assert path.read_text(encoding="utf-8") == special_coefficients.text(module)
    for _, done in special_coefficients.fitted(module):
        assert done.error < (1e-8 if module == "coefficients_single" else 1e-15)
        assert done.rounding < 6.0


def test_a_function_brings_what_it_needs() -> None:
    helper = primitive("ndtr").spellings["numpy"]
    names = [one.name for one in helper.whole()]  # type: ignore[union-attr]
    assert names[-1] == "_ndtr"
    assert {"_erfcx", "_quotient", "_exp_neg_half_square"} < set(names)
    assert len(names) == len(set(names))
