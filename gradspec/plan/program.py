"""The finished program of a rule for one target, from which its text is emitted.

A target sees nothing else of a rule, and calls no earlier stage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

from gradspec.ir.rule import Input, Kernel, Kind, Output, Signature
from gradspec.ir.walk import children, nodes, with_children
from gradspec.plan.arrays import (
    MEASURES,
    Argsort,
    Expr,
    Name,
    Op,
    RankedNode,
    ToFloat,
    is_number,
    is_whole,
    may_be_number,
    names,
    substitute,
)
from gradspec.plan.gradients import is_linear, reach_of
from gradspec.plan.operations import expander, fold
from gradspec.plan.plan import (
    Assign,
    AxisSize,
    Backward,
    Block,
    Docs,
    Nature,
    RulePlan,
    Term,
    positions,
)
from gradspec.plan.sharing import (
    Words,
    backward,
    forward,
    pushforward,
    share_values,
    tensor_gradients,
)
from gradspec.primitives.lookup import primitive
from gradspec.primitives.row import Runtime, Spelling

Slopes: TypeAlias = Mapping[str, tuple[tuple[tuple[str, ...], Expr | None], ...]]


class Residuals(Enum):
    """The values of the forward pass that a backward pass may refer to by name.

    ALL       outputs and locals: the backward pass is a closure of the forward pass
    SAVED     the same, unless the rule's gradient is declared to be another than the
              derivative: a second derivative through an output would see the declared one
    OUTPUTS   outputs alone, with the same exception
    """

    ALL = "all"
    SAVED = "saved"
    OUTPUTS = "outputs"


@dataclass(frozen=True, slots=True)
class Operators:
    """A target, as far as planning depends on it.

    Attributes:
        spellings: how it says each primitive that it has.
        reserved: names that the emitted text uses itself; a rule or an input that has one
            is refused (GS503), other variables are renamed.
        residuals: see :class:`Residuals`.
        by_output: a gradient has one term for each output, whose cotangent may be absent.
        sizes_are_tensors: sizes of axes may be unknown while a graph is made.
        by_slope: the target takes tangents, and transposes them to gradients.
    """

    spellings: Mapping[str, Spelling]
    reserved: frozenset[str]
    residuals: Residuals = Residuals.ALL
    by_output: bool = False
    sizes_are_tensors: bool = False
    by_slope: bool = False


@dataclass(frozen=True, slots=True)
class Program(Signature):
    """One rule for one target, in named statements.

    Attributes:
        name: of the rule and of its public function.
        inputs: in the order written, statics included.
        outputs: in the order written.
        numbers: names of Python numbers: statics, what is computed from them alone, and
            sizes unless these are tensors.
        sizes: named sizes that the statements may use, with where each can be read.
        kind: the relation of the backward pass to the derivative.
        is_linear: whether all gradients are linear in the cotangents.
        docs: the contents of the docstring.
        forward: statements and results, one for each output. Locals in
            ``residual_locals`` are bound to their names.
        residual_locals: locals that the backward pass refers to by name.
        backward: statements, and the terms of each tensor input's gradient.
        pushforward: statements, and the tangents ``<output>_dot`` of the outputs that take
            a gradient, from inputs, ``<input>_dot`` and the residual outputs and
            locals; None where ``no_pushforward`` gives the reason.
        slopes: by input, the derivative of each term of its gradient by the cotangent;
            None where a term is not linear.
        pushes: statements, and the slopes again, for a target ``by_slope``; None unless
            the backward pass is linear.
        comments: reasons of rewrites, by the output, local or cotangent.
        double: "forward", "backward" or both, the passes to compute in float64.
        reach: by output, the tensor inputs whose shapes it broadcasts.
        perhaps_numbers: ``numbers``, and named values that are Python numbers for some
            statics.
        kernels: foreign functions that the target calls in the place of formulas.
        assumed: the assumptions that a call checks, as texts, by the function ``domain``
            of the module, which takes the rule's arguments.
    """

    name: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    numbers: frozenset[str]
    sizes: tuple[AxisSize, ...]
    kind: Nature
    is_linear: bool
    docs: Docs
    forward: Block
    residual_locals: tuple[str, ...]
    backward: Backward
    pushforward: Block | None
    no_pushforward: str
    slopes: Slopes
    pushes: Block | None
    comments: Mapping[str, str]
    double: frozenset[str]
    reach: Mapping[str, tuple[str, ...]]
    perhaps_numbers: frozenset[str]
    kernels: tuple[Kernel, ...] = ()
    assumed: tuple[str, ...] = ()
    domain: str = ""

    @property
    def value_kernel(self) -> Kernel | None:
        """The foreign function that computes the outputs."""
        return next((k for k in self.kernels if not k.is_gradient), None)

    @property
    def gradient_kernels(self) -> tuple[Kernel, ...]:
        """The foreign functions that compute gradients."""
        return tuple(kernel for kernel in self.kernels if kernel.is_gradient)

    @property
    def floats(self) -> tuple[str, ...]:
        """Floating tensor inputs, those without a gradient too."""
        return tuple(i.name for i in self.tensor_inputs if i.kind.is_real)

    @property
    def arguments(self) -> list[str]:
        """Tensor inputs, then statics."""
        return [i.name for i in (*self.tensor_inputs, *self.static_inputs)]

    @property
    def constant(self) -> tuple[int, ...]:
        """The positions of the outputs that take no gradient."""
        outputs = enumerate(self.outputs)
        return tuple(k for k, output in outputs if not output.takes_gradient)

    @property
    def groups(self) -> list[tuple[Input, tuple[Term, ...] | None]]:
        """Each tensor input with the terms of its gradient."""
        return list(zip(self.tensor_inputs, self.backward.gradients, strict=True))

    @property
    def pushed_values(self) -> list[Expr]:
        """All values of the pushforward."""
        return self.pushforward.values if self.pushforward else []

    @property
    def shown_values(self) -> list[Expr]:
        """The slopes that a trace prints."""
        return [*_linear(self.slopes)]

    @property
    def is_symmetric(self) -> bool:
        """True if the pushforward is the pullback, applied to the tangent: the only
        input and the only output have a derivative that is its own transpose.
        """
        block, groups = self.pushforward, self.backward.gradients
        if not block or len(groups) != 1 or len(self.outputs) != 1:
            return False
        terms = groups[0]
        if terms is None or len(terms) != 1 or not terms[0].upstream:
            return False
        (dot,), (cotangent,) = (
            (f"{i.name}_dot" for i in self.tensor_inputs),
            terms[0].upstream,
        )
        pushed = _inline(block.statements, block.results[0])
        pulled = _inline(self.backward.statements, terms[0].value)
        return substitute(pushed, {dot: Name(cotangent)}) == pulled

    @property
    def positions(self) -> frozenset[str]:
        """Names of statements that hold integers."""
        passes = (self.forward, self.backward, self.pushforward)
        found = (positions(p.statements, self.integers) for p in passes if p)
        return frozenset(name for names in found for name in names)

    def like(self, output: Output) -> list[str]:
        """The inputs whose joint shape a constant output has, floating ones first."""
        reach = self.reach[output.name]
        found = dict.fromkeys(n for n in (*self.floats, *reach) if n in reach)
        return list(found) or [i.name for i in self.tensor_inputs]

    def sizes_of(
        self, values: Iterable[Expr], known: Iterable[str]
    ) -> list[tuple[str, str, int]]:
        """The sizes that the values use and no static gives: each with the first of the
        known arrays that has it, and the position of the axis.
        """
        there, used = {*known}, names(*values)
        statics = {i.name for i in self.static_inputs}
        return [
            (size.name, *next(place for place in size.places if place[0] in there))
            for size in self.sizes
            if size.name in used and size.name not in statics
        ]

    @property
    def is_double(self) -> bool:
        """True if any value is computed in float64."""
        return bool(self.double)

    @property
    def variables(self) -> frozenset[str]:
        """All names of values: the author's, those of gradients and tangents, and
        invented ones.
        """
        ends = [i.name for i in self.inputs] + [o.name for o in self.outputs]
        steps = [s.name for s in self.forward.statements]
        steps += [s.name for s in self.backward.statements]
        pushed = self.pushforward.statements if self.pushforward else ()
        steps += [s.name for s in pushed]
        steps += [s.name for s in self.pushes.statements] if self.pushes else []
        names = [*ends, *steps, *(size.name for size in self.sizes)]
        return frozenset(
            [*names, *(f"d{e}" for e in ends), *(f"{e}_dot" for e in ends)]
        )

    def local(self, name: str) -> str:
        """``name`` for an emitted variable, with underscores if a value has it."""
        while name in self.variables:
            name += "_"
        return name

    def may_be_number(self, value: Expr) -> bool:
        """True if a value is a Python number, or a choice by a number may give one."""
        return may_be_number(value, self.perhaps_numbers)

    def takes_shape(self, term: Term) -> bool:
        """True if a term of a gradient must be broadcast to the shape of the
        cotangents: it contains none of them, or may be a number. (Over named axes a
        term without cotangents has its input's shape: GS253.)
        """
        is_alone = not term.upstream and not self.has_axes
        return is_alone or self.may_be_number(term.value)

    @property
    def integers(self) -> frozenset[str]:
        """Names that hold integers."""
        kinds = (Kind.INT, Kind.STATIC_INT)
        given = (i.name for i in self.inputs if i.kind in kinds)
        return frozenset([*given, *(size.name for size in self.sizes)])


def program(plan: RulePlan, operators: Operators, target: str = "") -> Program:
    """RulePlan → Program: values with reserved names are renamed, primitives that the
    target lacks are expanded, repeated values are named, residuals are chosen: where a
    foreign function of the ``target`` computes the outputs, no locals.
    """
    kernels = tuple(kernel for kernel in plan.kernels if kernel.target == target)
    if any(not kernel.is_gradient for kernel in kernels):
        operators = replace(operators, residuals=Residuals.OUTPUTS)
    plan = rename_reserved(plan, operators.reserved)
    if operators.sizes_are_tensors:
        plan = with_sizes(plan)
    plan = _with_residuals(plan, operators)
    numbers = _numbers(plan, operators)
    reserved = operators.reserved | _functions(operators)
    words = Words(expander(operators.spellings, numbers), reserved)
    outputs = tuple(o.name for o in plan.outputs)
    behind = inline_names(backward(plan, words, operators.by_output))
    names_ = {let.name for let in plan.forward} - {*outputs}
    kept = tuple(name for name in behind.residuals if name in names_)
    gradients = [g for g in tensor_gradients(plan) if g is not None]
    slopes = {
        g.input: tuple(
            (term.upstream, slope and words.expand(slope))
            for term, slope in zip(g.terms, g.slopes, strict=True)
        )
        for g in gradients
    }
    linear = is_linear(plan)
    ahead = forward(plan, words, kept)
    along = pushes = None
    if plan.tangents is not None and gradients:
        along = pushforward(plan, words, behind.residuals)
    if linear and operators.by_slope:
        pushes = Block(*share_values(plan, words, tuple(_linear(slopes))))
    return Program(
        name=plan.name,
        inputs=plan.inputs,
        outputs=plan.outputs,
        numbers=numbers,
        sizes=plan.sizes,
        kind=plan.nature,
        is_linear=linear,
        docs=plan.docs,
        forward=ahead,
        residual_locals=kept,
        backward=behind,
        pushforward=along,
        no_pushforward=plan.no_tangents,
        slopes=slopes,
        pushes=pushes,
        comments=dict(plan.comments),
        double=_double(plan),
        reach={o: _reach(plan, o) for o in outputs},
        perhaps_numbers=_perhaps_numbers(numbers, (ahead, behind, along, pushes)),
        kernels=kernels,
        assumed=plan.assumed,
        domain=plan.domain,
    )


def _linear(slopes: Slopes) -> Iterator[Expr]:
    for parts in slopes.values():
        yield from (slope for _, slope in parts if slope is not None)


def _inline(statements: Iterable[Assign], value: Expr) -> Expr:
    found: dict[str, Expr] = {}
    for statement in statements:
        found[statement.name] = substitute(statement.value, found)
    return substitute(value, found)


def _functions(operators: Operators) -> frozenset[str]:
    """Names of runtime functions, which an invented name must not shadow."""
    spellings = operators.spellings.values()
    names = {s.name for s in spellings if isinstance(s, Runtime)}
    return frozenset(names | {"softmax", "log_softmax", "logsumexp", "norm"})


def _with_residuals(plan: RulePlan, operators: Operators) -> RulePlan:
    """The plan with values that are no residuals of the target inlined in gradients."""
    declared = plan.nature is not Nature.EXACT
    residuals = operators.residuals
    if residuals is Residuals.ALL or (residuals is Residuals.SAVED and not declared):
        return plan
    outputs = frozenset[str]() if declared else {o.name for o in plan.outputs}
    values = {a.name: a.value for a in plan.forward if a.name not in outputs}
    saved = tuple(name for name in plan.saved if name not in values)
    return replace(plan.map_values(lambda v: substitute(v, values)), saved=saved)


def _numbers(plan: RulePlan, operators: Operators) -> frozenset[str]:
    """Statics, sizes that are numbers, and values computed from these alone."""
    found = {static.name for static in plan.static_inputs}
    if not operators.sizes_are_tensors:
        found |= {size.name for size in plan.sizes}
    for constant in plan.constants:
        if is_number(fold(constant.value), frozenset(found)):
            found.add(constant.name)
    return frozenset(found)


def _perhaps_numbers(
    numbers: frozenset[str], blocks: Iterable[Block | Backward | None]
) -> frozenset[str]:
    """The numbers, and the named values of the blocks that may be numbers."""
    found = set(numbers)
    for block in blocks:
        for step in block.statements if block else ():
            if may_be_number(step.value, frozenset(found)):
                found.add(step.name)
    return frozenset(found)


def _double(plan: RulePlan) -> frozenset[str]:
    outputs = any(o.name in plan.wide for o in plan.outputs)
    cotangents = any(i.cotangent in plan.wide for i in plan.inputs)
    return frozenset(["forward"] * outputs + ["backward"] * cotangents)


def _reach(plan: RulePlan, output: str) -> tuple[str, ...]:
    values = {let.name: let.value for let in plan.forward}
    there = reach_of(values[output], plan.tensor_inputs)
    return tuple(
        i.name for i in plan.tensor_inputs if i.shape.batch and i.name in there
    )


# --- gradients in place ---------------------------------------------------------------


def inline_names(backward: Backward) -> Backward:
    """The backward pass with ``dx = …`` inlined into a term that is the name ``dx``,
    where nothing else needs that name: the target assigns it itself, in the input's
    shape.
    """
    terms = [term for group in backward.gradients for term in group or ()]
    uses = Counter(name for value in backward.values for name in names(value))
    given = {term.value.id for term in terms if isinstance(term.value, Name)}
    steps = {
        step.name: step
        for step in backward.statements
        if uses[step.name] == 1 and step.name in given
    }
    return replace(
        backward,
        statements=tuple(s for s in backward.statements if s.name not in steps),
        gradients=tuple(
            group
            if group is None
            else tuple(_inline_term(term, steps) for term in group)
            for group in backward.gradients
        ),
    )


def _inline_term(term: Term, steps: dict[str, Assign]) -> Term:
    value: Expr = term.value
    if isinstance(value, Name) and value.id in steps:
        step = steps[value.id]
        return replace(term, value=step.value, comment=step.comment or term.comment)
    return term


# --- free names -----------------------------------------------------------------------


def rename_reserved(plan: RulePlan, reserved: frozenset[str]) -> RulePlan:
    """The plan with ``np`` renamed to ``np_`` where ``np`` is reserved; likewise every
    output, local and size whose name, gradient or tangent collides.
    """
    inputs = frozenset(i.name for i in plan.inputs)
    changed = {
        n: free
        for n in plan.names
        if n not in inputs and (free := _free(n, reserved, plan.names)) != n
    }
    every = dict(changed)
    every |= {f"d{old}": f"d{new}" for old, new in changed.items()}
    every |= {f"{old}_dot": f"{new}_dot" for old, new in changed.items()}
    values: dict[str, Expr] = {old: Name(new) for old, new in every.items()}
    if not changed:
        return plan
    return plan.map_values(lambda v: substitute(v, values), lambda n: every.get(n, n))


def _free(name: str, reserved: frozenset[str], taken: tuple[str, ...]) -> str:
    tangents = {f"{other}_dot" for other in taken}
    free = name
    while (
        free in reserved
        or f"d{free}" in reserved
        or free in tangents
        or (free != name and free in taken)
    ):
        free += "_"
    return free


# --- sizes as tensors -------------------------------------------------------------------
#
# For a target whose graphs may not know sizes statically. A size in floating arithmetic
# is cast; one that gives the length of an axis, or is compared with positions, stays an
# integer. Values computed from sizes alone are tensors too.


def with_sizes(plan: RulePlan) -> RulePlan:
    """The plan with sizes cast in floating arithmetic."""
    if not plan.has_axes:
        return plan
    kinds = (Kind.INT, Kind.STATIC_INT)
    whole = frozenset(i.name for i in plan.inputs if i.kind in kinds)
    whole |= {size.name for size in plan.sizes}
    whole |= {let.name for let in plan.forward if isinstance(let.value, Argsort)}
    numbers = frozenset(i.name for i in plan.static_inputs)
    return plan.map_values(lambda value: _cast(value, whole, numbers))


def _cast(expr: Expr, whole: frozenset[str], numbers: frozenset[str]) -> Expr:
    done: dict[Expr, Expr] = {}

    def floating(part: Expr) -> Expr:
        """An integer value cast to floating as a whole, unless it is a number."""
        is_plain = set(names(part)) <= numbers and not isinstance(part, RankedNode)
        return done[part] if is_plain or not is_whole(part, whole) else ToFloat(part)

    for node in nodes(expr):
        parts = children(node)
        if _takes_integers(node, whole):
            made = tuple(done[part] for part in parts)
        else:
            kept = [
                k for k in MEASURES.get(type(node), ()) if is_whole(parts[k], whole)
            ]
            made = tuple(p if k in kept else floating(p) for k, p in enumerate(parts))
        done[node] = with_children(node, made)
    return done[expr] if isinstance(expr, Argsort) else floating(expr)


def _takes_integers(node: Expr, whole: frozenset[str]) -> bool:
    """True if the node's own operation is on integers, or converts them to floating."""
    match node:
        case ToFloat():
            return True
        case Op(primitive=op, args=args) if primitive(op).result == "bool":
            return all(is_whole(arg, whole) for arg in args)
        case _:
            return is_whole(node, whole)
