"""A last look at a gradient that is computed in float64 and has bad points still.

What mends them, the first terms of an expansion (`about_ends.py`), is found at some tens of
points. So it is computed at many more, and where it is another number there than what was
there before, the truth is asked for: what loses a point there is not taken, and it is
looked for once more with these points among those that count.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from gradspec.ir.expr import Expr
from gradspec.ir.rule import Rule
from gradspec.stabilise.choose import Choice
from gradspec.stabilise.further import Ground, Make, ended
from gradspec.stabilise.undone import undone

_TURNS = 3
_OTHERS = 4


def last_look(
    far: Ground,
    rule: Rule,
    choice: Choice,
    candidate: Make,
    others: Iterable[Expr],
    target: str,
) -> Choice:
    """``choice``, or a form with fewer bad points; ``others`` are the same function."""
    known = tuple(islice(others, _OTHERS))
    for _ in range(_TURNS):
        found = ended(far, choice, candidate) if far.is_derived else choice
        if found.form == choice.form:
            break
        new, old = candidate(found.form).closed, candidate(choice.form).closed
        fresh = undone(rule, new, (old, *known), target)
        if fresh is not None:
            far = far.widened(fresh, target)
        if fresh is None or far.allows(new, old):
            choice = found
    return choice
