"""TensorFlow spellings that the table of primitives does not contain."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from gradspec.plan.arrays import Literal, Op
from gradspec.plan.program import Operators, Program
from gradspec.primitives.lookup import primitive
from gradspec.primitives.row import Runtime, Template
from gradspec.targets.expressions import Dialect, Scope
from gradspec.targets.expressions import scope_of as scoped
from gradspec.targets.page import Page
from gradspec.targets.tf.axes import ranked

OPERATORS = Operators(
    target="tf", reserved=frozenset(["tf", "math"]), sizes_are_tensors=True
)

# In a graph a function takes its type from its first argument; and the bounds of
# `tf.clip_by_value` must broadcast to its first argument.
_VARIANTS = {
    ("max", (True, False)): Template("tf.maximum({y}, {x})"),
    ("min", (True, False)): Template("tf.minimum({y}, {x})"),
    ("eq", (True, False)): Template("tf.equal({y}, {x})"),
    ("ne", (True, False)): Template("tf.not_equal({y}, {x})"),
    ("clip", (False, True, True)): Template("tf.clip_by_value({x}, {y}, {z})"),
    ("clip", (True, False, False)): Template("tf.minimum(tf.maximum({y}, {x}), {z})"),
    ("clip", (True, False, True)): Template("tf.minimum(tf.maximum({y}, {x}), {z})"),
}
_ONE = Literal(Fraction(1))
_CLIP = Template("tf.minimum(tf.maximum({x}, {y}), {z})")


def _variants(node: Op, numbers: tuple[bool, ...]) -> Template | None:
    name = node.primitive
    if name == "div" and node.args[0] == _ONE and numbers == (True, False):
        return Template("{special:reciprocal}({y})")  # a graph's own loses digits
    return _VARIANTS.get((name, numbers), _CLIP if name == "clip" else None)


def _lifts(name: str, numbers: tuple[bool, ...]) -> tuple[bool, ...]:
    """The numbers that must be tensors: the first argument, and the first branch."""
    if name == "choice":
        return numbers
    if name != "where" and isinstance(primitive(name).spellings.get("tf"), Runtime):
        return numbers
    return tuple(number and not position for position, number in enumerate(numbers))


DIALECT = Dialect(
    target="tf",
    where="tf.where({c}, {x}, {y})",
    to_float="tf.cast({x}, {like}.dtype)",
    lift="tf.constant({x}, {like}.dtype)",
    lifts=_lifts,
    variants=_variants,
    ranked=ranked,
    static_power=Runtime("power", "core"),
)
_UNTYPED = replace(
    DIALECT, to_float="tf.cast({x}, tf.float32)", lift="tf.constant({x}, tf.float32)"
)


def scope_of(program: Program, page: Page) -> Scope:
    """The scope in which the rule's expressions are printed."""
    page.use("import tensorflow as tf")
    like = next(iter(program.floats), "")
    return scoped(program, page, DIALECT if like else _UNTYPED, like)
