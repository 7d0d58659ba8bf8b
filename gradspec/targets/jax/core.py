"""The private function of a rule: its forward pass, and the state of its emission."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from gradspec.ir.rule import Kind, Output
from gradspec.plan.arrays import Expr
from gradspec.plan.plan import Nature
from gradspec.plan.program import Program
from gradspec.targets.expressions import Scope, render
from gradspec.targets.lines import Lines, assignments, indented, tightened
from gradspec.targets.page import Page


class Way(Enum):
    """The JAX transformation that defines a rule's derivative.

    PLAIN       nothing takes a gradient: no decorator
    PUSHED      a `custom_jvp`, slopes times tangents
    TRANSPOSED  a `custom_jvp`, tangents as the transpose of the backward pass: with named
                axes there are no slopes
    PULLED      a `custom_vjp`: a backward pass that is not linear in its cotangent, or one
                that prints what goes through it
    """

    PLAIN = "plain"
    PUSHED = "pushed"
    TRANSPOSED = "transposed"
    PULLED = "pulled"


def way_of(program: Program, trace: bool) -> Way:
    groups = [group for group in program.backward.gradients if group is not None]
    if not groups:
        return Way.PLAIN
    if trace or program.pushes is None:
        return Way.PULLED
    return Way.TRANSPOSED if program.has_axes and any(groups) else Way.PUSHED


@dataclass(frozen=True, slots=True)
class Core:
    """A rule during emission; ``name`` is that of its private function."""

    program: Program
    page: Page
    scope: Scope
    name: str
    way: Way
    trace: bool

    @property
    def tensors(self) -> list[str]:
        return [i.name for i in self.program.tensors]

    @property
    def statics(self) -> list[str]:
        return [i.name for i in self.program.statics]

    @property
    def outputs(self) -> list[str]:
        return [o.name for o in self.program.outputs]

    @property
    def call(self) -> str:
        """The rule's own values: differentiated again, they follow the rule again."""
        return f"{self.name}({', '.join([*self.tensors, *self.statics])})"

    @property
    def is_joint(self) -> bool:
        """True if a `custom_vjp` has several arrays, some of which may be batched."""
        return self.way is Way.PULLED and len(self.tensors) > 1

    @property
    def inputs(self) -> dict[str, str]:
        """Tensors and statics, with their types."""
        array = self.page.core("Array")
        return dict.fromkeys(self.tensors, array) | self.numbers

    @property
    def numbers(self) -> dict[str, str]:
        """Statics with their types."""
        whole = {i.name for i in self.program.statics if i.kind is Kind.STATIC_INT}
        return {name: "int" if name in whole else "float" for name in self.statics}

    def header(self, name: str, parameters: Mapping[str, str]) -> str:
        """The first line of a private function; results of operators have no narrower
        type than Any.
        """
        any_ = self.page.own("typing", "Any")
        typed = (f"{name}: {kind or any_}" for name, kind in parameters.items())
        return f"def {name}({', '.join(typed)}) -> {any_}:"

    def core(self, name: str) -> str:
        """A function of the runtime."""
        return self.page.core(name)

    def text(self, value: Expr) -> str:
        return render(value, self.scope)

    def may_be_number(self, value: Expr) -> bool:
        return self.program.may_be_number(value)

    def sizes(self, values: Iterable[Expr], known: Iterable[str]) -> Lines:
        """Sizes of axes that the values use, each from a known array."""
        found = self.program.sizes_of(values, known)
        return [f"{size} = {array}.shape[{axis}]" for size, array, axis in found]


def function(core: Core) -> Lines:
    """The forward pass, decorated."""
    block = core.program.forward
    pairs = zip(core.program.outputs, block.results, strict=True)
    body = [
        *core.sizes(core.program.forward_values, core.tensors),
        *assignments(block.statements, core.scope),
        f"return {', '.join(_output(core, o, value) for o, value in pairs)}",
    ]
    return [
        *_decorator(core),
        core.header(core.name, core.inputs),
        *indented(tightened(body)),
    ]


def _decorator(core: Core) -> Lines:
    """JAX may replace the rule by its bare function (`lasting` says where), which is
    right if the rule is its derivative.
    """
    if core.way is Way.PLAIN:
        return []
    if core.way is Way.PULLED:
        name = "jax.custom_vjp"
    elif core.program.kind is Nature.EXACT:
        name = "jax.custom_jvp"
    else:
        name = core.core("lasting")
    if not core.statics:
        return [f"@{name}"]
    first = len(core.tensors)
    places = tuple(range(first, first + len(core.statics)))
    core.page.use("import functools")
    return [f"@functools.partial({name}, nondiff_argnums={places})"]


def _output(core: Core, output: Output, value: Expr) -> str:
    """The text of an output; a number takes the shape to which its inputs broadcast."""
    text, is_number = core.text(value), core.may_be_number(value)
    if is_number:
        like = ", ".join(core.program.like(output))
        text = f"{core.core('filled')}({text}, {like})"
    if output.kind is Kind.INT:
        return f"{core.core('counted')}({text})"
    if output.kind is Kind.BOOL and is_number:
        return f"{text}.astype(jnp.bool_)"
    if core.is_joint and output.takes_gradient:
        return f"{core.core('batched_with')}({text}, {', '.join(core.tensors)})"
    return text
