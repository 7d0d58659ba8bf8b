"""Sums over indices: contractions, running sums, sums by position.

A sum of products is a contraction, two factors at a time, never a product over all
indices: factors without summed indices are moved out first. The sum over batch axes,
for the gradient of an input that has none, is one more index, ``BATCH``. Factors that
are undefined for an empty sum stay inside (`rewrites.undefined_at`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from operator import and_

from gradspec.derive.scopes import replace_indices
from gradspec.ir import expr as ir
from gradspec.ir import walk
from gradspec.ir.products import Product, conjuncts, terms, written_product
from gradspec.ir.tidy import fold
from gradspec.plan.arrays import (
    Cumulative,
    Expr,
    Literal,
    Op,
    ScatterAdd,
    Window,
)
from gradspec.plan.axes import Value, align, are_windows
from gradspec.plan.contractions import (
    BATCH,
    Bounds,
    axes_of,
    contract,
    taken_in,
)
from gradspec.plan.translation import Summation, Translation
from gradspec.primitives.lookup import primitive


def total(
    t: Translation, bounds: Bounds, body: ir.Expr, where: ir.Expr | None = None
) -> Value:
    """The sum of ``body`` over ``bounds`` where the condition holds."""
    if where is not None:
        body = ir.Select(where, body, ir.ZERO)
    if body == ir.ZERO:
        return t.value(body)
    special = _special(t, bounds, body)
    if special is not None:
        return special
    tree = _distribute(t, body)
    terms = _terms(tree)
    for term in terms:
        condition = _outer_condition(t, bounds, term)
        if condition is not None:
            rest = [other for other in terms if other is not term]
            chosen = _sum_choice(t, bounds, term, condition)
            return _add(t, [chosen, *(total(t, bounds, _sum(rest)) for _ in rest[:1])])
    products = _gather(t, bounds, tree)
    if any(_is_contraction(t, product, bounds) for product in products) or (
        len(products) == 1 and _is_leaner(t, bounds, products[0], body)
    ):
        return _add(t, [_product_total(t, bounds, product) for product in products])
    return _product_total(t, bounds, body)


def _special(t: Translation, bounds: Bounds, body: ir.Expr) -> Value | None:
    """A running sum or a sum by position."""
    parts = written_product(body)
    for factor in parts.above:
        match factor:
            case ir.Select(condition=condition, then=then, other=other) if (
                other == ir.ZERO
            ):
                above = [then if f is factor else f for f in parts.above]
                chosen = _multiply(parts, above)
                found = _running(t, bounds, chosen, condition)
                tests = () if found else (*conjuncts(condition),)
                for test in tests:
                    rest = [other for other in tests if other is not test]
                    body = reduce(lambda b, c: ir.Select(c, b, ir.ZERO), rest, chosen)
                    found = found or _by_position(t, bounds, body, test)
                if found is not None:
                    return found
    return None


def _sum_choice(
    t: Translation, bounds: Bounds, body: ir.Expr, condition: ir.Expr
) -> Value:
    """A choice whose condition has no summed index becomes a choice between sums."""
    then, other = (
        total(t, bounds, _assuming(body, condition, holds)) for holds in (True, False)
    )
    return t.choice(t.value(condition), then, other)


def _average(
    t: Translation, bounds: Bounds, body: ir.Expr, where: ir.Expr | None
) -> Value:
    """The mean; over the positions where the condition holds, if there is one."""
    if where is not None:
        count = total(t, bounds, ir.Select(where, ir.ONE, ir.ZERO))
        return t.combine("div", total(t, bounds, body, where), count)
    value = t.value(body)
    if set(bounds) <= set(value.axes) and not _is_contraction(t, body, bounds):
        return t.over("mean", bounds, value)
    return t.combine("div", total(t, bounds, body), _count(t, bounds))


SUMMATIONS: Mapping[str, Summation] = {"sum": total, "mean": _average}


def _count(t: Translation, bounds: Bounds) -> Value:
    sizes = [t.sizes[bound] for bound in bounds]
    return Value(reduce(lambda a, b: Op("mul", (a, b)), sizes), is_number=True)


# --- products ----------------------------------------------------------------------------


def _values(t: Translation, parts: Product) -> tuple[list[Value], list[Value]]:
    return [t.value(f) for f in parts.above], [t.value(f) for f in parts.below]


def _is_lost(t: Translation, factor: ir.Expr, bounds: Bounds) -> bool:
    """True if a factor is undefined for an empty sum (`rewrites.undefined_at`)."""
    over = {t.sizes[bound] for bound in bounds if bound != BATCH}
    return bool(t.lost_at(factor) & over)


def within_sums(t: Translation, value: ir.Expr) -> ir.Expr:
    """``value`` with such factors moved into the sums that they multiply."""
    if not any(map(_is_sum, walk.nodes(value))):
        return value

    def visit(node: ir.Expr) -> ir.Expr:
        if not isinstance(node, ir.Apply) or node.op not in ("mul", "div"):
            return node
        parts = written_product(node)
        at = next((f for f in parts.above if _is_sum(f)), None)
        if not isinstance(at, ir.Reduce):
            return node
        over = tuple(b.index for b in at.bounds)

        def is_lost(f: ir.Expr) -> bool:
            apart = f is not at and {*over}.isdisjoint(f.free)
            return apart and _is_lost(t, f, over)

        lost = parts.filter(is_lost)
        if not lost.above and not lost.below:
            return node
        body = _multiply(replace(lost, number=Fraction(1)), [at.body, *lost.above])
        rest = parts.filter(lambda f: f not in (*lost.above, *lost.below))
        taken = ir.Reduce("sum", at.bounds, body, at.where)
        above = [*rest.above]
        above[above.index(at)] = taken
        return _multiply(rest, above)

    return walk.transform(value, visit)


def _is_sum(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Reduce) and expr.op == "sum"


def _product_total(t: Translation, bounds: Bounds, body: ir.Expr) -> Value:
    parts = written_product(body).filter(lambda f: f != ir.ONE)
    outside = parts.filter(lambda f: not _depends(t.value(f), bounds))
    inner = [t.value(f) for f in parts.above if f not in outside.above]
    for divisor in (t.value(f) for f in parts.below if f not in outside.below):
        over = inner.pop() if inner else Value(Literal(Fraction(1)), is_number=True)
        inner.append(t.combine("div", over, divisor))
    empty = outside.filter(lambda f: bool(inner) and _is_lost(t, f, bounds))
    nested = [] if empty.above or empty.below else _merge_sums(t, bounds, parts)
    if empty.above or empty.below:
        inner = taken_in(t, inner, *_values(t, empty))
        outside = outside.filter(lambda f: f not in (*empty.above, *empty.below))
    present = {axis for value in inner for axis in value.axes}
    absent = tuple(b for b in bounds if b not in present and b != BATCH)
    above, below = _values(t, outside)
    factors = [*above, *(nested or contract(t, inner, bounds))]
    if absent and not nested:  # a nested sum has counted them
        factors.append(_count(t, absent))
    result = reduce(
        lambda a, b: t.combine("mul", a, b),
        factors or [Value(Literal(Fraction(1)), is_number=True)],
    )
    result = reduce(lambda a, b: t.combine("div", a, b), below, result)
    return t.combine("neg", result) if parts.number < 0 else result


def _merge_sums(t: Translation, bounds: Bounds, parts: Product) -> list[Value]:
    """A sum of a sum becomes one sum, if the inner one is the whole body, and is not a
    choice between sums; a running sum or a sum by position.
    """
    inner = [f for f in parts.above if _depends(t.value(f), bounds)]
    below = any(_depends(t.value(f), bounds) for f in parts.below)
    match inner:
        case [ir.Reduce(op="sum", bounds=more, body=body, where=where)] if not below:
            own = tuple(b.index for b in more)
            if _outer_condition(t, own, _distribute(t, body)) is None:
                return [total(t, (*bounds, *own), body, where)]
            return []
        case [ir.Select() as choice] if not below:
            special = _special(t, bounds, choice)
            return [] if special is None else [special]
        case _:
            return []


def _depends(value: Value, bounds: Bounds) -> bool:
    return bool(_summed_bounds(value, bounds))


def _summed_bounds(value: Value, bounds: Bounds) -> set[str]:
    """The bounds that occur in a value."""
    return set(bounds) & axes_of(value)


def _is_contraction(t: Translation, body: ir.Expr, bounds: Bounds) -> bool:
    """True if factors over different indices meet under the sum."""
    parts = written_product(body)
    inner = [v for f in parts.above if _depends(v := t.value(f), bounds)]
    return len({frozenset(axes_of(value)) for value in inner}) > 1


# --- trees of sums and choices ----------------------------------------------------------
#
# The body of a sum is a tree: sums, differences and choices whose leaves are products.
# What its leaves have in common leaves the tree, so that ``g[i] * w[i, a] * s[a] + g[i] *
# w[i, a] * q[a]``, summed over i, is a contraction and a factor, ``s[a] + q[a]``.


_Path = tuple[ir.Expr, ...]
_Leaf = tuple[_Path, ir.Expr]
"""A product in a tree, and the conditions above it."""


def _branches(tree: ir.Expr) -> tuple[int, ...]:
    """The positions of the children that are trees themselves; none of a leaf."""
    match tree:
        case ir.Apply(op="add" | "sub" | "neg", args=args):
            return tuple(range(len(args)))
        case ir.Select():
            return 1, 2
        case _:
            return ()


def _map_leaves(
    tree: ir.Expr, visit: Callable[[_Path, ir.Expr], ir.Expr], path: _Path = ()
) -> ir.Expr:
    """The tree with other leaves; those that are 0 stay."""
    at = _branches(tree)
    if not at:
        return tree if tree == ir.ZERO else visit(path, tree)
    if isinstance(tree, ir.Select):
        path = (*path, tree.condition)
    parts = walk.children(tree)
    made = (_map_leaves(p, visit, path) if k in at else p for k, p in enumerate(parts))
    return fold(walk.with_children(tree, tuple(made)))


def _leaves(tree: ir.Expr) -> list[_Leaf]:
    """The products in a tree, each with the conditions above it."""
    found: list[_Leaf] = []

    def visit(path: _Path, leaf: ir.Expr) -> ir.Expr:
        found.append((path, leaf))
        return leaf

    _map_leaves(tree, visit)
    return found


def _terms(tree: ir.Expr) -> list[ir.Expr]:
    """The summands, each with its sign."""
    return [ir.apply("neg", term) if minus else term for minus, term in terms(tree)]


def _sum(terms: Sequence[ir.Expr]) -> ir.Expr:
    return reduce(lambda a, b: fold(ir.apply("add", a, b)), terms)


def _distribute(t: Translation, body: ir.Expr) -> ir.Expr:
    """The tree with products distributed over the trees in them that are larger than
    all that they are made of: ``g[i, j] * (x[i, l] + z[j, l])``.
    """
    if _branches(body):
        return _map_leaves(
            _keep_differences(t, body, True), lambda _, leaf: _distribute(t, leaf)
        )
    parts = written_product(body)
    for at, factor in enumerate(parts.above):
        rest = [*parts.above[:at], *parts.above[at + 1 :]]  # it may occur there again
        tree = _keep_differences(t, factor)
        if _branches(tree) and (not rest or _is_larger(t, tree, rest)):
            break
    else:
        return body
    return _map_leaves(
        tree, lambda _, leaf: _distribute(t, _multiply(parts, [*rest, leaf]))
    )


def _keep_differences(t: Translation, tree: ir.Expr, is_root: bool = False) -> ir.Expr:
    """The tree with differences as leaves, of factor 1, unless a term has all of their
    axes: distributed, they would lose the digits of what their terms share.
    """
    terms, at = _terms(tree), _branches(tree)
    whole = axes_of(t.value(tree))
    is_difference = len({*map(_is_negative, terms)}) > 1 and not is_root
    if is_difference and not any(whole <= axes_of(t.value(term)) for term in terms):
        return ir.apply("mul", ir.ONE, tree)
    is_root &= not isinstance(tree, ir.Select)
    parts = (
        _keep_differences(t, part, is_root) if k in at else part
        for k, part in enumerate(walk.children(tree))
    )
    return walk.with_children(tree, tuple(parts)) if at else tree


def _is_larger(t: Translation, tree: ir.Expr, others: Sequence[ir.Expr]) -> bool:
    """True if no factor in the tree, condition or other factor has all of its axes. A
    tree that is held stays whole.
    """
    leaves = _leaves(tree)
    parts = [written_product(leaf) for _, leaf in leaves]
    made_of = [*others, *(f for p in parts for f in (*p.above, *p.below))]
    made_of += [condition for path, _ in leaves for condition in path]
    value = t.value(tree)
    return value.expr not in t.held and not any(
        axes_of(value) <= axes_of(t.value(part)) for part in made_of
    )


def _is_negative(term: ir.Expr) -> bool:
    parts = written_product(term)
    return (parts.number < 0) ^ any(
        isinstance(f, ir.Const) and f.value < 0 for f in (*parts.above, *parts.below)
    )


def _outer_condition(t: Translation, bounds: Bounds, tree: ir.Expr) -> ir.Expr | None:
    """A condition in the tree that has no summed index."""
    conditions = (c for path, _ in _leaves(tree) for c in path)
    return next((c for c in conditions if not _depends(t.value(c), bounds)), None)


def _assuming(tree: ir.Expr, condition: ir.Expr, holds: bool) -> ir.Expr:
    """The tree where the condition holds, or does not."""
    if isinstance(tree, ir.Select) and tree.condition == condition:
        return _assuming(tree.then if holds else tree.other, condition, holds)
    at = _branches(tree)
    parts = (
        _assuming(part, condition, holds) if k in at else part
        for k, part in enumerate(walk.children(tree))
    )
    return fold(walk.with_children(tree, tuple(parts))) if at else tree


def _gather(t: Translation, bounds: Bounds, tree: ir.Expr) -> list[ir.Expr]:
    """A tree as few products: one if what its leaves have in common leaves a rest of
    fewer axes; else one for each set of leaves that share what leaves the tree.
    """
    leaves = _leaves(tree)
    if len(leaves) > 1:
        whole = axes_of(t.value(tree))
        product = _common(t, bounds, tree, leaves)
        if not any(
            whole <= axes_of(t.value(f)) for f in written_product(product).above
        ):
            return [product]
    groups: dict[tuple[bool, frozenset[ir.Expr]], list[_Leaf]] = {}
    for path, leaf in leaves:
        parts = _outer_factors(t, bounds, path, written_product(leaf))
        inner = [f for f in parts.above + parts.below if _depends(t.value(f), bounds)]
        groups.setdefault((bool(path), frozenset(inner)), []).append((path, leaf))
    return [_common(t, bounds, tree, group) for group in groups.values()]


def _outer_factors(
    t: Translation, bounds: Bounds, path: _Path, parts: Product
) -> Product:
    """The factors that leave a tree: those without a summed index, and those that have
    an axis that no condition has.
    """
    near = _axes(t, path)

    def leaves(factor: ir.Expr) -> bool:
        axes = axes_of(t.value(factor))
        return axes.isdisjoint(bounds) or not axes <= near

    return replace(parts.filter(leaves), number=Fraction(1))


def _axes(t: Translation, exprs: Sequence[ir.Expr]) -> set[str]:
    return set[str]().union(*(axes_of(t.value(expr)) for expr in exprs))


def _common(
    t: Translation, bounds: Bounds, tree: ir.Expr, group: list[_Leaf]
) -> ir.Expr:
    """The part of a tree that a group of leaves makes, as one product."""
    if len(group) == 1:
        alone = _map_leaves(
            tree, lambda *leaf: leaf[1] if leaf == group[0] else ir.ZERO
        )
        return _narrow(t, bounds, alone, *group[0])
    every = [written_product(leaf) for _, leaf in group]
    above = reduce(and_, (Counter(parts.above) for parts in every))
    below = reduce(and_, (Counter(parts.below) for parts in every))
    shared = Product(Fraction(1), (*above.elements(),), (*below.elements(),))
    path = tuple(condition for path, _ in group for condition in path)
    core = _outer_factors(t, bounds, path, shared)
    rest = _map_leaves(
        tree, lambda *leaf: _without(leaf[1], core) if leaf in group else ir.ZERO
    )
    return _multiply(core, [*core.above, rest])


def _without(leaf: ir.Expr, core: Product) -> ir.Expr:
    """The product of the factors that are not in the core."""
    parts = written_product(leaf)
    above = Counter(parts.above) - Counter(core.above)
    below = Counter(parts.below) - Counter(core.below)
    rest = replace(parts, below=tuple(below.elements()))
    return _multiply(rest, [*above.elements()] or [ir.ONE])


def _narrow(
    t: Translation, bounds: Bounds, tree: ir.Expr, path: _Path, leaf: ir.Expr
) -> ir.Expr:
    """A tree of one leaf as a product. One factor alone is masked, the first that has
    all indices of the conditions: ``p[i, j]`` of ``p[i, j] * v[j, k]`` for ``j <= i``;
    if there is none, those that have no others. An extremum of what a condition leaves,
    which may be nothing, is infinite then, and ``log(j)`` may be where ``j > 0`` does not
    hold: they are masked themselves.
    """
    parts = written_product(leaf)
    decided = frozenset[str]().union(*(condition.free for condition in path))
    risky = [
        k
        for k, factor in enumerate(parts.above)
        if _may_be_of_nothing(factor) or _is_singular_at_places(factor, decided)
    ]
    for condition in () if risky else path:
        inside = _assuming(tree, condition, True)
        is_zero = (
            t.is_padded(f, condition) or _is_masked(f, condition) for f in parts.above
        )
        if inside != ir.ZERO and any(is_zero):
            tree = inside
    [(left, _)] = _leaves(tree)
    if not left:
        return tree

    def put_factor(factor: ir.Expr) -> ir.Expr:
        return _map_leaves(tree, lambda *_: factor)

    near = _axes(t, left)
    outer = parts.filter(lambda f: not _depends(t.value(f), bounds))
    whole = put_factor(_without(leaf, outer))
    if _special(t, bounds, *written_product(whole).above) is None:
        axes = [axes_of(t.value(factor)) for factor in parts.above]
        places = risky or range(len(axes))
        at = next((k for k in places if near <= axes[k]), None)
        if at is not None and len(risky) < 2:
            above = [*parts.above]
            above[at] = put_factor(above[at])
            return _multiply(parts, above)
        outer = _outer_factors(t, bounds, left, parts)
        whole = put_factor(_without(leaf, outer))
    return _multiply(replace(outer, number=Fraction(1)), [*outer.above, whole])


def _may_be_of_nothing(factor: ir.Expr) -> bool:
    return any(
        isinstance(node, ir.Reduce) and node.op in ir.EXTREMA and node.where is not None
        for node in walk.nodes(factor)
    )


def _is_singular_at_places(factor: ir.Expr, indices: frozenset[str]) -> bool:
    """True if an operation that is not defined everywhere is applied to an index."""
    return any(
        isinstance(part, ir.Idx) and part.name in indices
        for node in walk.nodes(factor)
        if isinstance(node, ir.Apply)
        for part in walk.nodes(*map(_without_references, _singular_arguments(node)))
    )


def _singular_arguments(node: ir.Apply) -> tuple[ir.Expr, ...]:
    """The arguments for which an operation may be infinite, or not defined."""
    match node:
        case ir.Apply(op="div" | "mod", args=(_, divisor)):
            return (divisor,)
        case ir.Apply(op="pow", args=(_, ir.Const(value=exponent))) if exponent >= 0:
            return ()
        case ir.Apply(op=op, args=args) if op == "pow" or primitive(op).domain:
            return args
        case _:
            return ()


def _without_references(expr: ir.Expr) -> ir.Expr:
    """An expression with a number in place of data, and of the indices at which it
    stands."""
    return walk.transform(expr, lambda n: ir.ONE if isinstance(n, ir.Ref) else n)


def _is_masked(expr: ir.Expr, condition: ir.Expr) -> bool:
    """True for ``exp(a if c else -inf)``, which is 0 where the condition fails."""
    match expr:
        case ir.Apply(op="exp", args=(ir.Select(condition=own, other=other),)):
            return own == condition and other == ir.apply("neg", ir.Apply("inf"))
        case _:
            return False


def _multiply(parts: Product, above: list[ir.Expr]) -> ir.Expr:
    product: ir.Expr = reduce(lambda a, b: fold(ir.apply("mul", a, b)), above)
    for divisor in parts.below:
        product = ir.apply("div", product, divisor)
    return ir.apply("neg", product) if parts.number < 0 else product


def _add(t: Translation, values: list[Value]) -> Value:
    return reduce(lambda a, b: t.combine("add", a, b), values)


def _is_leaner(t: Translation, bounds: Bounds, product: ir.Expr, body: ir.Expr) -> bool:
    """True if no factor that is summed has all axes of the body, or it is a sum that
    is found in another way.
    """
    parts = written_product(product)
    axes = [axes_of(t.value(f)) for f in (*parts.above, *parts.below)]
    inner = [own for own in axes if not own.isdisjoint(bounds)]
    whole = axes_of(t.value(body))
    return (
        not any(whole <= own for own in inner)
        or (len(inner) == 1 and not any(map(_branches, parts.above)))
        or bool(_merge_sums(t, bounds, parts))
    )


# --- special forms -----------------------------------------------------------------------


_RUNNING = {"le": (False, 0), "lt": (False, -1), "ge": (True, 0), "gt": (True, 1)}
_FLIPPED = {"le": "ge", "lt": "gt", "ge": "le", "gt": "lt"}


def _running(
    t: Translation, bounds: Bounds, body: ir.Expr, where: ir.Expr
) -> Value | None:
    """``sum(x[j] for j if j <= i)`` where ``i`` does not occur in the body."""
    match where:
        case ir.Apply(op=op, args=(ir.Idx(name=j), ir.Idx(name=i))) if op in _RUNNING:
            pass
        case _:
            return None
    if i in bounds:
        i, j, op = j, i, _FLIPPED[op]
    value = t.value(body)
    sound = (j,) == bounds and j in value.axes and i not in value.axes
    if not sound or t.sizes[i] != t.sizes[j]:
        return None
    reverse, start = _RUNNING[op]
    axis = value.axes.index(j) - len(value.axes)
    expr: Expr = Cumulative(t.floating(value.expr), axis, reverse)
    if start:
        expr = Window(expr, axis, Literal(Fraction(start)), t.sizes[i], True)
    axes = tuple(i if a == j else a for a in value.axes)
    return Value(expr, axes, value.batched)


def _placed(test: ir.Expr, bounds: Bounds) -> Iterator[tuple[str, ir.Expr]]:
    """An index that is not summed, and the computed position that it is equal to."""
    match test:
        case ir.Apply(op="eq", args=(ir.Idx(name=k), index) | (index, ir.Idx(name=k))):
            is_window = are_windows((index,))
            if not is_window and k not in bounds and k not in index.free:
                yield k, index


def _both(a: ir.Expr, b: ir.Expr) -> ir.Expr:
    return ir.Apply("and", (a, b))


def _by_position(
    t: Translation, bounds: Bounds, body: ir.Expr, where: ir.Expr
) -> Value | None:
    """``sum(a[j] for j if t[j] == k)``: each summand is added at the position that its
    integer gives, if what else is said of it holds; what it has at ``k`` is what it has
    at ``t[j]``.
    """
    tests = [*conjuncts(where)]
    found = ((test, *pair) for test in tests for pair in _placed(test, bounds))
    test, k, index = next(found, (where, "", where))
    if not k:
        return None
    others = [other for other in tests if other is not test]
    if others:
        body = ir.Select(reduce(_both, others), body, ir.ZERO)
    body = replace_indices(body, {k: index})
    at = t.integer(index)
    rows = tuple(a for a in at.axes if a not in bounds)
    over_batch = BATCH in bounds and at.batched
    if bool(rows) if over_batch else {*at.axes}.isdisjoint(bounds):
        return None
    order = (*rows, *(a for a in at.axes if a in bounds))
    alone = tuple(b for b in bounds if b not in axes_of(at))
    value = total(t, alone, body) if alone else t.value(body)
    if k in value.axes:
        return None
    rest = tuple(a for a in value.axes if a not in at.axes)
    spread = Value(t.floating(value.expr), value.axes, True, value.is_number)
    expr = ScatterAdd(
        align(at, order),
        align(spread, (*order, *rest)),
        t.sizes[k],
        len(order) - len(rows),
        len(rest),
        over_batch,
    )
    batched = not over_batch and (at.batched or value.batched)
    return Value(expr, (*rows, k, *rest), batched)
