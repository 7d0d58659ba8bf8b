"""Locals of which some elements do not exist at any size: ``d[i] = x[i + 1] - x[i]``.

That is fine as long as nothing uses those elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from gradspec.checks.indexed_cases import Cases, cases
from gradspec.diagnostics import Diagnostic, error
from gradspec.ir.expr import Idx, Ref
from gradspec.ir.rule import Rule
from gradspec.ir.walk import nodes


@lru_cache(maxsize=64)
def partial(rule: Rule) -> frozenset[str]:
    """The locals that lack elements at every size at which the rule says something."""
    return _partial(cases(rule)) if _may_be_partial(rule) else frozenset()


def check(rule: Rule) -> Iterator[Diagnostic]:
    """An element that is used at some size although it does not exist there."""
    if not _may_be_partial(rule):
        return
    known = cases(rule)
    found = _partial(known)
    for sizes, fault in known.lost_at:
        element = fault.through
        if element is None or element.name.partition("[")[0] not in found:
            continue
        where = ", ".join(f"{axis} = {size}" for axis, size in sizes.items())
        local = element.name.partition("[")[0]
        yield error(
            "GS250",
            f"{rule.name} uses an element of {local} that does not exist",
            rule.source,
            element.span or rule.name_span,
            label=f"`{element.name}` needs `{fault.name}`, which is outside its axis"
            f" at {where}",
            help=f"use {local} only where it exists, `… if i < n - 1`, or say for which"
            " sizes the rule is meant, `assume n > 2`",
        )
        return


def _partial(known: Cases) -> frozenset[str]:
    every = [case.unrolled.partial for case in (*known.small, *known.larger)]
    return frozenset.intersection(*every) if every else frozenset()


def _may_be_partial(rule: Rule) -> bool:
    """A local has an index that is more than an index."""
    outputs = {output.name for output in rule.outputs}
    lets = (*rule.forward, *rule.backward_locals)
    return any(
        isinstance(node, Ref) and any(not isinstance(i, Idx) for i in node.indices)
        for let in lets
        if let.indices and let.name not in outputs
        for node in nodes(let.value)
    )
