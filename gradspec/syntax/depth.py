"""Depth of an expression, computed without recursion."""

from __future__ import annotations

from gradspec.source import Span
from gradspec.syntax import nodes
from gradspec.syntax.layout import MAX_DEPTH, too_deep
from gradspec.syntax.tokens import Fault, FaultFound


def refuse_depth(expr: nodes.Expr) -> None:
    """Raise a fault at the outermost piece that lies too deep.

    Long chains are deep trees: ``a + a + …`` has a level for each sign. Later stages
    walk trees without a check of depth. The message for a chain speaks of a chain,
    since its author did not nest anything.
    """
    if expr.span.end - expr.span.start <= MAX_DEPTH:
        return  # each level takes a character at least
    waiting = [(expr, 1, 0)]
    while waiting:
        node, level, links = waiting.pop()
        if level > MAX_DEPTH:
            is_chain = level - links <= MAX_DEPTH // 2
            raise FaultFound((_too_long if is_chain else too_deep)(node.span))
        for child in children(node):
            waiting.append((child, level + 1, links + _is_link(node, child)))


def _is_link(node: nodes.Expr, child: nodes.Expr) -> bool:
    """True if ``child`` continues the chain of terms, factors or cases of ``node``."""
    match node, child:
        case nodes.Binary(op=op, left=left), nodes.Binary(op=other):
            return child is left and any(op in s and other in s for s in ("+-", "*/%"))
        case nodes.Conditional(otherwise=otherwise), nodes.Conditional():
            return child is otherwise
    return False


def _too_long(span: Span) -> Fault:
    headline = f"this has more than {MAX_DEPTH} terms, factors or cases in a row"
    help = (
        "divide it into parts with names: `first = …`, `rest = …`, `y = first + rest`"
    )
    return Fault("GS120", headline, span, help=help)


def children(expr: nodes.Expr) -> tuple[nodes.Expr, ...]:
    """The expressions that one is made of, in the order written."""
    match expr:
        case nodes.Number() | nodes.Name():
            return ()
        case nodes.Indexed(indices=indices):
            return indices
        case nodes.Unary(operand=operand):
            return (operand,)
        case nodes.Binary(left=left, right=right):
            return (left, right)
        case nodes.Compare(operands=operands) | nodes.Logical(operands=operands):
            return operands
        case nodes.Conditional(then=then, condition=condition, otherwise=otherwise):
            return (then, condition, otherwise)
        case nodes.Call(args=args, keywords=keywords):
            return args + tuple(keyword.value for keyword in keywords)
        case nodes.Comprehension(body=body, indices=indices, condition=None):
            return (body, *indices)
        case nodes.Comprehension(body=body, indices=indices, condition=condition):
            assert condition is not None
            return (body, *indices, condition)
