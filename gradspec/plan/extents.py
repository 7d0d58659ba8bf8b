"""The extent of each planned value: the sizes of its core axes, and its batch axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from gradspec.ir.rule import Input, Output
from gradspec.plan.arrays import (
    Arange,
    Diagonal,
    Einsum,
    Expand,
    Expr,
    Gather,
    Literal,
    Name,
    Permute,
    Pick,
    Reduce,
    ScatterAdd,
    Spread,
    Stack,
    Take,
    Window,
    Windows,
    children,
)
from gradspec.plan.axes import ONE, size_of

Sizes = tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Extent:
    """The sizes of core axes, and True if batch axes may stand before them."""

    sizes: Sizes = ()
    batched: bool = False


def extents_of(variables: Iterable[Input | Output]) -> dict[str, Extent]:
    """The extents of inputs and outputs, and of their cotangents and tangents."""
    found = {
        v.name: Extent(tuple(map(size_of, v.shape.axes)), v.shape.batch)
        for v in variables
        if not v.kind.is_static
    }
    names = {f(n): n for n in found for f in (str, "d{}".format, "{}_dot".format)}
    return {name: found[of] for name, of in names.items()}


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

    def in_full(self, value: Expr, sizes: Sizes) -> Expr:
        """The value with all axes of these sizes."""
        own = _padded(self.of(value).sizes, len(sizes))
        for at, (held, size) in enumerate(zip(own, sizes, strict=True)):
            value = value if held == size else Spread(value, at - len(sizes), size)
        return value


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
                sized = zip(word, _padded(part.sizes, len(word)), strict=True)
                letters |= {a: s for a, s in sized if letters.get(a, ONE) == ONE}
            kept = output.removeprefix("...")
            return Extent(tuple(letters[a] for a in kept), kept != output)
        case ScatterAdd(size=size, count=count, others=others):
            rest = _padded(parts[1].sizes, count + others)[count:]
            return Extent((size, *rest), batched and not node.over_batch)
        case Gather(axis=axis):
            first = _with(own, axis, (ONE,))
            return Extent(_joined(first, parts[1].sizes), batched)
        case Stack(args=args):
            every = _joined(*(part.sizes for part in parts))
            return Extent((*every, Literal(Fraction(len(args)))), batched)
        case Reduce(axes=axes, keep=keep):
            for axis in axes:
                own = _with(own, axis, (ONE,) if keep else ())
        case Expand(axes=axes):
            for axis in reversed(axes):
                own = _padded(own, -axis - 1)
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
            own = _padded(own, len(order))
            own = (*own[: len(own) - len(order)], *(own[axis] for axis in order))
        case Diagonal(first=one, second=other):
            own = (*_with(_with(own, one, ()), other, ()), own[one])
        case _:
            own = _joined(*(part.sizes for part in parts))
    return Extent(own, batched)


def _padded(sizes: Sizes, rank: int) -> Sizes:
    return (ONE,) * (rank - len(sizes)) + sizes


def _with(sizes: Sizes, axis: int, new: Sizes) -> Sizes:
    """The sizes with others in the place of one."""
    sizes = _padded(sizes, -axis)
    at = len(sizes) + axis
    return (*sizes[:at], *new, *sizes[at + 1 :])


def _joined(*parts: Sizes) -> Sizes:
    """The sizes of arrays that are broadcast together."""
    rank = max(map(len, parts), default=0)
    every = zip(*(_padded(sizes, rank) for sizes in parts), strict=True)
    return tuple(next((s for s in sizes if s != ONE), ONE) for sizes in every)
