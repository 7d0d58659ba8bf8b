"""Kernels of rules against their formulas: one of the forward pass against the values, one
of the backward pass against the derivative.

At small sizes the truth is that of a trial's calls, by ball arithmetic; at larger ones it
is the formula in NumPy and float64, since kernels go wrong where a block ends. What a
wrong gradient has in the place of the derivative is looked for in the table of errors of
written gradients: a change of the right formula that gives what the kernel gives.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import islice
from types import ModuleType
from typing import Any

import numpy as np

from gradspec.checks.diagnosis.hypotheses import HYPOTHESES
from gradspec.checks.diagnosis.places import (
    Exhausted,
    Guess,
    Scene,
    View,
    put,
    quotation,
)
from gradspec.checks.instances import Instance, Point, instances
from gradspec.derive.complete import complete
from gradspec.diagnostics import Diagnostic, error
from gradspec.driver.cache import import_module as imported
from gradspec.ir.elements import OutOfRange, element, extent, places
from gradspec.ir.expr import Expr
from gradspec.ir.rule import Chosen, Judged, Kernel, Kind, Origin, Rule
from gradspec.ir.unroll import axis_names
from gradspec.measure.foreign import function_of_names
from gradspec.plan.planning import plan_module
from gradspec.symbolic.enclose import program
from gradspec.symbolic.truth import floats
from gradspec.targets.emitting import emit

RELATIVE, ABSOLUTE = 1e-3, 1e-4
"""Kernels compute in float32 and sum in an order of their own."""

_LARGE = ((17, 33, 8, 5), (64, 7, 37, 16))
_MANY = 4099
"""Sizes of axes, and elements of an elementwise rule, that end within a block."""

_POINTS, _INSTANCES, _GUESSES = 5, 3, 60
"""Limits of a diagnosis."""

Arrays = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments and the expected results of a call, in arrays of float64."""

    statics: Mapping[str, float | int]
    given: Arrays
    expected: Arrays

    @property
    def where(self) -> str:
        shapes = (f"{n}{list(a.shape)}" for n, a in self.given.items())
        return ", ".join([*shapes, *(f"{n} = {v}" for n, v in self.statics.items())])


def faults(judged: Judged, case: Mapping[str, Any] | None) -> Iterator[Diagnostic]:
    """An error for each kernel of a rule that differs from its formula. ``case`` is the
    rule's trial."""
    rule = judged.rule
    calls: list[Call] | None = None
    for kernel in rule.kernels:
        if importlib.util.find_spec(kernel.target) is None:
            continue
        try:
            computed = function_of_names(kernel.call)
        except ImportError as fault:
            yield _error(
                "GS618", f"{_path(kernel)} cannot be called", rule, kernel, str(fault)
            )
            continue
        if calls is None:
            calls = [*_small(case), *_large(judged)]
        for call in calls:
            found = tuple(_differences(rule, kernel, computed, call))
            if found:
                yield from found
                break


def _path(kernel: Kernel) -> str:
    return kernel.call.partition("(")[0]


def _error(
    code: str, headline: str, rule: Rule, kernel: Kernel, *notes: str, label: str = ""
) -> Diagnostic:
    return error(
        code,
        headline,
        rule.source,
        kernel.span,
        label=label,
        notes=[n for n in notes if n],
    )


# --- calls -------------------------------------------------------------------------------


def _small(case: Mapping[str, Any] | None) -> Iterator[Call]:
    """The calls of a trial in which all inputs have the same batch axes."""
    for call in case["calls"] if case else ():
        if call["is_even"]:
            inputs = _arrays(call["given"])
            upstream = {f"d{name}": a for name, a in _arrays(call["upstream"]).items()}
            expected = _arrays(call["values"] | call["first"])
            yield Call(call["statics"], inputs | upstream, expected)


def _arrays(listed: Mapping[str, Any]) -> Arrays:
    return {
        name: np.array(flat, np.float64).reshape(shape)
        for name, (shape, flat) in listed.items()
    }


def _large(judged: Judged) -> Iterator[Call]:
    """Calls with larger arrays; none for a rule that asks something of its inputs."""
    rule = judged.rule
    kinds = {i.kind for i in rule.inputs} - {Kind.FLOAT, Kind.NOGRAD, Kind.STATIC}
    module = None if kinds or rule.assumes else _formulas(judged)
    if module is None:
        return
    rng = np.random.default_rng(0)
    for pool in _LARGE:
        sizes = dict(zip(axis_names(rule), pool * len(pool), strict=False))
        statics = {i.name: float(i.default or 1) for i in rule.static_inputs}
        batch = (2,) if rule.has_axes else (_MANY,)
        given = {}
        for i in rule.tensor_inputs:
            core = (extent(axis, sizes) for axis in i.shape.axes)
            given[i.name] = _drawn(rng, (*(batch if i.shape.batch else ()), *core))
        made, pullback = getattr(module, f"{rule.name}_vjp")(*given.values(), **statics)
        values = made if isinstance(made, tuple) else (made,)
        outputs = {o.name: v for o, v in zip(rule.outputs, values, strict=True)}
        upstream = {
            o.cotangent: _drawn(rng, outputs[o.name].shape)
            for o in rule.outputs
            if o.takes_gradient
        }
        names = (i.cotangent for i in rule.tensor_inputs)
        first = dict(zip(names, pullback(*upstream.values()), strict=True))
        yield Call(statics, given | upstream, outputs | first)


def _drawn(rng: Any, shape: tuple[int, ...]) -> Any:
    """Numbers of float32, in float64."""
    return rng.standard_normal(shape).astype(np.float32).astype(np.float64)


def _formulas(judged: Judged) -> ModuleType | None:
    """The rule in NumPy without kernels."""
    bare = replace(judged.rule, kernels=())
    plan = plan_module(bare.source, (Chosen(replace(judged, rule=bare), bare),))
    emitted = emit(plan, "numpy").value
    return None if emitted is None else imported(emitted)


# --- comparison --------------------------------------------------------------------------


def _differences(
    rule: Rule, kernel: Kernel, computed: Any, call: Call
) -> Iterator[Diagnostic]:
    made = _made(rule, kernel, computed, call)
    if isinstance(made, str):
        yield _error(
            "GS619", f"{_path(kernel)} fails", rule, kernel, made, label=call.where
        )
        return
    for name, got in made.items():
        true = call.expected[name]
        what = "derivative" if kernel.is_gradient else "formula"
        headline = f"{name} of {rule.name} by {_path(kernel)} is not the {what}"
        if got.shape != true.shape:
            told = f"has the shape {list(got.shape)} at {call.where}, expected {list(true.shape)}"
            yield _error("GS619", headline, rule, kernel, label=told)
            continue
        wrong = ~_are_near(got, true)
        if wrong.any():
            at = tuple(map(int, np.argwhere(wrong)[0]))
            here = f"{name}[{', '.join(map(str, at))}]" if at else name
            told = f"gives {got[at]:.7g} for {here} at {call.where}, where the {what} is {true[at]:.7g}"
            cause = _cause(rule, kernel, computed, name, got, true)
            notes = (cause or _pattern(wrong),)
            yield _error("GS619", headline, rule, kernel, *notes, label=told)


def _are_near(got: Any, true: Any) -> Any:
    known = true[~np.isnan(true)]
    scale = np.abs(known).max() if known.size else 1.0
    room = RELATIVE * np.abs(true) + ABSOLUTE * max(scale, 1e-3)
    return np.isnan(true) | (np.abs(got - true) <= room)


def _made(rule: Rule, kernel: Kernel, computed: Any, call: Call) -> Arrays | str:
    """The results of the kernel by name, or its failure."""
    kinds = {i.name: i.kind for i in rule.tensor_inputs}
    values: Arrays = dict(call.statics)
    for name, array in {**call.expected, **call.given}.items():
        kind = kinds.get(name, Kind.FLOAT)
        held = {Kind.INT: np.int64, Kind.BOOL: np.bool_}.get(kind, np.float32)
        values[name] = _tensor(kernel.target, array.astype(held))
    try:
        made = computed(values)
        several = made if isinstance(made, tuple | list) else (made,)
        arrays = [_array(kernel.target, one) for one in several]
        return dict(zip(kernel.names, arrays, strict=True))
    except Exception as fault:  # whatever a stranger's code raises
        told = str(fault).strip().splitlines()
        return f"{type(fault).__name__}: {told[0] if told else ''}"


def _tensor(target: str, array: Any) -> Any:
    if target != "torch":
        return array
    torch = import_module("torch")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.from_numpy(np.ascontiguousarray(array)).reshape(array.shape).to(device)


def _array(target: str, made: Any) -> Any:
    if target == "torch":
        made = made.detach().cpu().double().numpy()
    return np.asarray(made, np.float64)


# --- diagnosis ---------------------------------------------------------------------------


def _pattern(wrong: Any) -> str:
    """Which elements are wrong, if these lie at the end of an axis."""
    count, size = int(wrong.sum()), wrong.size
    for axis in range(wrong.ndim):
        others = tuple(k for k in range(wrong.ndim) if k != axis)
        rows = np.nonzero(wrong.any(axis=others))[0]
        length = wrong.shape[axis]
        if rows[0] > 0 and rows[-1] == length - 1 and len(rows) == length - rows[0]:
            return (
                f"wrong from position {rows[0]} of axis {axis} on, which has {length}"
            )
    return f"{count} of {size} elements are wrong" if count < size else ""


def _cause(
    rule: Rule, kernel: Kernel, computed: Any, name: str, got: Any, true: Any
) -> str:
    """The formula that it computes in the place of the right one; empty if not known."""
    smallest = RELATIVE * np.abs(true).max() if true.size else 0.0
    some = np.abs(true) > smallest
    ratios = got[some] / true[some]
    if ratios.size > 2 and np.ptp(ratios) <= RELATIVE * np.abs(ratios).max():
        factor = float(np.median(ratios))
        if abs(factor + 1) < RELATIVE:
            return "its sign is wrong everywhere"
        return (
            f"it is {factor:.4g} times what it should be"
            if factor
            else "it is always 0"
        )
    return _change(rule, kernel, computed, name) if kernel.is_gradient else ""


def _change(rule: Rule, kernel: Kernel, computed: Any, name: str) -> str:
    """The change of the derivative that gives what the kernel gives."""
    variable = name.removeprefix("d")
    whole = complete(rule).value
    entry = None if whole is None else whole.values.get(name)
    if whole is None or entry is None:
        return ""
    texts = (entry, *whole.backward_locals)  # it may use adjoint states
    written = whole.redefine(*(replace(one, origin=Origin.WRITTEN) for one in texts))
    points: dict[Instance, tuple[Point, ...]] = {}
    held: dict[tuple[int, int], Arrays] = {}
    for one in islice(instances(written).varied, _INSTANCES):
        points[one] = one.points[:_POINTS]
        for number, point in enumerate(points[one]):
            made = _made(rule, kernel, computed, _call_at(rule, one, point))
            if isinstance(made, str):
                return ""
            held[id(one), number] = made
    try:
        scene = Scene(written, variable, points)
        right = Guess("", instead=lambda view: view.instance.derived[view.of(variable)])
        if _fits(scene, right, held, name):
            return ""  # where it is wrong, arrays are larger
        return next(_fitting(scene, held, name), "")
    except (Exhausted, OutOfRange):
        return ""


def _call_at(rule: Rule, one: Instance, point: Point) -> Call:
    """The call at one point of an instance."""
    numbers: dict[str, Any] = {
        **point,
        **dict(zip(one.forward, _floats(one.forward, point), strict=True)),
    }
    variables = [(i.name, i.shape.axes) for i in rule.tensor_inputs]
    outputs = [(o.name, o.shape.axes) for o in rule.outputs]
    upstream = [(o.cotangent, o.shape.axes) for o in rule.outputs if o.takes_gradient]

    def array(name: str, axes: Any) -> Any:
        flat = [float(numbers[element(name, k)]) for k in places(axes, one.sizes)]
        return np.array(flat).reshape([extent(axis, one.sizes) for axis in axes])

    statics = {
        i.name: float(point[i.name]) for i in rule.static_inputs if i.name in point
    }
    given = {name: array(name, axes) for name, axes in (*variables, *upstream)}
    return Call(statics, given, {name: array(name, axes) for name, axes in outputs})


def _floats(forms: Mapping[str, Expr], point: Point) -> list[float]:
    return [0.0 if v is None else v for v in floats(program(*forms.values()), point)]


def _fitting(
    scene: Scene, held: Mapping[tuple[int, int], Arrays], name: str
) -> Iterator[str]:
    """The sentences of changes that give what is held."""
    for hypothesis in HYPOTHESES:
        for guess in islice(hypothesis(scene), _GUESSES):
            sentence = _sentence(guess)
            if sentence and _fits(scene, guess, held, name):
                yield sentence


def _sentence(guess: Guess) -> str:
    if guess.instead is not None:
        return guess.sentence
    if guess.place is None or guess.new is None:
        return ""
    if "`" not in quotation(guess.new) + quotation(guess.place.node):
        return ""
    return f"it has {quotation(guess.new)} where the derivative has {quotation(guess.place.node)}"


def _fits(
    scene: Scene, guess: Guess, held: Mapping[tuple[int, int], Arrays], name: str
) -> bool:
    found, wanted = [], []
    for view in scene.views:
        form = _form(scene, guess, view)
        if form is None:
            return False
        scene.spend(len(view.points))
        compiled = program(form)
        for number, point in enumerate(view.points):
            value = floats(compiled, point)[0]
            found.append(np.nan if value is None else value)
            wanted.append(held[id(view.instance), number][name][view.index])
    got, true = np.array(found), np.array(wanted)
    return not np.isnan(got).any() and bool(_are_near(got, true).all())


def _form(scene: Scene, guess: Guess, view: View) -> Expr | None:
    """The changed derivative of one element."""
    if guess.instead is not None:
        return guess.instead(view)
    assert guess.place is not None and guess.new is not None
    if guess.place.within != scene.text.name:
        return None
    changed = put(scene.text.value, guess.place.node, guess.new)
    return None if changed is None else view.close(changed)
