"""One path through one site: its inputs under a hypothesis about ranks, what the forward
and the backward pass compute, and the rule that this makes.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from gradspec.ir.expr import Expr, Ref, show
from gradspec.ir.walk import names
from gradspec.lift.conditions import Decisions, Key
from gradspec.lift.expressions import Let
from gradspec.lift.machine import Machine
from gradspec.lift.project import Module, Project
from gradspec.lift.values import (
    UNSET,
    ZERO,
    Array,
    Axes,
    CannotLift,
    Chosen,
    Extent,
    Function,
    Index,
    IsBroken,
    Opaque,
    Owner,
    Scope,
    as_number,
    element,
    reduction,
    with_indices,
)

_NUMERIC = frozenset(("float", "int"))
_FLAGS = frozenset(("bool", "str"))


@dataclass(frozen=True)
class Assigned:
    """`name = maker(function)`: what a decorator would have made of the function."""

    node: ast.Assign
    name: str
    maker: ast.expr
    """The call itself if ``maker`` is no call, for the sake of its keywords."""
    function: ast.FunctionDef


def is_call(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and bool(value.args)


def assigned(node: ast.AST, scope: ast.AST) -> Assigned | None:
    """The name that is given to what a call makes of a function of this scope, or of a
    `lambda`; None if the statement is another."""
    match node:
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.Call(func=maker, args=[ast.Lambda() as made, *_]) as call,
        ):
            body: list[ast.stmt] = [ast.Return(made.body, lineno=made.lineno)]
            function = ast.FunctionDef(
                name, made.args, body, [], lineno=node.lineno, col_offset=0
            )
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.Call(func=maker, args=[ast.Name(id=wanted), *_]) as call,
        ):
            every = (s for s in getattr(scope, "body", ()) if s.lineno < node.lineno)
            known = [s for s in every if getattr(s, "name", "") == wanted]
            if not known or not isinstance(known[-1], ast.FunctionDef):
                return None
            function = known[-1]
        case _:
            return None
    whole = maker if isinstance(maker, ast.Call) else call
    return Assigned(node, name, whole, function)


Decoration = tuple[ast.expr, ast.FunctionDef, Assigned | None, tuple[ast.AST, ...]]
"""A decorator or the call that replaces one, the function, the assignment of what such a call
makes of it, and what is around it."""


def decorations(nodes: Iterable[Any], tree: ast.Module) -> Iterator[Decoration]:
    """The decorations of functions among nodes, each with what is around it."""
    for node, around in nodes:
        made = assigned(node, around[-1] if around else tree)
        function = made.function if made else node
        if isinstance(function, ast.FunctionDef):
            for maker in [made.maker] if made else function.decorator_list:
                yield maker, function, made, around


def keyword_only(function: ast.FunctionDef) -> Iterator[tuple[ast.arg, Any]]:
    """The parameters that are given by name alone, with their defaults."""
    yield from zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)


@dataclass(frozen=True, eq=False)
class Site:
    """A hand-written gradient: where it stands, what it is called, and the functions and
    classes around it."""

    module: Module
    node: ast.ClassDef | ast.FunctionDef
    framework: str
    around: tuple[ast.AST, ...]
    read: Callable[[Reading], None]
    arity: int
    more: Any = None
    assigned: Assigned | None = None

    @property
    def name(self) -> str:
        return self.assigned.name if self.assigned else self.node.name

    @property
    def line(self) -> int:
        return self.assigned.node.lineno if self.assigned else self.node.lineno


@dataclass(frozen=True)
class Ranks:
    """A hypothesis about the ranks of the inputs with elements, in their order: the number
    of axes, and whether more may stand in front of them."""

    ranks: tuple[tuple[bool, int], ...]
    allows_square: bool = False

    def with_more_axes(self) -> Ranks:
        """One more axis wherever there is one."""
        more = tuple((is_open, r + (r > 0)) for is_open, r in self.ranks)
        return Ranks(more, self.allows_square)

    @property
    def is_plain(self) -> bool:
        return all(rank == (True, 0) for rank in self.ranks)


@dataclass
class Variable:
    """An input or an output of the rule."""

    name: str
    axes: Axes = ()
    is_open: bool = False
    is_static: bool = False
    default: Fraction | None = None
    takes_gradient: bool = True

    @property
    def indices(self) -> tuple[Index, ...]:
        return tuple(i for i in self.axes if i is not None)


@dataclass
class Lifted:
    """The rule of a path: ``lines`` are lines of Python by the name of what they make,
    ``conditions`` what the path assumes, ``notes`` what is to be said of it."""

    inputs: list[Variable]
    outputs: list[Variable]
    values: dict[str, Expr]
    lets: list[Let]
    gradients: dict[str, Expr | None]
    lines: dict[str, int]
    conditions: list[Expr]
    decisions: tuple[str, ...]
    notes: list[str]
    squares: tuple[str, ...] = ()
    ranks: Ranks = field(default_factory=lambda: Ranks(()))
    axes_chosen: tuple[str, ...] = ()


class Reading:
    """A path while it is read. Frameworks bind arguments and run both passes."""

    def __init__(
        self, site: Site, project: Project, ranks: Ranks, taken: Mapping[Key, bool]
    ) -> None:
        self.site, self.project, self.ranks = site, project, ranks
        self.elements: set[str] = set()
        self.decisions = Decisions(taken, self.elements)
        self.machine = Machine(
            site.framework, self.decisions, ranks.allows_square, project
        )
        self.machine.attribute = self._attribute
        self.inputs: list[Variable] = []
        self.outputs: list[Variable] = []
        self.values: dict[str, Expr] = {}
        self.gradients: dict[str, Expr | None] = {}
        self.lines: dict[str, int] = {}
        self.notes: list[str] = []
        self._given: dict[str, Any] = {}
        self._left = iter(ranks.ranks)
        self._arrays: dict[int, str] = {}
        self.scope = self._surroundings()

    # --- inputs -----------------------------------------------------------------------

    def array_input(self, name: str) -> Array:
        own = self.machine.names.fresh_variable(name)
        is_open, rank = next(self._left, (True, 0))
        extents = [Extent(own) for _ in range(rank)]
        axes = tuple(Index(extent) for extent in extents)
        self.inputs.append(Variable(own, axes, is_open))
        self.elements.add(own)
        return Array(element(own, axes), axes, is_open)

    def static_input(self, name: str, default: Fraction | None = None) -> Array:
        own = self.machine.names.fresh_variable(name)
        self.inputs.append(Variable(own, (), False, True, default, False))
        return Array(Ref(own))

    def argument(
        self, parameter: ast.arg, default: ast.expr | None, is_static: bool = False
    ) -> Any:
        """The value of a parameter: an array, a number, or something that is not known."""
        name = parameter.arg
        kind = ast.unparse(parameter.annotation) if parameter.annotation else ""
        constant = _constant(default)
        if kind in _FLAGS or isinstance(constant, bool | str):
            return Opaque("python", f"`{name}`")
        if re.search(r"Callable|(^|_)fn$|func", f"{kind} {name}"):
            return Opaque("callback", f"`{name}`, a function that the caller gives")
        number = Fraction(str(constant)) if _is_number(constant) else None
        if name in ("dim", "axis"):
            value = self.static_input(name, number)
            own = value.value
            assert isinstance(own, Ref)
            self.machine.axis_names[own.name] = None if number is None else int(number)
            return value
        is_guard = re.match(r"(eps|epsilon)\b", name)
        if is_static or is_guard or kind in _NUMERIC or number is not None:
            return self.static_input(name, number)
        return self.array_input(name)

    def arguments(
        self,
        function: ast.FunctionDef,
        skipped: int,
        statics: frozenset[int] = frozenset(),
    ) -> tuple[list[ast.arg], list[Any], dict[str, ast.expr]]:
        """The parameters after the first few, their values, and their defaults."""
        made = function.args
        if made.vararg is not None:
            raise CannotLift("python", "a variable number of inputs", function)
        every = [*made.posonlyargs, *made.args]
        names = [p.arg for p in every]
        defaults = dict(zip(names[::-1], made.defaults[::-1], strict=False))
        parameters = every[skipped:]
        values = [
            self.argument(p, defaults.get(p.arg), k in statics)
            for k, p in enumerate(parameters)
        ]
        return parameters, values, defaults

    # --- surroundings -----------------------------------------------------------------

    def _surroundings(self) -> Scope:
        """Scopes of the functions around the site: their local functions by name; their
        parameters and other locals are numbers that the file does not fix."""
        scope = self.site.module.scope
        for node in self.site.around:
            if isinstance(node, ast.FunctionDef):
                inner = Scope({}, scope, self.site.module)
                inside = (s for s in ast.walk(node) if isinstance(s, ast.FunctionDef))
                for one in inside:
                    if one is not node and one in _body(node):
                        inner.names[one.name] = Function(one, inner)
                if node.args.args and node.args.args[0].arg == "self":
                    inner.names["self"] = Owner()
                scope = inner
        if self.site.assigned is not None:
            if scope is self.site.module.scope:
                scope = Scope({}, scope, self.site.module)
            made = Function(self.site.assigned.function, scope)
            scope.names[self.site.assigned.name] = made
        return scope

    def _attribute(self, name: str) -> Any:
        """A number that the surroundings fix: an attribute of `self`, a parameter or a
        local of an enclosing function; None if there is none."""
        if name in self._given:
            value = self._given[name]
            return value.copy() if isinstance(value, Array) else value
        found = self._value_around(name)
        if found is not None:
            self._given[name] = found
            if isinstance(found, Array):
                assert isinstance(found.value, Ref)
                self.machine.loose.add(found.value.name)
                return found.copy()
        return found

    def _value_around(self, name: str) -> Any:
        for node in reversed(self.site.around):
            if isinstance(node, ast.ClassDef):
                for one in node.body:
                    if isinstance(one, ast.FunctionDef) and one.name == name:
                        return Function(one, self.site.module.scope, (Owner(),))
            if not isinstance(node, ast.FunctionDef):
                continue
            made = node.args
            every = [*made.posonlyargs, *made.args]
            pairs = list(zip(every[::-1], made.defaults[::-1], strict=False))
            pairs += zip(made.kwonlyargs, made.kw_defaults, strict=True)  # type: ignore[arg-type]
            defaults = {p.arg: d for p, d in pairs}
            for parameter in (*every, *made.kwonlyargs):
                if parameter.arg == name:
                    return self.argument(parameter, defaults.get(name), True)
            stored = (
                n.id
                for n in ast.walk(node)
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
            )
            if name in stored:
                return self.static_input(name)
        if any(isinstance(n, ast.ClassDef) for n in self.site.around) or isinstance(
            self.site.node, ast.ClassDef
        ):
            return self.static_input(name) if name in self.site.module.stored else None
        return None

    # --- outputs ----------------------------------------------------------------------

    def outputs_of(
        self, returned: Any, node: ast.AST, apart: Sequence[Any] = ()
    ) -> list[Any]:
        """The upstream gradients of what the forward pass returns. What is saved from here
        on is known by the names of the outputs."""
        if returned is None:
            raise IsBroken("structure", "the forward returns nothing", node)
        several = isinstance(returned, tuple | list)
        values = list(returned) if several else [returned]
        upstream: list[Any] = []
        made: list[tuple[Array, Ref]] = []
        for k, value in enumerate(values):
            if value is None:
                upstream.append(None)
                continue
            if isinstance(value, Chosen):
                raise CannotLift(
                    "indexing", "the forward returns chosen elements", node
                )
            array = self.machine.array(value, node)
            is_apart = any(array is one for one in apart) or array.is_condition
            let = self._local_of(array)
            if let is None:
                hint = "y" if len(values) == 1 else f"y{k + 1}"
                name = self.machine.names.fresh_variable(hint)
            else:
                name = let.name
                self.machine.names.reserve(name)
            extents = [None if i is None else Index(i.extent) for i in array.axes]
            found = Variable(
                name, array.axes, array.is_open, takes_gradient=not is_apart
            )
            self.outputs.append(found)
            self.values[name] = as_number(array.value if let is None else let.value)
            self.lines[name] = getattr(node, "lineno", 0)
            made.append((array, element(name, array.axes)))
            axes = tuple(extents)
            cotangent = Array(element(f"d{name}", axes), axes, array.is_open)
            upstream.append(Array(ZERO, axes, array.is_open) if is_apart else cotangent)
            if not is_apart:
                self.elements.add(f"d{name}")
        if not made:
            raise IsBroken("structure", "the forward returns nothing", node)
        for array, own in made:
            if not array.is_condition:
                self.machine.known[array.value, array.axes] = own
                array.value = own
        self.machine.phase = "backward"
        return upstream

    def _local_of(self, array: Array) -> Let | None:
        """The local that an output is, if its name can be that of an output."""
        for let in self.machine.lets:
            if array.value == element(let.name, array.axes) and let.axes == array.axes:
                names = self.machine.names
                is_free = names.is_free(f"d{let.name}") and names.is_free(
                    f"{let.name}_dot"
                )
                return let if is_free and let.name not in self.values else None
        return None

    # --- gradients --------------------------------------------------------------------

    def take_gradients(
        self,
        parameters: Sequence[ast.arg],
        values: Sequence[Any],
        found: Sequence[Any],
        node: ast.AST,
        axes_are_summed: bool = False,
    ) -> None:
        """The gradients of the inputs, each in the shape of its input."""
        for parameter, value, gradient in zip(parameters, values, found, strict=True):
            if gradient is None or not isinstance(value, Array):
                continue
            name = self._arrays.get(id(value))
            variable = next((v for v in self.inputs if v.name == name), None)
            if isinstance(gradient, tuple | list):
                told = f"backward returns a tuple as the gradient of `{parameter.arg}`"
                raise IsBroken("structure", told, node)
            if variable is None or variable.is_static:
                continue
            array = self.machine.array(gradient, node)
            if as_number(array.value) == ZERO:
                continue
            self.lines[f"d{variable.name}"] = getattr(node, "lineno", 0)
            self.gradients[variable.name] = self._in_shape_of(
                array, variable, node, axes_are_summed
            )

    def remember(self, values: Sequence[Any]) -> None:
        """The names of inputs by their arrays, which operations in place may change."""
        self._arrays = {
            id(v): v.value.name
            for v in values
            if isinstance(v, Array) and isinstance(v.value, Ref)
        }

    def _in_shape_of(
        self, array: Array, variable: Variable, node: ast.AST, axes_are_summed: bool
    ) -> Expr:
        have, want, name = array.axes, variable.axes, variable.name
        value = as_number(array.value)
        short = len(have) < len(want) or (variable.is_open and not array.is_open)
        pairs = (
            list(zip(have[len(have) - len(want) :], want, strict=True))
            if not short
            else []
        )
        if short or any(h is None for h, _ in pairs):
            told = f"the gradient of `{name}` has fewer axes than `{name}`"
            raise CannotLift("gradient shape", told, node)
        over = have[: len(have) - len(want)]
        is_larger = bool(over) or (array.is_open and not variable.is_open)
        if is_larger and (not axes_are_summed or array.is_open != variable.is_open):
            told = f"the gradient of `{name}` has more axes than `{name}`"
            raise CannotLift("gradient shape", told, node)
        names: dict[str, Expr] = {}
        for mine, own in pairs:
            assert mine is not None and own is not None
            if mine.extent.root is not own.extent.root:
                told = f"the gradient of `{name}` has an axis of another size than `{name}`"
                raise CannotLift("gradient shape", told, node)
            names[mine.name] = own.value
        value = with_indices(value, names)
        summed = tuple(i for i in over if i is not None)
        return reduction("sum", summed, value) if summed else value

    # --- the rule -----------------------------------------------------------------------

    def rule(self) -> Lifted:
        decided = (
            f"{origin} {'is' if holds else 'is not'} {constant or 'true'}"
            for (origin, constant), holds in self.decisions.taken.items()
            if not any(show(c) == origin for c in self.decisions.conditions)
        )
        chosen = (
            f"`{name}` is {'the last axis' if axis is None else axis}"
            for name, axis in self.machine.axis_names.items()
        )
        self.lines |= {let.name: let.line for let in self.machine.lets}
        lets = [let.value for let in self.machine.lets]
        every = (*self.values.values(), *self.gradients.values(), *lets)
        if any(UNSET.name in names(value) for value in every if value is not None):
            told = "an element that is read and may not be set"
            raise CannotLift("indexing", told, self.site.node)
        return Lifted(
            self.inputs,
            self.outputs,
            self.values,
            self.machine.lets,
            self.gradients,
            self.lines,
            list(self.decisions.conditions),
            tuple(decided),
            self.notes,
            tuple(sorted(self.machine.squares)),
            self.ranks,
            tuple(chosen),
        )


def _body(node: ast.FunctionDef) -> list[ast.stmt]:
    """The statements of a function, those in its conditions included."""
    found: list[ast.stmt] = []
    todo: list[ast.stmt] = list(node.body)
    while todo:
        one = todo.pop()
        found.append(one)
        if isinstance(one, ast.If | ast.With | ast.Try | ast.For):
            todo += [s for s in ast.iter_child_nodes(one) if isinstance(s, ast.stmt)]
    return found


def _constant(node: ast.expr | None) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(
            op=ast.USub(), operand=ast.Constant(value=int() | float() as value)
        ):
            return -value
        case _:
            return None


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value)
