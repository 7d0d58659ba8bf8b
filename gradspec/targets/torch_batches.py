"""Outputs in every batch of vmap in which the inputs are.

Where ``vmap`` maps some inputs and an output depends on none of them, torch leaves that
output outside the batch, and sums its upstream gradient over the batch before the rule sees
it. With ``q = y**2`` beside ``p = x * y`` that is right for the gradient ``2 * y * dq``
alone; beside ``dp * x``, which is in the batch, or times anything that is, it is counted once
for each element. So an output goes into the batch of all inputs: it is the same number, and
its upstream gradient that of each.
"""

from __future__ import annotations

from gradspec.ir.rule import Output
from gradspec.plan.plan import RulePlan
from gradspec.primitives.row import Helper
from gradspec.primitives.texts_torch import ACTIVE
from gradspec.targets.signature import unreached

BATCHED_WITH = Helper(
    "_batched_with",
    '''\
def _batched_with(output: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
    """``output``, in every batch of vmap in which the others are: torch sums the upstream
    gradient of what stands outside over the batch, before the rule sees it.
    """
    if torch.compiler.is_dynamo_compiling() or not _transforms_are_active():
        return output
    for other in others:
        output = output - other.new_zeros((), dtype=output.dtype)
    return output
''',
    needs=(ACTIVE,),
)


def batched(plan: RulePlan, output: Output, text: str) -> str:
    """The text of an output, in the batch of the inputs that it does not depend on."""
    others = unreached(plan, output) if output.takes_gradient else ()
    return f"_batched_with({', '.join((text, *others))})" if others else text
