"""What the text of one rule's `tf.custom_gradient` is made from."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gradspec.ir.rule import Kind, Output
from gradspec.plan.array import Expr, Name, names
from gradspec.plan.plan import (
    Assign,
    AxisSize,
    Backward,
    Block,
    Nature,
    RulePlan,
    Step,
    Term,
)
from gradspec.targets.half import is_exact_in_half
from gradspec.targets.python import Dialect, Scope, may_be_number
from gradspec.targets.signature import fresh, variables
from gradspec.targets.tf_ranked import ranked
from gradspec.targets.tf_sizes import numbers, whole_names
from gradspec.targets.tf_texts import DIALECT
from gradspec.targets.whole import positions

_FLOATS = (Kind.FLOAT, Kind.NOGRAD)


@dataclass(frozen=True, slots=True)
class Core:
    """One rule, its two passes in shared statements, and the core's name.

    ``is_traced`` says that both passes print what goes through them. ``short`` is the
    same rule in float64, for narrow eager tensors; its ``dialect`` is another.
    """

    name: str
    plan: RulePlan
    forward: Block
    backward: Backward
    is_traced: bool
    dialect: Dialect = DIALECT
    short: Core | None = None

    @property
    def tensors(self) -> tuple[str, ...]:
        return tuple(i.name for i in self.plan.tensors)

    @property
    def floats(self) -> tuple[str, ...]:
        """Floating tensor inputs."""
        return tuple(i.name for i in self.plan.inputs if i.kind in _FLOATS)

    @property
    def statics(self) -> tuple[str, ...]:
        return tuple(i.name for i in self.plan.statics)

    @property
    def keeps(self) -> bool:
        """Whether the backward pass uses what the forward pass has computed."""
        return bool(self._used_again)

    @property
    def keeps_results(self) -> bool:
        """Whether all of that is given back as it is, but for half precision, and has the
        derivative of its values: as a result it has the declared one.
        """
        if self.plan.nature is not Nature.EXACT:
            return False
        given = {
            output.name
            for output, value in self.results
            if output.kind is Kind.FLOAT
            and (self.is_widened or value == Name(output.name))
        }
        return self.keeps and not self.is_double and self._used_again <= given

    @property
    def _used_again(self) -> frozenset[str]:
        steps = {s.name for s in self.backward.statements}
        made = {s.name for s in self.forward.statements}
        made |= {o.name for o in self.plan.outputs}
        behind = (s.value for s in self.backward.statements)
        used = {*names(*behind, *(term.value for term in self.terms))} - steps
        return frozenset(used & made)

    @property
    def gradients(self) -> dict[str, tuple[Term, ...]]:
        """The terms of each input that takes a gradient, in rule order."""
        pairs = zip(self.plan.tensors, self.backward.gradients, strict=True)
        return {i.name: terms for i, terms in pairs if terms is not None}

    @property
    def terms(self) -> tuple[Term, ...]:
        return tuple(term for terms in self.gradients.values() for term in terms)

    @property
    def values(self) -> tuple[Expr, ...]:
        """All that is printed."""
        ahead = tuple(s.value for s in self.forward.statements)
        behind = tuple(s.value for s in self.backward.statements)
        terms = tuple(term.value for term in self.terms)
        return (*ahead, *self.forward.results, *behind, *terms)

    @property
    def scalars(self) -> frozenset[str]:
        """Names that hold Python numbers."""
        return numbers(self.plan)

    @property
    def sizes(self) -> tuple[AxisSize, ...]:
        """The sizes of axes that are used."""
        used = names(*self.values)
        return tuple(size for size in self.plan.sizes if size.name in used)

    @property
    def scope(self) -> Scope:
        """Where expressions are printed: a floating input tells the working type."""
        integers = whole_names(self.plan)
        if self.floats:
            dialect = replace(self.dialect, ranked=ranked(self.floats[0]))
            steps: list[Assign | Step] = [*self.forward.statements]
            steps += self.backward.statements
            at = positions(steps, integers) if self.plan.is_ranked else frozenset()
            return Scope(dialect, self.scalars, integers, self.floats[0], at)
        return Scope(
            replace(
                self.dialect,
                to_float="tf.cast({x}, tf.float32)",
                lift="tf.constant({x}, tf.float32)",
            ),
            self.scalars,
            integers,
            "",
        )

    @property
    def is_widened(self) -> bool:
        """Whether half precision must be computed in float32 to be rounded once."""
        adds = any(len(terms) > 1 for terms in self.gradients.values())
        exact = is_exact_in_half(self.values, self.scalars)
        return bool(self.floats) and (adds or not exact or self.is_double)

    @property
    def results(self) -> tuple[tuple[Output, Expr], ...]:
        """The outputs with what they are."""
        return tuple(zip(self.plan.outputs, self.forward.results, strict=True))

    @property
    def dtype(self) -> str:
        """The name of the type of the arguments, before they are widened."""
        return fresh("dtype", variables(self.plan))

    @property
    def widening(self) -> str:
        """The helper that gives arguments the type that is computed in."""
        if self.is_short:
            return "_doubles"
        return "_in_double" if self.is_double else "_widen"

    @property
    def cast(self) -> str:
        """What gives results the type of the arguments."""
        return "_cast" if self.is_short else "tf.cast"

    @property
    def is_short(self) -> bool:
        """Whether arguments are eager and narrow."""
        return self.dialect is not DIALECT

    @property
    def kept(self) -> str:
        """The name of what is kept between the passes."""
        return fresh("kept", variables(self.plan))

    @property
    def is_double(self) -> bool:
        """Whether both passes, which share the arguments, are computed in float64."""
        return self.plan.is_wide_forward or self.plan.is_wide_backward

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
        return next(i.shape.batch for i in self.plan.inputs if i.name == name)
