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
    adjoint_of,
    adjoint_states,
    authors_states,
    cut,
    forward_states,
    renamed,
)
from gradspec.ir.rule import (
    Chosen,
    Complete,
    Definition,
    Input,
    Judged,
    Kind,
    Role,
    Rule,
    Shape,
)
from gradspec.stabilise.names import map_values


def cut_open(rule: Complete) -> Complete:
    """The rule with states as inputs. The adjoint states that were derived are the
    cotangents of these; those of the author are inputs, too."""
    opened, adjoints, theirs = cut(rule), adjoint_states(rule), authors_states(rule)
    states = {let.name for let in forward_states(rule)}
    gone = {*adjoints.values(), *theirs}
    still = (i for i in opened.inputs if i.name in states - adjoints.keys())
    kinds = {i.name: Kind.NOGRAD for i in still if i.takes_gradient}
    made = Complete.of(
        replace(
            opened,
            inputs=(
                *(replace(i, kind=kinds.get(i.name, i.kind)) for i in opened.inputs),
                *(Input(t.name, Kind.NOGRAD, Shape(axes=t.axes)) for t in theirs),
            ),
            exacts=tuple(STEP + n if n in states else n for n in rule.exacts),
        ),
        *(d for d in rule.backward_locals if d not in gone),
        *rule.backward,
        *(
            replace(d, name=f"d{state}", role=Role.COTANGENT)
            for state, d in adjoints.items()
        ),
    )
    to = {d.name: adjoint_of(state) for state, d in adjoints.items()}
    to |= {f"d{state}": f"d{GIVEN}{state}" for state in states}
    return map_values(made, lambda value: renamed(value, to))


def sewn(judged: Judged, chosen: Chosen) -> Chosen:
    """The evaluations of the rule that is cut open as evaluations of the rule."""
    rule, back = judged.rule, _names(judged.rule)
    made = map_values(chosen.rule, lambda value: renamed(value, back))
    adjoints = {f"d{state}": d for state, d in adjoint_states(rule).items()}
    roles = {d.name: d.role for d in rule.forward}
    done: list[Definition] = []
    for one in made.definitions:
        if one.name.startswith(GIVEN):
            continue
        if one.role is Role.COTANGENT and one.name in adjoints:
            done.append(replace(adjoints[one.name], value=one.value))
        elif one.name.startswith(STEP):
            name = one.name.removeprefix(STEP)
            done.append(replace(one, name=name, role=roles[name]))
        else:
            done.append(one)
    done += (d for d in rule.surrogates if f"{GIVEN}{d.name}" in back)
    done += authors_states(rule)
    calls = {**{name: d.name for name, d in adjoints.items()}, **back}
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
        losses=tuple(replace(o, name=calls.get(o.name, o.name)) for o in chosen.losses),
        wide=tuple(dict.fromkeys(calls.get(name, name) for name in chosen.wide)),
    )


def _names(rule: Rule) -> Mapping[str, str]:
    """What the names of the rule that is cut open are called in the rule."""
    found = {adjoint_of(state): d.name for state, d in adjoint_states(rule).items()}
    for let in forward_states(rule):
        found |= {f"d{GIVEN}{let.name}": f"d{let.name}"}
        found |= {STEP + let.name: let.name, GIVEN + let.name: let.name}
    return found


def _text(text: str, back: Mapping[str, str]) -> str:
    for called, name in back.items():
        text = text.replace(called, name)
    return text
