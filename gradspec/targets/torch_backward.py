"""The backward method of a `torch.autograd.Function`.

An upstream gradient may be missing (`None`) and a gradient may not be wanted
(`ctx.needs_input_grad`): neither costs anything then. Each term is reduced to its input's
shape before terms are added, because the outputs may have different shapes.
"""

from __future__ import annotations

from dataclasses import dataclass

from gradspec.plan.plan import Step, Term
from gradspec.targets.lines import (
    Lines,
    assignment,
    assignments,
    indented,
    tightened,
    unpacked,
)
from gradspec.targets.python import (
    Scope,
    may_be_number,
    render,
    render_atom,
    render_filled,
)
from gradspec.targets.torch_addcmul import accumulated
from gradspec.targets.torch_forward import widening
from gradspec.targets.torch_parts import Function
from gradspec.targets.torch_trace import traced_gradient

_CHAIN = 8
"""Names that are assigned None in one line."""


def backward_method(function: Function) -> Lines:
    """``backward``: the gradient of each input, None for those without one."""
    params = [
        f"d{o.name}" if o.takes_gradient else f"_{o.name}" for o in function.outputs
    ]
    header = f"def backward({function.ctx}, {', '.join(params)}):"
    body = _body(function) if function.gradients else [_nothing(function)]
    return ["@staticmethod", header, *indented(tightened(body))]


@dataclass(frozen=True, slots=True)
class _Pass:
    """The text's surroundings: what can be printed, and whether it was widened."""

    function: Function
    scope: Scope
    is_wide: bool

    @property
    def is_single(self) -> bool:
        """One gradient that is always there when this is called."""
        return len(self.function.gradients) == 1 and not self.function.tests_each


def _body(function: Function) -> Lines:
    floats = (*function.backward_floats, *function.used_upstream)
    like = floats[0] if floats else None
    adds = any(len(terms) > 1 for terms in function.gradients.values())
    double = function.plan.is_wide_backward
    exact = not adds and not function.is_widened(function.backward_values)
    wide = bool(like) and (double or not exact)
    helper = function.widener(double)
    here = _Pass(function, function.scope(like), wide)
    return [
        *_absent(function),
        *_restored(function),
        *(widening(function, floats, f"{like}.dtype", helper) if wide else []),
        *_in_loop(here),
        *_sizes(function),
        *_computed_again(here),
        *_shared(here),
        *_gradients(here),
        *_returned(here),
    ]


def _in_loop(here: _Pass) -> Lines:
    """In a compiled loop of float32 the slope of the only input is one function."""
    function = here.function
    if not function.in_loop:
        return []
    (name,) = function.gradients
    value = f"{function.plan.upstream[0]} * {function.in_loop}({name})"
    result = function.rounded(value) if here.is_wide else value
    others = [result if i.name == name else "None" for i in function.inputs]
    reason = "# in one loop of float32 the whole slope is cheaper than its parts"
    return [
        f"if _is_fused({name}):",
        *indented([reason, f"return {', '.join(others)}"]),
    ]


def _absent(function: Function) -> Lines:
    """With one output there is nothing to do when nothing comes from above."""
    if len(function.plan.upstream) != 1:
        return []
    if function.is_materialised:
        return []
    return [f"if {function.plan.upstream[0]} is None:", f"    {_nothing(function)}"]


def _nothing(function: Function) -> str:
    return f"return {', '.join('None' for _ in function.inputs)}"


def _restored(function: Function) -> Lines:
    saved, statics = function.residuals, function.statics
    lines = unpacked(list(saved), f"{function.ctx}.saved_tensors") if saved else []
    return [*lines, *(f"{name} = {function.ctx}.{name}" for name in statics)]


def _sizes(function: Function) -> Lines:
    return [
        f"{size.name} = {function.place(size) or f'{function.ctx}.{size.name}'}"
        for size in function.backward_sizes
    ]


def _computed_again(here: _Pass) -> Lines:
    """Where this pass is to be differentiated itself, what was kept is computed again as
    a function of the inputs.
    """
    lines = assignments(here.function.again, here.scope)
    if not lines:
        return []
    reason = "# a second derivative must see through what was saved"
    return ["if _is_differentiated():", *indented([reason, *lines])]


def _returned(here: _Pass) -> Lines:
    function = here.function
    gradients = [
        f"d{i.name}" if i.name in function.gradients else "None"
        for i in function.inputs
    ]
    if not here.is_wide:
        return [f"return {', '.join(gradients)}"]
    if here.is_single:
        rounded = [function.rounded(g) if g != "None" else g for g in gradients]
        return [f"return {', '.join(rounded)}"]
    narrowed = f"return _narrow({', '.join((function.dtype, *gradients))})"
    if function.plan.is_wide_backward:
        return [narrowed]
    whole = f"return {', '.join(gradients)}"
    return [f"if {function.dtype} in _HALF:", *indented([narrowed]), whole]


# --- statements --------------------------------------------------------------------------


def _shared(here: _Pass) -> Lines:
    """What several gradients need, where its upstream gradient is there."""
    steps = [
        step
        for step in here.function.backward.statements
        if len(step.inputs) > 1 or here.is_single
    ]
    if not here.function.tests_each:
        return assignments(steps, here.scope)
    lines = assignments((s for s in steps if not s.upstream), here.scope)
    for upstream in here.function.plan.upstream:
        own = assignments((s for s in steps if s.upstream == (upstream,)), here.scope)
        lines += _guarded(upstream, own)
    return lines


def _guarded(upstream: str, lines: Lines) -> Lines:
    return [f"if {upstream} is not None:", *indented(lines)] if lines else []


# --- gradients ---------------------------------------------------------------------------


def _gradients(here: _Pass) -> Lines:
    function = here.function
    if here.is_single:
        ((name, terms),) = function.gradients.items()
        return _gradient(here, name, terms)
    lines = _without(tuple(f"d{name}" for name in function.gradients))
    for name, terms in function.gradients.items():
        lines += _wanted(here, name, terms)
    return lines


def _without(gradients: tuple[str, ...]) -> Lines:
    """``dx = dy = None``, in lines that stay short: a chain cannot be broken."""
    return [
        f"{' = '.join(gradients[k : k + _CHAIN])} = None"
        for k in range(0, len(gradients), _CHAIN)
    ]


def _wanted(here: _Pass, name: str, terms: tuple[Term, ...]) -> Lines:
    """A gradient that is computed if it is needed, and as far as it can be."""
    function = here.function
    steps = [s for s in function.backward.statements if s.inputs == (name,)]
    tests: list[str] = []
    if len(function.gradients) > 1:
        position = [i.name for i in function.inputs].index(name)
        tests.append(f"{function.ctx}.needs_input_grad[{position}]")
    if function.tests_each and len(terms) == 1 and terms[0].upstream:
        tests.append(f"{terms[0].upstream[0]} is not None")
    if function.tests_each and len(terms) > 1:
        body = _tested(here, name, terms, steps)
    else:
        body = assignments(steps, here.scope) + _gradient(here, name, terms)
    return [f"if {' and '.join(tests)}:", *indented(body)] if tests else body


def _tested(
    here: _Pass, name: str, terms: tuple[Term, ...], steps: list[Step]
) -> Lines:
    """The terms whose upstream gradients are there."""
    lines = assignments((s for s in steps if not s.upstream), here.scope)
    for position, term in enumerate(terms):
        own = [s for s in steps if s.upstream == term.upstream]
        part = assignments(own, here.scope) + _term(here, name, terms, position)
        lines += _guarded(term.upstream[0], part)
    return lines


def _gradient(here: _Pass, name: str, terms: tuple[Term, ...]) -> Lines:
    if not terms:
        return [f"d{name} = torch.zeros_like({name})"]
    return [line for k in range(len(terms)) for line in _term(here, name, terms, k)]


def _term(here: _Pass, name: str, terms: tuple[Term, ...], position: int) -> Lines:
    """One term, in the input's shape, added to those before it."""
    term = terms[position]
    text = _shaped(here, name, term)
    if position and here.function.tests_each:
        plain = text == render(term.value, here.scope)
        together = accumulated(f"d{name}", term.value, here.scope) if plain else None
        text = together or f"_plus(d{name}, {text})"
    elif position:
        text = f"d{name} + {text}"
    lines = assignment(f"d{name}", text, term.comment)
    return [*lines, *traced_gradient(here.function, name, position, here.scope)]


def _shaped(here: _Pass, name: str, term: Term) -> str:
    """A term with exactly the input's axes."""
    function, scope, value = here.function, here.scope, term.value
    text = render_filled(value, scope, lambda number: _full_like(name, number))
    if function.is_number(term):
        return text
    if function.lacks_axes(name, term):
        number = may_be_number(value, scope.scalars)
        atom = f"({text})" if number else render_atom(value, scope)
        text = f"torch.zeros_like({name}) + {atom}"
    if not function.is_reduced(name, term):
        return text
    shape = (
        f"{function.ctx}.{name}_shape" if name in function.shapes else f"{name}.shape"
    )
    return f"_reduced({text}, {shape})"


def _full_like(name: str, number: str) -> str:
    if number in ("0", "0.0"):
        return f"torch.zeros_like({name})"
    return f"torch.full_like({name}, {number})"
