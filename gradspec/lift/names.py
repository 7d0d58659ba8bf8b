"""Names of a lifted rule: the author's where the language takes them."""

from __future__ import annotations

import keyword
import re
from functools import cache

from gradspec.lift.values import words
from gradspec.primitives.lookup import function_names

_WORDS = words(
    "pi inf for if else and or not sum mean prod max min logsumexp rule def"
    " assume surrogate override exact save recompute example because from import"
    " np torch tf jnp jax math numpy tensorflow scipy special static int bool"
    " nograd param Tensor true false nan gradspec"
)
AXES = ["n", "m", "d", "c", "h", "w", "b", "f", "g"]
LETTERS = ["i", "j", "k", "l", "p", "q", "r", "s", "t", "u", "v", "e"]


@cache
def _reserved_names() -> frozenset[str]:
    return _WORDS | frozenset(function_names())


def is_free(name: str) -> bool:
    """True if neither Python nor the language means something else by a name."""
    return not keyword.iskeyword(name) and (name not in _WORDS)


class Names:
    """The names that a rule has taken."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def reserve(self, name: str) -> None:
        """Names that belong to an input or an output beside its own."""
        self.taken |= {name, f"d{name}", f"{name}_dot"}

    def is_free(self, name: str) -> bool:
        return name not in self.taken and name not in _reserved_names()

    def fresh(self, hint: str) -> str:
        """The name itself, or one like it that nothing else has."""
        base = re.sub(r"[^A-Za-z0-9_]", "_", hint).strip("_") or "v"
        if base[0].isdigit() or keyword.iskeyword(base):
            base = f"v_{base}"
        name, number = base, 1
        while not self.is_free(name):
            number += 1
            name = (
                f"{base}_{number}" if number > 2 or base in self.taken else f"{base}_v"
            )
        self.taken.add(name)
        return name

    def fresh_variable(self, hint: str) -> str:
        """The name of an input or an output, whose cotangent is free, too."""
        name = self.fresh(hint)
        while not (self.is_free(f"d{name}") and self.is_free(f"{name}_dot")):
            name = self.fresh(hint)
        self.reserve(name)
        return name
