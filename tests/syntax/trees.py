"""Trees for Hypothesis: any that `parse` could have made."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import strategies as st

from gradspec.source import Source, Span
from gradspec.syntax import nodes
from gradspec.syntax.tokens import tidy

AT = Span(0, 0)

words = st.sampled_from(
    "x y t dx n j rule save assume example static int because nograd sum max extern derivative".split()
)
names = words.map(lambda word: nodes.Name(word, span=AT))
name_tuples = st.lists(names, min_size=1, max_size=3).map(tuple)
ranges = st.builds(
    nodes.Ranged,
    words,
    names | st.builds(nodes.Unary, st.just("-"), names, span=st.just(AT)),
    span=st.just(AT),
)
index_tuples = st.lists(names | ranges, min_size=1, max_size=3).map(tuple)
texts = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc"))
    | st.sampled_from('"\\\n\t'),
    max_size=30,
)


def _number(digits: int, places: int) -> nodes.Number:
    return nodes.Number(Fraction(digits, 10**places), "", span=AT)


numbers = st.builds(_number, st.integers(0, 10**6), st.integers(0, 4))


def _compound(inner: st.SearchStrategy[nodes.Expr]) -> st.SearchStrategy[nodes.Expr]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    few = st.lists(inner, max_size=3).map(tuple)
    keywords = st.lists(
        st.builds(nodes.Keyword, words, inner, span=st.just(AT)), max_size=2
    ).map(tuple)
    at = st.just(AT)
    return st.one_of(
        st.builds(nodes.Indexed, words, few, span=at),
        st.builds(nodes.Unary, st.sampled_from(["-", "+", "not"]), inner, span=at),
        st.builds(
            nodes.Binary, st.sampled_from("+ - * / % **".split()), inner, inner, span=at
        ),
        several.flatmap(_comparison),
        st.builds(nodes.Logical, st.sampled_from(["and", "or"]), several, span=at),
        st.builds(nodes.Conditional, inner, inner, inner, span=at),
        st.builds(
            nodes.Call,
            words,
            st.none() | words,
            few,
            keywords,
            span=at,
            function_span=at,
        ),
        st.builds(
            nodes.Comprehension,
            st.sampled_from("sum mean prod max min logsumexp".split()),
            inner,
            index_tuples,
            st.none() | inner,
            span=at,
        ),
    )


def _comparison(operands: tuple[nodes.Expr, ...]) -> st.SearchStrategy[nodes.Expr]:
    op = st.sampled_from("< <= > >= == !=".split())
    ops = st.tuples(*[op] * (len(operands) - 1))
    return ops.map(lambda chosen: nodes.Compare(operands, chosen, span=AT))


expressions: st.SearchStrategy[nodes.Expr] = st.recursive(
    numbers | names, _compound, max_leaves=12
)

# --- statements and items -------------------------------------------------------------

_indices = st.none() | st.lists(expressions | ranges, max_size=2).map(tuple)
_places = {"span": st.just(AT), "name_span": st.just(AT)}
_at = st.just(AT)

_scalars = st.sampled_from(
    ["0", "-1.50", "1_000", "inf", "-inf", "nan", "true", "2e-3"]
)
_literals: st.SearchStrategy[nodes.Literal] = st.recursive(
    st.builds(nodes.Scalar, _scalars, span=_at),
    lambda inner: st.builds(
        nodes.Vector, st.lists(inner, min_size=1, max_size=3).map(tuple), span=_at
    ),
    max_leaves=4,
)
_bindings = st.lists(
    st.builds(nodes.Binding, words, _literals, span=_at), min_size=1, max_size=2
).map(tuple)
_conditions = st.lists(expressions, min_size=1, max_size=2).map(tuple)

paths = st.lists(words, min_size=2, max_size=3).map(".".join)
passed = st.lists(
    words | st.sampled_from(["2.5", "-1", "3e-05"]), min_size=1, max_size=2
)
calls = st.builds(
    nodes.ForeignCall, paths, st.none() | passed.map(tuple), name_tuples, span=_at
)
_equations = st.builds(
    nodes.Compare, st.tuples(expressions, expressions), st.just(("==",)), span=_at
)
statements: st.SearchStrategy[nodes.Statement] = st.one_of(
    st.builds(nodes.Assign, words, _indices, expressions, st.booleans(), **_places),
    st.builds(nodes.Assume, _conditions, span=_at),
    st.builds(
        nodes.Solve,
        *(words, _indices, _equations),
        *(st.none() | expressions, st.none() | expressions),
        **_places,
    ),
    st.builds(nodes.Surrogate, words, _indices, expressions, **_places),
    st.builds(nodes.Override, words, _indices, expressions, texts, **_places),
    st.builds(
        nodes.Keep, st.sampled_from(["save", "recompute"]), name_tuples, span=_at
    ),
    st.builds(nodes.Kernel, name_tuples, calls.map(lambda call: (call,)), span=_at),
    st.builds(nodes.Example, _bindings, _bindings, span=_at),
)

_axes = st.builds(
    nodes.Axes,
    st.booleans(),
    st.lists(words | st.integers(0, 9), max_size=2).map(tuple),
    span=_at,
)
_inputs = st.builds(
    nodes.Parameter,
    words,
    st.none() | _axes,
    st.sampled_from(["", "nograd", "int", "bool", "static", "static int"]),
    st.none() | expressions,
    **_places,
)
_outputs = st.builds(
    nodes.Parameter,
    words,
    st.none() | _axes,
    st.sampled_from(["", "nograd", "int", "bool"]),
    st.none(),
    **_places,
)
rules = st.builds(
    nodes.RuleDef,
    words,
    st.lists(_inputs, max_size=3).map(tuple),
    st.lists(_outputs, min_size=1, max_size=2).map(tuple),
    st.none() | texts.map(tidy),
    st.lists(statements, min_size=1, max_size=3).map(tuple),
    **_places,
)
functions = st.builds(
    nodes.FunctionDef,
    words,
    st.lists(names, max_size=2).map(tuple),
    expressions,
    **_places,
)
foreign = st.builds(
    nodes.ForeignDef,
    words,
    name_tuples,
    calls.map(lambda call: (call,)),
    st.lists(expressions, max_size=2).map(tuple),
    **_places,
)
imports = st.builds(nodes.Import, texts, name_tuples, span=_at, path_span=_at)
modules = st.lists(rules | functions | foreign | imports, max_size=3).map(
    lambda items: nodes.Module(Source("", ""), tuple(items))
)
