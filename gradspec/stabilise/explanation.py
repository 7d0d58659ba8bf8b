"""Reports of the selection: reasons for the selected forms, and the accuracy that no
form keeps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from gradspec.derive.shortest import as_written
from gradspec.diagnostics import Diagnostic, Fix, warning
from gradspec.ir.expr import Apply, Const, Expr, Ref, Select, const, show
from gradspec.ir.rule import (
    UNBOUNDED,
    AccuracyLoss,
    Chosen,
    Hole,
    Judged,
    Kind,
    Rule,
)
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import children, expand, names, nodes, size, transform
from gradspec.source import Span
from gradspec.stabilise.accuracy_model import GOOD, Score, Trial
from gradspec.stabilise.choice import Candidate, Choice
from gradspec.stabilise.names import Names
from gradspec.symbolic.arithmetic_model import Machine, round_to
from gradspec.symbolic.compare import distinct_texts, point_text, short_number
from gradspec.symbolic.enclose import program
from gradspec.symbolic.truth import floats

# --- why a form was selected ---------------------------------------------------------------


_WIDTH = 70  # characters of a reason, which stands in a line of a module


def reason(trials: tuple[Trial, ...], choice: Choice) -> str:
    """One line: the fault of the written form, in float32, else in float64."""
    before, after = choice.written, choice.selected
    for trial, was, now in zip(trials, before.scores, after.scores, strict=True):
        if was.faults > now.faults:
            where = "in float64, " if trial.machine.work is np.float64 else ""
            fault, at = _fault(trial, before.form, was, now)
            text = f"{where}as written, {fault}"
            return f"{text} {at}" if at and len(text) + len(at) < _WIDTH else text
    return "as accurate, and simpler"


def _fault(trial: Trial, form: Expr, was: Score, now: Score) -> tuple[str, str]:
    values = trial.values(form)
    if was.bad > now.bad:
        row = trial.worst_row(was)
        fault = "is 0" if values[row] == 0 else "loses digits"
        return fault if np.isfinite(values[row]) else "overflows", _place(trial, row)
    if was.gaps > now.gaps:
        row = int(np.argmax(trial.undefined & ~np.isfinite(values)))
        return "has no value", _place(trial, row)
    return "passes through an infinity", ""


def _place(trial: Trial, row: int) -> str:
    """An approximate description of a point, without cotangents: ``for large x``."""
    point = trial.points.rows[row]
    shown = sorted(names(trial.meaning) - trial.points.upstream)
    return "for " + ", ".join(_about(name, point[name]) for name in shown)


def _about(name: str, value: float) -> str:
    if abs(value) >= _FAR:
        return f"large {name}" if value > 0 else f"large -{name}"
    near = float(f"{value:.1g}") if abs(value) > 1 / _FAR else 0
    return f"{name} near {near:g}"


# --- what no form mends ----------------------------------------------------------------------

_WRONG = 2.0**-8
"""Relative error beyond which a value is reported as wrong, not merely inexact."""

_INEXACT = 2.0**-15
"""The relative error for an exponential: digits lost in its argument cannot be
recovered."""

_LARGEST = float(np.finfo(np.float32).max)
_SMALLEST = float(np.finfo(np.float32).tiny)
_ORDINARY, _FADED, _HUGE = 1e4, 1e-6, 1e30
_MOST = 200  # nodes of a form that is searched
_SHOWN = 12  # points tried, the most moderate ones first
_FAR = 30.0
"""An input beyond this is large, and one below its inverse is near 0."""


def accuracy_loss(
    name: str, trials: tuple[Trial, ...], selected: Candidate, is_wide: bool = False
) -> list[AccuracyLoss]:
    """Accuracy loss of the selected form in float32 (computed in float64 and rounded if
    it ``is_wide``; a guard that float32 cannot represent is a fault all the same).

    The cause is the first operation, from the leaves up, whose operands are right and
    whose result is not. Nothing is reported where the inputs are extreme, or where the
    failure is of no known kind.
    """
    trial, score = trials[0], selected.scores[0]
    form = expand(trial.close(selected.form))
    if not score.bad or size(form) > _MOST:
        return []
    machine = trial.machine
    if is_wide and not any(map(_is_lost_guard, nodes(form))):
        machine, score = machine.in_double(), trial.score_in_double(selected.form)
    bad, points = np.flatnonzero(score.errors > GOOD), trial.points
    values, exacts = machine.run(form), trial.condition.value
    with np.errstate(all="ignore"):
        is_mild = np.abs(values - exacts) <= _INEXACT * np.abs(exacts)
    order = np.lexsort((points.size[bad], is_mild[bad], ~points.core[bad]))
    for row in bad[order][:_SHOWN].tolist():
        value, exact, point = float(values[row]), float(exacts[row]), points.rows[row]
        shown = tuple((n, point[n]) for n in point if n in names(form))
        if not points.core[row] and not _is_plain(shown, value, exact):
            continue
        if _is_of_literals(form, machine, point, value, exact):
            continue
        for limit in (_WRONG, _INEXACT):
            found = _blame(form, machine, point, limit, row)
            if found is not None and (limit == _WRONG or found[0] == "exponent"):
                return [AccuracyLoss(name, *found, shown, value, exact)]
    return []


def _is_plain(point: tuple[tuple[str, float], ...], value: float, exact: float) -> bool:
    """True if at most one input is large and the rest are ordinary, and the loss is
    more than the last digits of a vanishing value.
    """
    if any(abs(v) > _HUGE for _, v in point):
        return False
    odd = [v for _, v in point if v and not 1 / _ORDINARY < abs(v) < _ORDINARY]
    fades = math.isfinite(value) and abs(exact) < _FADED
    return len(odd) <= 1 and not fades and abs(exact) < _HUGE


def _is_of_literals(
    form: Expr, machine: Machine, point: Mapping[str, Any], value: float, exact: float
) -> bool:
    """True if a value that should be (nearly) 0 comes from the rounding of the literals
    (and of an operation or two): `0.3 * x - (0.1 * x + 0.2 * x)` is no difference that
    could be written with more digits.
    """
    if any(map(_is_lost_guard, nodes(form))):
        return False

    def with_rounded_literal(node: Expr) -> Expr:
        if not isinstance(node, Const):
            return node
        number = float(round_to(node.value, machine.work))
        return const(Fraction(number)) if math.isfinite(number) else node

    (with_literals,) = floats(program(transform(form, with_rounded_literal)), point)
    if with_literals is None:
        return False
    moved = abs(with_literals - exact)
    return abs(exact) < _FADED * moved and _WRONG * abs(value - exact) <= moved


def _blame(
    form: Expr, machine: Machine, point: Mapping[str, Any], limit: float, row: int
) -> tuple[str, Expr] | None:
    order = tuple(nodes(form))
    truths = floats(program(*order), point)
    true = dict(zip(order, truths, strict=True))
    held = {node: float(machine.run(node)[row]) for node in order}
    exponents = _exponents(order)
    for node in order:
        if not isinstance(node, Apply) or not names(node):
            continue
        if _is_right(held[node], true[node], limit):
            continue
        parts = children(node)
        is_known = all(true[part] is not None for part in parts)
        if is_known and all(_is_right(held[p], true[p], limit) for p in parts):
            kind = _kind(node, held, true, exponents)
            return None if kind is None else (kind, node)
    return None


def _exponents(order: tuple[Expr, ...]) -> frozenset[Expr]:
    """The exponentials of sums, and those sums with their parts."""
    found: set[Expr] = set()
    for node in reversed(order):
        match node:
            case Apply(op="exp", args=(Apply(op="add" | "sub") as arg,)):
                found |= {node, arg}
            case Apply(op="add" | "sub" | "neg", args=args) if node in found:
                sums = ("exp", "add", "sub", "neg")
                found |= {a for a in args if isinstance(a, Apply) and a.op in sums}
    return frozenset(found)


def _is_right(held: float, true: float | None, limit: float) -> bool:
    """True if nearly the true value, as far as float32 represents it."""
    if true is None:
        return True
    if abs(true) > _LARGEST:
        return math.isinf(held) and (held > 0) == (true > 0)
    if abs(true) < _SMALLEST:
        return abs(held) <= 2 * _SMALLEST
    return math.isfinite(held) and abs(held - true) <= limit * abs(true)


def _kind(
    node: Apply,
    held: dict[Expr, float],
    true: dict[Expr, float | None],
    exponents: frozenset[Expr],
) -> str | None:
    """The kind of failure of an operation; None for one of no known kind."""
    if any(map(_is_lost_guard, nodes(node))):
        return "guard"
    if node in exponents:
        return "exponent"
    if node.op in ("add", "sub") and math.isfinite(held[node]):
        return "saturation"
    if any(abs(true[part] or 0.0) > _LARGEST for part in children(node)):
        return "overflow"
    if math.isnan(held[node]) and all(math.isfinite(held[p]) for p in children(node)):
        return "saturation"  # beyond an end of its domain, by a rounding
    return None if math.isfinite(held[node]) else "overflow"


def _is_lost_guard(number: Expr) -> bool:
    """True for ``1 - 1e-15``: in float32 it is 1. (A coefficient of a series has many
    bits.)
    """
    if not isinstance(number, Const):
        return False
    denominator = number.value.denominator
    if denominator == 1 or denominator & (denominator - 1) == 0:
        return False
    return (
        float(np.float32(float(number.value))).is_integer()
        and abs(number.value) >= 1 / 2
    )


# --- diagnostics ----------------------------------------------------------------------
#
# Warnings about the accuracy that the selected forms lose, and about NaN at removable
# singularities: the checks find these (`Hole`), the selected forms decide what the
# program gives there.


_LONGEST = 60  # characters of an operation that are shown


@dataclass(frozen=True, slots=True)
class _Words:
    code: str
    what: str
    why: str
    cure: str


_WORDS = {
    "saturation": _Words(
        "GS441",
        "a difference that loses its digits",
        "its sides are nearly equal, and were rounded before",
        "a difference that is small has to be a function of its own: `sigmoid(-x)` for"
        " `1 - sigmoid(x)`, `-expm1(x)` for `1 - exp(x)`; a polynomial is multiplied out",
    ),
    "overflow": _Words(
        "GS442",
        "a part that overflows though the result would not",
        "a part of it is beyond the range of float32",
        "divide by the largest part first: `1 / (1 + (b / a)**2)` for"
        " `a**2 / (a**2 + b**2)`, or multiply in another order",
    ),
    "undefined": _Words(
        "GS433",
        "a point at which it is NaN and the output is a number",
        "it is 0 / 0 there, or infinity times 0",
        "give the limit there, `… if s > 0 else 0`, with a conditional that is false at"
        " this point only, or exclude the point by an `assume`",
    ),
    "exponent": _Words(
        "GS443",
        "an exponential of a difference of large terms",
        "the large terms have lost the digits that their difference needs",
        "give the logarithm as the output and leave the exponential out, or bring the"
        " large terms together first",
    ),
    "guard": _Words(
        "GS444",
        "a guard that float32 does not hold",
        "the number next to 1 is 1 in float32",
        "guard the difference itself, `max(1 - p, 1e-15)`, or take a guard that float32"
        " holds, `1 - 1e-6`",
    ),
}

_CURES = {
    ("overflow", "i0 i1 i1_slope"): "take the scaled functions: `abs(k) + log(i0e(k))`"
    " for `log(i0(k))`, `i1e(k) / i0e(k)` for `i1(k) / i0(k)`",
    ("overflow", "gamma"): "take logarithms: `exp(lgamma(a) - lgamma(b))` for `gamma(a)"
    " / gamma(b)`",
    ("overflow", "ndtr erf erfc"): "take the logarithm of the tail: `log_ndtr(x)` for"
    " `log(ndtr(x))`, `erfcx(x)` for `exp(x**2) * erfc(x)`; of the upper tail"
    " `ndtr(-b) - ndtr(-a)` for `ndtr(a) - ndtr(b)`",
    ("overflow", "exp exp2 expm1 sigmoid"): "keep the exponents:"
    " `logaddexp(logaddexp(a, b), c)` for `log(exp(a) + exp(b) + exp(c))`, `sigmoid(a"
    " - b)` for `exp(a) / (exp(a) + exp(b))`, `logsigmoid(x)` for `log(sigmoid(x))`,"
    " `exp(a - b)` for `exp(a) / exp(b)`",
    ("overflow", "sinh cosh"): "take the exponential out: `abs(x) + log1p(exp(-2 *"
    " abs(x))) - log(2)` for `log(cosh(x))`, `tanh(x)` for `sinh(x) / cosh(x)`",
    ("overflow", "square sqrt hypot"): "divide by the largest part before squaring:"
    " `hypot(a, b)` for `sqrt(a**2 + b**2)`, `1 / (1 + (b / a)**2)` for `a**2 / (a**2"
    " + b**2)`",
    ("overflow", "pow"): "divide by the largest part before raising to a power, with `m"
    " = max(a, b)`: `m * ((a / m)**p + (b / m)**p)**(1 / p)` for `(a**p + b**p)**(1 /"
    " p)`",
    ("saturation", "ndtr erf erfc"): "of a small difference take the tails: `erfc(x)`"
    " for `1 - erf(x)`, `ndtr(-b) - ndtr(-a)` for `ndtr(a) - ndtr(b)` where both are"
    " positive; its logarithm is `log_ndtr(-b) + log1p(-exp(log_ndtr(-a) -"
    " log_ndtr(-b)))`",
    ("saturation", "lgamma digamma polygamma"): "assume that the arguments are positive"
    " (`assume a > 0, b > 0`) and write `lgamma(a + b) - lgamma(a)` with its two terms"
    " beside each other: such a difference is evaluated as one function",
    ("saturation", "sin cos acos asin"): "take half angles: `2 * sin(x / 2)**2` for `1"
    " - cos(x)`, `2 * asin(sqrt(h))` for `acos(1 - 2 * h)`",
    ("saturation", "tanh sinh cosh"): "`1 / cosh(x)**2` for `1 - tanh(x)**2`, `2 *"
    " sinh(x / 2)**2` for `cosh(x) - 1`",
    ("undefined", "sqrt rsqrt cbrt"): "choose the gradient where the root is 0, in"
    " a line of your own, `… if s > 0 else 0`, or exclude the point by an `assume` (of"
    " a norm at the vector 0 a derived gradient is 0)",
    ("undefined", "sin"): "take `sinc(x / pi)` for `sin(x) / x`; of any other quotient"
    " choose the value in a conditional that is false at this point only",
    ("undefined", "log"): "take `xlogy(x, y)` for `x * log(y)`, or a conditional that"
    " is false at this point only",
}
"""Advice against a failure whose cause contains one of some operations."""


def _cure(kind: str, culprit: Expr) -> str:
    used = {node.op for node in nodes(culprit) if isinstance(node, Apply)}
    fitting = (
        cure
        for (of, operations), cure in _CURES.items()
        if kind == of and used & set(operations.split())
    )
    return next(fitting, _WORDS[kind].cure)


def loss_warnings(chosen: Chosen) -> Iterator[Diagnostic]:
    """One diagnostic for each kind of failure of a rule, for the first value that has
    it; the others are named."""
    found: dict[str, list[AccuracyLoss]] = {}
    for loss in chosen.losses:
        found.setdefault(loss.kind, []).append(loss)
    for first, *others in found.values():
        names = dict.fromkeys(loss.name for loss in others if loss.name != first.name)
        yield _finding(chosen.rule, first, tuple(names))


def _finding(rule: Rule, loss: AccuracyLoss, others: tuple[str, ...]) -> Diagnostic:
    words = _WORDS[loss.kind]
    code = words.code
    if loss.kind == "undefined" and loss.name in _texts(rule):
        code = "GS403"  # it is declared
    shown = {_number(v) for _, v in loss.point}
    digits = 6 if len(shown) == len({v for _, v in loss.point}) else 17
    place = ", ".join(f"{name} = {_number(v, digits)}" for name, v in loss.point)
    value, true = distinct_texts((loss.value, loss.true), _number, 6)
    right = "" if math.isnan(loss.true) else f", where {true} is right"
    return warning(
        code,
        f"{loss.name} of {rule.name} has {words.what}",
        rule.source,
        _span(rule, loss),
        label=f"gives {value} at {place}{right}",
        notes=(
            f"the cause is `{_text(loss.culprit)}`: {words.why}",
            *([f"so has {' and '.join(others)}"] if others else []),
        ),
        help=_cure(loss.kind, loss.culprit),
    )


def _number(value: float, digits: int = 6) -> str:
    if abs(value) == UNBOUNDED:
        value *= math.inf
    return f"{value + 0.0:.{digits}g}"  # -0 is shown as 0


def _text(expr: Expr) -> str:
    text = as_written(tidy(expr))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _span(rule: Rule, loss: AccuracyLoss) -> Span:
    """The span of the operation at fault, else of the value that it belongs to."""
    text = _texts(rule).get(loss.name)
    if text is None:
        return next(
            let.span for let in rule.forward if let.name == rule.outputs[0].name
        )
    value, span = text
    same = (n.span for n in nodes(value) if n == loss.culprit and n.span is not None)
    # equal expressions of several rules are one object, with the place of the first
    return next((s for s in same if span.start <= s.start <= s.end <= span.end), span)


def _texts(rule: Rule) -> dict[str, tuple[Expr, Span]]:
    """The author's expressions, by name."""
    every = (*rule.forward, *rule.backward)
    return {d.name: (d.value, d.span) for d in every if not d.is_derived}


# --- what stays NaN --------------------------------------------------------------------

FLOATS: Mapping[str, Any] = {"float32": np.float32, "float64": np.float64}


def unfilled_holes(rule: Rule, judged: Judged) -> Iterator[Diagnostic]:
    """Removable singularities of a judged rule that evaluation as in ``rule`` leaves
    NaN, once for each point, and derived gradients that are numbers there, but not
    slopes, once for the rule."""
    told: dict[Any, tuple[list[str], Hole, dict[str, float]]] = {}
    for hole in judged.holes:
        form = Names(rule).close(Ref(hole.name))
        values = values_by_format(rule, form, dict(hole.point), hole.output)
        is_nan = any(map(math.isnan, values.values()))
        if not is_nan and (
            hole.name in _texts(judged.rule) or _are_slopes(values, hole)
        ):
            continue
        if not any(hole.name in names_ for names_, *_ in told.values()):
            key = hole.point if is_nan else None
            told.setdefault(key, ([], hole, values))[0].append(hole.name)
    for names_, hole, values in told.values():
        yield _hole_warning(judged.rule, hole, values, tuple(names_))


def _are_slopes(values: Mapping[str, float], hole: Hole) -> bool:
    low, high = sorted(map(float, (hole.left, hole.right)))
    slack = 1e-4 * (1 + abs(low) + abs(high))  # the slopes are texts of six digits
    return all(low - slack <= v <= high + slack for v in values.values())


def values_by_format(
    rule: Rule, form: Expr, point: Mapping[str, Fraction], output: str
) -> dict[str, float]:
    """The values of a closed form at a point with the cotangent 1 of one output, in
    each format that represents the point (a static is a Python number anyway).
    """
    given = {
        **point,
        **{o.cotangent: Fraction(o.name == output) for o in rule.outputs},
    }
    statics = {variable.name for variable in rule.static_inputs}
    bools = {variable.name for variable in rule.inputs if variable.kind is Kind.BOOL}
    found: dict[str, float] = {}
    for name, work in FLOATS.items():
        exact = (v for n, v in given.items() if n not in statics)
        if all(Fraction(float(work(float(value)))) == value for value in exact):
            columns = {
                n: np.array([float(value)], np.bool_ if n in bools else work)
                for n, value in given.items()
            }
            with suppress(NotImplementedError):  # a part that the model does not know
                found[name] = float(Machine(columns, work).run(form)[0])
    return found


def _hole_warning(
    rule: Rule, hole: Hole, values: Mapping[str, float], names_: tuple[str, ...]
) -> Diagnostic:
    sides = tuple(dict.fromkeys((hole.left, hole.right)))
    left = [name for name, value in values.items() if math.isnan(value)]
    limit = f"limit {sides[0]}" if len(sides) == 1 else f"slopes {' and '.join(sides)}"
    number = "NaN" if left else _number(next(iter(values.values())))
    point = dict(hole.point)
    where = f" in {left[0]}" if 0 < len(left) < len(FLOATS) else ""
    what = "NaN where it has a limit" if len(sides) == 1 else "NaN at a kink"
    what = what.replace("it has", "they have") if len(names_) > 1 else what
    what = what if left else "not the slope at a point"
    return warning(
        "GS433" if left else "GS434",
        f"{', '.join(names_)} of {rule.name} {'is' if len(names_) == 1 else 'are'} {what}",
        rule.source,
        _texts(rule).get(hole.name, (None, rule.name_span))[1],
        label=f"{number}{where} at {point_text(point, tuple(point))}: {limit}",
        help=f"or {_cure('undefined', Names(rule).close(Ref(hole.output)))}",
        tries=(tuple(_fills(rule, hole)),),
    )


def _fills(rule: Rule, hole: Hole) -> Iterator[Fix]:
    """Suggested fixes: an output with its limit where a divisor is 0, or at the point
    itself.
    """
    let = next((let for let in rule.forward if let.name == hole.name), None)
    if let is None or let.value.span is None or hole.left != hole.right:
        return
    old = rule.source.slice(let.value.span)
    old = f"({old})" if isinstance(let.value, Select) else old
    for condition in dict.fromkeys(_conditions(rule, let.value, hole)):
        new = f"{old} if {condition} else {hole.left}"
        yield Fix(f"write `{hole.name} = {new}`", let.value.span, new)


def _conditions(rule: Rule, value: Expr, hole: Hole) -> Iterator[str]:
    for node in nodes(value):
        if isinstance(node, Apply) and node.op == "div" and names(node.args[1]):
            yield f"{show(node.args[1])} != 0"
    tensors = {variable.name for variable in rule.tensor_inputs}
    apart = [f"{n} != {short_number(v)}" for n, v in hole.point if n in tensors]
    yield from apart
    yield " or ".join(apart)
