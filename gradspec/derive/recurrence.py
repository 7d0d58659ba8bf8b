"""Gradients of recurrences: a rule cut open is an ordinary rule.

A state solves ``h[t] = step(h[t - 1], …)``. In the rule that is *cut*, ``h`` is an input
and the step is an output. The upstream gradient of the step is the adjoint state: the
cotangent of ``h`` in the cut rule is what the adjoint state is equal to, which is a
recurrence in the other direction. The cotangents of the inputs are those of the cut
rule. So what is derived for the cut rule is derived for the recurrence, at every size;
and an adjoint state of the author is the right one if its definition is that cotangent,
since the equations of a recurrence have one solution.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, islice, permutations

from gradspec.derive.chain import Underivable, gradient
from gradspec.derive.indexed import (
    NotLinear,
    closed_cotangent,
    indexed_cotangents,
    indexed_tangents,
    same,
)
from gradspec.derive.scopes import (
    Fresh,
    Value,
    inline_values,
    refresh,
    rename_references,
    shorten_names,
)
from gradspec.derive.vjp import own_backward
from gradspec.ir.expr import ONE, ZERO, Apply, Expr, Idx, Reduce, Ref, const
from gradspec.ir.recurrence import (
    System,
    components,
    state_names,
    systems,
    with_plain_places,
)
from gradspec.ir.rule import (
    Complete,
    Definition,
    Input,
    Kind,
    Origin,
    Output,
    Role,
    Rule,
    Shape,
)
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import memo, names, nodes, transform

STEP, GIVEN = "~", "="
"""Marks of a state's step, and of a state that is an output, in the rule that is cut."""

_MATCHINGS = 24
_UNFOLDINGS = 16


def forward_states(rule: Rule) -> tuple[Definition, ...]:
    """The definitions of a rule's states, in the order of the forward pass."""
    every = state_names(rule, rule.forward)
    return tuple(let for let in rule.forward if let.name in every)


def cut(rule: Rule) -> Rule:
    """The rule with its states as inputs, and their steps as outputs."""
    own = {let.name: let for let in forward_states(rule)}
    kinds = {output.name: output.kind for output in rule.outputs}
    made: list[Definition] = []
    for let in rule.forward:
        if let.name not in own:
            made.append(let)
            continue
        step = replace(let, name=STEP + let.name, role=Role.OUTPUT)
        made.append(replace(step, is_equation=False, start=None))
        if let.name in kinds:
            state = Ref(let.name, tuple(map(Idx, let.indices)))
            made.append(replace(made[-1], name=GIVEN + let.name, value=state))
    made += (
        replace(one, name=GIVEN + one.name) if one.name in own else one
        for one in rule.surrogates
    )
    shapes = {
        n: (kinds.get(n, Kind.FLOAT), Shape(axes=let.axes)) for n, let in own.items()
    }
    outputs = (
        replace(o, name=GIVEN + o.name) if o.name in own else o for o in rule.outputs
    )
    return replace(
        rule.keep(()),
        inputs=(*rule.inputs, *(Input(n, *shape) for n, shape in shapes.items())),
        outputs=(*(Output(STEP + n, *s) for n, s in shapes.items()), *outputs),
        definitions=tuple(made),
    )


@dataclass(frozen=True, slots=True)
class Adjoint:
    """The cotangents of the rule that is cut: of its inputs, and of its states, which
    adjoint states are equal to. The adjoint of ``h`` is called ``d~h`` in them.
    """

    entries: Mapping[str, Definition]
    states: Mapping[str, Definition]


@memo(16)
def adjoint(rule: Rule) -> Adjoint:
    """The derived cotangents of a rule with states. Raises `Underivable`."""
    own = {let.name: let for let in forward_states(rule)}
    found = indexed_cotangents(cut(rule))
    back = {f"d{GIVEN}{name}": f"d{name}" for name in own}
    back |= {GIVEN + name: name for name in own}
    named = {
        n: replace(e, value=rename_references(e.value, back)) for n, e in found.items()
    }
    parts = systems(rule, rule.forward)
    alone = frozenset(n for p in parts if len(p.values) == 1 for n in p.names)
    states = {
        name: _with_solution(let, named.pop(name), alone)
        for name, let in own.items()
        if name in named
    }
    return Adjoint(named, states)


def _with_solution(
    state: Definition, entry: Definition, alone: frozenset[str]
) -> Definition:
    """The adjoint of a state, which is an equation as the state is. If each element of
    the state has an equation ``alone``, that of the adjoint is linear in one element,
    and has its solution for a value."""
    at = tuple(map(Idx, entry.indices))
    own, name = Ref(state.name, at), adjoint_of(state.name)
    places: dict[str, Expr] = dict(zip(state.indices, at, strict=True))
    value = refresh(state.value, places, Fresh("!"))
    is_diagonal = _is_only(value, own) and _is_only(entry.value, Ref(name, at))
    if state.name not in alone or not is_diagonal:
        return replace(entry, is_equation=state.is_equation)
    match value:
        case Apply("sub", (first, gap)) if first == own:
            slope = gradient(gap, lambda n: n == own, own_backward).get(own, ZERO)
        case _:
            step = gradient(value, lambda n: n == own, own_backward).get(own, ZERO)
            slope = Apply("sub", (ONE, step))
    given = transform(entry.value, lambda n: ZERO if n == Ref(name, at) else fold(n))
    return replace(entry, value=tidy(Apply("div", (given, slope))))


def _is_only(expr: Expr, own: Ref) -> bool:
    """True if an expression uses a value at one place, and in no reduction."""
    refs = {n for n in nodes(expr) if isinstance(n, Ref) and n.name == own.name}
    sums = (n for n in nodes(expr) if isinstance(n, Reduce))
    return refs == {own} and not any(own.name in names(n) for n in sums)


def adjoint_of(state: str) -> str:
    """The name of a state's adjoint in what is derived for the rule that is cut."""
    return f"d{STEP}{state}"


# --- completion -----------------------------------------------------------------------


def derive_adjoints(
    rule: Rule,
) -> tuple[Mapping[str, Definition], Mapping[str, Definition]]:
    """The derived cotangents by input, and the adjoint states in them that the rule
    lacks: where the author has an adjoint state himself, it serves. Raises
    `Underivable`."""
    found = adjoint(rule)
    own = {let.name: let for let in forward_states(rule)}
    matched = matchings(rule)[0]
    called = {n: matched.get(n) or _free_name(f"grad_{n}", rule) for n in own}
    back = {adjoint_of(n): name for n, name in called.items()}
    back |= {STEP + n: n for n in own}
    entries = {
        n: replace(e, value=rename_references(e.value, back))
        for n, e in found.entries.items()
    }
    lets = {
        called[n]: _adjoint_state(
            called[n], own[n], rename_references(e.value, back), e.indices
        )
        for n, e in found.states.items()
        if n not in matched
    }
    parts = components((*rule.backward_locals, *lets.values()), rule.assumes)
    solved = {n for p in parts if isinstance(p, System) for n in p.names}
    plain = {n: replace(d, is_equation=False) for n, d in lets.items()}
    return entries, {n: d if n in solved else plain[n] for n, d in lets.items()}


def used_adjoints(
    entries: Iterable[Definition], adjoints: Mapping[str, Definition]
) -> tuple[Definition, ...]:
    """The adjoint states that some cotangents use, directly or not."""
    wanted = [entry.value for entry in entries]
    used: set[str] = set()
    while wanted:
        new = names(wanted.pop()) & adjoints.keys() - used
        used |= new
        wanted += [adjoints[name].value for name in new]
    return tuple(one for name, one in adjoints.items() if name in used)


def adjoint_states(rule: Rule) -> Mapping[str, Definition]:
    """The adjoint states of a rule that were derived, by state."""
    derived = {d.name: d for d in rule.backward_locals if d.is_derived}
    named = ((n.name, _free_name(f"grad_{n.name}", rule)) for n in forward_states(rule))
    return {state: derived[name] for state, name in named if name in derived}


def _adjoint_state(
    name: str, state: Definition, value: Expr, indices: tuple[str, ...]
) -> Definition:
    """A state's adjoint over the indices of the state."""
    at: dict[str, Expr] = {
        o: Idx(n) for o, n in zip(indices, state.indices, strict=True)
    }
    taken = frozenset((*state.indices, *names(value)))
    made = shorten_names(with_plain_places(refresh(value, at, Fresh())), taken)
    return Definition(
        name,
        Role.BACKWARD_LOCAL,
        made,
        state.indices,
        state.axes,
        Origin.DERIVED,
        state.span,
        is_equation=state.is_equation,
    )


def _free_name(name: str, rule: Rule) -> str:
    """A name that the author has not given to anything."""
    variables: list[Input | Output] = [*rule.inputs, *rule.outputs]
    written = (d.name for d in rule.definitions if not d.is_derived)
    taken = {*(v.name for v in variables), *(f"d{v.name}" for v in variables), *written}
    while name in taken:
        name += "_"
    return name


# --- the rule as a whole ----------------------------------------------------------------


def cut_open(rule: Complete) -> Complete:
    """The rule with states as inputs. The adjoint states that were derived are the
    cotangents of these; those of the author are inputs, too."""
    opened, adjoints, theirs = cut(rule), adjoint_states(rule), authors_states(rule)
    states = {let.name for let in forward_states(rule)}
    gone = {*adjoints.values(), *theirs}
    still = (i for i in opened.inputs if i.name in states - adjoints.keys())
    kinds = {i.name: Kind.NOGRAD for i in still if i.takes_gradient}
    made = Complete.of(
        replace(
            opened,
            inputs=(
                *(replace(i, kind=kinds.get(i.name, i.kind)) for i in opened.inputs),
                *(Input(t.name, Kind.NOGRAD, Shape(axes=t.axes)) for t in theirs),
            ),
            exacts=(
                *(STEP + n if n in states else n for n in rule.exacts),
                *(STEP + d.name for d in rule.forward if d.is_equation),
                *(f"d{state}" for state, d in adjoints.items() if d.is_equation),
            ),
        ),
        *(d for d in rule.backward_locals if d not in gone),
        *rule.backward,
        *(
            replace(d, name=f"d{state}", role=Role.COTANGENT, is_equation=False)
            for state, d in adjoints.items()
        ),
    )
    to = {d.name: adjoint_of(state) for state, d in adjoints.items()}
    to |= {f"d{state}": f"d{GIVEN}{state}" for state in states}
    return made.map(lambda d: replace(d, value=rename_references(d.value, to)))


def names_in(rule: Rule) -> Mapping[str, str]:
    """The names in the rule, by those in the rule that is cut open."""
    found = {adjoint_of(state): d.name for state, d in adjoint_states(rule).items()}
    for let in forward_states(rule):
        found |= {f"d{GIVEN}{let.name}": f"d{let.name}"}
        found |= {STEP + let.name: let.name, GIVEN + let.name: let.name}
    return found


# --- tangents ---------------------------------------------------------------------------


def tangents(
    rule: Complete,
) -> tuple[tuple[Definition, ...], Mapping[str, Definition]]:
    """Tangents of the states, which are recurrences, too, and by output over them, the
    forward values and ``<input>_dot``. Raises `NotLinear` and `Underivable`."""
    if authors_states(rule):
        rule = _derive_anew(rule)
    back, own = names_in(rule), {let.name: let for let in forward_states(rule)}
    found = {
        name: replace(one, value=rename_references(one.value, back))
        for name, one in indexed_tangents(cut_open(rule)).items()
    }
    states = tuple(
        replace(found[STEP + n], name=f"{n}_dot", is_equation=own[n].is_equation)
        for n in own
        if STEP + n in found
    )
    names_of = {
        o.name: GIVEN + o.name if o.name in own else o.name for o in rule.outputs
    }
    return states, {n: found[of] for n, of in names_of.items() if of in found}


def _derive_anew(rule: Complete) -> Complete:
    """The rule with derived gradients in the place of those of the author, whose adjoint
    states need not be known to be such."""
    if rule.overrides:
        raise NotLinear
    bare = rule.keep((*rule.forward, *rule.surrogates))
    entries, adjoints = derive_adjoints(bare)
    return Complete.of(
        bare, *used_adjoints(entries.values(), adjoints), *entries.values()
    )


# --- the author's adjoint state -------------------------------------------------------


def is_proved(rule: Rule, entry: Definition) -> bool:
    """True if an entry of a rule with states is shown to be the derivative for all
    sizes: the adjoint states in it are the right ones, and so is what is made of them.
    """
    try:
        true = adjoint(rule).entries.get(entry.input)
    except Underivable:
        return False
    if true is None:
        return False
    at: dict[str, Expr] = {i: Idx(str(p)) for p, i in enumerate(true.indices)}
    value = refresh(true.value, at, Fresh())
    return any(
        _is_same(rule, _closed(rule, entry, matched), value, matched)
        for matched in matchings(rule)
    )


@memo(16)
def matchings(rule: Rule) -> tuple[Mapping[str, str], ...]:
    """The author's adjoint states by state: those whose definitions are right. The last
    has none."""
    own, theirs = forward_states(rule), authors_states(rule)
    if not theirs:
        return ({},)
    derived = adjoint(rule).states
    choices = (
        tuple(zip(states, some, strict=True))
        for count in range(len(theirs), 0, -1)
        for some in combinations(theirs, count)
        if not _left(rule, theirs, some)
        for states in permutations(own, count)
        if all(s.axes == o.axes for s, o in zip(states, some, strict=True))
    )
    found = []
    for pairs in islice(choices, _MATCHINGS):
        matched = {one.name: other.name for one, other in pairs}
        if matched.keys() <= derived.keys() and all(
            _is_adjoint(rule, o, derived[s.name], matched) for s, o in pairs
        ):
            found.append(matched)
    return (*found, {})


def _left(
    rule: Rule, theirs: tuple[Definition, ...], some: tuple[Definition, ...]
) -> bool:
    """True if the values without some of them are recurrences still."""
    others = tuple(let for let in theirs if let not in some)
    parts = components(others, rule.assumes)
    return any(not isinstance(part, Definition) for part in parts)


def authors_states(rule: Rule) -> tuple[Definition, ...]:
    """The recurrences of the backward pass that the author wrote."""
    every = state_names(rule, rule.backward_locals)
    own = (d for d in rule.backward_locals if d.name in every)
    return tuple(d for d in own if not d.is_derived)


def _is_adjoint(
    rule: Rule, let: Definition, true: Definition, matched: Mapping[str, str]
) -> bool:
    """True if the definition of ``let`` is that of an adjoint; an equation may have its
    sides exchanged."""
    stated = _closed(rule, let, matched)
    at: dict[str, Expr] = {i: Idx(str(p)) for p, i in enumerate(true.indices)}
    wanted = refresh(true.value, at, Fresh())
    if _is_same(rule, stated, wanted, matched):
        return True
    own = Ref(let.name, tuple(at.values()))
    turned = Apply("sub", (Apply("mul", (const(2), own)), stated))
    return let.is_equation and _is_same(rule, turned, wanted, matched)


def _closed(rule: Rule, entry: Definition, matched: Mapping[str, str]) -> Expr:
    """An entry in terms of inputs, states and those adjoint states that are matched."""
    others = {
        let.name: Value(let.name, let.indices, let.axes, let.value)
        for let in authors_states(rule)
        if matched and let.name not in matched.values()
    }
    closed = closed_cotangent(rule, entry)
    return inline_values(closed, others, Fresh("?")) if others else closed


def _is_same(rule: Rule, stated: Expr, true: Expr, matched: Mapping[str, str]) -> bool:
    """True if both are equal whatever the states are, or by their definitions."""
    fresh = Fresh("!")
    own = {
        let.name: Value(let.name, let.indices, let.axes, let.value)
        for let in forward_states(rule)
    }
    whole = _with_adjoints(rule, true, matched, fresh)
    if whole is None:
        return False
    locals_ = {
        let.name: Value(let.name, let.indices, let.axes, let.value)
        for let in rule.forward
        if let.name not in own
    }
    steps = {STEP + n: replace(v, name=STEP + n) for n, v in own.items()}
    kept = inline_values(
        rename_references(whole, {STEP + n: n for n in own}), locals_, fresh
    )
    unfolded = inline_values(whole, {**steps, **locals_}, fresh)
    forms = dict.fromkeys(map(with_plain_places, (kept, unfolded)))
    return any(
        same(with_plain_places(one), form)
        for one in _unfoldings(stated, own, locals_, fresh)
        for form in forms
    )


def _with_adjoints(
    rule: Rule, true: Expr, matched: Mapping[str, str], fresh: Fresh
) -> Expr | None:
    """A derived value in the author's adjoint states alone: the adjoints that he has no
    name for are put in. None if one of them is a recurrence of its own."""
    back = {adjoint_of(n): name for n, name in matched.items()}
    others = tuple(
        replace(e, name=adjoint_of(n), value=rename_references(e.value, back))
        for n, e in adjoint(rule).states.items()
        if n not in matched
    )
    parts = components(others, rule.assumes)
    values = {
        p.name: Value(p.name, p.indices, p.axes, p.value)
        for p in parts
        if isinstance(p, Definition)
    }
    made = inline_values(rename_references(true, back), values, fresh)
    left = {n for p in parts if not isinstance(p, Definition) for n in p.names}
    return None if names(made) & left else made


def _unfoldings(
    stated: Expr, own: Mapping[str, Value], locals_: Mapping[str, Value], fresh: Fresh
) -> Iterator[Expr]:
    """The expression with some of its states replaced by their definitions, once."""
    yield stated
    uses = [n for n in nodes(stated) if isinstance(n, Ref) and n.name in own]
    for chosen in range(1, min(2 ** len(uses), _UNFOLDINGS)):
        some = {u for k, u in enumerate(uses) if chosen >> k & 1}

        def visit(node: Expr, some: set[Ref] = some) -> Expr:
            if node not in some or not isinstance(node, Ref):
                return node
            value = own[node.name]
            at = dict(zip(value.indices, node.indices, strict=True))
            return inline_values(refresh(value.expr, at, fresh), locals_, fresh)

        yield transform(stated, visit)
