"""Definitions that are evaluated as they are written: those marked `exact`.

An exact definition is no candidate for another form, is not looked into by what uses it,
has no guards put into its branches and is not computed in float64.
"""

from __future__ import annotations

from dataclasses import replace

from gradspec.ir.rule import Backward, Declared, Let, Rule
from gradspec.ir.tidy import tidy


def restored(written: Rule, done: Rule) -> Rule:
    """``done`` with its exact definitions as they stand in ``written``, tidied."""
    if not written.exacts:
        return done
    lets = (*written.forward, *written.backward_locals)
    values = {x.name: tidy(x.value) for x in lets if x.name in written.exacts}

    def let(found: Let) -> Let:
        return replace(found, value=values.get(found.name, found.value))

    def entry(name: str, first: Backward, found: Backward) -> Backward:
        if isinstance(first, Declared) and name in written.exacts:
            return replace(first, value=tidy(first.value))
        return found

    names = (f"d{variable.name}" for variable in written.inputs)
    return replace(
        done,
        forward=tuple(map(let, done.forward)),
        backward_locals=tuple(map(let, done.backward_locals)),
        backward=tuple(map(entry, names, written.backward, done.backward)),
    )
