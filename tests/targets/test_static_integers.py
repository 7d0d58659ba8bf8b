"""Static integers stay integers where a function insists on them."""

from __future__ import annotations

import re

import pytest

import gradspec
from gradspec.targets import TARGETS

TEXT = (
    "rule trigamma(x, n: static int = 1) -> y:\n"
    "    assume x > 0, n >= 1\n"
    "    y = polygamma(n, x)\n"
    "    dx = dy * polygamma(n + 1, x)\n"
)


@pytest.mark.parametrize("target", TARGETS)
def test_the_order_of_a_polygamma(target: str) -> None:
    module = gradspec.compile_text(TEXT, target=target)
    orders = set(re.findall(r"polygamma\((n[^,]*), x", module))
    assert orders >= {"n", "n + 1"}
    assert "polygamma(n + 1.0" not in module
