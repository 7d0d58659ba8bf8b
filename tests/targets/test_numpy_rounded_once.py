"""Functions of float32 that NumPy computes in float64 and rounds once: the normal
distribution, by quotients that are short, and exponentials of sums, products and squares.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gradspec.primitives.lookup import primitive
from gradspec.primitives.row import Helper
from gradspec.targets import numpy_texts
from gradspec.targets.skeleton import module_text, used_helpers
from tests.targets.emission import imported, numpy_module

RULES = """
rule ndtr_of(x) -> y:
    y = ndtr(x)

rule erfc_of(x) -> y:
    y = erfc(x)

rule log_ndtr_of(x) -> y:
    y = log_ndtr(x)

rule gelu_of(x) -> y:
    y = x * (1 + erf(x / sqrt(2))) / 2
    dx = dy * (ndtr(x) + x * exp(-x**2 / 2) / sqrt(2 * pi))
"""
PRIMITIVES = (
    *(
        f"{name}_{kind}"
        for name in ("exp", "expm1", "sigmoid", "softplus")
        for kind in ("sum", "product")
    ),
    "exp_neg_square",
    "exp_neg_half_square",
)
"""Users have no names for these: what the table has for NumPy is called."""
ZERO = np.float32(-0.75179152)
SMALLEST = float(np.finfo(np.float32).smallest_normal)


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return numpy_module(RULES)


def _points() -> Any:
    r = np.random.default_rng(0)
    parts = [
        r.normal(size=40_000) * 4.0,
        np.geomspace(1e-30, 1e3, 4_000),
        -np.geomspace(1e-30, 1e3, 4_000),
        ZERO + np.arange(-2_000, 2_000) * 6e-8,
    ]
    return np.concatenate(parts).astype(np.float32)


def _off(got: Any, exact: Any) -> Any:
    """Units in the last place, where the result is a normal number."""
    with np.errstate(over="ignore"):
        rounded = exact.astype(np.float32)
    is_normal = np.isfinite(rounded) & (np.abs(rounded) > SMALLEST)
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(rounded))
    ulp = np.spacing(np.abs(rounded[is_normal])).astype(np.float64)
    return np.abs(got[is_normal].astype(np.float64) - exact[is_normal]) / ulp


@pytest.mark.parametrize("name", ["ndtr_of", "erfc_of", "log_ndtr_of"])
def test_float32_is_rounded_once_but_for_eight_bits_more(
    rules: ModuleType, name: str
) -> None:
    """Its own float64 is another evaluation, with fits of its own."""
    x, rule = _points(), getattr(rules, name)
    off = _off(rule(x), rule(x.astype(np.float64)))
    assert off.max() < 0.65
    assert len(off) > 30_000


def test_the_slope_of_gelu_has_all_its_digits_about_its_zero(rules: ModuleType) -> None:
    x = _points()
    got = rules.gelu_of_vjp(x)[1](np.ones_like(x))[0]
    wide = x.astype(np.float64)
    exact = rules.gelu_of_vjp(wide)[1](np.ones_like(wide))[0]
    assert _off(got, exact).max() < 0.7


@pytest.fixture(scope="module")
def helpers() -> ModuleType:
    """The private functions of NumPy modules that the rows of the table spell."""
    found: dict[str, Helper] = {}
    for name in PRIMITIVES:
        helper = primitive(name).spellings["numpy"]
        assert isinstance(helper, Helper)
        found |= {each.name: each for each in helper.whole()}
    texts = "\n".join(helper.text for helper in found.values())
    found |= {own.name: own for own in used_helpers(numpy_texts.HELPERS, texts)}
    imports = ["import numpy as np", *(i for h in found.values() for i in h.imports)]
    definitions = [h.text.strip().splitlines() for h in found.values()]
    text = module_text(['"""Private functions."""'], imports, [], definitions)
    return imported(text, "numpy_private_functions")


@pytest.mark.parametrize("size", [1, 2_000])
@pytest.mark.parametrize("name", PRIMITIVES)
def test_what_rounding_takes_off_an_argument_is_not_lost(
    helpers: ModuleType, name: str, size: int
) -> None:
    r, rule = np.random.default_rng(1), getattr(helpers, f"_{name}")
    count = len(primitive(name).params)
    args = [(r.normal(size=size) * 6.0).astype(np.float32) for _ in range(count)]
    wide = [a.astype(np.float64) for a in args]
    with np.errstate(all="ignore"):
        got, exact = rule(*args), rule(*wide)
        assert got.dtype == np.float32
        rounded = exact.astype(np.float32)
        is_normal = np.isfinite(rounded) & (np.abs(rounded) > SMALLEST)
        ulp = np.spacing(np.abs(rounded[is_normal])).astype(np.float64)
        off = np.abs(got[is_normal].astype(np.float64) - exact[is_normal]) / ulp
    assert off.max() < 0.51
    assert len(off) > size / 3


@pytest.mark.parametrize("name", [p for p in PRIMITIVES if "neg" not in p])
def test_a_number_beside_an_array_has_all_its_digits(
    helpers: ModuleType, name: str
) -> None:
    x = np.linspace(-8.0, 8.0, 100, dtype=np.float32)
    rule = getattr(helpers, f"_{name}")
    got, exact = rule(1.702, x), rule(1.702, x.astype(np.float64))
    np.testing.assert_array_equal(got, exact.astype(np.float32))


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("ndtr_of", (0.0, 1.0, 0.5)),
        ("erfc_of", (2.0, 0.0, 1.0)),
        ("log_ndtr_of", (-np.inf, 0.0, np.log(0.5))),
        ("gelu_of", (0.0, np.inf, 0.0)),
    ],
)
def test_infinities_and_single_numbers(
    rules: ModuleType, name: str, wanted: tuple[float, ...]
) -> None:
    rule = getattr(rules, name)
    at = np.array([-np.inf, np.inf, 0.0], np.float32)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(rule(at), np.array(wanted, np.float32))
    assert np.isnan(rule(np.float32(np.nan)))
    one = rule(np.float32(0.5))
    assert one.dtype == np.float32
    np.testing.assert_array_equal(one, rule(np.full(3, 0.5, np.float32))[0])
    assert rule(np.zeros((0, 3), np.float32)).shape == (0, 3)
    assert rule(np.float16(0.5)).dtype == np.float16
