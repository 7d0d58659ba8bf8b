"""What an evaluation costs in eager TensorFlow on the CPU, where each operation is a call
of ten to twenty microseconds and goes through memory by itself.

Measured on one core (AVX-512, TensorFlow 2.21) halfway between a thousand elements and a
hundred thousand, in products in float32 of as many. Some functions have no vector code in
float64, so that types differ by more than their width: the rows of the table have them
(`gradspec/primitives/on_target.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from gradspec.plan.array import Expr, Literal, Name, Op, names, nodes
from gradspec.primitives.lookup import primitive
from gradspec.primitives.on_target import OnTarget
from gradspec.primitives.row import Helper
from gradspec.primitives.table_known import POWER
from gradspec.primitives.table_polynomials import NAMES as POLYNOMIALS

_WIDER = 1.2
"""Any other operation in float64."""

CONVERSION = 0.6
"""Of one array, to float64 or from it."""


def calls(values: Iterable[Expr], scalars: frozenset[str]) -> int:
    """How many arrays are computed."""
    return sum(1 for _ in _calls(values, scalars, frozenset()))


def in_single(values: Iterable[Expr], scalars: frozenset[str]) -> float:
    """What the values cost in the type of their arguments."""
    return sum(
        calls if known.single is None else known.single
        for known, calls in _calls(values, scalars, frozenset())
    )


def in_double(
    values: Iterable[Expr], scalars: frozenset[str], own: frozenset[str]
) -> float:
    """What they cost in float64, where ``own`` are operations of the framework."""
    return sum(
        _WIDER * calls if known.double is None or calls > 1 else known.double
        for known, calls in _calls(values, scalars, own)
    )


def dearest(values: Iterable[Expr], scalars: frozenset[str]) -> float:
    """What the dearest of their functions costs."""
    found = _calls(values, scalars, frozenset())
    return max((known.single or calls for known, calls in found), default=0.0)


_ANY = OnTarget()


def _calls(
    values: Iterable[Expr], scalars: frozenset[str], own: frozenset[str]
) -> Iterable[tuple[OnTarget, float]]:
    """Each array that is computed: what is known of it, and how many calls it takes."""
    for node in nodes(*values):
        if isinstance(node, Name | Literal) or {*names(node)} <= scalars:
            continue
        if not isinstance(node, Op):
            yield _ANY, 1.0
        elif node.primitive in POLYNOMIALS:
            yield _ANY, 2.0 * len(node.args)
        else:
            yield primitive(node.primitive).on["tf"], _calls_of(node.primitive, own)


def private(name: str) -> tuple[Helper, ...]:
    """The private functions that compute it. A power takes one of a few operations."""
    spelling = primitive(name).spellings.get("tf")
    if not isinstance(spelling, Helper) or name == POWER:
        return ()
    return spelling.whole()


def _calls_of(name: str, own: frozenset[str]) -> float:
    helpers = () if name in own else private(name)
    return float(sum(map(_steps, helpers))) if helpers else 1.0


def _steps(helper: Helper) -> int:
    """Calls and operators in the text of a private function, not in its docstring."""
    *_, body = helper.text.split('"""')
    return len(re.findall(r"\btf\.\w|(?<=[\w)]) [-+*/<>]=? ", body))
