"""What a `torch.autograd.Function` keeps that is not what autograd takes it for.

Saved locals are constants to autograd. An output is a function of the inputs whose
derivative is what the rule declares: where that is not the derivative of the forward
expression (an override, a surrogate), a gradient in terms of the output would be
differentiated through the declaration, and be another than the number that changes when
the inputs do. Both are computed again where a backward pass is itself differentiated.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradspec.plan.array import Expr, Name
from gradspec.plan.plan import Assign, Nature, RulePlan
from gradspec.plan.program import Vocabulary
from gradspec.plan.translate import replaced
from gradspec.primitives.row import Helper
from gradspec.primitives.texts_torch import ACTIVE

DIFFERENTIATED = Helper(
    "_is_differentiated",
    '''\
def _is_differentiated() -> bool:
    """Whether the pass at hand is to be differentiated itself, backward or forward."""
    return torch.is_grad_enabled() or torch.autograd.forward_ad._current_level >= 0
''',
)

UNBATCHED = Helper(
    "_unbatched",
    '''\
def _unbatched(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor that holds a batch of vmap: the one that autograd knows."""
    if not _transforms_are_active():
        return tensor
    while torch._C._functorch.is_batchedtensor(tensor):
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return tensor
''',
    needs=(ACTIVE,),
)


def kept_locals(plan: RulePlan, words: Vocabulary) -> tuple[Assign, ...]:
    """The locals that are saved, each in terms of the inputs and of those before it."""
    outputs = {output.name for output in plan.outputs}
    saved = [name for name in plan.saved if name not in outputs]
    return _in_turn(plan, words, saved)


def outputs_declared(plan: RulePlan) -> tuple[str, ...]:
    """The outputs whose declared gradient may be another than that of their values."""
    if plan.nature is Nature.EXACT:
        return ()
    return tuple(output.name for output in plan.outputs)


def computed_again(
    plan: RulePlan, words: Vocabulary, residuals: Iterable[str]
) -> tuple[Assign, ...]:
    """The values, from the inputs, of all that is kept but inputs and sound outputs."""
    others = {*outputs_declared(plan), *(a.name for a in kept_locals(plan, words))}
    return _in_turn(plan, words, others & {*residuals})


def _in_turn(
    plan: RulePlan, words: Vocabulary, wanted: Iterable[str]
) -> tuple[Assign, ...]:
    known: dict[Expr, Expr] = {}
    found = []
    for assign in plan.forward:
        if assign.name in wanted:
            value = words.expand(assign.value)
            found.append(Assign(assign.name, replaced(value, known), assign.comment))
            known[value] = Name(assign.name)
    return tuple(found)
