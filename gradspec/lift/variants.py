"""Changes of a lifted rule that tell an intention from a mistake: without guards, without
clips, with the identity in the place of steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from gradspec.ir.expr import Apply, Const, Expr, Idx, Ref, Select
from gradspec.ir.walk import names, nodes, transform
from gradspec.lift.reading import Lifted
from gradspec.lift.rules import Form
from gradspec.lift.values import ONE, Extent, Index, reduction
from gradspec.primitives.frameworks import CLIP
from gradspec.primitives.lookup import rows

TINY = Fraction(1, 10**4)
ROUNDINGS = frozenset(row.name for row in rows() if row.is_step)
_BENDING = ROUNDINGS | {row.name for row in rows() if row.is_piecewise}
_GUARD = re.compile(
    r"^(eps|epsilon|tiny|small|tol|min_norm|minimum_value)", re.IGNORECASE
)
_HAIR = Const(Fraction(1, 10**9))


class Facts:
    """Properties of a lifted rule that its expressions alone show."""

    def __init__(self, rule: Lifted) -> None:
        self.rule = rule
        self.lets = {let.name: let.value for let in rule.lets} | rule.values
        self.different = {n for n, g in rule.gradients.items() if g is not None}
        self.stated = {n: g for n, g in rule.gradients.items() if g is not None}
        self.inputs = {v.name for v in rule.inputs}

    def names_below(self, *values: Expr) -> frozenset[str]:
        """Every name that values refer to, by way of locals."""
        found: set[str] = set()
        todo = [n for v in values for n in names(v)]
        while todo:
            name = todo.pop()
            if name not in found:
                found.add(name)
                todo += names(self.lets[name]) if name in self.lets else ()
        return frozenset(found)

    def parts(self, *values: Expr) -> tuple[Expr, ...]:
        """Every node of values and of the locals that they reach."""
        whole = (
            *values,
            *(self.lets[n] for n in self.names_below(*values) if n in self.lets),
        )
        return tuple(node for value in whole for node in nodes(value))

    def depends(self, value: Expr) -> bool:
        """True if a value depends on something that has a gradient, or on one."""
        return any(
            n in self.different
            or (n.startswith("d") and n not in self.inputs | self.lets.keys())
            for n in self.names_below(value)
        )

    @property
    def guards(self) -> frozenset[str]:
        """Numbers of the caller that are there for stability alone."""
        return frozenset(
            v.name
            for v in self.rule.inputs
            if v.name not in self.different
            and not v.axes
            and (
                _GUARD.match(v.name)
                or (v.default is not None and 0 < abs(v.default) <= TINY)
            )
        )

    @property
    def is_bent(self) -> bool:
        """True if the forward pass has a step, a clip, or a branch between numbers."""
        return any(map(self._bends, self.parts(*self.rule.values.values())))

    @property
    def is_recurrent(self) -> bool:
        """True if a value of the forward pass depends on earlier places of itself."""
        below = self.names_below(*self.rule.values.values()) & self.lets.keys()
        return any(name in self.names_below(self.lets[name]) for name in below)

    @property
    def has_steps(self) -> bool:
        return any(map(self._steps, self.parts(*self.rule.values.values())))

    def _steps(self, node: Expr) -> bool:
        match node:
            case Apply(op=op):
                return op in ROUNDINGS and self.depends(node)
            case Select(condition=condition, then=then, other=other):
                flat = not self.depends(then) and not self.depends(other)
                return flat and self.depends(condition)
            case _:
                return False

    def _bends(self, node: Expr) -> bool:
        match node:
            case Apply(op=op) if op in _BENDING:
                return self.depends(node)
            case Select(condition=condition, then=then, other=other):
                flat = not self.depends(then) or not self.depends(other)
                return flat and self.depends(condition)
            case _:
                return False

    @property
    def is_identity(self) -> bool:
        """True if every output is an input."""
        return all(self._is_input(v) for v in self.rule.values.values())

    def _is_input(self, value: Expr) -> bool:
        while isinstance(value, Ref) and value.name in self.lets:
            value = self.lets[value.name]
        if not isinstance(value, Ref) or value.name not in self.inputs:
            return False
        return all(isinstance(i, Idx) for i in value.indices)

    @property
    def unused_upstream(self) -> frozenset[str]:
        """Outputs whose upstream gradients are in no gradient."""
        used = self.names_below(*self.stated.values())
        return frozenset(
            o.name
            for o in self.rule.outputs
            if o.takes_gradient and f"d{o.name}" not in used
        )

    @property
    def ignored_inputs(self) -> tuple[str, ...]:
        """Inputs that the backward pass uses and the forward pass does not."""
        ahead = self.names_below(*self.rule.values.values())
        used = self.names_below(*self.stated.values())
        return tuple(
            v.name for v in self.rule.inputs if v.name in used and v.name not in ahead
        )

    @property
    def unfollowed_inputs(self) -> tuple[str, ...]:
        """Inputs with a gradient that the forward pass ignores."""
        ahead = self.names_below(*self.rule.values.values())
        return tuple(n for n in self.stated if n not in ahead)


# --- changes --------------------------------------------------------------------------


def _is_tiny(value: Expr) -> bool:
    return isinstance(value, Const) and 0 < abs(value.value) <= TINY


def drop_guards(value: Expr) -> Expr:
    """Without tiny constants that keep a quotient or a logarithm finite."""

    def visit(node: Expr) -> Expr:
        match node:
            case Apply(op="add" | "sub" | "max", args=(rest, tiny)) if _is_tiny(tiny):
                return rest
            case Apply(op="add" | "max", args=(tiny, rest)) if _is_tiny(tiny):
                return rest
            case Apply(op=op, args=(rest, low, high)) if op == CLIP and _is_tiny(low):
                return Apply("min", (rest, high)) if not _nearly_one(high) else rest
            case _:
                return node

    return transform(value, visit)


def _nearly_one(value: Expr) -> bool:
    match value:
        case Const(value=number):
            return abs(number - 1) <= TINY
        case Apply(op="sub", args=(one, tiny)):
            return one == ONE and _is_tiny(tiny)
        case _:
            return False


def clip_dropper(facts: Facts) -> Callable[[Expr], Expr]:
    """Without bounds on something that depends on what is differentiated."""

    def visit(node: Expr) -> Expr:
        match node:
            case Apply(op=op, args=(inner, _, _)) if op == CLIP and facts.depends(
                inner
            ):
                return inner
            case Apply(op="min" | "max", args=(a, b)):
                mine, other = facts.depends(a), facts.depends(b)
                return a if mine and not other else b if other and not mine else node
            case _:
                return node

    return lambda value: transform(value, visit)


def drop_steps(value: Expr) -> Expr:
    """With the identity in the place of steps."""

    def visit(node: Expr) -> Expr:
        return (
            node.args[0] if isinstance(node, Apply) and node.op in ROUNDINGS else node
        )

    return transform(value, visit)


def without_guards(facts: Facts, form: Form) -> Form:
    fixed = form.fixed | dict.fromkeys(facts.guards, _HAIR)
    return replace(
        form,
        forward=lambda v: drop_guards(form.forward(v)),
        backward=lambda v: drop_guards(form.backward(v)),
        fixed=fixed,
    )


def without_clips(facts: Facts, form: Form, both: bool) -> Form:
    change = clip_dropper(facts)
    return replace(
        form,
        forward=(lambda v: change(form.forward(v))) if both else form.forward,
        backward=lambda v: change(form.backward(v)),
    )


def without_steps(form: Form, both: bool) -> Form:
    return replace(
        form,
        forward=lambda v: drop_steps(form.forward(v)),
        backward=(lambda v: drop_steps(form.backward(v))) if both else form.backward,
    )


def with_property(form: Form, name: str, kind: str) -> Form:
    """With an input of which something is known: its rows sum to 1, or have the norm 1, or
    it is a symmetric matrix."""

    def visit(node: Expr) -> Expr:
        if not isinstance(node, Ref) or node.name != name:
            return node
        if kind == "symmetric":
            *rest, i, j = node.indices
            turned = Ref(name, (*rest, j, i))
            return Apply("div", (Apply("add", (node, turned)), Const(Fraction(2))))
        index = Index(Extent(""))
        other: Expr = Ref(name, (*node.indices[:-1], index.value))
        if kind == "normalised":
            return Apply("div", (node, reduction("sum", (index,), other)))
        squares = reduction("sum", (index,), Apply("mul", (other, other)))
        return Apply("div", (node, Apply("sqrt", (squares,))))

    return replace(form, put=visit)


def with_number(form: Form, name: str, value: int) -> Form:
    number = Const(Fraction(value))
    return replace(form, fixed=form.fixed | {name: number})


# --- known surrogates of a step -----------------------------------------------------------

ANTIDERIVATIVES = {
    "sigmoid": "sigmoid({k} * {u})",
    "arctan": "atan({k} * {u}) / pi",
    "arctan ": "atan(pi / 2 * {k} * {u}) / pi",
    "tanh": "tanh({k} * {u})",
    "error function": "erf({k} * {u}) / 2",
    "fast sigmoid": "{u} / (1 + {k} * abs({u}))",
    "rectangle": "clip({u}, -{k}, {k})",
    "half rectangle": "clip({u}, -{k} / 2, {k} / 2) / {k}",
    "triangle": "{u} - {k} * {u} * abs({u}) / 2 if abs({u}) < 1 / {k} else sign({u}) / (2 * {k})",
}
"""Functions whose derivatives are used in the place of that of a step, in the argument `u`
and a scale `k`."""


def scales(facts: Facts) -> tuple[str, ...]:
    """Numbers that may be the scale of a surrogate: those of the gradient."""
    from gradspec.ir.expr import show

    found = {"1": None}
    for node in facts.parts(*facts.stated.values()):
        if isinstance(node, Const) and node.value > 0:
            found[show(node)] = None
    statics = {v.name: None for v in facts.rule.inputs if v.is_static}
    return tuple({**statics, **found})[:4]
