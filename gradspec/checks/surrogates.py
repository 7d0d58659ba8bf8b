"""A surrogate is there to give a gradient: does it?"""

from __future__ import annotations

from collections.abc import Iterator

from gradspec.checks.inputs import vanishes
from gradspec.checks.subject import Subject, depends
from gradspec.diagnostics import Diagnostic, warning
from gradspec.ir.calls import expand
from gradspec.ir.expr import ZERO
from gradspec.ir.rule import Override
from gradspec.ir.walk import inline, substitute


def check(subject: Subject) -> Iterator[Diagnostic]:
    rule = subject.rule
    for surrogate in rule.surrogates:
        value = expand(inline(rule.forward, surrogate.value))
        reached = [
            variable.name
            for variable, entry in zip(rule.inputs, rule.backward, strict=True)
            if variable.takes_gradient
            and not isinstance(entry, Override)
            and depends(subject.forward[surrogate.output], variable.name)
        ]
        if reached and all(
            _is_dead(subject, name, surrogate.output) for name in reached
        ):
            yield warning(
                "GS405",
                f"the surrogate of {surrogate.output} in {rule.name} gives no gradient",
                rule.source,
                surrogate.span,
                label="its derivative is 0 at every sampled point"
                if any(depends(value, name) for name in reached)
                else f"it does not depend on {', '.join(reached)}",
                help="give a smooth function of the inputs",
            )


def _is_dead(subject: Subject, name: str, output: str) -> bool:
    """The output's own contribution to the gradient is 0."""
    gradient = subject.derived.get(name)
    if gradient is None:
        return False
    others = {n: ZERO for n in subject.upstream if n != f"d{output}"}
    return vanishes(subject, substitute(gradient, others))
