"""Passes in named statements: missing primitives expanded, repeated values named.

Each function takes the plan of a rule and the :class:`Words` of the target.
"""

from __future__ import annotations

import builtins
import keyword
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from gradspec.ir.expr import spoken
from gradspec.ir.walk import children, nodes, with_children
from gradspec.plan.arrays import (
    Expand,
    Expr,
    Literal,
    Loop,
    Name,
    Op,
    Pick,
    Reduce,
    Softmax,
    ToFloat,
    Where,
    is_bound,
    names,
)
from gradspec.plan.operations import operation
from gradspec.plan.plan import (
    Assign,
    Backward,
    Block,
    Gradient,
    RulePlan,
    Term,
)


@dataclass(frozen=True, slots=True)
class Words:
    """``expand`` expands the primitives that the target has no function for;
    ``reserved`` are the names that emitted text uses, which no value may have.
    """

    expand: Callable[[Expr], Expr]
    reserved: frozenset[str]


def forward(plan: RulePlan, words: Words, keep: tuple[str, ...] = ()) -> Block:
    """The outputs; the locals in ``keep`` are bound to their names as well."""
    outputs = tuple(output.name for output in plan.outputs)
    return _block(plan, words, plan.forward, outputs, keep)


def backward(plan: RulePlan, words: Words, by_output: bool) -> Backward:
    """Gradients with one term for each shape; or ``by_output``, for targets where a
    cotangent may be absent, with one term for each output. A value shared by two
    gradients is then the gradient of neither: each is assigned separately, and may be
    left out; a statement's ``upstream`` lists the cotangents that it needs.
    """
    groups = tuple(
        None if g is None else g.terms if by_output else _sum_of_terms(g)
        for g in tensor_gradients(plan)
    )
    owners = [
        tensor.name
        for tensor, group in zip(plan.tensor_inputs, groups, strict=True)
        for _ in group or ()
    ]
    roots = tuple(words.expand(t.value) for group in groups for t in group or ())
    named = _independent_inputs(owners, roots) if by_output else owners
    known = _known_names(
        plan, words, _backward_values(plan, words, owners, named, roots)
    )
    statements, shared = share(roots, known, _namer(plan, words))
    values = iter(shared)
    return Backward(
        _steps(plan, statements, tuple(zip(owners, shared, strict=True))),
        tuple(
            None
            if group is None
            else tuple(replace(term, value=next(values)) for term in group)
            for group in groups
        ),
        _used(plan.saved_or_given, statements, shared),
        _used(tuple(s.name for s in plan.static_inputs), statements, shared),
    )


def pushforward(plan: RulePlan, words: Words, given: tuple[str, ...] = ()) -> Block:
    """The tangents alone; the outputs in ``given`` are known and not recomputed."""
    pairs = zip(plan.outputs, plan.tangents or (), strict=True)
    lets = [Assign(f"{o.name}_dot", t) for o, t in pairs if o.takes_gradient]
    names_ = tuple(let.name for let in lets)
    block = _block(plan, words, (*plan.forward, *lets), names_, ())
    kept: list[Assign] = []
    needed = {*names(*block.results)}
    for assign in reversed(block.statements):
        if assign.name in needed and assign.name not in given:
            kept.append(Assign(assign.name, assign.value))
            needed.update(names(assign.value))
    return Block(tuple(reversed(kept)), block.results)


def share_values(
    plan: RulePlan, words: Words, roots: tuple[Expr, ...]
) -> tuple[tuple[Assign, ...], tuple[Expr, ...]]:
    """Statements and the roots in terms of them. Values that the author named keep
    their names, except outputs, which another function computes.
    """
    outputs = {output.name for output in plan.outputs}
    lets = (*plan.backward_locals, *plan.forward)
    values = {a.name: words.expand(a.value) for a in lets if a.name not in outputs}
    return share(roots, _known_names(plan, words, values), _namer(plan, words))


# --- blocks ----------------------------------------------------------------------------


def _block(
    plan: RulePlan,
    words: Words,
    lets: tuple[Assign, ...],
    wanted: tuple[str, ...],
    keep: tuple[str, ...],
) -> Block:
    values = {let.name: words.expand(let.value) for let in lets}
    results = tuple(values[name] for name in wanted)
    needed = {*nodes(*results, *(values[name] for name in keep))}
    roots = {n: v for n, v in values.items() if n in wanted or n in keep or v in needed}
    known = _known_names(plan, words, values)
    statements, shared = share(tuple(roots.values()), known, _namer(plan, words))
    named = dict(zip(roots, shared, strict=True))
    # a saved local may be another name of an input or of an earlier local
    aliases = tuple(Assign(n, named[n]) for n in keep if named[n] != Name(n))
    return Block(statements + aliases, tuple(named[name] for name in wanted))


def _known_names(plan: RulePlan, words: Words, values: Mapping[str, Expr]) -> Known:
    """The known names; a value keeps the first name that it gets."""
    named: dict[Expr, str] = {}
    for name, value in values.items():
        if children(value):
            named.setdefault(value, name)
    return Known(
        named,
        {let.name: words.expand(let.value) for let in plan.constants},
        dict(plan.comments),
        frozenset(i.name for i in plan.static_inputs)
        | {c.name for c in plan.constants}
        | {size.name for size in plan.sizes},
    )


def _namer(plan: RulePlan, words: Words) -> Namer:
    derived = [f"d{name}" for name in plan.names] + [f"{n}_dot" for n in plan.names]
    return Namer([*words.reserved, *plan.names, *derived])


# --- the backward pass -----------------------------------------------------------------


def tensor_gradients(plan: RulePlan) -> tuple[Gradient | None, ...]:
    """One entry for each tensor input."""
    pairs = zip(plan.inputs, plan.gradients, strict=True)
    return tuple(gradient for i, gradient in pairs if not i.kind.is_static)


def _independent_inputs(owners: list[str], roots: tuple[Expr, ...]) -> list[str]:
    """The inputs whose gradients no other gradient contains."""
    pairs = list(zip(owners, roots, strict=True))
    return [
        owner
        for owner, root in pairs
        if not any(root in nodes(other) for name, other in pairs if name != owner)
    ]


def _backward_values(
    plan: RulePlan,
    words: Words,
    owners: list[str],
    named: list[str],
    roots: tuple[Expr, ...],
) -> dict[str, Expr]:
    """The names that a backward pass assigns: a gradient of one term is ``d<input>``; a
    recomputed forward value keeps its forward name.
    """
    values = {
        f"d{owner}": root
        for owner, root in zip(owners, roots, strict=True)
        if owners.count(owner) == 1 and owner in named
    }
    for let in (*plan.backward_locals, *plan.forward):
        values.setdefault(let.name, words.expand(let.value))
    return values


def _sum_of_terms(gradient: Gradient) -> tuple[Term, ...]:
    """Terms of one shape added; the author's own expression if it is the only one."""
    spans = tuple(dict.fromkeys(term.spans for term in gradient.terms))
    if len(spans) == 1:
        upstream = tuple(u for term in gradient.terms for u in term.upstream)
        return (Term(gradient.whole, upstream, spans[0]),)
    return tuple(
        _add([term for term in gradient.terms if term.spans == span]) for span in spans
    )


def _add(terms: list[Term]) -> Term:
    total = terms[0]
    for term in terms[1:]:
        value = operation("add", (total.value, term.value))
        total = Term(value, total.upstream + term.upstream, term.spans)
    return total


def _steps(
    plan: RulePlan,
    statements: tuple[Assign, ...],
    results: tuple[tuple[str, Expr], ...],
) -> tuple[Assign, ...]:
    """The statements, each with the gradients that need it and the cotangents that it
    needs.
    """
    needed: dict[str, set[str]] = {}
    for owner, value in results:
        needed.setdefault(owner, set()).update(names(value))
    for statement in reversed(statements):
        for used in needed.values():
            if statement.name in used:
                used.update(names(statement.value))
    of: dict[str, set[str]] = {name: {name} for name in plan.cotangents}
    for statement in statements:
        parts = (of.get(name, set()) for name in names(statement.value))
        of[statement.name] = set().union(*parts)
    return tuple(
        replace(
            statement,
            inputs=tuple(n for n, used in needed.items() if statement.name in used),
            upstream=tuple(n for n in plan.cotangents if n in of[statement.name]),
        )
        for statement in statements
    )


def _used(
    candidates: tuple[str, ...],
    statements: tuple[Assign, ...],
    results: tuple[Expr, ...],
) -> tuple[str, ...]:
    bound = {statement.name for statement in statements}
    used = names(*(statement.value for statement in statements), *results)
    return tuple(name for name in candidates if name in used and name not in bound)


# --- repeated values ------------------------------------------------------------------
#
# Values used twice get a name and a statement; the others are inlined.


@dataclass(frozen=True, slots=True)
class Known:
    """The values that have names already.

    ``named`` are the author's names by value; ``constants`` the author's numbers, which
    expressions use by name; ``comments`` the comments above named values; ``scalars``
    the names of Python numbers.
    """

    named: Mapping[Expr, str]
    constants: Mapping[str, Expr]
    comments: Mapping[str, str]
    scalars: frozenset[str]


def share(
    roots: tuple[Expr, ...], known: Known, namer: Namer
) -> tuple[tuple[Assign, ...], tuple[Expr, ...]]:
    """Statements in order of dependency, and the roots in terms of them."""
    uses = _uses(roots)
    done: dict[Expr, Expr] = {}
    statements: list[Assign] = []
    bound: set[str] = set()
    ours: set[str] = set()
    numbers = {v: name for name, v in known.constants.items() if children(v)}
    # residuals: what a target's words make equal to one is no other value
    given = {*names(*roots)}.intersection(known.named.values())

    def bind(name: str, value: Expr) -> Name:
        if name not in bound and name not in given:
            bound.add(name)
            statements.append(Assign(name, value, known.comments.get(name, "")))
        return Name(name)

    def constant(name: str) -> Name:
        for other in names(known.constants[name]):
            if other in known.constants:
                constant(other)
        return bind(name, known.constants[name])

    for node in nodes(*roots):
        value = with_children(node, tuple(done[child] for child in children(node)))
        match value:
            case Op(primitive="square", args=(Name(id=name) as arg,)):
                # x * x of a name of the author's
                value = value if name in ours else Op("mul", (arg, arg))
            case Expand(arg=Reduce() as row, axes=axes) if row.axes == axes:
                value = Reduce(row.op, row.arg, axes, keep=True)
        if isinstance(node, Name) and node.id in known.constants:
            value = constant(node.id)
        elif node in numbers:
            value = constant(numbers[node])
        elif node in known.named and children(node):
            value = bind(known.named[node], value)
        elif any(map(is_bound, names(node))):
            pass  # it exists inside a loop only
        elif uses[node] > 1 and not _is_trivial(node, known.scalars):
            name = namer.name(value)
            ours.add(name)
            value = bind(name, value)
        done[node] = value
    return tuple(statements), tuple(done[root] for root in roots)


def _uses(roots: tuple[Expr, ...]) -> Counter[Expr]:
    """The number of uses of each value: by distinct values that contain it, and as a
    result.
    """
    uses: Counter[Expr] = Counter(roots)
    for node in nodes(*roots):
        uses.update(children(node))
    return uses


def _is_trivial(node: Expr, scalars: frozenset[str]) -> bool:
    """True if not worth a name: no operation, a sign, or a few operations between
    numbers (whose quotients and roots may exist in one branch of a choice only).
    """
    match node:
        case Name() | Literal() | Op(args=()):
            return True
        case Op(primitive="neg", args=(Name() | Literal(),)):
            return True
        case _:
            return all(name in scalars for name in names(node)) and not _is_long(node)


def _is_long(node: Expr) -> bool:
    parts = [part for part in nodes(node) if children(part)]
    safe = all(isinstance(p, Op) and p.primitive in _TOTAL for p in parts)
    return safe and len(parts) > 2


_TOTAL = ("add", "sub", "mul", "neg", "square")


# --- invented names -------------------------------------------------------------------
#
# Short descriptive names for values that the author did not name.


_LONGEST = 20
_FUNCTIONS = {"neg": "neg", "square": "square", "abs": "abs", "not": "not"}
_PAIRS = {"add": "plus", "sub": "minus", "mul": "times", "div": "over"}
_ROLES = {
    "add": "total",
    "sub": "difference",
    "mul": "product",
    "div": "ratio",
    "pow": "power",
    "square": "squared",
}
_MASKS = {"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"}
_LETTERS = "tuvwrsq"
_NUMBERS = {0: "zero", 1: "one", 2: "two"}


class Namer:
    """Gives each value a name of its own; equal values get equal names."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken) | set(keyword.kwlist) | set(dir(builtins))

    def name(self, value: Expr) -> str:
        """An unused name for ``value``."""
        return self._first(_candidates(value))

    def _first(self, candidates: Iterator[str]) -> str:
        name = next(name for name in candidates if name not in self._taken)
        self._taken.add(name)
        return name


def _candidates(value: Expr) -> Iterator[str]:
    apt = _apt(value)
    if apt:
        yield apt
    role = _role(value)
    if role:
        yield role
    yield from _LETTERS
    number = 2
    while True:
        yield f"{role or 't'}{number}"
        number += 1


def _role(value: Expr) -> str:
    match value:
        case Op(primitive=op) if op in _MASKS:
            return "mask"
        case Op(primitive=op):
            return _ROLES.get(op, spoken(op))
        case ToFloat(arg=Op()):
            return "indicator"
        case Where():
            return "branch"
        case Softmax():
            return "softmax"
        case Loop():
            return "states"
        case _:
            return ""


def _apt(value: Expr) -> str:
    """A short descriptive name: ``exp_x``, ``one_minus_p``, ``x_squared``, ``x0``."""
    match value:
        case ToFloat(arg=Name(id=a)):
            return _short(f"float_{a}")
        case Pick(arg=Name(id=a), at=Literal(value=at)):
            return _short(f"{a}{at}")
        case Op(primitive="mul", args=(Name(id=a), Name(id=b))) if a == b:
            return _short(f"{a}_squared")
        case Op(primitive="square", args=(Name(id=a),)):
            return _short(f"{a}_squared")
        case Op(primitive="div", args=(Literal(value=one), Name(id=a))) if one == 1:
            return _short(f"inv_{a}")
        case Op(primitive="mul", args=(Name(id=a), Name(id=b))):
            return _short(f"{a}_{b}")
        case Op(primitive=op, args=(left, right)) if op in _PAIRS:
            a, b = _word(left), _word(right)
            return _short(f"{a}_{_PAIRS[op]}_{b}") if a and b else ""
        case Op(primitive=op, args=(arg,)) if op not in _MASKS:
            word = _word(arg)
            return _short(f"{_FUNCTIONS.get(op, spoken(op))}_{word}") if word else ""
        case _:
            return ""


def _word(value: Expr) -> str:
    match value:
        case Name(id=name):
            return name
        case Literal(value=number) if number in _NUMBERS:
            return _NUMBERS[int(number)]
        case Op(primitive="neg", args=(Name(id=name),)):
            return f"neg_{name}"
        case _:
            return ""


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else ""
