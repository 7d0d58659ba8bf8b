"""The verdict on a lifted rule. A gradient that differs from the derivative is tried again
in forms that tell an intention from a mistake; the first that holds is the verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from gradspec.lift import judging, variants
from gradspec.lift.judging import Difference, Survey
from gradspec.lift.reading import Lifted
from gradspec.lift.rules import Form, rule_text
from gradspec.lift.values import CannotLift
from gradspec.lift.variants import Facts
from gradspec.symbolic.limit import Effort, OutOfSteps

NOT_LIFTED = "not lifted"
FINDINGS = frozenset(("refuted", "broken"))

STEPS = 1_000_000
"""Steps that all tests of one rule may take: nodes that are worked out at points, and
characters of the forms that are tried."""

PERHAPS = "perhaps on purpose"
"""The verdict on a gradient that is not 0 where the derivative is, of a function without
a step or a branch."""

_EXPLAINED = 1500  # characters of a rule in which an error is looked for

_ROUNDED = 2e-6  # a difference that single precision does not see

_PROPERTIES = {
    "normalised": "sums to 1 along its last axis",
    "unit": "has the norm 1 along its last axis",
}

_LEAST = 2  # points at which a gradient has to be wrong
_FEW = 8  # points that say something where nothing is proved


@dataclass(frozen=True)
class Judged:
    """The verdict on one path: ``line`` is the guilty line of Python, ``form`` the form of
    the rule in which it is written out."""

    verdict: str
    reason: str
    form: Form = Form()  # noqa: RUF009
    line: int | None = None
    detail: tuple[str, ...] = ()
    fix: str = ""
    point: str = ""
    """The place of the counterexample."""


class Judge:
    """The tests of one rule, in their order."""

    def __init__(self, rule: Lifted, name: str) -> None:
        self.rule, self.name, self.facts = rule, name, Facts(rule)
        self.effort = Effort(STEPS)
        self.gradients = ", ".join(f"d{n}" for n in self.facts.stated)

    def _text(self, form: Form) -> str:
        return rule_text(self.rule, self.name, form)

    def _survey(self, form: Form) -> Survey:
        try:
            return judging.survey(self._text(form), self.effort)
        except OutOfSteps:
            told = f"judging it takes more than {STEPS:,} steps"
            raise CannotLift("effort", told) from None

    def verdict(self) -> Judged:
        if not self.facts.stated:
            reason = "no gradient passes"
            return Judged("surrogate", reason, Form(reason=reason, only=frozenset()))
        form = Form()
        first = self._survey(form)
        if first.fault:
            return Judged(NOT_LIFTED, f"the rule cannot be judged: {first.fault}", form)
        if not first.differences:
            return self._verdict_of_check(form, first)
        if all(d.apart < _ROUNDED for d in first.differences):
            digits = f"{self.gradients}, to the digits of their constants"
            return Judged("agrees", digits, form)
        for found in self._tests(form, first):
            if found is not None:
                return found
        return self._refutation(form, first)

    # --- nothing differs --------------------------------------------------------------

    def _verdict_of_check(self, form: Form, seen: Survey) -> Judged:
        """The verdict where no point contradicts."""
        checked = judging.check(self._text(form))
        if checked.fault:
            return Judged(
                NOT_LIFTED, f"the rule cannot be judged: {checked.fault}", form
            )
        if not checked.of("refuted"):
            if "GS419" in checked.codes:
                return self._surrogate("not linear in the upstream gradient", form)
            if "GS415" in checked.codes and seen.compared < _FEW:
                return Judged(NOT_LIFTED, "too few points at which it has values", form)
            proved, agreeing = checked.of("proved"), checked.of("agrees")
            if not agreeing:
                return Judged("proved", _list_gradients(proved), form)
            if seen.undefined:
                needing = self._needing(form, seen)
                if needing.form.assumed:
                    return needing
            return Judged("agrees", _list_gradients((*proved, *agreeing)), form)
        if "GS416" in checked.codes:
            bare = variants.without_guards(self.facts, form)
            if self._text(bare) != self._text(form) and self._survey(bare).agrees:
                return self._guard_verdict(form)
            return Judged("agrees", f"{self.gradients}, up to rounding", form)
        if seen.undefined:
            return self._needing(form, seen)
        told = next(d.labels[0].message for d in checked.diagnostics if d.is_error)
        if "GS401" in checked.codes and any(v.axes for v in self.rule.inputs):
            return Judged(NOT_LIFTED, f"not decided: {told}", form)
        return Judged("agrees", f"{self.gradients}, but {told}", form)

    def _needing(self, form: Form, seen: Survey) -> Judged:
        """The assumption under which a gradient has a value wherever the derivative has."""
        for assumed in self._ranges():
            other = replace(form, assumed=(*form.assumed, *assumed))
            found = self._survey(other)
            if found.agrees and not found.undefined:
                checked = judging.check(self._text(other))
                if not checked.fault and not checked.of("refuted"):
                    word = "agree" if checked.of("agrees") else "are proved"
                    reason = f"{', '.join(assumed)}; then {self.gradients} {word}"
                    return Judged("needs", reason, other)
        reason = f"a gradient that has a value: it has none at {seen.undefined[0]}"
        return Judged("needs", reason, form)

    def _ranges(self) -> Iterator[tuple[str, ...]]:
        """Assumptions about inputs: each positive, each a part of 1, all of them."""
        variables = [v for v in self.rule.inputs if self._is_used(v.name)]
        shown = [v.name + _indices(len(v.indices)) for v in variables]
        yield from ((f"{v} > 0",) for v in shown)
        yield from ((f"0 < {v}", f"{v} < 1") for v in shown)
        yield from ((f"{v} != 0",) for v in shown)
        yield tuple(f"{v} > 0" for v in shown)

    def _is_used(self, name: str) -> bool:
        every = (*self.rule.values.values(), *self.facts.stated.values())
        return name in self.facts.names_below(*every)

    # --- something differs ------------------------------------------------------------

    def _tests(self, form: Form, first: Survey) -> Iterator[Judged | None]:
        facts = self.facts
        bare = variants.without_guards(facts, form)
        seen = first
        if self._text(bare) != self._text(form):
            found = self._survey(bare)
            if found.agrees:
                yield self._guard_verdict(form)
            if not found.fault:
                form, seen = bare, found
        self.form, self.seen = form, seen
        yield from self._without_clips(form)
        yield self._with_masks(form)
        yield self._with_properties(form)
        yield from self._straight_through(form)
        if facts.is_identity:
            yield self._surrogate(self._trick(seen), form)
        unused = facts.unused_upstream
        if unused and len(unused) < sum(o.takes_gradient for o in self.rule.outputs):
            form = replace(form, without=unused)
            seen = self._survey(form)
            reason = f"output {_quote(unused)} has no gradient"
            if seen.agrees:
                yield self._surrogate(reason, form)
            if seen.fault:
                yield None
            self.form, self.seen = form, seen
        is_flat = seen.differences and all(d.is_flat for d in seen.differences)
        if is_flat and (facts.is_bent or not facts.is_recurrent):
            yield self._of_flat(form)
        if first.is_gated:
            yield self._surrogate("not linear in the upstream gradient", form)
        if facts.ignored_inputs:
            told = f"uses {_quote(facts.ignored_inputs)}, which the forward ignores"
            yield self._surrogate(told, form)
        if facts.unfollowed_inputs:
            told = f"a gradient of {_quote(facts.unfollowed_inputs)}, which the forward"
            yield self._surrogate(f"{told} ignores", form)
        yield self._with_parameters(form)
        if facts.has_steps:
            yield self._scaling(form)

    def _guard_verdict(self, form: Form) -> Judged:
        reason = f"{self.gradients}, equal but for a guard"
        return Judged("guard", reason, replace(form, reason="a guard for stability"))

    def _without_clips(self, form: Form) -> Iterator[Judged | None]:
        for both in (False, True):
            other = variants.without_clips(self.facts, form, both)
            if self._text(other) != self._text(form):
                found = self._survey(other)
                if found.agrees and found.is_linear:
                    yield self._surrogate("clipped", form)

    def _with_masks(self, form: Form) -> Judged | None:
        """Factors without a gradient that are 0 or 1."""
        for variable in self.rule.inputs:
            name = variable.name
            is_mask = name not in self.facts.different and not variable.is_static
            if not is_mask or not self._is_used(name):
                continue
            for pair in ((0, 1), (-1, 1)):
                forms = (variants.with_number(form, name, k) for k in pair)
                if all(self._survey(other).agrees for other in forms):
                    told = f"`{name}` is {pair[0]} or {pair[1]}"
                    return Judged("needs", f"{told}; then {self.gradients} agree", form)
        return None

    def _with_properties(self, form: Form) -> Judged | None:
        """Facts about arrays that no code states."""
        for variable in self.rule.inputs:
            name = variable.name
            kinds = ["symmetric"] if name in self.rule.squares else []
            if variable.indices and name not in self.facts.different:
                kinds += _PROPERTIES
            for kind in kinds if self._is_used(name) else ():
                if self._survey(variants.with_property(form, name, kind)).agrees:
                    told = f"`{name}` {_PROPERTIES.get(kind, 'is symmetric')}"
                    return Judged("needs", f"{told}; then {self.gradients} agree", form)
        return None

    def _straight_through(self, form: Form) -> Iterator[Judged | None]:
        if not self.facts.has_steps:
            return
        for both in (False, True):
            other = variants.without_steps(form, both)
            if self._text(other) == self._text(form):
                continue
            found = self._survey(other)
            if found.agrees:
                told = f"straight-through, and right for it: {self.gradients}"
                yield self._surrogate(told, form)

    def _trick(self, seen: Survey) -> str:
        ratios = [d.ratio for d in seen.differences]
        if ratios and (max(ratios) < 0 or min(ratios) > 0):
            return (
                "reversal of the gradient"
                if max(ratios) < 0
                else "scaling of the gradient"
            )
        return "the forward is the identity, the gradient is another on purpose"

    def _of_flat(self, form: Form) -> Judged:
        """The derivative is 0 wherever the gradient differs from it."""
        if not self.facts.has_steps:
            bent = self.facts.is_bent
            told = "on purpose" if bent else PERHAPS
            reason = f"differs only where the derivative is 0, {told}"
            return self._surrogate(reason, form)
        outputs, inputs = self.rule.outputs, self.rule.inputs
        elementwise = len(outputs) == 1 and not any(v.axes for v in (*outputs, *inputs))
        if elementwise and len(self.facts.stated) == 1:
            (name,) = self.facts.stated
            pairs = (
                (kind, text.format(u=name, k=k))
                for kind, text in variants.ANTIDERIVATIVES.items()
                for k in variants.scales(self.facts)
            )
            for kind, text in islice(pairs, 24):
                other = replace(form, surrogate=text)
                if self._survey(other).agrees:
                    told = f"of a step: the derivative of {kind.strip()}, `{text}`"
                    return Judged("surrogate", told, other)
        return self._surrogate("of a step", form)

    def _with_parameters(self, form: Form) -> Judged | None:
        """Parameters that are positive, parts of 1, or in order: then nothing may
        differ. (The first input is no parameter.)"""
        names = [
            v.name + _indices(len(v.indices))
            for v in self.rule.inputs[1:]
            if self._is_used(v.name)
        ]
        if not names:
            return None
        positive = tuple(f"{n} > 0" for n in names)
        parts = (*positive, *(f"{n} < 1" for n in names))
        for assumed in (positive, parts, (*positive, *self._order())):
            other = replace(form, assumed=(*form.assumed, *assumed))
            found = self._survey(other)
            if found.agrees and found.compared >= _FEW:
                told = f"{', '.join(assumed)}; then {self.gradients} agree"
                return Judged("needs", told, other)
            if found.differences:
                self.form, self.seen = other, found
        return None

    def _order(self) -> Iterator[str]:
        """The order of bounds, by their names, with the first input between them."""
        names = [v.name for v in self.rule.inputs if not v.axes]
        first, others = names[:1], names[1:]
        low = [n for n in others if re.match(r"(low|lo|min|left)", n)]
        high = [n for n in others if re.match(r"(high|hi|max|upp|right)", n)]
        if not low or not high:
            return
        yield from (f"{n} < {x}" for n in low for x in first)
        yield from (f"{x} < {n}" for n in high for x in first)

    def _scaling(self, form: Form) -> Judged | None:
        """A gradient of a step that is a multiple of the straight-through one, or differs
        from it only where that is 0."""
        for both in (False, True):
            found = self._survey(variants.without_steps(form, both))
            if not found.differences:
                continue
            by_name: dict[str, set[float]] = {}
            for d in found.differences:
                if not d.is_flat:
                    by_name.setdefault(d.gradient, set()).add(round(d.ratio, 6))
            if all(len(ratios) == 1 for ratios in by_name.values()):
                return self._surrogate("straight-through, scaled or bounded", form)
        return None

    def _surrogate(self, reason: str, form: Form) -> Judged:
        said = reason.replace('"', "'").replace("`", "")
        return Judged("surrogate", reason, Form(reason=said, without=form.without))

    # --- refuted ------------------------------------------------------------------------

    def _refutation(self, form: Form, first: Survey) -> Judged:
        """The counterexample of the most lenient form that is still wrong."""
        form = getattr(self, "form", form)
        seen = getattr(self, "seen", first)
        if not seen.differences:
            form, seen = Form(), first
        if len(seen.differences) < _LEAST:
            one = seen.differences[0]
            told = (
                f"{self.gradients}, but {one.gradient} is {one.declared} at {one.place}"
            )
            return Judged("agrees", told, form)
        shown = _simplest(seen.differences)
        text = self._text(form)
        checked = judging.check(text, explains=len(text) <= _EXPLAINED)
        errors = [d for d in checked.diagnostics if d.code == "GS401"]
        about = [d for d in errors if d.headline.startswith(f"{shown.gradient} ")]
        note, fix, line = "", "", self.rule.lines.get(shown.gradient)
        if about:
            found = about[0]
            note = next(iter(found.notes), "")
            fix = next(iter(re.findall(r"write `(.+?)`(?:,|$)", found.help)), "")
            line = self._line_of(found) or line
        wrong, every = len(seen.differences), len(seen.differences) + seen.compared
        largest = max(d.relative for d in seen.differences)
        reason = (
            f"{shown.gradient} gives {shown.declared} at {shown.place},"
            f" where the derivative is {shown.derived}"
        )
        detail = (
            f"wrong at {wrong} of {every} points, by up to {largest:.2g} of the value",
        )
        lines = (note, *detail) if note else detail
        return Judged("refuted", reason, form, line, lines, fix, shown.place)

    def _line_of(self, found: object) -> int | None:
        """The line of Python of the piece that is probably wrong."""
        labels = getattr(found, "labels", ())
        for label in labels[1:]:
            row = label.source.position(label.span.start)[0]
            text = label.source.line(row).split(" = ")[0].strip()
            return self.rule.lines.get(re.sub(r"\[.*", "", text))
        return None


def _simplest(found: tuple[Difference, ...]) -> Difference:
    """The simplest point at which the difference is plain."""
    plain = [d for d in found if d.relative > 1e-3]
    if not plain:
        return max(found, key=lambda d: d.relative)
    return min(plain[:12], key=lambda d: len(d.place) + len(d.derived))


def _list_gradients(inputs: tuple[str, ...]) -> str:
    return ", ".join(f"d{name}" for name in inputs)


def _quote(names: object) -> str:
    return " and ".join(f"`{n}`" for n in sorted(names))  # type: ignore[call-overload]


def _indices(count: int) -> str:
    return f"[{', '.join('ijkl'[:count])}]" if count else ""
