"""Calls of other rules, replaced by the callee's expressions."""

from __future__ import annotations

from functools import lru_cache

from gradspec.ir.expr import Call, Expr, Ref
from gradspec.ir.rule import Override, Rule
from gradspec.ir.walk import inline, nodes, substitute, transform


@lru_cache(maxsize=4096)
def expand(expr: Expr) -> Expr:
    """``expr`` with every `Call` replaced by the callee's forward, all the way down.

    The value is the same; the callee's own backward is forgotten, so this is for
    evaluating and proving values, not for differentiating.
    """
    if not any(isinstance(node, Call) for node in nodes(expr)):
        return expr
    return transform(expr, _expand_node)


def _expand_node(node: Expr) -> Expr:
    if not isinstance(node, Call):
        return node
    names = (variable.name for variable in node.rule.inputs)
    body = forward(node.rule, node.output)
    return substitute(body, dict(zip(names, node.args, strict=True)))


def forward(rule: Rule, output: int) -> Expr:
    """An output as one expression in the (elementwise) rule's inputs, calls
    expanded."""
    return expand(inline(rule.forward, Ref(rule.outputs[output].name)))


def follows_surrogate(rule: Rule) -> bool:
    """True if derivatives go through a surrogate: the rule's own, or the surrogate or
    override of a rule that it calls. The backward is then not the derivative of the
    forward, and no difference quotient can judge it.
    """
    return bool(rule.surrogates) or calls_surrogate(rule)


def calls_surrogate(rule: Rule) -> bool:
    """True if a rule that it calls, however indirectly, has a surrogate or override."""
    values = (let.value for let in rule.forward)
    found = (n.rule for value in values for n in nodes(value) if isinstance(n, Call))
    return any(
        follows_surrogate(callee)
        or any(isinstance(entry, Override) for entry in callee.backward)
        for callee in found
    )
