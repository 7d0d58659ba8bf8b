"""The formulas of a lowered rule in torch, in float64: what an emitted module is compared
with. It knows nothing of derivation and planning; torch's autograd differentiates it.

Every index of a formula is an axis of its own at the end of a tensor, in the order in which
the indices are bound; batch axes stand in front. A branch that is not taken contributes
nothing: where it is not, the functions in it are evaluated at another point. An element
beyond an axis has a value, and the mark that it does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from gradspec.ir.expr import Apply, Const, Expr, Idx, Reduce, Ref, Select, Size
from gradspec.ir.rule import Rule

FLOAT = torch.float64
Scope = tuple[tuple[str, int], ...]

FUNCTIONS = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "neg": torch.neg,
    "div": torch.div,
    "pow": torch.pow,
    "lt": torch.lt,
    "le": torch.le,
    "gt": torch.gt,
    "ge": torch.ge,
    "eq": torch.eq,
    "ne": torch.ne,
    "not": torch.logical_not,
    "max": torch.maximum,
    "min": torch.minimum,
    "clip": lambda x, a, b: torch.minimum(torch.maximum(x, a), b),
    "abs": torch.abs,
    "sign": torch.sign,
    "floor": torch.floor,
    "square": torch.square,
    "sqrt": torch.sqrt,
    "exp": torch.exp,
    "expm1": torch.expm1,
    "log": torch.log,
    "log1p": torch.log1p,
    "sin": torch.sin,
    "cos": torch.cos,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "softplus": lambda x: torch.logaddexp(x, torch.zeros_like(x)),
    "relu": lambda x: torch.maximum(x, torch.zeros_like(x)),
    "erf": torch.erf,
    "lgamma": torch.lgamma,
    "digamma": torch.digamma,
    "hypot": torch.hypot,
    "atan2": torch.atan2,
    "logaddexp": torch.logaddexp,
    "mod": torch.remainder,
}
TOTAL = {"add", "sub", "neg", "mul", "lt", "le", "gt", "ge", "eq", "ne", "not"}
NUMBERS = {"pi": torch.pi, "inf": torch.inf}


@dataclass(frozen=True)
class Value:
    """A tensor and where its elements exist."""

    of: Tensor
    exists: Tensor


def number(value: float) -> Value:
    return Value(torch.tensor(value, dtype=FLOAT), torch.tensor(True))


@dataclass
class Formula:
    """A rule at certain inputs: tensors with batch axes, then their own."""

    rule: Rule
    sizes: Mapping[str, int]
    known: dict[str, Value]

    def outputs(self) -> dict[str, Value]:
        """Each output over batch axes that broadcast, and its own axes in full."""
        for let in self.rule.forward:
            sizes = [self.size(axis) for axis in let.axes]
            scope = tuple(zip(let.indices, sizes, strict=True))
            found = self.value(let.value, scope, torch.tensor(True))
            shape = torch.broadcast_shapes(found.of.shape, tuple(sizes))
            exists = found.exists.expand(shape)
            self.known[let.name] = Value(found.of.expand(shape), exists)
        return {o.name: self.known[o.name] for o in self.rule.outputs}

    def size(self, axis: str | int) -> int:
        return axis if isinstance(axis, int) else self.sizes[axis]

    def value(self, expr: Expr, scope: Scope, taken: Tensor) -> Value:
        match expr:
            case Const(value=value):
                return number(float(value))
            case Size(axis=axis):
                return number(self.size(axis))
            case Idx(name=name):
                place = next(k for k, (n, _) in enumerate(scope) if n == name)
                shape = [-1, *[1] * (len(scope) - 1 - place)]
                along = torch.arange(scope[place][1], dtype=FLOAT).reshape(shape)
                return Value(along, torch.tensor(True))
            case Ref(name=name, indices=indices):
                at = [self.value(index, scope, taken) for index in indices]
                return element(self.known[name], at, len(scope))
            case Apply(op=op) if op in NUMBERS:
                return number(NUMBERS[op])
            case Apply(op="and" | "or" as op, args=(first, second)):
                a = self.value(first, scope, taken)
                asked = a.of if op == "and" else ~a.of
                b = self.value(second, scope, taken & asked)
                both = a.of & b.of if op == "and" else a.of | b.of
                return Value(both, a.exists & (b.exists | ~asked))
            case Apply(op=op, args=args):
                parts = [self.value(arg, scope, taken) for arg in args]
                exists = torch.tensor(True)
                for part in parts:
                    exists = exists & part.exists
                given = [part.of for part in parts]
                if op not in TOTAL:
                    given = [torch.where(taken & exists, x, 0.5) for x in given]
                return Value(FUNCTIONS[op](*given), exists)
            case Select(condition=condition, then=then, other=other):
                c = self.value(condition, scope, taken)
                a = self.value(then, scope, taken & c.of)
                b = self.value(other, scope, taken & ~c.of)
                exists = torch.where(c.of, a.exists, b.exists)
                return Value(torch.where(c.of, a.of, b.of), c.exists & exists)
            case Reduce():
                return self.reduction(expr, scope, taken)
            case _:
                raise NotImplementedError(expr)

    def reduction(self, node: Reduce, scope: Scope, taken: Tensor) -> Value:
        bounds = tuple((b.index, self.size(b.axis)) for b in node.bounds)
        inner = (*scope, *bounds)
        taken = taken.reshape((*taken.shape, *[1] * len(bounds)))
        counts = Value(torch.tensor(True), torch.tensor(True))
        if node.where is not None:
            counts = self.value(node.where, inner, taken)
        body = self.value(node.body, inner, taken & counts.of)
        least = (*[1] * len(scope), *(size for _, size in bounds))
        shape = torch.broadcast_shapes(body.of.shape, counts.of.shape, least)
        axes = tuple(range(-len(bounds), 0))
        exists = (body.exists | ~counts.of) & counts.exists
        which, of = counts.of.expand(shape).bool(), body.of.expand(shape)
        result = reduced(node.op, of, which, axes)
        return Value(result, exists.expand(shape).flatten(-len(axes)).all(-1))


def reduced(op: str, value: Tensor, which: Tensor, axes: tuple[int, ...]) -> Tensor:
    match op:
        case "sum":
            return torch.where(which, value, 0.0).sum(axes)
        case "mean":
            return torch.where(which, value, 0.0).sum(axes) / which.sum(axes)
        case "prod":
            return torch.where(which, value, 1.0).flatten(-len(axes)).prod(-1)
        case "max":
            return torch.where(which, value, -torch.inf).amax(axes)
        case "min":
            return torch.where(which, value, torch.inf).amin(axes)
        case "logsumexp":
            return torch.where(which, value, -torch.inf).logsumexp(axes)
        case _:
            raise NotImplementedError(op)


def element(array: Value, at: list[Value], rank: int) -> Value:
    """An array at positions that are tensors over ``rank`` indices, behind batch axes."""
    count = len(at)
    batch = array.of.shape[: array.of.dim() - count]
    core = array.of.shape[array.of.dim() - count :]
    if not at:
        shape = (*batch, *[1] * rank) if batch else ()
        return Value(array.of.reshape(shape), array.exists.expand(batch).reshape(shape))
    flat = torch.zeros([1] * rank, dtype=torch.int64)
    exists = torch.ones([1] * rank, dtype=torch.bool)
    for position, size in zip(at, core, strict=True):
        there = position.exists & (position.of >= 0) & (position.of < size)
        exists = exists & there
        flat = flat * size + torch.where(there, position.of, 0).long()
    over, front = flat.shape[flat.dim() - rank :], flat.shape[: flat.dim() - rank]
    shape = torch.broadcast_shapes(batch, front)
    places = flat.expand((*shape, *over)).reshape((*shape, over.numel()))

    def gathered(whole: Tensor) -> Tensor:
        rows = whole.reshape((*batch, core.numel())).expand((*shape, core.numel()))
        return torch.gather(rows, -1, places).reshape((*shape, *over))

    found = gathered(array.exists.expand(array.of.shape))
    return Value(gathered(array.of), exists & found)
