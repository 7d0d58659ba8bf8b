"""The statements of a backward pass: each gradient in its own input's shape."""

from __future__ import annotations

from gradspec.plan.plan import Term
from gradspec.targets.jax_parts import Core
from gradspec.targets.jax_trace import traced_gradient
from gradspec.targets.lines import Lines, assignment, assignments
from gradspec.targets.python import may_be_number, render_filled
from gradspec.targets.spans import is_number, is_reduced, lacks_axes


def backward_lines(core: Core, wanted: tuple[str, ...]) -> Lines:
    """Shared statements, then ``d<input>`` for each input that is wanted."""
    lines = assignments(core.backward.statements, core.scope)
    for name in wanted:
        terms = core.gradients[name]
        comments = [term.comment for term in terms if term.comment]
        lines += assignment(f"d{name}", _sum(core, name, terms), "\n".join(comments))
        lines += traced_gradient(core, name)
    return lines


def _sum(core: Core, name: str, terms: tuple[Term, ...]) -> str:
    if not terms:
        return f"jnp.zeros_like({name})"
    if len(terms) == 1:
        return _shaped(core, name, terms[0])
    texts = [_shaped(core, name, term) for term in terms]
    pairs = zip(texts, terms, strict=True)
    scalars = core.scope.scalars
    return " + ".join(
        f"({text})" if may_be_number(term.value, scalars) else text
        for text, term in pairs
    )


def _shaped(core: Core, name: str, term: Term) -> str:
    """A term with exactly the input's axes."""
    text = render_filled(term.value, core.scope, lambda n: _full_like(name, n))
    if is_number(core.plan, term):
        return text
    exact = not is_reduced(core.plan, name, term) and not lacks_axes(
        core.plan, name, term
    )
    return text if exact else f"_like({text}, {name})"


def _full_like(name: str, number: str) -> str:
    zero = number in ("0", "0.0")
    return f"jnp.zeros_like({name})" if zero else f"jnp.full_like({name}, {number})"
