"""JAX spellings that the table of primitives does not contain, and optimisation barriers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from gradspec.ir.walk import transform
from gradspec.plan import arrays
from gradspec.plan.arrays import (
    Expr,
    Name,
    Op,
    names,
)
from gradspec.plan.plan import Assign, Block
from gradspec.plan.program import Operators, Program, Residuals
from gradspec.primitives.lookup import spellings
from gradspec.primitives.table_operators import FENCE
from gradspec.targets.axes import (
    inner_product,
    is_over_batch,
    places,
    runtime_call,
    whole,
)
from gradspec.targets.expressions import ATOM, Dialect, Scope, Text
from gradspec.targets.target import Page

MODULES = {
    "jax": "import jax",
    "jnp": "import jax.numpy as jnp",
    "special": "from jax.scipy import special",
}

SPELLINGS = spellings("jax")

OPERATORS = Operators(
    spellings=SPELLINGS,
    reserved=frozenset(["jax", "jnp"]),
    residuals=Residuals.OUTPUTS,
    by_slope=True,
)


# --- operations on named axes ---------------------------------------------------------


def ranked_text(node: arrays.RankedNode, parts: tuple[Text, ...], scope: Scope) -> Text:
    """The operation as text."""
    return Text(_operation_text(node, parts, scope), ATOM)


def _operation_text(
    node: arrays.RankedNode, parts: tuple[Text, ...], scope: Scope
) -> str:
    texts, page = [part.text for part in parts], scope.page
    match node:
        case arrays.Reduce(op="norm", axes=axes, keep=keep):
            keepdims = ", keepdims=True" if keep else ""
            return f"{page.axes('norm')}({texts[0]}, {places(axes)}{keepdims})"
        case arrays.Reduce():
            return _reduce(node, texts[0])
        case arrays.Expand(axes=axes):
            return f"jnp.expand_dims({texts[0]}, {places(axes)})"
        case arrays.Spread(axis=axis, size=size) if parts[0].is_scalar:
            shape = ", ".join([whole(size).text, *["1"] * (-axis - 1)])
            comma = "," if axis == -1 else ""
            return f"jnp.full(({shape}{comma}), {texts[0]}, {scope.like}.dtype)"
        case arrays.Permute(order=(-1, -2)):
            return f"{parts[0].within(ATOM)}.mT"
        case arrays.Permute(order=order):
            ends = tuple(range(-len(order), 0))
            return f"jnp.moveaxis({texts[0]}, {order}, {ends})"
        case arrays.Diagonal(first=first, second=second):
            return f"jnp.diagonal({texts[0]}, axis1={first}, axis2={second})"
        case arrays.Arange(size=size):
            return f"jnp.arange({whole(size).text})"
        case arrays.Factor(routine=routine):
            return f"jnp.linalg.{routine}({texts[0]}, symmetrize_input=False)"
        case arrays.Solve(axes=1, side="", batched=False):
            return f"jnp.linalg.solve({', '.join(texts)})"
        case arrays.Solve(side=side) if side:
            name = page.equations("triangular" + "_columns" * node.columns)
            lower = ", lower=True" if side == "lower" else ""
            if not node.batched:
                name = "jax.scipy.linalg.solve_triangular"
            return f"{name}({', '.join(texts)}{lower})"
        case arrays.Argsort(axis=axis):
            return f"jnp.argsort({texts[0]}, {axis})"
        case arrays.Cumulative(axis=axis, reverse=False):
            return f"jnp.cumsum({texts[0]}, {axis})"
        case arrays.Cumulative(axis=axis):
            return f"{page.axes('cumsum_back')}({texts[0]}, {axis})"
        case arrays.Einsum():
            return _einsum(node, parts, page)
        case arrays.Softmax(axis=axis):
            return f"jax.nn.softmax({texts[0]}, {axis})"
        case arrays.LogSoftmax(axis=axis):
            return f"jax.nn.log_softmax({texts[0]}, {axis})"
        case _:
            return runtime_call(node, parts, page)


def _reduce(node: arrays.Reduce, text: str) -> str:
    keeping = ", keepdims=True" if node.keep else ""
    name = "jax.nn.logsumexp" if node.op == "logsumexp" else f"jnp.{node.op}"
    if node.op == "peak":  # of nothing, too
        name, keeping = "jnp.max", f"{keeping}, initial=-jnp.inf"
    return f"{name}({text}, {places(node.axes)}{keeping})"


def _einsum(node: arrays.Einsum, parts: tuple[Text, ...], page: Page) -> str:
    if is_over_batch(node) and node.inputs == (f"...{node.output}",):
        return f"{page.axes('batch_sum')}({parts[0].text}, {len(node.output)})"
    if (rows := inner_product(node, parts)) is not None:
        return f"jnp.sum({rows[0]}, {rows[1]})"
    texts = ", ".join(part.text for part in parts)
    return f'jnp.einsum("{",".join(node.inputs)}->{node.output}", {texts})'


# --- the dialect -----------------------------------------------------------------------


DIALECT = Dialect(
    target="jax",
    spellings=SPELLINGS,
    where="jnp.where({c}, {x}, {y})",
    to_float="{x}.astype({like}.dtype)",
    lift="jnp.asarray({x}, {like}.dtype)",
    untyped=(
        "{x}.astype(jnp.result_type(0.0))",
        "jnp.asarray({x}, jnp.result_type(0.0))",
    ),
    ranked=ranked_text,
    of_numbers=(arrays.Spread, arrays.Stack),
)


# --- optimisation barriers -------------------------------------------------------------
#
# Optimisation barriers after operations that XLA would fuse with the next one.
#
# XLA rewrites ``a / b / c`` to ``a / (b * c)``, whose product may overflow or vanish (the
# gradient of ``atan2``, ``x / r / r``, is 0 from 1e19 on), and ``exp(a) * exp(b)`` to the
# exponential of a sum, whose rounding is magnified. ``a / exp(b)`` and ``a / b**c``
# become products with ``exp(-b)`` and ``b**-c``, which vanish where they are subnormal.
# XLA does not look through `jax.lax.reduce_precision`, and loops are fused as before.


def with_barriers(program: Program) -> Program:
    """The program with such results behind a barrier; an indexed rule is unchanged."""
    if program.has_axes:
        return program
    known = _Known(program.numbers)
    forward, backward = program.forward, program.backward
    statements = known.assign(forward.statements)
    results = tuple(map(known.part, forward.results))
    for output, result in zip(program.outputs, results, strict=True):
        known.learn(output.name, result)
    pushes = program.pushes
    if pushes is not None:
        steps = known.assign(pushes.statements)
        pushes = Block(steps, tuple(map(known.part, pushes.results)))
    below = known.assign(backward.statements)
    gradients = tuple(
        terms and tuple(replace(t, value=known.part(t.value)) for t in terms)
        for terms in backward.gradients
    )
    return replace(
        program,
        forward=replace(forward, statements=statements, results=results),
        pushes=pushes,
        backward=replace(backward, statements=below, gradients=gradients),
    )


@dataclass(frozen=True, slots=True)
class _Known:
    """The operations that define named values. ``numbers`` are Python numbers."""

    numbers: frozenset[str]
    made: dict[str, str] = field(default_factory=dict)

    def learn(self, name: str, value: Expr) -> None:
        self.made.pop(name, None)
        for operation in ("div", "exp", "pow"):
            if self._is(value, operation):
                self.made[name] = operation

    def assign(self, statements: Iterable[Assign]) -> tuple[Assign, ...]:
        done: list[Assign] = []
        for s in statements:
            done.append(replace(s, value=self.part(s.value)))
            self.learn(s.name, done[-1].value)
        return tuple(done)

    def part(self, value: Expr) -> Expr:
        return transform(value, self._part_node)

    def _part_node(self, node: Expr) -> Expr:
        match node:
            case Op("div", (above, below)):
                for operation in ("div", "exp", "pow"):
                    below = self._behind(below, operation)
                return Op("div", (self._behind(above, "div"), below))
            case Op("mul", (one, other)) if self._is(one, "exp"):
                return Op("mul", (one, self._behind(other, "exp")))
            case _:
                return node

    def _behind(self, value: Expr, operation: str) -> Expr:
        return Op(FENCE, (value,)) if self._is(value, operation) else value

    def _is(self, value: Expr, operation: str) -> bool:
        """True if the value is an array defined by ``operation``."""
        match value:
            case Op("neg", (inner,)):
                return self._is(inner, operation)
            case Op(primitive=made):
                return made == operation and not {*names(value)} <= self.numbers
            case Name(id=name):
                return self.made.get(name) == operation
            case _:
                return False
