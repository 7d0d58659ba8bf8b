"""What the author saves and no gradient uses as it is evaluated: told, for it is not kept."""

from __future__ import annotations

from collections.abc import Iterator

from gradspec.diagnostics import Diagnostic, warning
from gradspec.plan.plan import ModulePlan, RulePlan


def unsaved(module: ModulePlan) -> tuple[Diagnostic, ...]:
    """A warning for each name that stands in ``save`` in vain."""
    return tuple(found for plan in module.rules for found in _of_rule(plan))


def _of_rule(plan: RulePlan) -> Iterator[Diagnostic]:
    for name in plan.asked:
        if name not in plan.saved:
            yield warning(
                "GS464",
                f"{name} of {plan.name} is not saved: no gradient uses it",
                plan.source,
                plan.span,
                label=f"its gradients are evaluated in a form without {name}",
                help=f"leave out `save {name}`; or write the gradient with {name}, marked"
                " `exact`, so that it is evaluated as it stands",
            )
