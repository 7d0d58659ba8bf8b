"""The abstract machine: it runs Python functions on arrays in index notation. Nothing of
the analysed code is imported or executed; what it does not know is a `CannotLift` with
one reason and one place, never a guess.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from gradspec.ir.expr import Ref
from gradspec.lift import operations
from gradspec.lift.expressions import plain_text
from gradspec.lift.names import FRAMEWORKS, kind_of_unknown
from gradspec.lift.statements import Statements
from gradspec.lift.values import (
    Array,
    CannotLift,
    Chosen,
    Class,
    Context,
    Function,
    Library,
    Method,
    Opaque,
    Scope,
    Shape,
    Steps,
    Track,
    words,
)
from gradspec.primitives.frameworks import meaning_of, place_of

_DEEPEST = 12

_TRANSPARENT = words(
    "staticmethod classmethod custom_fwd custom_bwd once_differentiable jit"
    " script function no_grad lru_cache cache wrap inference_mode custom_jvp"
    " custom_vjp custom_gradient export named_call checkpoint_name overload ignore"
    " unused allow_in_graph register_keras_serializable typechecked"
)
"""Decorators that leave the values of a function as they are."""


class Machine(Statements):
    """Calls: of functions of the files, of methods and of frameworks."""

    # --- calls ------------------------------------------------------------------------

    def _on_Call(self, node: ast.Call, scope: Scope) -> Any:
        function = self.evaluate(node.func, scope)
        args = self._items(node.args, scope)
        named: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.evaluate(keyword.value, scope)
            if keyword.arg is None:
                if value == {}:
                    continue
                raise CannotLift("python", "`**` in a call", node)
            named[keyword.arg] = value
        return self.call(function, args, named, node)

    def call(
        self, function: Any, args: Sequence[Any], named: dict[str, Any], node: ast.AST
    ) -> Any:
        match function:
            case Function():
                return self.call_function(function, args, named, node)
            case Method(base=Context() as context, name=name):
                if name in ("save_for_backward", "save_for_forward"):
                    context.saved = tuple(args)
                elif name == "mark_non_differentiable":
                    context.nondifferentiable = tuple(args)
                return None
            case Method(base=Class() as cls, name="apply"):
                return self.project.apply(cls, args, self, node)
            case Method(base=Track() | list() as filled, name=name):
                return self.fill(filled, name, args, node)
            case Method(base=base, name=name):
                return self._call_method(base, name, args, named, node)
            case Library(name=name):
                return self._call_library(name, args, named, node)
            case Opaque(kind=kind, origin=origin):
                raise CannotLift(kind, f"a call of {origin}", node)
            case _:
                called = ast.unparse(node.func) if isinstance(node, ast.Call) else "it"
                raise CannotLift("python", f"a call of `{called}`", node)

    def call_function(
        self,
        function: Function,
        args: Sequence[Any],
        named: dict[str, Any],
        node: ast.AST,
    ) -> Any:
        """The result of a function of the files."""
        if self.depth >= _DEEPEST:
            raise CannotLift("python", "recursion", node)
        scope = Scope({}, function.scope, function.scope.module)
        self._bind(function, (*function.given, *args), named, scope, node)
        self.depth += 1
        try:
            if isinstance(function.node, ast.Lambda):
                return self.evaluate(function.node.body, scope)
            is_pair = self._check_decorators(function)
            for inner in ast.walk(function.node):
                if isinstance(
                    inner, ast.Yield | ast.YieldFrom | ast.Global | ast.Nonlocal
                ):
                    raise CannotLift(
                        "python", "a generator, or a name of another scope", inner
                    )
            returned = self.run(function.node.body, scope)
        finally:
            self.depth -= 1
        value = returned[0] if returned is not None else None
        if is_pair and isinstance(value, tuple) and len(value) == 2 and self.depth:
            return value[0]
        return value

    def _check_decorators(self, function: Function) -> bool:
        """True if the function returns its value and a gradient function."""
        is_pair = False
        assert isinstance(function.node, ast.FunctionDef)
        for decorator in function.node.decorator_list:
            text = ast.unparse(decorator)
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            name = ast.unparse(called).rpartition(".")[2]
            if name == "partial" and isinstance(decorator, ast.Call) and decorator.args:
                name = ast.unparse(decorator.args[0]).rpartition(".")[2]
            if name in ("defjvp", "defvjp", "def_fwd", "def_bwd"):
                continue
            if name not in _TRANSPARENT:
                told = f"the decorator `{text}`, which may change the function"
                raise CannotLift("unknown", told, decorator)
            is_pair = is_pair or name == "custom_gradient"
        return is_pair

    def _bind(
        self,
        function: Function,
        args: Sequence[Any],
        named: dict[str, Any],
        scope: Scope,
        node: ast.AST,
    ) -> None:
        made, told = function.node.args, getattr(function.node, "name", "lambda")
        names = [p.arg for p in (*made.posonlyargs, *made.args)]
        if len(args) > len(names) and made.vararg is None:
            raise CannotLift("python", f"too many arguments for `{told}`", node)
        scope.names.update(zip(names, args, strict=False))
        if made.vararg is not None:
            scope.names[made.vararg.arg] = tuple(args[len(names) :])
        every = {*names, *(p.arg for p in made.kwonlyargs)}
        if made.kwarg is not None:
            scope.names[made.kwarg.arg] = {
                k: v for k, v in named.items() if k not in every
            }
        elif named.keys() - every:
            raise CannotLift("python", f"a keyword that `{told}` does not have", node)
        scope.names.update({k: v for k, v in named.items() if k in every})
        defaults = zip(reversed(names), reversed(made.defaults), strict=False)
        kwonly = zip((p.arg for p in made.kwonlyargs), made.kw_defaults, strict=True)
        for name, default in (*defaults, *kwonly):
            if name not in scope.names and default is not None:
                scope.names[name] = self.evaluate(default, function.scope)
        for name in every:
            if name not in scope.names:
                raise CannotLift(
                    "python", f"the argument `{name}` of `{told}` is missing", node
                )

    def _call_method(
        self,
        base: Any,
        name: str,
        args: Sequence[Any],
        named: dict[str, Any],
        node: ast.AST,
    ) -> Any:
        match base:
            case Shape() if name == "numel":
                return self.count(base.array, None, node)
            case Shape():
                return Opaque("shape", "a shape")
            case Chosen():
                inner = self._call_method(
                    base.array.copy(), name.rstrip("_"), args, named, node
                )
                return Chosen(inner, base.mask) if isinstance(inner, Array) else inner
            case dict() if name == "get" and args and isinstance(args[0], str):
                return base.get(*args)
            case Array():
                pass
            case _:
                raise CannotLift("python", f"a method `{name}`", node)
        if name.endswith("_") and not name.endswith("__") and name != "requires_grad_":
            return self._change(base, name, args, named, node)
        home = {"torch": "torch.Tensor", "jax": "jax.numpy", "tf": "tensorflow"}
        return self.perform(
            f"{home[self.framework]}.{name}", [base, *args], named, node
        )

    def _change(
        self,
        base: Array,
        name: str,
        args: Sequence[Any],
        named: dict[str, Any],
        node: ast.AST,
    ) -> Array:
        """An operation in place."""
        if name in ("copy_", "set_", "fill_", "zero_"):
            value = args[0] if args else named.get("value", 0)
            base.become(self.like(value, base, node), node)
            return base
        found = self.perform(
            f"torch.Tensor.{name[:-1]}", [base.copy(), *args], named, node
        )
        if not isinstance(found, Array):
            raise CannotLift("python", f"`{name}`", node)
        base.become(self.like(found, base, node), node)
        return base

    def _call_library(
        self, name: str, args: Sequence[Any], named: dict[str, Any], node: ast.AST
    ) -> Any:
        root, tail = name.split(".", maxsplit=1)[0], name.rpartition(".")[2]
        if root == "jax" and tail in ("custom_vjp", "custom_jvp") and args:
            return args[0]
        if root in ("warnings", "logging", "logger"):
            return None
        if root == "builtins":
            return self._call_builtin(name.partition(".")[2], args, named, node)
        if root not in FRAMEWORKS:
            kind, told = kind_of_unknown(name) or ("", "")
            if kind in ("kernel", "communication"):
                raise CannotLift(kind, told, node)
            raise CannotLift("import", f"`{name}` is defined in another module", node)
        if root == "torch" and args and isinstance(args[0], Array):
            if tail.endswith("_") and not tail.endswith("__"):
                return self._change(args[0], tail, args[1:], named, node)
            if named.pop("inplace", False) is True:
                found = self.perform(name, [args[0].copy(), *args[1:]], named, node)
                args[0].become(self.like(found, args[0], node), node)
                return args[0]
        return self.perform(name, list(args), named, node)

    def perform(
        self, name: str, args: list[Any], named: dict[str, Any], node: ast.AST
    ) -> Any:
        """A function of a framework, by its full name."""
        tail = name.rpartition(".")[2]
        operation = operations.FULL_NAMES.get(name)
        if name == "jax.lax.scan":
            return operations.perform(self, node, type(self).scan, args, named)
        if tail == "stack" and place_of(name) and args and isinstance(args[0], Track):
            axis = named.get("dim", named.get("axis", args[1] if len(args) > 1 else 0))
            return self.stack(args[0], axis, node)
        meaning = meaning_of(name)
        if name in operations.NOT_ELEMENTWISE:
            raise CannotLift("function", f"`{name}` is not elementwise", node)
        if operation is None and place_of(name):
            operation = operations.OPERATIONS.get(tail)
        if operation is None and meaning is not None:
            return operations.apply_meaning(self, node, meaning, args, named)
        if operation is None and name.startswith("torch.") and tail in _STATE:
            return _STATE[tail]
        if operation is None and tail in ("float32", "float64", "float16", "bfloat16"):
            operation = operations.OPERATIONS[tail]
        if operation is None:
            kind, told = kind_of_unknown(name) or (
                "function",
                f"`{name}` has no counterpart in the table",
            )
            raise CannotLift(kind, told, node)
        if operation in _WITH_AXES and not operations.is_fixed(args, named):
            args, named = self._with_fixed_axes(args, named)
        return operations.perform(self, node, operation, args, named)

    def _with_fixed_axes(self, args: list[Any], named: dict[str, Any]) -> Any:
        """An axis that the caller chooses is its default, or the last one, which stands
        for all."""

        def fix_axis(value: Any) -> Any:
            match value:
                case Array(value=Ref(name=name)) if name in self.axis_names:
                    default = self.axis_names[name]
                    return -1 if default is None else default
                case tuple() | list():
                    return tuple(map(fix_axis, value))
                case _:
                    return value

        return [args[0], *map(fix_axis, args[1:])], {
            k: fix_axis(v) for k, v in named.items()
        }

    def _call_builtin(
        self, name: str, args: Sequence[Any], named: dict[str, Any], node: ast.AST
    ) -> Any:
        numbers = all(isinstance(a, int | Fraction) for a in args)
        match name, args:
            case "float", [str() as text] if text.strip("+-").lower() in _INFINITE:
                return float(text)
            case (("abs" | "float" | "int" | "bool" | "round" | "pow"), [_, *_]):
                operation = operations.OPERATIONS[name]
                return operations.perform(self, node, operation, args, named)
            case (("max" | "min"), [_, _, *_]):
                if numbers:
                    return max(args) if name == "max" else min(args)
                found = args[0]
                for other in args[1:]:
                    found = self.apply(name, found, other, node=node)
                return found
            case "sum", [tuple() | list() as values]:
                return self.total([0, *values], node)
            case "len", [tuple() | list() | dict() as values]:
                return len(values)
            case "len", [Track() as track]:
                return self.length(track, node)
            case "len", [Array() as array]:
                return self.size(array, 0, node)
            case "len", [Shape(array=array)]:
                return operations.OPERATIONS["dim"](self, node, array)
            case "list", [Track() as track]:
                return track
            case (("tuple" | "list"), [value]):
                if isinstance(value, Shape):
                    return value
                found = self.items_of(value, node)
                return tuple(found) if name == "tuple" else list(found)
            case "range", _ if all(type(a) is int for a in args) and args:
                return range(*args)
            case "range", [_, *_] if len(args) < 4:
                return self.steps(args, node)
            case "reversed", [Steps() as steps]:
                return replace(steps, is_backward=not steps.is_backward)
            case "reversed", [Track() as track]:
                return track.turned()
            case "reversed", [tuple() | list() | range() as values]:
                return list(reversed(values))
            case "zip", _ if all(isinstance(a, tuple | list) for a in args):
                return list(zip(*args, strict=False))
            case "isinstance", [Array(), Library(name=kind)] if kind.endswith("Tensor"):
                return True
            case "isinstance", [value, *_]:
                return Opaque("python", f"the type of {plain_text(value)}")
            case "print", _:
                return None
            case (
                ("getattr" | "hasattr"),
                [Context() as context, str() as wanted, *rest],
            ):
                known = wanted in context.attributes
                if name == "hasattr":
                    return known
                return context.attributes[wanted] if known or not rest else rest[0]
            case (("callable"), [value]):
                return isinstance(value, Function | Library)
            case _:
                raise CannotLift("python", f"`{name}` of these arguments", node)


_INFINITE = ("inf", "infinity")
_STATE = {"is_available": True, "is_initialized": False, "is_enabled": False}
_WITH_AXES = frozenset(
    operations.OPERATIONS[name]
    for name in words(
        "sum mean prod logsumexp amax amin max min var std norm softmax log_softmax"
        " unsqueeze squeeze size"
    )
)
