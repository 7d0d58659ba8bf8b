"""The plan of a rule and of a module.

:class:`RulePlan` (from `plan.planning`) is target-neutral: closed expressions in the
inputs and the cotangents, nothing shared. A target asks `plan.program` for
:class:`Block` and :class:`Backward` values, in which primitives that the target lacks
are expanded and repeated values are named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import Enum

from gradspec.ir.rule import Input, Kernel, Output, Signature
from gradspec.plan.arrays import Expr, is_whole
from gradspec.source import Source, Span

# --- statements ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Assign:
    """``name = value``, perhaps under a comment (a reason, without ``#``).

    In a backward pass, ``inputs`` are the inputs whose gradients need it, ``upstream``
    the cotangents (``d<output>``) that it depends on, directly or not. Both in rule
    order.
    """

    name: str
    value: Expr
    comment: str = ""
    inputs: tuple[str, ...] = ()
    upstream: tuple[str, ...] = ()


def positions(statements: Iterable[Assign], known: frozenset[str]) -> frozenset[str]:
    """The names of statements that hold integers, given the names that do already."""
    found: set[str] = set()
    for statement in statements:
        if is_whole(statement.value, known | found):
            found.add(statement.name)
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class Block:
    """Statements, then one result for each requested output (or tangent)."""

    statements: tuple[Assign, ...]
    results: tuple[Expr, ...]

    @property
    def values(self) -> list[Expr]:
        """All values."""
        return [*(s.value for s in self.statements), *self.results]


@dataclass(frozen=True, slots=True)
class Term:
    """One summand of an input's gradient, to be reduced to the input's shape by itself.

    ``upstream`` are the cotangents (``d<output>``) that it uses: one in split form,
    unless the rule is not linear in them; none when the author's override ignores them.
    ``spans`` are the tensor inputs whose broadcast shape the term has; a term whose
    ``spans`` is the input alone needs no reduction.
    """

    value: Expr
    upstream: tuple[str, ...]
    spans: tuple[str, ...]
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Backward:
    """The backward pass of one rule for one target.

    ``gradients`` has one entry for each tensor input: its terms, or None when it takes
    no gradient. No terms at all means that the gradient is zero. ``residuals`` are
    inputs, outputs and saved locals, in rule order (statics are not listed).
    ``statics`` are the statics that it uses.
    """

    statements: tuple[Assign, ...]
    gradients: tuple[tuple[Term, ...] | None, ...]
    residuals: tuple[str, ...]
    statics: tuple[str, ...] = ()

    @property
    def values(self) -> list[Expr]:
        """All values."""
        terms = (term.value for group in self.gradients for term in group or ())
        return [*(s.value for s in self.statements), *terms]


# --- the neutral plan ---------------------------------------------------------------------


class Nature(Enum):
    """The relation of the backward pass to the derivative of the forward pass."""

    EXACT = "exact"
    SURROGATE = "surrogate"
    OVERRIDE = "override"


@dataclass(frozen=True, slots=True)
class Gradient:
    """One input's gradient: the whole expression as written, and the same as a sum with
    one term for each output (see :class:`Term`).
    """

    input: str
    whole: Expr
    terms: tuple[Term, ...]
    slopes: tuple[Expr | None, ...]
    """For each term, its value at cotangent 1 (None when it is not linear)."""


@dataclass(frozen=True, slots=True)
class Note:
    """A titled line or paragraph of the generated docstring."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Docs:
    """The contents of a docstring: the author's words, the rule as written, and notes
    (domain, verdict of each gradient, reasons of overrides, the source).
    """

    doc: str
    definition: str
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class AxisSize:
    """The size of a named axis: a Python number ``name`` in the plan's expressions.

    ``places`` are where it can be read, in the order of preference: a tensor (input,
    output, ``d<output>``, or saved local) and the position of the axis from the end.
    """

    name: str
    places: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class RulePlan(Signature):
    """One rule, closed and unshared.

    A rule over named axes uses the nodes of `plan.arrays`: outputs and gradients then
    have the core axes of their declaration in full, behind batch axes that broadcast;
    a gradient's batch axes still need to be reduced to its input's.

    ``inputs`` are all inputs, statics included, in the order written. ``forward`` holds
    the author's locals and outputs, ``backward_locals`` those of the backward pass; in
    all expressions the other names are inlined, so that only inputs and ``d<output>``
    occur (a residual output or local occurs by its name in gradients), and
    ``constants``: locals without tensors. ``saved`` are the outputs and locals that
    gradients may use by name. ``tangents`` has one expression per output in the inputs
    and ``<input>_dot``; it is None where ``no_tangents`` gives the reason.
    """

    name: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    constants: tuple[Assign, ...]
    forward: tuple[Assign, ...]
    backward_locals: tuple[Assign, ...]
    gradients: tuple[Gradient | None, ...]
    saved: tuple[str, ...]
    tangents: tuple[Expr, ...] | None
    no_tangents: str
    nature: Nature
    docs: Docs
    source: Source = field(default=Source("", ""), compare=False, repr=False)
    span: Span = field(default=Span(0, 0), compare=False, repr=False)
    comments: tuple[tuple[str, str], ...] = ()
    """Reasons of rewrites, by the output, local or cotangent that they explain."""
    sizes: tuple[AxisSize, ...] = ()
    asked: tuple[str, ...] = ()
    """Outputs and locals that the author makes residuals, by ``save``."""

    wide: tuple[str, ...] = ()
    """Outputs and cotangents that are computed in float64 and rounded."""

    kernels: tuple[Kernel, ...] = ()
    """The kernels that compute values or gradients, of all targets."""

    assumed: tuple[str, ...] = ()
    """The assumptions that a call checks, as texts."""

    domain: str = ""
    """The name of the rule that says where they hold."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of inputs, outputs, locals and sizes."""
        lets = (*self.constants, *self.forward, *self.backward_locals)
        ends = [*(i.name for i in self.inputs), *(o.name for o in self.outputs)]
        sizes = (size.name for size in self.sizes)
        return tuple(dict.fromkeys([*ends, *(let.name for let in lets), *sizes]))

    def map_values(
        self, value: Callable[[Expr], Expr], name: Callable[[str], str] = str
    ) -> RulePlan:
        """The plan with each expression changed, and each name of a value."""

        def lets(assigns: tuple[Assign, ...]) -> tuple[Assign, ...]:
            return tuple(
                Assign(name(a.name), value(a.value), a.comment) for a in assigns
            )

        def each(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(map(name, names))

        def term(old: Term) -> Term:
            upstream, spans = each(old.upstream), each(old.spans)
            return Term(value(old.value), upstream, spans, old.comment)

        def gradient(old: Gradient) -> Gradient:
            terms = tuple(map(term, old.terms))
            slopes = tuple(slope and value(slope) for slope in old.slopes)
            return Gradient(name(old.input), value(old.whole), terms, slopes)

        def size(old: AxisSize) -> AxisSize:
            places = ((name(of), at) for of, at in old.places)
            return AxisSize(name(old.name), tuple(places))

        return replace(
            self,
            inputs=tuple(replace(i, name=name(i.name)) for i in self.inputs),
            outputs=tuple(replace(o, name=name(o.name)) for o in self.outputs),
            constants=lets(self.constants),
            forward=lets(self.forward),
            backward_locals=lets(self.backward_locals),
            gradients=tuple(g and gradient(g) for g in self.gradients),
            saved=each(self.saved),
            asked=each(self.asked),
            wide=each(self.wide),
            tangents=self.tangents and tuple(map(value, self.tangents)),
            comments=tuple((name(where), text) for where, text in self.comments),
            sizes=tuple(map(size, self.sizes)),
        )

    @property
    def saved_or_given(self) -> tuple[str, ...]:
        """The possible residuals: tensor inputs, then ``saved``."""
        return (*(i.name for i in self.tensor_inputs), *self.saved)


@dataclass(frozen=True, slots=True)
class Unplanned:
    """A rule that cannot be emitted yet, and why (reported as a diagnostic of the
    target).
    """

    rule: str
    reason: str
    source: Source
    span: Span


@dataclass(frozen=True, slots=True)
class ModulePlan:
    """One generated module. ``path`` is relative to the target's folder and has the
    suffix ``.py``; ``origin`` is the `.grad` file's name as the header shows it.
    """

    source: Source
    path: str
    origin: str
    rules: tuple[RulePlan, ...]
    unplanned: tuple[Unplanned, ...] = ()
