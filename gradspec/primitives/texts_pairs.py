"""Logistic functions of a sum and of its opposite, where compilers fuse: through one
exponential and one quotient, where each has its own as it stands.

Both are made of the same steps, which a compiler does once for the two.
"""

from __future__ import annotations

from collections.abc import Mapping

from gradspec.primitives.row import Helper
from gradspec.primitives.spelling import everywhere
from gradspec.primitives.texts_torch import IS_COMPILED

# A choice says abs(s): it has at 0 the slope of one side. What XLA keeps in memory, for it
# is expensive and used twice, is `r` alone; with `q` the quotient it was the exponential, too.
_PARTS_TEXT = '''\
def _sigmoid_parts(x: Array, y: Array) -> tuple[Array, Array, Array]:
    """Of s = x + y, rounded: 1 / (1 + exp(-s)), 1 / (1 + exp(s)), and what rounding takes
    off s.
    """
    s = x + y
    b = s - x
    e = (x - (s - b)) + (y - b)
    e = xp.where(xp.abs(s) < 1e4, e, xp.zeros_like(s))
    left = s < 0.0
    t = xp.exp(xp.where(left, s, -s))
    r = t / (1.0 + t)
    q = 1.0 - r
    return xp.where(left, r, q), xp.where(left, q, r), e
'''

_PARTS = everywhere("_sigmoid_parts", _PARTS_TEXT)
_SUM = """\
    p, q, e = _sigmoid_parts(x, y)
    return p * (1.0 + q * e)
"""
_REST = """\
    p, q, e = _sigmoid_parts(x, y)
    return q * (1.0 - p * e)
"""

# In eager mode each of these operations is a call, and a choice costs twelve of the call
# that removes what is not finite; which in turn no compiler does in one instruction.
_EAGER = """\
    s = x + y
    b = s - x
    e = (x - (s - b)) + (y - b)
    e = torch.nan_to_num(e, 0.0, 0.0, 0.0)
    p = torch.sigmoid({argument})
    return p * (1.0 {sign} (1.0 - p) * e)
"""


def _logistic(name: str, says: str, fused: str, **eager: str) -> Mapping[str, Helper]:
    head = f'''\
def {name}(x: Array, y: Array) -> Array:
    """{says}; what rounding takes off the argument is put back."""
'''
    made = everywhere(name, head + fused, needs=(_PARTS,))
    inner = fused.replace("    ", "        ")
    text = f"{head}    if _is_compiled():\n{inner}{_EAGER.format(**eager)}"
    needs = (_PARTS, {"torch": IS_COMPILED})
    return made | {"torch": everywhere(name, text, needs=needs)["torch"]}


SIGMOID_SUM = _logistic(
    "_sigmoid_sum", "1 / (1 + exp(-(x + y)))", _SUM, argument="s", sign="+"
)
SIGMOID_REST = _logistic(
    "_sigmoid_rest", "1 / (1 + exp(x + y))", _REST, argument="-s", sign="-"
)
