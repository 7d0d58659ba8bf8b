"""Statements: assignments, changes in place, conditions, loops of a fixed length."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from gradspec.ir.expr import Expr
from gradspec.lift.arrays import choice
from gradspec.lift.loops import Loops
from gradspec.lift.values import (
    FALSE,
    TRUE,
    Array,
    CannotLift,
    Chosen,
    Context,
    Function,
    Opaque,
    Scope,
    Steps,
    Track,
)

_LONGEST = 16


class Statements(Loops):
    """Bodies of functions."""

    # --- statements -------------------------------------------------------------------

    def run(self, body: Sequence[ast.stmt], scope: Scope) -> tuple[Any] | None:
        """The value that is returned, in a tuple; None if none is."""
        for statement in body:
            returned = self._statement(statement, scope)
            if returned is not None:
                return returned
        return None

    def _statement(self, node: ast.stmt, scope: Scope) -> tuple[Any] | None:
        self._step(node)
        match node:
            case ast.Return(value=value):
                return (None if value is None else self.evaluate(value, scope),)
            case ast.Assign(targets=targets, value=value):
                found = self.evaluate(value, scope)
                for target in targets:
                    self._assign(target, found, scope, node)
            case ast.AnnAssign(target=target, value=value):
                if value is not None:
                    self._assign(target, self.evaluate(value, scope), scope, node)
            case ast.AugAssign():
                self._augment(node, scope)
            case ast.Expr(value=value):
                if not isinstance(value, ast.Constant):
                    self.evaluate(value, scope)
            case ast.If(test=test, body=body, orelse=other):
                if isinstance(body[-1], ast.Raise) and not other:
                    return None  # a check of the arguments
                condition = self.place_condition(test, scope)
                if condition in (TRUE, FALSE):
                    return self.run(body if condition == TRUE else other, scope)
                if condition is not None:
                    self._branch(condition, node, scope)
                    return None
                return self.run(body if self.truth(test, scope) else other, scope)
            case ast.FunctionDef(name=name):
                scope.names[name] = Function(node, scope)
            case ast.With(items=items, body=body):
                self._enter(items, scope, node)
                return self.run(body, scope)
            case ast.For():
                return self._loop(node, scope)
            case ast.While():
                raise CannotLift("loop", "a while loop", node)
            case ast.Raise():
                raise CannotLift("dead", "this path raises", node)
            case ast.Import() | ast.ImportFrom():
                for name, value in self.project.imports(node, scope.module).items():
                    scope.names[name] = self.project.value_of(value, self)
            case ast.Pass() | ast.Assert() | ast.Delete():
                return None
            case _:
                kind = type(node).__name__
                raise CannotLift("python", f"a statement of the kind {kind}", node)
        return None

    def _augment(self, node: ast.AugAssign, scope: Scope) -> None:
        target = node.target
        old, new = self.evaluate(target, scope), self.evaluate(node.value, scope)
        found = self._operate(node.op, old, new, node)
        in_place = isinstance(old, Array) and self.framework == "torch"
        if (
            in_place
            and isinstance(found, Array)
            and not isinstance(target, ast.Subscript)
        ):
            old.become(self.like(found, old, node), node)
        else:
            self._assign(target, found, scope, node)

    def _enter(self, items: list[ast.withitem], scope: Scope, node: ast.AST) -> None:
        for item in items:
            text = ast.unparse(item.context_expr)
            if "enable_grad" in text or "GradientTape" in text:
                told = "the gradient calls automatic differentiation itself"
                raise CannotLift("autograd", told, node)
            if item.optional_vars is not None:
                raise CannotLift("python", f"`with {text} as …`", node)

    def _loop(self, node: ast.For, scope: Scope) -> tuple[Any] | None:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Break | ast.Continue):
                raise CannotLift("loop", "a loop that is left early", inner)
        values = self.evaluate(node.iter, scope)
        if isinstance(values, Steps):
            self.loop_over(values, node, scope)
            return None
        if not isinstance(values, list | tuple | range) or len(values) > _LONGEST:
            raise CannotLift("loop", "a loop whose length the file does not fix", node)
        for value in values:
            self._assign(node.target, value, scope, node)
            returned = self.run(node.body, scope)
            if returned is not None:
                return returned
        return self.run(node.orelse, scope)

    def _branch(self, condition: Expr, node: ast.If, scope: Scope) -> None:
        """Both branches of a condition on the place of a step, and what it chooses."""
        before = dict(scope.names)
        arrays = {id(v): v for v in before.values() if isinstance(v, Array)}
        starts = {k: (v.value, v.axes) for k, v in arrays.items()}
        counts = [len(v.added) for v in before.values() if isinstance(v, Track)]
        names: list[dict[str, Any]] = []
        values: list[dict[int, Array]] = []
        for holds, body in ((True, node.body), (False, node.orelse)):
            scope.names = dict(before)
            with self.where_holds(condition, holds):
                returned = self.run(body, scope)
            tracks = [v for v in before.values() if isinstance(v, Track)]
            if returned is not None or counts != [len(t.added) for t in tracks]:
                raise CannotLift(
                    "loop", "a step that does not always do the same", node
                )
            names.append(scope.names)
            values.append({k: v.copy() for k, v in arrays.items()})
            for key, array in arrays.items():
                array.value, array.axes = starts[key]
        one, other = names
        chosen = Array(condition)
        for key, array in arrays.items():
            a, b = values[0][key], values[1][key]
            if a.value != b.value:
                if a.axes != b.axes:
                    raise CannotLift("loop", "a step that changes a shape", node)
                array.value = choice(condition, a.value, b.value)
                array.axes = a.axes
                array.changes += 1
        scope.names = {
            n: v if v is other[n] else self.where(chosen, v, other[n], node)
            for n, v in one.items()
            if n in other
        }

    def _assign(
        self, target: ast.expr, value: Any, scope: Scope, node: ast.stmt
    ) -> None:
        match target:
            case ast.Name(id=name):
                scope.names[name] = self.let(name, value, node)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                values = self.items_of(value, node, len(targets))
                if isinstance(value, Opaque):
                    values = [value] * len(targets)
                if any(isinstance(t, ast.Starred) for t in targets):
                    raise CannotLift("python", "a starred assignment", node)
                if len(values) != len(targets):
                    told = f"unpacking {len(values)} values into {len(targets)} names"
                    raise CannotLift("python", told, node)
                for one, other in zip(targets, values, strict=True):
                    self._assign(one, other, scope, node)
            case ast.Attribute(value=base, attr=attribute):
                self._set_attribute(self.evaluate(base, scope), attribute, value, node)
            case ast.Subscript():
                self._set_elements(target, value, scope, node)
            case _:
                raise CannotLift(
                    "python", f"assignment to `{ast.unparse(target)}`", node
                )

    def _set_attribute(self, base: Any, name: str, value: Any, node: ast.AST) -> None:
        match base:
            case Context():
                base.attributes[name] = value
            case Array() if name == "data":
                base.become(self.like(value, base, node), node)
            case _:
                raise CannotLift("python", f"assignment to an attribute `{name}`", node)

    def _set_elements(
        self, target: ast.Subscript, value: Any, scope: Scope, node: ast.AST
    ) -> None:
        base = self.evaluate(target.value, scope)
        place = self.evaluate(target.slice, scope)
        if isinstance(base, dict):
            raise CannotLift("python", "assignment to an entry", node)
        if not isinstance(base, Array) or self.framework != "torch":
            raise CannotLift("indexing", f"assignment to `{ast.unparse(target)}`", node)
        places = place if isinstance(place, tuple) else (place,)
        if len(self.elements_of(places)) == 1:
            self.set_part(base, places, value, scope, target)
        elif place is Ellipsis or (isinstance(place, slice) and place == slice(None)):
            base.become(self.like(value, base, node), node)
        elif isinstance(place, Array) and place.is_condition:
            if isinstance(value, Chosen) and value.mask.value != place.value:
                raise CannotLift("indexing", "elements chosen by two masks", node)
            if isinstance(value, Array) and (value.axes or value.is_open):
                raise CannotLift(
                    "indexing", "an array in the place of chosen elements", node
                )
            base.become(self.where(place, value, base.copy(), node), node)
        else:
            raise CannotLift("indexing", f"assignment to `{ast.unparse(target)}`", node)
