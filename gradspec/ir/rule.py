"""A typed rule: inputs, outputs, forward and backward, with every name resolved.

A rule is its inputs, its outputs and a tuple of :class:`Definition` values. As lowered it
has no definition of a cotangent that the user left out; a :class:`Complete` one has
every cotangent, a :class:`Judged` one verdicts on them, a :class:`Chosen` one evaluations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from fractions import Fraction
from typing import Any, Self, TypeAlias

from gradspec.ir.expr import Expr
from gradspec.source import Source, Span


class Kind(Enum):
    """The kind of a variable; only FLOAT inputs receive a gradient."""

    FLOAT = "float"
    NOGRAD = "nograd"
    INT = "int"
    BOOL = "bool"
    STATIC = "static"
    STATIC_INT = "static int"

    @property
    def is_static(self) -> bool:
        return self in (Kind.STATIC, Kind.STATIC_INT)

    @property
    def is_real(self) -> bool:
        """True of tensors of floating-point numbers."""
        return self in (Kind.FLOAT, Kind.NOGRAD)


@dataclass(frozen=True, slots=True)
class Shape:
    """Leading batch axes (``...``) or none, then the named or fixed axes.

    An elementwise variable ``x`` is ``Shape(batch=True, axes=())``; ``x[]`` is
    ``Shape(batch=False, axes=())``; ``x[..., n]`` is ``Shape(True, ("n",))``.
    """

    batch: bool = True
    axes: tuple[str | int, ...] = ()

    @property
    def is_elementwise(self) -> bool:
        return self.batch and not self.axes


UNBOUNDED = Fraction(2) ** 1000
"""The default ``inf`` of a static, as the number at which exact values are computed: so
far out that no format tells them from the limits. A program has the infinity."""


@dataclass(frozen=True, slots=True)
class Input:
    """An input; ``default`` only for statics (None: required). What is learned
    (``param``) is a FLOAT input with an ``initial`` value, and no other has one. A static
    integer ``is_size`` if it is the size of an axis, or the range of an index.
    """

    name: str
    kind: Kind
    shape: Shape
    default: Fraction | None = None
    span: Span = field(default=Span(0, 0), compare=False, repr=False)
    initial: Fraction | None = None
    is_size: bool = False

    @property
    def cotangent(self) -> str:
        """The name of its gradient."""
        return f"d{self.name}"

    @property
    def is_param(self) -> bool:
        return self.initial is not None

    @property
    def takes_gradient(self) -> bool:
        return self.kind is Kind.FLOAT


@dataclass(frozen=True, slots=True)
class Output:
    """An output; only FLOAT outputs have an upstream gradient ``d<name>``. ``spans``
    are the tensor inputs that it depends on as written: it has the shape to which these
    broadcast, whichever of them remain in the form that is evaluated.
    """

    name: str
    kind: Kind
    shape: Shape
    span: Span = field(default=Span(0, 0), compare=False, repr=False)
    spans: tuple[str, ...] = ()

    @property
    def cotangent(self) -> str:
        """The name of its upstream gradient."""
        return f"d{self.name}"

    @property
    def takes_gradient(self) -> bool:
        return self.kind is Kind.FLOAT


class Role(Enum):
    """The part that a defined value has in its rule."""

    LOCAL = "local"
    OUTPUT = "output"
    SURROGATE = "surrogate"
    """The function that is differentiated in the place of the output of that name."""
    BACKWARD_LOCAL = "local of the backward pass"
    """A local that uses a cotangent."""
    COTANGENT = "cotangent"
    """``d<input>``."""


class Origin(Enum):
    """The source of a definition: its author, or differentiation."""

    WRITTEN = "written"
    """By the author; a cotangent must be the true vector-Jacobian product."""
    DERIVED = "derived"
    """By reverse accumulation of the forward (or of the rule's surrogates)."""
    OVERRIDE = "override"
    """By the author: a cotangent that is not the derivative, for the stated reason."""


@dataclass(frozen=True, slots=True)
class Definition:
    """``name[indices] = value``, with the ``axes`` that the indices range over;
    ``reason`` is that of an override. A value that uses earlier elements of its own
    name is a recurrence. If it ``is_equation``, it may use any element of its own: the
    definition ``solve x: left == right`` has the value ``x - (left - right)``, or
    the other side if ``x`` stands alone on one; elements for which its condition does
    not hold are 0. ``start`` is the value from which the author wants it sought.
    """

    name: str
    role: Role
    value: Expr
    indices: tuple[str, ...] = ()
    axes: tuple[str | int, ...] = ()
    origin: Origin = Origin.WRITTEN
    span: Span = field(default=Span(0, 0), compare=False, repr=False)
    reason: str = ""
    is_equation: bool = False
    start: Expr | None = None

    @property
    def input(self) -> str:
        """The input of a cotangent."""
        return self.name.removeprefix("d")

    @property
    def is_forward(self) -> bool:
        return self.role in (Role.LOCAL, Role.OUTPUT)

    @property
    def is_declared(self) -> bool:
        """True of a cotangent that the author claims to be the derivative."""
        return self.role is Role.COTANGENT and self.origin is Origin.WRITTEN

    @property
    def is_derived(self) -> bool:
        return self.origin is Origin.DERIVED

    @property
    def is_override(self) -> bool:
        return self.origin is Origin.OVERRIDE


@dataclass(frozen=True, slots=True)
class Assume:
    """A condition that holds of the inputs (for every free index); ``indices`` are its
    free indices with the axes that they range over.
    """

    condition: Expr
    indices: tuple[tuple[str, str | int], ...] = ()
    span: Span = field(default=Span(0, 0), compare=False, repr=False)


Value: TypeAlias = "str | tuple[Value, ...]"
"""A number of an example as written (digits matter), or a nested tuple of them."""


@dataclass(frozen=True, slots=True)
class Example:
    """``given`` binds inputs, statics and upstream gradients; ``expected`` outputs and
    gradients. Names are resolved; upstream gradients not given are 1.
    """

    given: tuple[tuple[str, Value], ...]
    expected: tuple[tuple[str, Value], ...]
    span: Span = field(default=Span(0, 0), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A foreign function that computes, on one target, the outputs or, if it
    ``is_gradient``, cotangents called ``names``. ``call`` is the text of its call, with
    names of inputs, outputs and upstream gradients, and numbers."""

    names: tuple[str, ...]
    is_gradient: bool
    target: str
    call: str
    span: Span = field(default=Span(0, 0), compare=False, repr=False)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names that it is called with."""
        inside = self.call.partition("(")[2].removesuffix(")")
        return tuple(a for a in inside.split(", ") if a.isidentifier())


class Signature:
    """The inputs and outputs of a rule, in the order written, and what follows from
    them, whatever the stage."""

    __slots__ = ()

    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]

    @property
    def has_axes(self) -> bool:
        """True if an input or output has axes of its own; a rule without is called
        elementwise, though it be of rank 0."""
        shapes = [i.shape for i in self.inputs] + [o.shape for o in self.outputs]
        return any(shape.axes for shape in shapes)

    @property
    def tensor_inputs(self) -> tuple[Input, ...]:
        return tuple(i for i in self.inputs if not i.kind.is_static)

    @property
    def real_inputs(self) -> tuple[str, ...]:
        """The names of the inputs that are tensors of floating-point numbers."""
        return tuple(i.name for i in self.inputs if i.kind.is_real)

    @property
    def static_inputs(self) -> tuple[Input, ...]:
        return tuple(i for i in self.inputs if i.kind.is_static)

    @property
    def cotangents(self) -> tuple[str, ...]:
        """``d<output>`` for each output that takes a gradient."""
        return tuple(o.cotangent for o in self.outputs if o.takes_gradient)


@dataclass(frozen=True, slots=True)
class Rule(Signature):
    """One rule as lowering gives it: resolved, and cotangents may be absent.

    ``definitions`` are in the order written, those of the forward pass first. By role,
    ``forward`` holds locals and outputs, ``backward_locals`` the locals that use a
    cotangent, ``backward`` the cotangents in the order of the inputs. Definitions of
    the backward pass may name inputs, outputs, forward and backward locals, upstream
    gradients (``d<output>``), and other declared cotangents (``d<input>``). Elementwise values are ``Ref(name)``
    without indices. ``exacts`` are values that are evaluated as they are written.
    ``kernels`` compute what the formulas say, on some targets.
    ``text`` is the rule's own, for the generated docstring.
    """

    name: str
    doc: str | None
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    definitions: tuple[Definition, ...]
    assumes: tuple[Assume, ...] = ()
    saves: tuple[str, ...] = ()
    recomputes: tuple[str, ...] = ()
    exacts: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    source: Source = field(default=Source("", ""), compare=False, repr=False)
    span: Span = field(default=Span(0, 0), compare=False, repr=False)
    name_span: Span = field(default=Span(0, 0), compare=False, repr=False)
    forward: tuple[Definition, ...] = field(init=False, compare=False, repr=False)
    surrogates: tuple[Definition, ...] = field(init=False, compare=False, repr=False)
    backward_locals: tuple[Definition, ...] = field(
        init=False, compare=False, repr=False
    )
    backward: tuple[Definition, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        cotangents = {d.name: d for d in self._of(Role.COTANGENT)}
        inputs = (variable.cotangent for variable in self.inputs)
        for name, values in (
            ("forward", (d for d in self.definitions if d.is_forward)),
            ("surrogates", self._of(Role.SURROGATE)),
            ("backward_locals", self._of(Role.BACKWARD_LOCAL)),
            ("backward", (cotangents[name] for name in inputs if name in cotangents)),
        ):
            object.__setattr__(self, name, tuple(values))

    def _of(self, role: Role) -> Iterator[Definition]:
        return (d for d in self.definitions if d.role is role)

    @property
    def declared(self) -> dict[str, Definition]:
        """The cotangents that the author declared, by input."""
        return {d.input: d for d in self.backward if d.is_declared}

    @property
    def overrides(self) -> dict[str, Definition]:
        """The cotangents that the author overrode, by input."""
        return {d.input: d for d in self.backward if d.is_override}

    @property
    def values(self) -> dict[str, Definition]:
        """The definitions by name: outputs, locals of both passes and cotangents."""
        every = (*self.forward, *self.backward_locals, *self.backward)
        return {d.name: d for d in every}

    def cotangent_of(self, variable: Input) -> Definition | None:
        """The cotangent of an input; none if it takes no gradient, or was left out."""
        return next((d for d in self.backward if d.input == variable.name), None)

    def map(self, change: Callable[[Definition], Definition]) -> Self:
        """The rule with every definition changed."""
        return replace(self, definitions=tuple(map(change, self.definitions)))

    def redefine(self, *changed: Definition) -> Self:
        """The rule with these definitions in the place of those of the same role and
        name, and with those that are new."""
        new = {(d.role, d.name): d for d in changed}
        kept = [new.pop((d.role, d.name), d) for d in self.definitions]
        return replace(self, definitions=(*kept, *new.values()))

    def keep(self, definitions: Iterable[Definition]) -> Rule:
        """The rule with these of its definitions; it may lack cotangents."""
        return Rule(**{**_fields_of(self), "definitions": tuple(definitions)})

    @property
    def text(self) -> str:
        return self.source.slice(self.span)


def _fields_of(rule: Rule) -> dict[str, Any]:
    return {f.name: getattr(rule, f.name) for f in fields(Rule) if f.init}


class Complete(Rule):
    """A rule in which every input that takes a gradient has a cotangent."""

    __slots__ = ()

    def __post_init__(self) -> None:
        Rule.__post_init__(self)
        known = {cotangent.input for cotangent in self.backward}
        wanted = {i.name for i in self.inputs if i.takes_gradient}
        if not wanted <= known:
            raise ValueError(f"{self.name} lacks cotangents: {wanted - known}")

    @staticmethod
    def of(rule: Rule, *derived: Definition) -> Complete:
        """The rule with the cotangents that it lacks."""
        given = {**_fields_of(rule), "definitions": (*rule.definitions, *derived)}
        return Complete(**given)


# --- what checking establishes -------------------------------------------------------


def class_name(rule: str) -> str:
    """``LayerNorm`` of ``layer_norm``."""
    name = "".join(part[:1].upper() + part[1:] for part in rule.split("_"))
    return name if name.isidentifier() else f"Layer{name}"


def layer_name(rule: str) -> str:
    """The name of a rule's layer, which is not that of the rule."""
    name = class_name(rule)
    return f"{name}2" if name == rule else name


def companions(rule: str, is_learned: bool) -> dict[str, str]:
    """Names that belong to a rule in emitted modules beside its own, each with what it
    is called there.
    """
    made = {f"{rule}_vjp": "the pullback", f"{rule}_jvp": "the pushforward"}
    learned = {layer_name(rule): "the layer", f"init_{rule}": "the initial values"}
    return made | learned if is_learned else made


class Status(Enum):
    """The verdict on one input's cotangent."""

    DERIVED = "derived"
    PROVED = "proved"
    AGREES = "agrees"
    REFUTED = "refuted"
    OVERRIDE = "override"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The status of ``d<input>`` and the evidence for it.

    ``method`` is a few words (``"sign-split cancel"``); ``points`` and ``digits`` state
    how many sampled points agreed to how many digits; ``on_domain`` that the rule's
    assumptions were used; ``through_surrogate`` that the surrogate was differentiated.
    ``sizes`` are those for which it holds, for an indexed rule (``"sizes 1 to 3"``).
    ``bits`` is the highest precision of the balls, ``assumed`` the assumptions that the
    proof needs, as written, ``stopped`` the strategies that ran out of steps,
    ``given`` the derivatives of foreign functions that it rests on,
    ``seconds`` the time taken (no part of the verdict: it is only reported).
    """

    input: str
    status: Status
    method: str = ""
    points: int = 0
    digits: int = 0
    on_domain: bool = False
    through_surrogate: bool = False
    sizes: str = ""
    bits: int = 0
    assumed: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A form that the stabiliser selected instead of the one written, and the measured
    reason. ``target_name`` is the output, local or cotangent whose expression changed.
    """

    name: str
    before: str
    after: str
    reason: str


@dataclass(frozen=True, slots=True)
class Hole:
    """A point at which a value is undefined as written, though it has a limit there (or
    one from each side). ``name`` is an output, or ``d<input>`` with the upstream
    gradient 1 for ``output``; the limits are given as text.
    """

    name: str
    output: str
    point: tuple[tuple[str, Fraction], ...]
    left: str
    right: str


@dataclass(frozen=True, slots=True)
class AccuracyLoss:
    """A point at which the selected form is still inaccurate: ``name`` (an output or a
    cotangent) at ``point``. ``kind`` is the way its operation ``culprit`` fails
    (saturation, square, overflow, exponent, guard, undefined); the result is ``value``
    and should be ``true``.
    """

    name: str
    kind: str
    culprit: Expr
    point: tuple[tuple[str, float], ...]
    value: float
    true: float


@dataclass(frozen=True, slots=True)
class Judged:
    """A complete rule and its verdicts in input order. ``second`` are verdicts on
    second derivatives, by pairs of inputs (``x,z``), if requested; ``holes`` are the
    points at which the text leaves a value undefined.
    """

    rule: Complete
    verdicts: tuple[Verdict, ...]
    second: tuple[Verdict, ...] = ()
    holes: tuple[Hole, ...] = ()


@dataclass(frozen=True, slots=True)
class Chosen:
    """A judged rule and ``rule``, the same with the evaluations selected for it, each
    other than the author's with its reason in ``rewrites``. ``losses`` are those that
    no form removes, ``wide`` the outputs and cotangents that are computed in float64;
    ``as_written`` is true if no other evaluation was sought.
    """

    judged: Judged
    rule: Complete
    rewrites: tuple[Rewrite, ...] = ()
    losses: tuple[AccuracyLoss, ...] = ()
    wide: tuple[str, ...] = ()
    as_written: bool = False
