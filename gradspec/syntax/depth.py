"""How deep an expression is, found without recursion."""

from __future__ import annotations

from gradspec.syntax import nodes
from gradspec.syntax.layout import MAX_DEPTH, too_deep
from gradspec.syntax.tokens import FaultFound


def refuse_depth(expr: nodes.Expr) -> None:
    """Raises a fault at the outermost piece that lies too deep.

    Long chains are deep trees: ``a + a + …`` has a level for each sign. The later
    stages walk trees; none of them should have to fear the depth of one.
    """
    if expr.span.end - expr.span.start <= MAX_DEPTH:
        return  # each level takes a character at least
    waiting = [(expr, 1)]
    while waiting:
        node, level = waiting.pop()
        if level > MAX_DEPTH:
            raise FaultFound(too_deep(node.span))
        waiting.extend((child, level + 1) for child in children(node))


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
