"""The extent of each planned value: the sizes of its core axes, and its batch axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from gradspec.ir.rule import Input, Output
from gradspec.ir.walk import children, nodes
from gradspec.plan.arrays import (
    VIEWS,
    Arange,
    Diagonal,
    Einsum,
    Expand,
    Expr,
    Gather,
    Item,
    Literal,
    Loop,
    Name,
    Op,
    Permute,
    Pick,
    Reduce,
    Root,
    ScatterAdd,
    Solve,
    Spread,
    Stack,
    Take,
    Window,
    Windows,
)
from gradspec.plan.axes import ONE, size_of
from gradspec.plan.plan import RulePlan
from gradspec.primitives.lookup import primitive

Sizes = tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Extent:
    """The sizes of core axes, and True if batch axes may stand before them."""

    sizes: Sizes = ()
    batched: bool = False

    @property
    def axes(self) -> tuple[str, ...]:
        """Batch axes, named axes and sizes, as the header of a rule has them."""
        sizes = [size for size in self.sizes if size != ONE]
        words = (f"{s.value}" if isinstance(s, Literal) else s.names[0] for s in sizes)
        return ("...",) * self.batched + tuple(words)

    @property
    def rank(self) -> tuple[int, int]:
        """The number of core axes of any size, and the number of elements along the
        others."""
        fixed = [int(s.value) for s in self.sizes if isinstance(s, Literal)]
        return len(self.sizes) - len(fixed), prod(fixed)


def extents_of(variables: Iterable[Input | Output]) -> dict[str, Extent]:
    """The extents of inputs and outputs, and of their cotangents and tangents."""
    found = {
        v.name: Extent(tuple(map(size_of, v.shape.axes)), v.shape.batch)
        for v in variables
        if not v.kind.is_static
    }
    names = {f(n): n for n in found for f in (str, "d{}".format, "{}_dot".format)}
    return {name: found[of] for name, of in names.items()}


def is_condition(value: Expr) -> bool:
    """True for an array of truth values."""
    return isinstance(value, Op) and primitive(value.primitive).result == "bool"


class Extents:
    """The extents of values, over those of names; each value is examined once."""

    def __init__(self, known: Mapping[str, Extent]) -> None:
        self._known = dict(known)
        self._done: dict[Expr, Extent] = {}

    def define(self, name: str, value: Expr) -> None:
        """Gives a name the extent of its value."""
        self._known[name] = self.of(value)

    def of(self, expr: Expr) -> Extent:
        """The extent of a value."""
        todo = [expr]
        while todo:
            node = todo.pop()
            missing = [c for c in children(node) if c not in self._done]
            if missing:
                todo += [node, *missing]
            elif isinstance(node, Name):
                self._done[node] = self._known.get(node.id, Extent())
            elif node not in self._done:
                self._done[node] = _extent(
                    node, [self._done[c] for c in children(node)]
                )
        return self._done[expr]

    def largest(self, values: Iterable[Expr]) -> Expr | None:
        """The array of most axes that is made for the values; no condition, if another
        has as many.
        """
        made = (node for node in nodes(*values) if not isinstance(node, _NOT_MADE))
        return max(
            made, key=lambda n: (self.of(n).rank, not is_condition(n)), default=None
        )

    def in_full(self, value: Expr, sizes: Sizes) -> Expr:
        """The value with all axes of these sizes."""
        own = _with_rank(self.of(value).sizes, len(sizes))
        for at, (held, size) in enumerate(zip(own, sizes, strict=True)):
            value = value if held == size else Spread(value, at - len(sizes), size)
        return value


_NOT_MADE = (Name, Literal, *VIEWS)


def forward_extents(plan: RulePlan) -> Extents:
    """The extents of all that the gradients of a rule refer to."""
    found = Extents(extents_of((*plan.inputs, *plan.outputs)))
    for let in plan.forward:
        found.define(let.name, let.value)
    return found


def _extent(node: Expr, parts: Sequence[Extent]) -> Extent:
    own = parts[0].sizes if parts else ()
    batched = any(part.batched for part in parts)
    match node:
        case Arange(size=size):
            return Extent((size,))
        case Einsum(inputs=inputs, output=output):
            letters: dict[str, Expr] = {}
            words = (word.removeprefix("...") for word in inputs)
            for part, word in zip(parts, words, strict=True):
                sized = zip(word, _with_rank(part.sizes, len(word)), strict=True)
                letters |= {a: s for a, s in sized if letters.get(a, ONE) == ONE}
            kept = output.removeprefix("...")
            return Extent(tuple(letters[a] for a in kept), kept != output)
        case ScatterAdd(size=size, count=count, others=others):
            shapes = own, _with_rank(parts[1].sizes, count + others)
            ends = len(shapes[0]) - count, len(shapes[1]) - count - others
            rows = _broadcast_sizes(
                *(s[:at] for s, at in zip(shapes, ends, strict=True))
            )
            rest = shapes[1][len(shapes[1]) - others :]
            return Extent((*rows, size, *rest), batched and not node.over_batch)
        case Gather(axis=axis):
            first = _with(own, axis, (ONE,))
            return Extent(_broadcast_sizes(first, parts[1].sizes), batched)
        case Stack(args=args):
            every = _broadcast_sizes(*(part.sizes for part in parts))
            return Extent((*every, Literal(Fraction(len(args)))), batched)
        case Loop(axes=axes, starts=starts):
            first = parts[len(node.steps) + len(starts)].sizes
            return Extent((first[len(first) + axes[0]],), batched)
        case Item(arg=Loop() as loop, index=index):
            (length,) = own
            start = Extents({}).of(loop.starts[index]).sizes
            at = len(start) + 1 + loop.places[index]
            return Extent((*start[:at], length, *start[at:]), batched)
        case Solve():
            own = parts[1].sizes
        case Root():
            own = parts[2].sizes
        case Reduce(axes=axes, keep=keep):
            for axis in axes:
                own = _with(own, axis, (ONE,) if keep else ())
        case Expand(axes=axes):
            for axis in reversed(axes):
                own = _with_rank(own, -axis - 1)
                at = len(own) + 1 + axis
                own = (*own[:at], ONE, *own[at:])
        case Spread(axis=axis, size=size) | Window(axis=axis, size=size):
            own = _with(own, axis, (size,))
        case Windows(axis=axis, rows=rows, columns=columns):
            own = _with(own, axis, (rows, columns))
        case Pick(axis=axis):
            own = _with(own, axis, ())
        case Take(axis=axis):
            own = _with(own, axis, parts[1].sizes)
        case Permute(order=order):
            own = _with_rank(own, len(order))
            own = (*own[: len(own) - len(order)], *(own[axis] for axis in order))
        case Diagonal(first=one, second=other):
            own = (*_with(_with(own, one, ()), other, ()), own[one])
        case _:
            own = _broadcast_sizes(*(part.sizes for part in parts))
    return Extent(own, batched)


def _with_rank(sizes: Sizes, rank: int) -> Sizes:
    return (ONE,) * (rank - len(sizes)) + sizes


def _with(sizes: Sizes, axis: int, new: Sizes) -> Sizes:
    """The sizes with others in the place of one."""
    sizes = _with_rank(sizes, -axis)
    at = len(sizes) + axis
    return (*sizes[:at], *new, *sizes[at + 1 :])


def _broadcast_sizes(*parts: Sizes) -> Sizes:
    """The sizes of arrays that are broadcast together."""
    rank = max(map(len, parts), default=0)
    every = zip(*(_with_rank(sizes, rank) for sizes in parts), strict=True)
    return tuple(next((s for s in sizes if s != ONE), ONE) for sizes in every)
