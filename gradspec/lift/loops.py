"""Loops over the places of an axis as recurrences: a step is run once, at a place that an
index names. What the step before it left is a local of the rule at the place before.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from gradspec.ir.expr import Apply, Expr, Ref
from gradspec.ir.walk import transform
from gradspec.lift.arrays import choice
from gradspec.lift.expressions import Let
from gradspec.lift.places import Places, plus, whole
from gradspec.lift.values import (
    FALSE,
    TRUE,
    UNSET,
    ZERO,
    Array,
    Axes,
    CannotLift,
    Index,
    Scope,
    Steps,
    Track,
    as_number,
    with_indices,
)

_MOST_TRIES = 4


@dataclass(eq=False)
class State:
    """A value that a step leaves to the next: of a name, or the last element of a list; or
    an array of which a step sets the elements at one place along ``axis``, ``ahead`` of the
    step's own. ``place`` is where the step does so."""

    hint: str
    init: Array
    axes: Axes = ()
    is_open: bool = False
    axis: int | None = None
    ahead: int = 0
    place: tuple[int, int] | None = None
    prior: Array = field(default_factory=lambda: Array(ZERO))
    end: Array = field(default_factory=lambda: Array(ZERO))
    local: Array = field(default_factory=lambda: Array(ZERO))
    """The value at the step that an index names."""

    def __post_init__(self) -> None:
        self.axes = tuple(i and Index(i.extent) for i in self.init.axes)
        self.init = Array(
            with_indices(
                self.init.value,
                {
                    i.name: j.value
                    for i, j in zip(self.init.axes, self.axes, strict=True)
                    if i is not None and j is not None
                },
            ),
            self.axes,
            self.init.is_open,
        )
        self.is_open = self.init.is_open

    @property
    def mark(self) -> str:
        """The name of the local before it has one."""
        return f"<{self.hint}>"


def _values(axes: Axes, but: int | None = None) -> tuple[Expr, ...]:
    return tuple(i.value for k, i in enumerate(axes) if i is not None and k != but)


class Loops(Places):
    """Recurrences. ``placing`` are the states by the arrays that a step finds."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.placing: dict[int, State] = {}

    # --- recurrences ------------------------------------------------------------------------

    def recur(
        self,
        steps: Steps,
        states: list[State],
        step: Callable[[Index], list[Array]],
        scope: Scope | None,
        node: ast.AST,
    ) -> tuple[Index, Callable[[Expr], Expr]]:
        """Run one step, which gives its values of the ``states``, and make locals of them:
        the index of the step, and what writes a value of the step with these locals. Each
        state has its value after the loop then."""
        if self.spans:
            raise CannotLift("loop", "a loop within a loop", node)
        for _ in range(_MOST_TRIES):
            kept = self._kept(scope)
            index = Index(steps.extent)
            self.spans = {index.name: (index, steps.before, steps.short)}
            try:
                for state in states:
                    state.prior = self._prior(state, steps, index)
                ends = step(index)
                fits = [self._fits(*pair) for pair in zip(states, ends, strict=True)]
                if all(fits):
                    named = self._define(states, ends, steps, index, kept, node)
                    return index, named
            finally:
                self.spans, self.placing = {}, {}
            self._restore(kept, scope)
        raise CannotLift("loop", "a state whose shape does not settle", node)

    def _kept(self, scope: Scope | None) -> Any:
        known = {} if scope is None else dict(scope.names)
        arrays = [(a, a.value, a.axes) for a in known.values() if isinstance(a, Array)]
        return known, arrays, list(self.lets), dict(self.known), set(self.names.taken)

    def _restore(self, kept: Any, scope: Scope | None) -> None:
        known, arrays, self.lets[:], self.known, self.names.taken = kept
        for array, value, axes in arrays:
            array.value, array.axes = value, axes
        if scope is not None:
            scope.names = dict(known)

    def _prior(self, state: State, steps: Steps, index: Index) -> Array:
        """What a step finds: the local at the place before, or the start."""
        here, axes, start = index.value, state.axes, state.init
        if state.axis is not None:
            own = axes[state.axis]
            assert own is not None
            self.unify(steps.extent, own.extent)
            order = "gt" if steps.is_backward else "lt"
            is_set = Apply(order, (own.value, plus(here, state.ahead)))
            mine = Ref(state.mark, (own.value, *_values(axes, state.axis)))
            return Array(choice(is_set, mine, start.value), axes, state.is_open)
        earlier = plus(here, 1 if steps.is_backward else -1)
        mine = Ref(state.mark, (earlier, *_values(axes)))
        if steps.short if steps.is_backward else steps.before:
            return Array(mine, axes, state.is_open)
        is_later = Apply("gt", (here, ZERO))
        if steps.is_backward:
            is_later = Apply("lt", (here, plus(self.size_at(steps.extent), -1)))
        value = choice(is_later, mine, self._at_axes(start, axes))
        return Array(value, axes, state.is_open)

    def _at_axes(self, array: Array, axes: Axes) -> Expr:
        """The element of an array at the indices of other axes."""
        names: dict[str, Expr] = {}
        for mine, own in zip(reversed(array.axes), reversed(axes), strict=False):
            if mine is not None and own is not None:
                self.unify(own.extent, mine.extent)
                names[mine.name] = own.value
        return with_indices(as_number(array.value), names)

    def _fits(self, state: State, end: Array) -> bool:
        """True if the step leaves a state as it finds it: of one shape, set at one place.
        Otherwise it is known now for the next try."""
        if state.place is not None:
            is_known = state.place == (state.axis, state.ahead)
            state.axis, state.ahead = state.place
            return is_known
        rank = max(len(end.axes), len(state.axes))
        mine, theirs = (
            (*(None,) * (rank - len(axes)), *axes) for axes in (state.axes, end.axes)
        )
        pairs = zip(mine, theirs, strict=True)
        axes = tuple(a or (b and Index(b.extent)) for a, b in pairs)
        is_known = axes == state.axes and state.is_open >= end.is_open
        state.axes, state.is_open = axes, state.is_open or end.is_open
        return is_known

    def _define(
        self,
        states: list[State],
        ends: list[Array],
        steps: Steps,
        index: Index,
        kept: Any,
        node: ast.AST,
    ) -> Callable[[Expr], Expr]:
        """Make the locals of the states."""
        count, self.known = len(kept[2]), kept[3]
        made = {let.name: let for let in self.lets[count:]}
        marks: dict[str, str] = {}
        for state, end in zip(states, ends, strict=True):
            value, start = self._value_set(state, end, index)
            others = _values(state.axes, state.axis)
            first, short = steps.before + state.ahead, steps.short - state.ahead
            let = made.get(value.name) if isinstance(value, Ref) else None
            is_own = let is not None and let.axes[:1] == (index,)
            mine = Ref(let.name if let else "", (index.value, *others))
            if let is not None and is_own and value == mine and not first + short:
                marks[state.mark] = let.name
                continue
            if short:
                stop = plus(self.size_at(steps.extent), -short)
                value = choice(Apply("lt", (index.value, stop)), value, start)
            if first:
                is_in = Apply("gt", (index.value, whole(first - 1)))
                value = choice(is_in, value, start)
            name = marks[state.mark] = self.names.fresh(state.hint)
            own = (i for k, i in enumerate(state.axes) if k != state.axis)
            axes = (index, *(i for i in own if i is not None))
            line = getattr(node, "lineno", 0)
            self.lets.append(Let(name, axes, value, self.phase, line))

        def visit(part: Expr) -> Expr:
            if isinstance(part, Ref) and part.name in marks:
                return Ref(marks[part.name], part.indices)
            return part

        def named(value: Expr) -> Expr:
            return transform(value, visit)

        self.lets[count:] = [
            replace(let, value=named(let.value)) for let in self.lets[count:]
        ]
        for state in states:
            self._end(state, steps, index, marks[state.mark])
        return named

    def _value_set(self, state: State, end: Array, index: Index) -> tuple[Expr, Expr]:
        """The value of a state at the place of an index, and its start there."""
        if state.axis is None:
            value = self._at_axes(end, state.axes)
            return value, self._at_axes(state.init, state.axes)
        own = state.axes[state.axis]
        assert own is not None
        set_at = self.settle(plus(index.value, state.ahead))
        value = self.placed(end.value, own, set_at)
        if state.ahead:
            value = self.placed(value, index, plus(index.value, -state.ahead))
        return value, with_indices(state.init.value, {own.name: index.value})

    def _end(self, state: State, steps: Steps, index: Index, name: str) -> None:
        axes, is_open = state.axes, state.is_open
        if state.axis is not None:
            own = axes[state.axis]
            assert own is not None
            mine = Ref(name, (own.value, *_values(axes, state.axis)))
            state.end = Array(mine, axes, is_open)
            return
        state.local = Array(Ref(name, (index.value, *_values(axes))), axes, is_open)
        value: Expr = Ref(name, (self._last(steps), *_values(axes)))
        if steps.before if steps.is_backward else steps.short:
            least = whole(steps.before + steps.short)
            is_any = Apply("gt", (self.size_at(steps.extent), least))
            value = choice(is_any, value, self._at_axes(state.init, axes))
        state.end = Array(value, axes, is_open)

    def _last(self, steps: Steps) -> Expr:
        """The place of the last step."""
        if steps.is_backward:
            return whole(steps.before)
        return plus(self.size_at(steps.extent), -1 - steps.short)

    # --- loops of Python ----------------------------------------------------------------------

    def loop_over(self, steps: Steps, node: ast.For, scope: Scope) -> None:
        """A `for` over the places of an axis."""
        if not isinstance(node.target, ast.Name) or node.orelse:
            raise CannotLift("loop", "a loop over places with several names", node)
        target, before = node.target.id, dict(scope.names)
        arrays = [v for v in before.values() if isinstance(v, Array)]
        changes = [v.changes for v in arrays]
        states = {
            name: State(name, self._start_of(name, before[name], node))
            for name in _changed_names(node.body)
            if name in before and name != target
        }

        def step(index: Index) -> list[Array]:
            self.placing = {id(s.prior): s for s in states.values()}
            scope.names[target] = Array(index.value)
            for name, state in states.items():
                old, state.place = before[name], None
                is_list = isinstance(old, list)
                scope.names[name] = Track(old, state.prior) if is_list else state.prior
            if self.run(node.body, scope) is not None:
                raise CannotLift("loop", "a loop that is left early", node)
            ends = [self._left(n, s, scope, node) for n, s in states.items()]
            for name, state in states.items():
                if state.prior.changes:
                    self._check_sharing(name, state, before, scope, node)
            return ends

        index, named = self.recur(steps, list(states.values()), step, scope, node)
        after = dict(scope.names)
        if changes != [v.changes for v in arrays]:
            told = "a step that changes an array that it does not name"
            raise CannotLift("loop", told, node)
        scope.names = {n: v for n, v in after.items() if n in before and n != target}
        for name, value in after.items():
            if name in states:
                scope.names[name] = self._after(
                    states[name], before[name], value, steps, index, node
                )
            elif (
                name not in before
                and isinstance(value, Array)
                and not steps.before + steps.short
            ):
                last = self.placed(named(value.value), index, self._last(steps))
                scope.names[name] = Array(last, value.axes, value.is_open)

    def _start_of(self, name: str, value: Any, node: ast.AST) -> Array:
        match value:
            case list():
                return self.array(value[-1] if value else Array(UNSET), node)
            case Array() | int() | Fraction() if not isinstance(value, bool):
                return self.array(value, node)
            case _:
                told = f"a loop that changes `{name}`, which is no array in front of it"
                raise CannotLift("loop", told, node)

    def _left(self, name: str, state: State, scope: Scope, node: ast.AST) -> Array:
        """What a step leaves under a name."""
        value = scope.names.get(name)
        if isinstance(value, Track):
            if len(value.added) != 1:
                raise CannotLift(
                    "loop", f"`{name}` does not grow by 1 in each step", node
                )
            value = value.added[0]
        if state.place is not None and value is not state.prior:
            raise CannotLift("loop", f"`{name}` is set by place and bound again", node)
        return self.array(value, node)

    def _check_sharing(
        self,
        name: str,
        state: State,
        before: dict[str, Any],
        scope: Scope,
        node: ast.AST,
    ) -> None:
        """Refuse a change in place of an array that something else holds, too."""
        mine = (scope.names[name], state.prior, before[name])
        others = [
            v for names in (before, scope.names) for n, v in names.items() if n != name
        ]
        others += [
            v for t in others if isinstance(t, Track) for v in (*t.added, *t.before)
        ]
        if any(v is one for v in others for one in mine):
            told = f"`{name}` is changed in place and has another name"
            raise CannotLift("aliasing", told, node)

    def _after(
        self,
        state: State,
        old: Any,
        value: Any,
        steps: Steps,
        index: Index,
        node: ast.AST,
    ) -> Any:
        """What a name stands for after the loop."""
        if isinstance(value, Track):
            return Track(value.before, state.local, [], value.is_turned, steps, index)
        if value is not state.prior or not isinstance(old, Array):
            return state.end
        if old.is_view:
            raise CannotLift("aliasing", "a change of a part of an array", node)
        old.value, old.axes, old.is_open = (
            state.end.value,
            state.end.axes,
            state.end.is_open,
        )
        old.changes += 1
        return old

    def call(
        self, function: Any, args: Sequence[Any], named: dict[str, Any], node: ast.AST
    ) -> Any:
        """Call a function of the files or of a framework."""
        raise NotImplementedError

    def run(self, body: Sequence[ast.stmt], scope: Scope) -> tuple[Any] | None:
        """Run statements."""
        raise NotImplementedError

    def scan(
        self,
        node: ast.AST,
        f: Any,
        init: Any,
        xs: Any = None,
        length: Any = None,
        reverse: Any = False,
        unroll: Any = 1,
    ) -> tuple[Any, Any]:
        """`jax.lax.scan`: the carry after all steps, and the values of the steps along a
        new first axis."""
        given = [self.array(x, node) for x in _leaves(xs)]
        firsts = [x.axes[self.place(x, 0, node)] for x in given]
        if not firsts or firsts[0] is None or not isinstance(reverse, bool):
            raise CannotLift("loop", "a scan whose length no axis has", node)
        steps = Steps(firsts[0].extent, is_backward=reverse)
        states = [State("carry", self.array(one, node)) for one in _leaves(init)]
        for number, state in enumerate(states):
            state.hint += f"_{number + 1}" if len(states) > 1 else ""
        outputs: list[Any] = []

        def step(index: Index) -> list[Array]:
            here = Array(index.value)
            parts = _like(xs, iter([self.at(x, 0, here, node) for x in given]))
            carry = _like(init, iter([state.prior for state in states]))
            found = self.items_of(self.call(f, [carry, parts], {}, node), node)
            if len(found) != 2 or len(_leaves(found[0])) != len(states):
                raise CannotLift("loop", "a step that gives another carry", node)
            outputs[:] = [found[1]]
            return [self.array(one, node) for one in _leaves(found[0])]

        index, named = self.recur(steps, states, step, None, node)
        made = []
        for one in _leaves(outputs[0]):
            array, own = self.array(one, node), Index(steps.extent)
            value = with_indices(named(as_number(array.value)), {index.name: own.value})
            made.append(Array(value, (own, *array.axes), array.is_open))
        ends = _like(init, iter([state.end for state in states]))
        return ends, _like(outputs[0], iter(made))

    # --- parts that are set -------------------------------------------------------------------

    def set_part(
        self,
        base: Array,
        places: tuple[Any, ...],
        value: Any,
        scope: Scope,
        node: ast.AST,
    ) -> None:
        """Set the elements of an array at one place."""
        axis, place = self.one_place(base, places, node)
        own, state = base.axes[axis], self.placing.get(id(base))
        found, rest = self.linear(place), base.axes[:axis] + base.axes[axis + 1 :]
        if own is None or found is None or base.is_view:
            raise CannotLift("indexing", f"assignment to `{ast.unparse(node)}`", node)
        wanted, number = as_number(self.array(place).value), found.get(None, 0)
        if state is not None or found.keys() & self.spans.keys():
            ((name, span),) = self.spans.items()
            is_near = {None: number, **found} == {name: 1, None: number}
            if state is None or not is_near or not -span[1] <= number <= span[2]:
                told = "elements set at another place than the step's"
                raise CannotLift("loop", told, node)
            if state.place not in (None, (axis, number)):
                raise CannotLift("loop", "elements set at several places", node)
            self.unify(span[0].extent, own.extent, node)
            state.place = axis, number
        elif found == {None: number} and number < 0:
            wanted = plus(self.size_at(own.extent), number)
        names = list(scope.names.values())
        lists = [v.added if isinstance(v, Track) else v for v in names]
        held = [*names, *(e for v in lists if isinstance(v, list | tuple) for e in v)]
        for part, array, where, at in self.parts:
            if array is base and any(v is part for v in held):
                is_same = self.settled(Apply("eq", (at, wanted)))
                if where != axis or is_same != FALSE:
                    raise CannotLift("aliasing", "a part that is set has a name", node)
        array = self.array(value, node)
        if len(array.axes) > len(rest) or array.is_open > base.is_open:
            raise CannotLift("shape", "an array with more axes than its place", node)
        is_here = self.settled(Apply("eq", (own.value, wanted)))
        element = self._at_axes(array, rest)
        base.value = choice(is_here, element, base.value)
        base.changes += 1

    # --- lists that steps fill -----------------------------------------------------------------

    def fill(self, filled: Any, name: str, args: Sequence[Any], node: ast.AST) -> None:
        """Change a list by a method."""
        added = filled.added if isinstance(filled, Track) else filled
        match name, args:
            case "append", [value]:
                added.append(value)
            case "insert", [0, value] if isinstance(filled, Track):
                added.append(value)
                filled.is_turned = True
            case "reverse", [] if isinstance(filled, Track) and filled.steps:
                filled.is_turned = not filled.is_turned
            case _:
                raise CannotLift("python", f"a method `{name}`", node)
        if isinstance(filled, list) and self.spans:
            raise CannotLift("loop", "a step that fills a list of its own", node)

    def of_track(self, track: Track, place: Any, node: ast.AST) -> Array:
        """An element of a list that the steps of a loop fill."""
        steps, index, count = track.steps, track.index, len(track.before)
        if steps is None or index is None:
            if place == -1:
                return track.added[-1] if track.added else track.last
            raise CannotLift("loop", "a list that is read while it is filled", node)
        found = self.linear(place)
        if found is None or count > 1 or (count and track.is_turned):
            raise CannotLift("indexing", "a place in a list that is computed", node)
        size, length = self.size_at(steps.extent), self.length(track, node).value
        at = as_number(self.array(place).value)
        if isinstance(place, int) and place < 0:
            at = Apply("add", (length, at))
        if track.is_turned:
            at = Apply("sub", (plus(length, -1), at))
        inside = (Apply("ge", (at, ZERO)), Apply("lt", (at, length)))
        if any(self.settled(c) != TRUE for c in inside):
            raise CannotLift("loop", "a place that may be outside its list", node)
        time = plus(at, steps.before - count)
        if steps.is_backward:
            time = Apply("sub", (plus(size, count - 1 - steps.short), at))
        value = self.placed(track.last.value, index, self.settle(time))
        if count:
            start = self._at_axes(self.array(track.before[0]), track.last.axes)
            value = choice(self.settled(Apply("gt", (at, ZERO))), value, start)
        return Array(value, track.last.axes, track.last.is_open)

    def length(self, track: Track, node: ast.AST) -> Array:
        """The number of elements of a list that the steps of a loop fill."""
        if track.steps is None:
            raise CannotLift("loop", "a list that is read while it is filled", node)
        left_out = track.steps.before + track.steps.short
        size = self.size_at(track.steps.extent)
        return Array(plus(size, len(track.before) - left_out))

    def stack(self, track: Track, axis: Any, node: ast.AST) -> Array:
        """The elements of a list that the steps of a loop fill, along a new axis."""
        steps = track.steps
        if steps is None or len(track.before) != steps.before + steps.short:
            raise CannotLift("loop", "a list of another length than its axis", node)
        index = Index(steps.extent)
        kept = dict(self.spans)
        self.spans[index.name] = index, 0, 0
        found = self.of_track(track, Array(index.value), node)
        self.spans = kept
        place = self.place(self.with_axis(found, axis, node), axis, node)
        axes = list(found.axes)
        axes.insert(place, index)
        return Array(found.value, tuple(axes), found.is_open)


def _leaves(tree: Any) -> list[Any]:
    """The arrays of nested tuples, lists and dictionaries, in JAX's order."""
    match tree:
        case None:
            return []
        case tuple() | list():
            return [leaf for one in tree for leaf in _leaves(one)]
        case dict():
            return [leaf for key in sorted(tree) for leaf in _leaves(tree[key])]
        case _:
            return [tree]


def _like(tree: Any, leaves: Iterator[Any]) -> Any:
    """Other arrays in the structure of a tree."""
    match tree:
        case None:
            return None
        case tuple() | list():
            return type(tree)(_like(one, leaves) for one in tree)
        case dict():
            return {key: _like(tree[key], leaves) for key in sorted(tree)}
        case _:
            return next(leaves)


def _changed_names(body: list[ast.stmt]) -> Iterator[str]:
    """The names that statements bind, set parts of, or change by a method, each once."""
    done: set[str] = set()
    for node in (n for s in body for n in ast.walk(s)):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                pass
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                pass
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)):
                if method not in ("append", "insert") and not method.endswith("_"):
                    continue
            case _:
                continue
        if name not in done:
            done.add(name)
            yield name
