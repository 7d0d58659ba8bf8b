"""Random elementwise expressions in the form that lowering gives them."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st

from gradspec.ir.expr import Apply, Const, Expr, Ref, Select

_NUMBERS = ("add", "sub", "mul", "div", "mod", "pow")
_FUNCTIONS = ("exp", "log", "sin", "tanh")
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def decimals() -> st.SearchStrategy[Expr]:
    """Constants that a literal can say, negative ones too."""
    digits = st.integers(-(10**6), 10**6)
    powers = st.integers(-9, 9)
    return st.builds(
        lambda d, p: Const(Fraction(d) * Fraction(10) ** p), digits, powers
    )


def leaves() -> st.SearchStrategy[Expr]:
    names = st.sampled_from(("x", "y", "dz", "beta"))
    return names.map(Ref) | decimals() | st.just(Apply("pi"))


def _negated(value: Expr) -> Expr:
    """Lowering makes a negative constant of the negative of a literal."""
    return value if isinstance(value, Const) else Apply("neg", (value,))


def _grown(parts: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    pairs = st.tuples(parts, parts)
    tests = st.builds(Apply, st.sampled_from(_COMPARISONS), pairs)
    # Logic is associative, so text says it from the left.
    both = st.builds(Apply, st.sampled_from(("and", "or")), st.tuples(tests, tests))
    conditions = tests | both | both.map(lambda c: Apply("not", (c,)))
    return (
        st.builds(Apply, st.sampled_from(_NUMBERS), pairs)
        | st.builds(Apply, st.sampled_from(_FUNCTIONS), st.tuples(parts))
        | parts.map(_negated)
        | st.builds(Apply, st.just("max"), pairs)
        | st.builds(Select, conditions, parts, parts)
    )


def expressions() -> st.SearchStrategy[Expr]:
    return st.recursive(leaves(), _grown, max_leaves=12)
