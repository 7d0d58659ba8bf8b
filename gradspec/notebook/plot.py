"""Plots of elementwise rules: values and gradients over the domain of one input.

A rule's docstring holds its text, so functions of any emitted module can be drawn,
using the framework that they are emitted for.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from gradspec.ir.rule import Input, Kind, Rule
from gradspec.source import Source
from gradspec.syntax import nodes

if TYPE_CHECKING:
    from gradspec.symbolic.points.domain import Range

Array: TypeAlias = Any
Function: TypeAlias = Callable[..., Any]

_POINTS = 401
"""An odd number: the middle, often a kink or a pole, is one of them."""

_REACH = 5.0
"""The extent of a plot where the domain is unbounded."""

_WIDEST = 1000.0
"""A wider domain is cut to `_REACH`: all features would lie within a few pixels."""

_CUT = 10.0
"""Values beyond this many times the spread of nine tenths of them are cut."""

_TEXT = re.compile(r"^ {4}rule \w+\(.*(?:\n {4,}\S.*)*", re.MULTILINE)


def give_plots(module: ModuleType, rules: Iterable[str]) -> None:
    """Add ``rule.plot()`` to the functions of a module that can carry an attribute."""
    for name in rules:
        function = getattr(module, name, None)
        if function is not None and hasattr(function, "__dict__"):
            vars(function)["plot"] = partial(plot, function)


def plot(
    rule: Function,
    /,
    *,
    over: str | None = None,
    between: tuple[float, float] | None = None,
    ax: Any = None,
    **inputs: Any,
) -> Any:
    """Draw the outputs of a rule and their gradients; see `gradspec.plot`."""
    definition = _definition(rule)
    declared = _declaration(definition)
    variable = _variable(declared, over, inputs)
    call = _call(rule, declared, variable, inputs, definition.outputs)
    points = _points(between, _domain(declared, variable, call.given))
    ax = _new_axes() if ax is None else ax
    values, gradients = _framework(call)(call, points)
    shown = {output.name: y for output, y in zip(call.outputs, values, strict=True)}
    if variable.takes_gradient:
        several = len(gradients) > 1
        for place, gradient in gradients.items():
            of = f" of {call.outputs[place].name}" if several else ""
            shown[f"{variable.cotangent}{of}"] = gradient
    _draw(ax, points, shown)
    others = (f"{name} = {value:g}" for name, value in call.given.items())
    ax.set_title(", ".join([definition.name, *others]))
    ax.set_xlabel(variable.name)
    return ax


def _new_axes() -> Any:
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "plots need matplotlib: pip install 'gradspec[plot]'", name="matplotlib"
        ) from None
    return pyplot.subplots()[1]


def _draw(ax: Any, points: Array, shown: dict[str, Array]) -> None:
    import numpy as np

    curves = {}
    for label, values in shown.items():
        curve = np.broadcast_to(np.asarray(values, np.float64), points.shape)
        curves[label] = np.where(np.isfinite(curve), curve, np.nan)
        ax.plot(points, curves[label], label=label)
    every = np.concatenate(list(curves.values()))
    every = every[np.isfinite(every)]
    if every.size:
        low, high = np.percentile(every, (5, 95))
        if np.ptp(every) > _CUT * (high - low) > 0:
            margin = 0.1 * (high - low)
            ax.set_ylim(low - margin, high + margin)
    ax.grid(alpha=0.3)
    ax.legend()


# --- the rule ------------------------------------------------------------------------


def _definition(function: Function) -> nodes.RuleDef:
    """The rule of a function, from its docstring."""
    from gradspec.syntax.parse import parse

    found = _TEXT.search(inspect.getdoc(function) or "")
    text = textwrap.dedent(found[0]) if found else ""
    module = parse(Source("rule", f"{text}\n")).value
    definition = module.items[0] if module and module.items else None
    if not isinstance(definition, nodes.RuleDef):
        raise TypeError(
            f"plot takes the function of a rule, as gradspec emits it, not {function!r}"
        )
    for variable in (*definition.inputs, *definition.outputs):
        axes = variable.axes
        if axes is not None and (axes.axes or not axes.batch):
            raise ValueError(
                f"{definition.name} has axes ({variable.name}): plot draws elementwise"
                " rules"
            )
    return definition


def _declaration(definition: nodes.RuleDef) -> Rule:
    """The rule with its inputs and assumptions, and 0 for a formula: the functions that
    formulas call are not in the docstring. If an assumption contains a call, all are
    dropped.
    """
    from gradspec.lower.lowering import lower

    span = definition.span
    output = replace(definition.outputs[0], kind="")
    nothing = nodes.Number(Fraction(0), "0", span=span)
    value = nodes.Assign(output.name, None, nothing, span=span, name_span=span)
    assumes = [s for s in definition.body if isinstance(s, nodes.Assume)]
    for kept in (assumes, []):
        bare = replace(definition, outputs=(output,), body=(*kept, value))
        lowered = lower(nodes.Module(Source("rule", ""), (bare,)), {}).value
        if lowered is not None and lowered.rules:
            return lowered.rules[0]
    raise TypeError(f"the docstring of {definition.name} is no rule of this version")


def _variable(declared: Rule, over: str | None, inputs: dict[str, Any]) -> Input:
    """The input on the axis: ``over``, or the first without a value that has a
    gradient, or else the first without a value.
    """
    names = [variable.name for variable in declared.inputs]
    for name in (*inputs, *([over] if over else [])):
        if name not in names:
            raise TypeError(f"{declared.name} has no input {name!r}")
    real = [v for v in declared.inputs if v.kind.is_real]
    real.sort(key=lambda variable: not variable.takes_gradient)
    for variable in real:
        if variable.name == over or (over is None and variable.name not in inputs):
            return variable
    if over:
        raise ValueError(f"{over} of {declared.name} is no input of real numbers")
    raise ValueError(f"{declared.name} has no input of real numbers without a value")


@dataclass(frozen=True, slots=True)
class _Call:
    """A rule with values for all inputs but one; ``place`` is the position of that one
    among the arrays, which come first. ``moving`` are the places of outputs with a
    gradient.
    """

    rule: Function
    arrays: tuple[Any, ...]
    place: int
    numbers: dict[str, Any]
    given: dict[str, Any]
    outputs: tuple[nodes.Parameter, ...]

    @property
    def moving(self) -> tuple[int, ...]:
        return tuple(k for k, output in enumerate(self.outputs) if not output.kind)

    def __call__(self, x: Any, function: Function | None = None) -> Any:
        before, after = self.arrays[: self.place], self.arrays[self.place + 1 :]
        return (function or self.rule)(*before, x, *after, **self.numbers)

    def values(self, x: Any) -> tuple[Any, ...]:
        return _tuple(self(x))


def _tuple(found: Any) -> tuple[Any, ...]:
    return tuple(found) if isinstance(found, tuple | list) else (found,)


def _call(
    rule: Function,
    declared: Rule,
    variable: Input,
    inputs: dict[str, Any],
    outputs: tuple[nodes.Parameter, ...],
) -> _Call:
    """The other inputs as given; if omitted, params have a new layer's initial values,
    statics their defaults, and the rest are 1.
    """
    given: dict[str, Any] = dict(inputs)
    arrays: list[Any] = []
    numbers: dict[str, Any] = {}
    place = 0
    for each in declared.inputs:
        if each == variable:
            place = len(arrays)
            arrays.append(None)
            continue
        if each.initial is not None:
            given.setdefault(each.name, float(each.initial))
        elif each.default is None:
            given.setdefault(each.name, _ONES.get(each.kind, 1.0))
        if not each.kind.is_static:
            arrays.append(given[each.name])
        elif each.name in given:
            numbers[each.name] = given[each.name]
    return _Call(rule, tuple(arrays), place, numbers, given, outputs)


_ONES = {Kind.BOOL: True, Kind.INT: 1, Kind.STATIC_INT: 1}


# --- the domain ----------------------------------------------------------------------


def _domain(declared: Rule, variable: Input, given: dict[str, Any]) -> Range:
    """The interval that the assumptions leave for a variable."""
    from gradspec.symbolic.points.domain import Limits

    point = {i.name: i.default for i in declared.inputs if i.default is not None}
    point |= {name: Fraction(float(value)) for name, value in given.items()}
    return Limits(declared).room(variable.name, point)


def _points(between: tuple[float, float] | None, domain: Range) -> Array:
    import numpy as np

    if between is not None:
        return np.linspace(*between, _POINTS)
    low = None if domain.low is None else float(domain.low)
    high = None if domain.high is None else float(domain.high)
    if low is not None and high is not None and high - low > _WIDEST:
        low, high = max(low, -_REACH), min(high, _REACH)
    if low is None:
        low = -_REACH if high is None else min(-_REACH, high - _REACH)
    if high is None:
        high = max(_REACH, low + _REACH)
    points = np.linspace(low, high, _POINTS)
    first = points[0] == domain.low and not domain.low_inside
    last = points[-1] == domain.high and not domain.high_inside
    return points[int(first) : _POINTS - int(last)]


# --- values and gradients, by framework ------------------------------------------------
# Each gives the outputs, and for each that has one the gradient where its cotangent is
# 1.

_Found: TypeAlias = tuple[list[Array], dict[int, Array]]


def _numpy(call: _Call, points: Array) -> _Found:
    import numpy as np

    module = sys.modules[call.rule.__module__]
    made, pullback = call(points, getattr(module, f"{call.rule.__name__}_vjp"))
    values = _tuple(made)
    gradients = {}
    for place in call.moving:
        cotangents = [np.full(values[k].shape, k == place, float) for k in call.moving]
        gradients[place] = pullback(*cotangents)[call.place]
    return list(values), gradients


def _torch(call: _Call, points: Array) -> _Found:
    torch = sys.modules["torch"]
    x = torch.tensor(points, requires_grad=True)
    values = call.values(x)
    gradients = {}
    for k in call.moving:
        total = (values[k] + 0 * x).sum()  # of x too, if the output is constant
        gradients[k] = torch.autograd.grad(total, x, retain_graph=True)[0].numpy()
    return [y.detach().numpy() for y in values], gradients


def _tf(call: _Call, points: Array) -> _Found:
    tf = sys.modules["tensorflow"]
    x = tf.constant(points)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        values = call.values(x)
    zeros = tf.UnconnectedGradients.ZERO
    gradients = {k: tape.gradient(values[k], x, None, zeros) for k in call.moving}
    return [*values], gradients


def _jax(call: _Call, points: Array) -> _Found:
    jax = sys.modules["jax"]
    x = jax.numpy.asarray(points)
    gradients = {
        k: jax.grad(lambda x, k=k: call.values(x)[k].sum())(x) for k in call.moving
    }
    return [*call.values(x)], gradients


_FRAMEWORKS = {
    "numpy": _numpy,
    "torch": _torch,
    "tensorflow": _tf,
    "jax": _jax,
    "jaxlib": _jax,
}


def _framework(call: _Call) -> Callable[[_Call, Array], _Found]:
    """The framework, recognised by the type of the rule's result for a number."""
    made = type(call.values(1.0)[0]).__module__.partition(".")[0]
    if made not in _FRAMEWORKS:
        raise TypeError(f"plot knows no gradients of {made}")
    return _FRAMEWORKS[made]
