"""What the text of one rule's `torch.autograd.Function` is made from."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gradspec.ir.rule import Input, Kind, Output
from gradspec.plan.array import Expr, Where, names, nodes
from gradspec.plan.beside import reach_of
from gradspec.plan.plan import (
    Assign,
    AxisSize,
    Backward,
    Block,
    RulePlan,
    Step,
    Term,
)
from gradspec.targets.half import is_exact_in_half
from gradspec.targets.python import Dialect, Scope, may_be_number
from gradspec.targets.signature import fresh, scalars, variables
from gradspec.targets.torch_ranked import ranked
from gradspec.targets.torch_texts import DIALECT, FORWARD, IN_DOUBLE
from gradspec.targets.whole import positions

_FLOATS = (Kind.FLOAT, Kind.NOGRAD)


@dataclass(frozen=True, slots=True)
class Function:
    """One rule, its two passes in shared statements, and the names of the text.

    ``name`` is the class; ``is_traced`` says that both passes print what goes through
    them; ``tangents`` is the forward mode, if the rule has one.
    """

    name: str
    plan: RulePlan
    forward: Block
    backward: Backward
    is_traced: bool
    tangents: Block | None = None
    kept: tuple[Assign, ...] = ()
    """Locals that are saved: the class gives them as further outputs, because a context may
    keep nothing but inputs and outputs.
    """
    again: tuple[Assign, ...] = ()
    """What is kept and is another function of the inputs than autograd takes it for: saved
    locals, which are constants to it, and outputs whose gradient is declared to be another.
    Their values, for when the pass is to be differentiated itself.
    """
    base: Function | None = None
    """The class that this one, in float64, stands in for on a CPU."""
    in_loop: str = ""
    """The private function that is the slope in float32 where a compiler looks on."""

    def local(self, name: str) -> str:
        """``name`` for a value of the text's own, or what comes nearest to it."""
        return fresh(name, variables(self.plan))

    @property
    def dtype(self) -> str:
        """Holds the type to which results are rounded."""
        return self.local("dtype")

    @property
    def ctx(self) -> str:
        return self.local("ctx")

    # --- inputs and outputs

    @property
    def inputs(self) -> tuple[Input, ...]:
        return self.plan.inputs

    @property
    def outputs(self) -> tuple[Output, ...]:
        return self.plan.outputs

    @property
    def floats(self) -> tuple[str, ...]:
        """Floating tensor inputs."""
        return tuple(i.name for i in self.inputs if i.kind in _FLOATS)

    @property
    def results(self) -> tuple[Output, ...]:
        """The outputs of the rule, and of the public function."""
        kept = {assign.name for assign in self.kept}
        return tuple(o for o in self.outputs if o.name not in kept)

    @property
    def float_outputs(self) -> tuple[str, ...]:
        return tuple(o.name for o in self.outputs if o.kind in _FLOATS)

    @property
    def scalars(self) -> frozenset[str]:
        """Names that hold Python numbers."""
        return scalars(self.plan)

    @property
    def statics(self) -> tuple[str, ...]:
        """Statics that the backward pass uses."""
        used = {*self.backward.statics, *names(*(a.value for a in self.again))}
        used.update(self.tangent_uses)
        return tuple(i.name for i in self.plan.statics if i.name in used)

    # --- gradients

    @property
    def gradients(self) -> dict[str, tuple[Term, ...]]:
        """The terms of each input that takes a gradient, in rule order."""
        pairs = zip(self.plan.tensors, self.backward.gradients, strict=True)
        return {i.name: terms for i, terms in pairs if terms is not None}

    @property
    def values(self) -> tuple[Expr, ...]:
        """All that is printed."""
        again = tuple(assign.value for assign in self.again)
        rest = (*self.backward_values, *self.tangent_values)
        return (*self.forward_values, *again, *rest)

    @property
    def forward_values(self) -> tuple[Expr, ...]:
        """All that the forward pass computes."""
        statements = tuple(s.value for s in self.forward.statements)
        return (*statements, *self.forward.results)

    @property
    def backward_values(self) -> tuple[Expr, ...]:
        """All that the backward pass computes."""
        terms = (term for group in self.gradients.values() for term in group)
        steps = tuple(step.value for step in self.backward.statements)
        return (*steps, *(term.value for term in terms))

    @property
    def tangent_values(self) -> tuple[Expr, ...]:
        """All that forward mode computes."""
        if self.tangents is None:
            return ()
        steps = tuple(step.value for step in self.tangents.statements)
        return (*steps, *self.tangents.results)

    @property
    def tangent_uses(self) -> tuple[str, ...]:
        """The names that forward mode needs from elsewhere."""
        bound = {s.name for s in self.tangents.statements} if self.tangents else ()
        return tuple(n for n in names(*self.tangent_values) if n not in bound)

    @property
    def expanded(self) -> tuple[str, ...]:
        """The outputs whose tangents may lack axes of theirs."""
        if self.tangents is None:
            return ()
        outputs = [o for o in self.results if o.takes_gradient]
        return tuple(o.name for o in outputs if self._may_be_smaller(o.name))

    def _may_be_smaller(self, output: str) -> bool:
        tangents = self.plan.tangents
        if self.plan.is_ranked or tangents is None:
            return len(self.plan.tensors) > 1
        tangent = tangents[[o.name for o in self.plan.outputs].index(output)]
        if len(self.plan.tensors) == 1:
            return not _keeps_shape(tangent, self.scalars)
        value = next(let.value for let in self.plan.forward if let.name == output)
        free = {i.name for i in self.plan.tensors if i.shape.batch}
        reach = free & reach_of(value, self.plan.tensors)
        spans = {name.removesuffix("_dot") for name in names(tangent)}
        chosen = any(isinstance(node, Where) for node in nodes(tangent))
        return chosen or not spans & free or not reach <= spans

    @property
    def used_upstream(self) -> tuple[str, ...]:
        used = {
            d for terms in self.gradients.values() for t in terms for d in t.upstream
        }
        return tuple(d for d in self.plan.upstream if d in used)

    @property
    def tests_each(self) -> bool:
        """Several upstream gradients, of which any may be missing by itself. Where a
        value mixes them, missing ones are made zeros instead.
        """
        terms = [term.upstream for terms in self.gradients.values() for term in terms]
        steps = [step.upstream for step in self.backward.statements]
        mixed = any(len(upstream) > 1 for upstream in (*terms, *steps))
        return len(self.plan.upstream) > 1 and not mixed

    @property
    def is_materialised(self) -> bool:
        """Whether torch makes zeros of what is missing: of upstream gradients that a
        value mixes, and of tangents of inputs that stand still beside one that moves. Not
        for saved locals: zeros as gradients of them, which nothing reads, would cost at
        every call.
        """
        if len(self.plan.upstream) > 1:
            return not self.tests_each
        moves = self.tangents is not None and len(self.gradients) > 1
        return moves and not self.kept

    @property
    def filled(self) -> tuple[str, ...]:
        """The inputs whose missing tangents ``jvp`` makes zeros itself."""
        if self.tangents is None or self.is_materialised or len(self.gradients) < 2:
            return ()
        return tuple(self.gradients)

    def is_reduced(self, name: str, term: Term) -> bool:
        """Whether the term may have axes that the input has not."""
        others = any(v != name and self._has_axes(v) for v in term.spans)
        return others and not self.is_number(term)

    def is_filled(self, name: str, term: Term) -> bool:
        """Whether the term may lack axes of the input, or be no tensor at all."""
        number = may_be_number(term.value, self.scalars)
        return number or self.lacks_axes(name, term)

    def lacks_axes(self, name: str, term: Term) -> bool:
        """Whether the input may have axes that the term has not."""
        return self._has_axes(name) and name not in term.spans

    def is_number(self, term: Term) -> bool:
        """Whether no tensor takes part in the term."""
        return set(names(term.value)) <= self.scalars

    def _has_axes(self, name: str) -> bool:
        return next(i.shape.batch for i in self.inputs if i.name == name)

    # --- what the context keeps

    @property
    def residuals(self) -> tuple[str, ...]:
        """Inputs and outputs that are saved: what the gradients use, the input that a
        constant gradient is like, and one that tells the type if nothing else does.
        """
        if self.base is not None:
            return self.base.residuals
        wanted, numbers = {*self.backward.residuals}, self.scalars
        for name, terms in self.gradients.items():
            if not terms or any(
                may_be_number(term.value, numbers) or self.lacks_axes(name, term)
                for term in terms
            ):
                wanted.add(name)
        for assign in self.again:
            wanted.update(names(assign.value))
        wanted.update(self.tangent_uses)
        wanted.update(self.filled)
        if self.is_traced:
            wanted.update(i.name for i in self.plan.tensors)
        if self.tests_each and not wanted.intersection(self._typed):
            wanted.add(self.floats[0])
        given = [i.name for i in self.plan.tensors] + [o.name for o in self.outputs]
        return tuple(name for name in given if name in wanted)

    @property
    def saved_floats(self) -> tuple[str, ...]:
        return tuple(name for name in self.residuals if name in self._typed)

    @property
    def backward_floats(self) -> tuple[str, ...]:
        """Those that the backward pass computes with; in float64 no others are made so."""
        if self.base is None:
            return self.saved_floats
        used = names(*self.backward_values)
        return tuple(name for name in self.saved_floats if name in used)

    @property
    def _typed(self) -> tuple[str, ...]:
        return (*self.floats, *self.float_outputs)

    @property
    def shapes(self) -> tuple[str, ...]:
        """Inputs of which the backward pass needs nothing but the shape."""
        saved = self.residuals
        return tuple(
            name
            for name, terms in self.gradients.items()
            if name not in saved and any(self.is_reduced(name, term) for term in terms)
        )

    # --- sizes of axes

    def sizes(self, values: tuple[Expr, ...]) -> tuple[AxisSize, ...]:
        """Those that the values use."""
        used = names(*values)
        return tuple(size for size in self.plan.sizes if size.name in used)

    @property
    def backward_sizes(self) -> tuple[AxisSize, ...]:
        return self.sizes((*self.backward_values, *(a.value for a in self.again)))

    @property
    def tangent_sizes(self) -> tuple[AxisSize, ...]:
        return self.sizes(self.tangent_values)

    def tangent_place(self, size: AxisSize) -> str | None:
        """Where forward mode reads a size: a tangent has the shape of its input."""
        for name, axis in size.places:
            if name in self.gradients:
                return f"{name}_dot.shape[{axis}]"
        return None

    def place(self, size: AxisSize) -> str | None:
        """Where the backward pass reads a size, if what it is given shows it."""
        upstream = self.plan.upstream if len(self.plan.upstream) == 1 else ()
        for name, axis in size.places:
            if name in self.residuals or name in upstream:
                return f"{name}.shape[{axis}]"
        return None

    # --- printing

    def widener(self, in_double: bool) -> str:
        """What widens arguments: a private function, or a method where they are all there
        and on the CPU."""
        if not in_double:
            return "_widen"
        is_plain = self.base is not None and not self.tests_each
        return ".double" if is_plain else "_in_double"

    def rounded(self, text: str) -> str:
        """The text of a value in the type of the arguments."""
        if self.base is not None and text.isidentifier():
            return f"{text}.to(dtype={self.dtype})"  # by position it is found later
        return f"_rounded({text}, {self.dtype})"

    def scope(self, like: str | None) -> Scope:
        """Where ``like`` names a floating tensor, if there is one."""
        whole = (Kind.INT, Kind.STATIC_INT)
        integers = frozenset(i.name for i in self.plan.inputs if i.kind in whole)
        own = DIALECT if self.base is None else IN_DOUBLE
        dialect = own if like else _untyped()
        if self.plan.is_ranked:
            tensors = [i.name for i in self.plan.tensors]
            dialect = replace(dialect, ranked=ranked(like or tensors[0]))
            steps: list[Assign | Step] = [*self.forward.statements]
            steps += self.backward.statements
            at = positions(steps, integers)
            return Scope(dialect, self.scalars, integers, like or "", at)
        return Scope(dialect, self.scalars, integers, like or "")

    def forward_scope(self, like: str | None) -> Scope:
        """That of the forward pass, which nothing differentiates."""
        scope = self.scope(like)
        if self.base is not None:
            return scope
        dialect = replace(scope.dialect, fused=FORWARD.fused, variants=FORWARD.variants)
        return replace(scope, dialect=dialect)

    def is_widened(self, values: tuple[Expr, ...]) -> bool:
        """Whether half precision must be computed in float32 to be rounded once."""
        return not is_exact_in_half(values, self.scalars)


def _keeps_shape(tangent: Expr, scalars: frozenset[str]) -> bool:
    """Whether a value over one tensor has its shape whatever the numbers are."""
    chosen = (node for node in nodes(tangent) if isinstance(node, Where))
    by_number = any(set(names(node.condition)) <= scalars for node in chosen)
    return not by_number and not set(names(tangent)) <= scalars


def _untyped() -> Dialect:
    return replace(
        DIALECT,
        to_float="{x}.to(torch.get_default_dtype())",
        lift="torch.tensor({x})",
    )
