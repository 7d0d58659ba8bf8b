"""Rewrite rules for mixtures of an exponential and something else, which overflow though
what is made of them does not (`rules_graph.py` says what rows are)."""

from __future__ import annotations

from gradspec.stabilise.row import Row

MIXTURES = (
    Row(
        "log of a mixture",
        "log(b * exp(a) + c)",
        "a + log(b + c * exp(-a))",
        detour=True,
    ),
    Row(
        "log1p of a part of expm1",
        "log1p(b * expm1(a))",
        "a + log(b + (1 - b) * exp(-a))",
        detour=True,
    ),
)
"""What is left where ``exp(a)`` is large is said in ``exp(-a)``."""
