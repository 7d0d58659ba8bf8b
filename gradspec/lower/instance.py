"""Inlining of a def at its call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gradspec.ir.expr import Expr, Ref
from gradspec.ir.walk import transform
from gradspec.source import Span


def instantiate(body: Expr, values: Mapping[str, Expr], span: Span) -> Expr:
    """``body`` with its parameters replaced; its nodes take the place of the call, for
    the def may stand in another file.
    """

    def visit(node: Expr) -> Expr:
        if isinstance(node, Ref):
            return values[node.name]
        return replace(node, span=span)

    return transform(body, visit)
