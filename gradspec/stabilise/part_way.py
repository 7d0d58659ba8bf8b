"""A rule whose search is part of the way: some of its formulas in the forms chosen for
them, the others as they are written.

Every form is the same function as what is written, so any mixture of them is right. A form
that is chosen but not finished (no series looked for, not judged at many points) stands
only if it is worse in nothing at those points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gradspec.ir.expr import Expr, Ref
from gradspec.ir.rule import Harm, Rewrite, Rule
from gradspec.stabilise.names import Names, with_forms
from gradspec.stabilise.referee import referee


@dataclass(frozen=True, slots=True)
class PartWay:
    """``rule`` as it is written, calls put in, and the forms by their names; those in
    ``done`` are finished, float64 and all. ``wide``, ``rewrites`` and ``harms`` are what is
    told of them (see :class:`~gradspec.ir.rule.CheckedRule`)."""

    rule: Rule
    forms: tuple[tuple[str, Expr], ...] = ()
    done: tuple[str, ...] = ()
    wide: tuple[str, ...] = ()
    rewrites: tuple[Rewrite, ...] = ()
    harms: tuple[Harm, ...] = ()

    def whole(self) -> Rule:
        """The rule with the forms in place."""
        return with_forms(self.rule, dict(self.forms))

    def sound(self, original: Rule) -> PartWay:
        """Without the forms that are not finished and worse somewhere."""
        written, chosen = Names(self.rule), Names(self.whole())
        begun = [name for name, _ in self.forms if name not in self.done]
        worse = [
            name
            for name in begun
            if referee(original, written.close(Ref(name)), chosen.close(Ref(name)), "")
        ]
        return replace(
            self,
            forms=tuple((n, form) for n, form in self.forms if n not in worse),
            rewrites=tuple(r for r in self.rewrites if r.name not in worse),
        )
