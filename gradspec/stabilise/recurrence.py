"""Evaluations of recurrences: those of the rule that is cut open, put back.

The step of a state is measured with the states before it as inputs, whatever they are;
so is the adjoint state that was derived.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gradspec.derive.recurrence import (
    GIVEN,
    STEP,
    adjoint_states,
    authors_states,
    names_in,
)
from gradspec.derive.scopes import rename_references
from gradspec.ir.rule import Chosen, Definition, Judged, Role
from gradspec.stabilise.names import map_values


def sew(judged: Judged, chosen: Chosen) -> Chosen:
    """The evaluations of the rule that is cut open as evaluations of the rule."""
    rule, back = judged.rule, names_in(judged.rule)
    made = map_values(chosen.rule, lambda value: rename_references(value, back))
    adjoints = {f"d{state}": d for state, d in adjoint_states(rule).items()}
    states = {d.name: d for d in rule.forward}
    done: list[Definition] = []
    for one in made.definitions:
        if one.name.startswith(GIVEN):
            continue
        if one.role is Role.COTANGENT and one.name in adjoints:
            done.append(replace(adjoints[one.name], value=one.value))
        elif one.name.startswith(STEP):
            done.append(replace(states[one.name.removeprefix(STEP)], value=one.value))
        else:
            done.append(one)
    done += (d for d in rule.surrogates if f"{GIVEN}{d.name}" in back)
    done += authors_states(rule)
    calls = {**{name: d.name for name, d in adjoints.items()}, **back}
    solved = {d.name for d in rule.definitions if d.is_equation}  # how, is planned
    rewrites = tuple(
        replace(
            one,
            name=calls.get(one.name, one.name),
            before=_text(one.before, back),
            after=_text(one.after, back),
            reason=_text(one.reason, back),
        )
        for one in chosen.rewrites
    )
    return replace(
        chosen,
        judged=judged,
        rule=replace(
            rule,
            definitions=tuple(sorted(done, key=lambda d: not d.is_forward)),
            recomputes=tuple(n for n in made.recomputes if n[0] not in (STEP, GIVEN)),
        ),
        rewrites=rewrites,
        losses=tuple(
            replace(o, name=name, culprit=rename_references(o.culprit, back))
            for o in chosen.losses
            if (name := calls.get(o.name, o.name)) not in solved
        ),
        wide=tuple(dict.fromkeys(calls.get(name, name) for name in chosen.wide)),
    )


def _text(text: str, back: Mapping[str, str]) -> str:
    for called, name in back.items():
        text = text.replace(called, name)
    return text
