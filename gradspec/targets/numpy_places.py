"""Rows computed where an array lies that nothing needs any more.

Each operation of NumPy fills an array of its own, and of many rows each is a pass through the
cache. NumPy computes ``a * b + c`` in the memory of ``a * b`` by itself, but never in that of
a name: so ``z = c * r``, the last use of ``c``, is written

    z = np.multiply(c, r, out=c)

and ``y = g * z + b`` goes on there. The bits are the same, for the operations are, but for
the order of what commutes. An array is overwritten only if it was computed here, if nothing
uses it or what shares its memory later, and if it depends on all that the other operand
depends on: then it has the shape of the result.

It is done for rows alone. A rule without named axes gains a sixth at most, and may be given
numbers without axes, which have no memory; of one element its operations in place take a
third longer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gradspec.plan.array import Expr, Literal, Name, Op, Where, children, names, nodes
from gradspec.plan.plan import Assign, Step
from gradspec.plan.ranked import RankedNode, Reduce
from gradspec.primitives.lookup import primitive
from gradspec.primitives.row import Infix, Prefix, Template
from gradspec.targets.lines import Lines, assignment, assignments
from gradspec.targets.numpy_blocks import has_rows
from gradspec.targets.numpy_outputs import viewed
from gradspec.targets.python import Scope, is_scalar, render

if TYPE_CHECKING:
    from gradspec.targets.numpy_parts import Functions

_WORDS = {
    "add": ("+=", "np.add"),
    "sub": ("-=", "np.subtract"),
    "mul": ("*=", "np.multiply"),
    "div": ("/=", "np.divide"),
}
_COMMUTE = ("add", "mul")


def placed(
    functions: Functions, statements: Sequence[Assign | Step], results: Iterable[Expr]
) -> Lines:
    """The statements; what ``results`` use is not overwritten."""
    plan, scope = functions.plan, functions.scope
    if not has_rows(functions) or len(plan.tensors[0].shape.axes) != 1:
        return assignments(statements, scope)
    first, *others = plan.tensors
    spans = {i.name: frozenset(map(_axis, i.shape.axes)) for i in others}
    spans[first.name] = frozenset([first.name, *map(_axis, first.shape.axes)])
    spans |= {
        f"d{o.name}": spans[first.name]
        for o in plan.outputs
        if o.shape.axes == first.shape.axes
    }
    values = [*(step.value for step in statements), *results]
    places = _Places(scope, _uses([*values, *_viewing(values)]), spans, {})
    return [line for step in statements for line in places.statement(step)]


def _axis(axis: object) -> str:
    """A named axis, among the inputs that a value depends on."""
    return f"[{axis}]"


def _uses(values: Iterable[Expr]) -> Counter[str]:
    """How often each name is written."""
    found: Counter[str] = Counter()
    todo = list(values)
    while todo:
        node = todo.pop()
        if isinstance(node, Name):
            found[node.id] += 1
        todo += children(node)
    return found


def _viewing(values: Iterable[Expr]) -> list[Expr]:
    """What may give back a view of its arguments: they are used as long as that is."""
    ranked = (node for node in nodes(*values) if isinstance(node, RankedNode))
    return [node for node in ranked if not isinstance(node, Reduce)]


@dataclass(frozen=True, slots=True)
class _Places:
    """``uses`` counts what is still to be written of each name; ``spans`` are the inputs
    that it depends on, ``memory`` the array whose memory it shares, of those made here.
    """

    scope: Scope
    uses: Counter[str]
    spans: dict[str, frozenset[str]]
    memory: dict[str, str]

    def statement(self, step: Assign | Step) -> Lines:
        span, shared = self.span(step.value), viewed(step.value)
        comment = [f"# {line}" for line in step.comment.splitlines()]
        if (found := self.begun(step.name, step.value)) is not None:
            lines = [*comment, *found]
        else:
            text = self.text(step.value)
            lines = assignment(step.name, text, step.comment)
        if span is not None:
            self.spans[step.name] = span
        if shared in self.memory:
            self.memory[step.name] = self.memory[shared]
        elif shared is None and _is_new(step.value):
            self.memory[step.name] = step.name
        return lines

    def begun(self, target: str, value: Expr) -> Lines | None:
        """``target`` made to hold a value that begins with the last use of a name."""
        if (found := self.chained(value)) is None:
            return None
        place, name, other = found
        sign, word = _WORDS[name]
        if isinstance(place, Name):
            text = self.text(other)
            self.uses[place.id] -= 1
            return [f"{target} = {word}({place.id}, {text}, out={place.id})"]
        lines = self.begun(target, place)
        return lines and [*lines, f"{target} {sign} {self.text(other)}"]

    def chained(self, value: Expr) -> tuple[Expr, str, Expr] | None:
        """The operand of an operation in whose place the result may be, what is done to it,
        and the other.
        """
        match value:
            case Op(primitive=name, args=(one, other)) if name in _WORDS:
                pairs = [(one, other)]
                pairs += [(other, one)] if name in _COMMUTE else []
                for place, rest in pairs:
                    if self.holds(place, rest):
                        return place, name, rest
        return None

    def holds(self, place: Expr, other: Expr) -> bool:
        """Whether a result of both may be where ``place`` is, and a name begins there."""
        span, least = self.span(place), self.span(other)
        if not span or least is None or not least <= span:
            return False
        if not isinstance(place, Name):
            is_array = _is_new(place) and not is_scalar(place, self.scope)
            return is_array and self.chained(place) is not None
        if (memory := self.memory.get(place.id)) is None:
            return False
        sharing = [name for name, below in self.memory.items() if below == memory]
        return sum(self.uses[name] for name in sharing) == 1

    def span(self, value: Expr) -> frozenset[str] | None:
        """The inputs that a value depends on; None where that is not told by its parts."""
        match value:
            case Name(id=name):
                is_number = name in self.scope.scalars
                return frozenset() if is_number else self.spans.get(name)
            case Reduce(arg=arg, keep=True):
                span = self.span(arg)
                return span and frozenset(s for s in span if not s.startswith("["))
            case Op() | Where() | Literal():
                parts = [self.span(part) for part in children(value)]
                known = [part for part in parts if part is not None]
                return frozenset().union(*known) if len(known) == len(parts) else None
            case _:
                return None

    def text(self, value: Expr) -> str:
        self.uses.subtract(_uses([value]))
        return render(value, self.scope)


def _is_new(value: Expr) -> bool:
    """Whether it is computed into an array of its own: by an operator or a function of
    NumPy's, which gives back none of its arguments.
    """
    if not isinstance(value, Op) or not {*names(value)} or viewed(value) is not None:
        return False
    match primitive(value.primitive).spellings.get("numpy"):
        case Infix() | Prefix():
            return True
        case Template(text=text):
            return text.startswith("np.")
        case _:
            return False
