"""Diagnostics for a declared cotangent that differs from the derivative: the witness, a
likely cause, and suggested fixes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gradspec.checks.boundaries import (
    Finding,
    bent_said,
    fault,
    place_said,
    slopes_said,
)
from gradspec.checks.breaks import Break
from gradspec.checks.diagnosis.hypotheses import likely_causes
from gradspec.checks.diagnosis.places import Guess, plain, put, rename_indices
from gradspec.checks.evidence import Claim, is_rounding
from gradspec.checks.instances import (
    Instance,
    Point,
    stem,
)
from gradspec.derive.chain import Underivable
from gradspec.derive.complete import derived_entries
from gradspec.derive.shortest import as_written, shortest
from gradspec.diagnostics import Diagnostic, Fix, Label, error, warning
from gradspec.ir.elements import Axes, Index, Nested, element, extent, places
from gradspec.ir.expr import Expr, show, spoken
from gradspec.ir.rule import Definition, Input, Rule
from gradspec.ir.walk import nodes
from gradspec.primitives.foreign import foreign_operations
from gradspec.source import Span
from gradspec.symbolic.compare import (
    Comparison,
    Relation,
    decimal,
    distinct_texts,
    short_number,
)

_LONGEST = 160
"""Characters beyond which a suggested line is not readable."""


@dataclass(frozen=True, slots=True)
class Witness:
    """A point at which an element of a declared cotangent is wrong; ``ends`` are the
    one-sided slopes there, if it is a kink."""

    claim: Claim
    point: Point
    seen: Comparison
    ends: tuple[object, ...] = ()

    @property
    def instance(self) -> Instance:
        return self.claim.instance

    @property
    def rule(self) -> Rule:
        return self.instance.written

    @property
    def name(self) -> str:
        """The cotangent as a whole."""
        return f"d{stem(self.claim.input.name)}"

    @property
    def entry(self) -> Definition:
        """As it is written."""
        return self.rule.declared[stem(self.claim.input.name)]

    @property
    def element(self) -> str:
        return f"{self.claim.name} " if "[" in self.claim.name else ""

    @property
    def place(self) -> str:
        """``n = 2, x = [1, 2], dy = [1, 3]``: the variables that matter, whole."""
        used = frozenset(self.claim.shown)
        sizes = [f"{axis} = {size}" for axis, size in self.instance.sizes.items()]
        inputs = [(v.name, v.shape.axes) for v in self.rule.inputs]
        outputs = [o for o in self.rule.outputs if o.takes_gradient]
        every = (*inputs, *((o.cotangent, o.shape.axes) for o in outputs))
        values = (self._value(name, axes, used) for name, axes in every)
        return ", ".join((*sizes, *(value for value in values if value)))

    def _value(self, name: str, axes: Axes, used: frozenset[str]) -> str:
        integers, sizes = self.instance.integers, self.instance.sizes
        if name in sizes:
            return ""
        if name in integers:
            return f"{name} = {_rows(integers[name])}"
        if not any(element(name, i) in used for i in places(axes, sizes)):
            return ""
        return f"{name} = {self._nested_text(name, axes, ())}"

    def _nested_text(self, name: str, axes: Axes, index: Index) -> str:
        if not axes:
            return short_number(self.point[element(name, index)])
        count = extent(axes[0], self.instance.sizes)
        rows = (self._nested_text(name, axes[1:], (*index, k)) for k in range(count))
        return f"[{', '.join(rows)}]"


def _rows(value: Nested) -> str:
    if isinstance(value, int):
        return str(value)
    return f"[{', '.join(_rows(row) for row in value)}]"


# --- refuted -----------------------------------------------------------------------------


def refutation(witness: Witness, instances: tuple[Instance, ...]) -> Diagnostic:
    """The error for a wrong cotangent, with a cause that holds at all of the
    instances."""
    claim, seen, rule = witness.claim, witness.seen, witness.rule
    entry = witness.entry
    declared, true = decimal(seen.left), decimal(seen.right)
    if seen.relation is Relation.DIFFERENT:
        declared, true = distinct_texts((seen.left, seen.right))
    place, name = witness.place, witness.name
    others = (one for one in instances if one is not witness.instance)
    guesses = likely_causes(claim, witness.point, (witness.instance, *others))
    likely = tuple(fix for guess in guesses for fix in _fixes(rule, entry, name, guess))
    notes: list[str] = []
    also: tuple[Label, ...] = ()
    if guesses and not likely:
        notes.append(guesses[0].sentence)
        guilty = _guilty(rule, entry, guesses[0])
        also = () if guilty is None else (probably(rule, guilty),)
    if rule.surrogates:
        notes.append("the derivative is that of the surrogate")
    unknown = foreign_operations([claim.declared, claim.derived])
    if unknown:
        listed = ", ".join(f"`{spoken(op)}`" for op in unknown)
        notes.append(
            f"the numbers are those of a stand-in for {listed}: of a foreign function"
            " only the given derivative is known"
        )
    code, difference = "GS401", "is not the derivative"
    if is_rounding(claim, witness.point):
        code, difference = (
            "GS416",
            "and the derivative are equal up to rounding, not equal",
        )
    return error(
        code,
        f"{name} of {rule.name} {difference}",
        rule.source,
        entry.span,
        label=f"{witness.element}gives {declared} at {place}, where the derivative is"
        f" {true}",
        notes=notes,
        help=_if_meant(name),
        also=also,
        tries=(
            (*likely, *_lines(rule, entry, name, likely[:1])),
            (left_out(rule, entry.span),),
        ),
    )


def unknown(rule: Rule, variable: str, entry: Definition) -> Diagnostic:
    """A diagnostic: too many elements to try, and no proof."""
    name = f"d{variable}"
    return error(
        "GS421",
        f"{name} of {rule.name} cannot be checked at its fixed sizes",
        rule.source,
        entry.span,
        label="not seen to be the derivative, and too many elements to try",
        help=_if_meant(name),
        tries=(tuple(_lines(rule, entry, name)), (left_out(rule, entry.span),)),
    )


def hole(witness: Witness) -> Diagnostic:
    claim, rule = witness.claim, witness.rule
    return warning(
        "GS403",
        f"{witness.name} of {rule.name} is undefined where the derivative is not",
        rule.source,
        claim.entry.span,
        label=f"{witness.element}is undefined at {witness.place}, where the derivative"
        f" is {decimal(witness.seen.right)}",
        help="or give the limit there with a conditional that is false at this point only",
        tries=((left_out(rule, claim.entry.span),),),
    )


# --- what no point shows -------------------------------------------------------------------


def unreached_region(claim: Claim, gap: Expr) -> Diagnostic:
    """A region of the claim in which no point was found."""
    rule = claim.instance.rule
    return error(
        "GS415",
        f"{claim.name} of {rule.name} is not proved, and a branch of it is not reached",
        rule.source,
        claim.entry.span,
        label=f"no point was found on one side of `{show(gap)} == 0`, nor shown not to be",
        help="write the condition in a simpler way (solved for one input), or assume which"
        " side holds; or leave the line out: a derived gradient is right without points",
    )


def unreached_size(
    rule: Rule, variable: Input, entry: Definition, sizes: Mapping[str, int]
) -> Diagnostic:
    """Sizes with another truth of a condition, at which the rule cannot be compared."""
    said = ", ".join(f"{axis} = {size}" for axis, size in sizes.items())
    return error(
        "GS415",
        f"{variable.cotangent} of {rule.name} is not proved, and not compared at all of"
        " its sizes",
        rule.source,
        entry.span,
        label=f"its indices and sizes may make another formula of it at {said}, where the"
        " rule is too large or undefined",
        help="leave out the condition, or assume the sizes that are meant; or leave out the"
        " line: a derived gradient is right at every size",
    )


def not_linear(rule: Rule, variable: Input, entry: Definition) -> Diagnostic:
    """A cotangent that is not seen to be linear in the upstream gradients."""
    upstream = " and ".join(
        f"`{o.cotangent}`" for o in rule.outputs if o.takes_gradient
    )
    return error(
        "GS419",
        f"{variable.cotangent} of {rule.name} is not seen to be linear in the upstream"
        " gradient",
        rule.source,
        entry.span,
        label=f"{upstream} must stand once in each term, above the line and in no"
        " condition",
        help=f"write it as {upstream} times a factor; an `override` may be anything else",
    )


# --- at a point where the form changes -----------------------------------------------------


_AT_POINT = {
    "GS431": (
        "has a value at a point that is not the limit of the derivative",
        "give this point the limit, times the upstream gradient",
    ),
    "GS402": (
        "is outside the one-sided slopes at a kink",
        "give this point the value of one side, or one between both: the upstream gradient"
        " times a number between the slopes",
    ),
}
"""Headlines and help by code: the derivative exists at the point and differs, or there
are slopes on both sides."""


def outside(witness: Witness) -> Diagnostic:
    """A diagnostic for a gradient outside the one-sided slopes at a kink, or not the
    limit of the slope."""
    value, *every = distinct_texts((witness.seen.left, *witness.ends))
    slopes = tuple(dict.fromkeys(every))
    gives = f"{witness.element}gives {value} at {witness.place}"
    return _outside_slopes(witness.claim, len(slopes) == 1, gives, " and ".join(slopes))


def break_error(claim: Claim, met: tuple[Break, ...]) -> Diagnostic | None:
    """A diagnostic for a gradient that is wrong at a break, for the first one, with the
    upstream gradient 1."""
    seen = fault(claim.instance, claim.input, claim.entry, met)
    if seen is None:
        return None
    finding, found = seen
    place, note = place_said(claim.instance, found), f"a boundary: {found.place.where}"
    if finding is Finding.BENT:
        values = bent_said(claim.instance, found)
        return _at_point(claim, "GS402", f"not linear at {place}: {values}", note)
    stated, slopes = slopes_said(found)
    gives = f"gives {stated} at {place}, {found.output.cotangent} = 1"
    return _outside_slopes(claim, finding is Finding.LIMIT, gives, slopes, note)


def _outside_slopes(
    claim: Claim, is_limit: bool, gives: str, slopes: str, *notes: str
) -> Diagnostic:
    if is_limit:
        return _at_point(
            claim, "GS431", f"{gives}; the slope there is {slopes}", *notes
        )
    return _at_point(claim, "GS402", f"{gives}; the slopes there are {slopes}", *notes)


def _at_point(claim: Claim, code: str, told: str, *notes: str) -> Diagnostic:
    headline, help = _AT_POINT[code]
    rule = claim.instance.rule
    return error(
        code,
        f"d{stem(claim.input.name)} of {rule.name} {headline}",
        rule.source,
        claim.entry.span,
        label=told,
        notes=notes,
        help=help,
    )


# --- suggested fixes -----------------------------------------------------------------------


def _if_meant(name: str) -> str:
    return f'if it is meant, say `override {name} = … because "…"`'


def _fixes(rule: Rule, entry: Definition, name: str, guess: Guess) -> Iterator[Fix]:
    """The wrong line with the one place changed."""
    if guess.place is None or guess.new is None:
        return
    within, old = guess.place.within, guess.place.node
    lets = {let.name: let for let in (*rule.forward, *rule.backward_locals)}
    let = entry if within == name else lets[within]
    span = entry.span if within == name else let.value.span
    if old.span is not None and not rule.span.start <= old.span.start < rule.span.end:
        return  # it stands in another rule, which is not at fault
    value = let.value
    if not any(node == old and node.span == old.span for node in nodes(value)):
        value = plain(value)  # it stands in what is called
    new = put(value, old, guess.new)
    if new is not None and span is not None:
        guilty = _guilty(rule, entry, guess)
        line = _line(within, let.indices, new)
        yield _fix(span, line, guess.sentence, guilty)


def _guilty(rule: Rule, entry: Definition, guess: Guess) -> Span | None:
    """The piece of text that is probably wrong, unless it is the whole."""
    span = guess.part
    if span is None and guess.place is not None:
        span = guess.place.node.span
    return None if span == entry.span else span


def _lines(
    rule: Rule, entry: Definition, name: str, likely: tuple[Fix, ...] = ()
) -> Iterator[Fix]:
    """The derivative as one would write it by hand, if it can be derived for any size.
    The cause is told beside it where mending it alone leaves a point without a
    value."""
    try:
        derived = derived_entries(rule)[name.removeprefix("d")]
    except (Underivable, KeyError):
        return
    own = dict(zip(derived.indices, entry.indices, strict=True))
    value = rename_indices(derived.value, own)
    form = shortest(rule, name.removeprefix("d"), value)
    notes = [(fix.note, fix.guilty) for fix in likely]
    line = _line(name, entry.indices, form)
    yield _fix(entry.span, line, *(notes[0] if notes else ()))


def _line(name: str, indices: tuple[str, ...], value: Expr) -> str:
    left = f"{name}[{', '.join(indices)}]" if indices else name
    return f"{left} = {as_written(value)}"


def _fix(value: Span, line: str, note: str = "", guilty: Span | None = None) -> Fix:
    """A line as it should be, in the place of a value; one too long is not shown."""
    words = f"write `{line}`" if len(line) <= _LONGEST else ""
    text = line.partition(" = ")[2]
    return Fix(words, value, text, note, guilty, is_safe=True)


def probably(rule: Rule, span: Span) -> Label:
    return Label(rule.source, span, "probably here")


# --- changes that several findings suggest -------------------------------------------------


def left_out(rule: Rule, value: Span) -> Fix:
    """The text without the lines of the statement that has this value."""
    text = rule.source.text
    end = text.find("\n", value.end, rule.span.end)
    start = text.rfind("\n", 0, value.start)
    lines = Span(start, rule.span.end if end < 0 else end)
    return Fix("leave the line out", lines, "")


def assuming(rule: Rule, condition: str) -> Fix:
    """The text with one more assumption, above the first formula."""
    text, first = rule.source.text, min(let.span.start for let in rule.forward)
    start = text.rfind("\n", 0, first) + 1
    indent = re.match("[ \t]*", text[start:first])
    assert indent is not None
    line = f"{indent.group()}assume {condition}\n"
    return Fix(f"say `assume {condition}`", Span(start, start), line)
