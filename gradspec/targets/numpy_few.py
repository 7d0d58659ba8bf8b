"""Arrays of few elements in NumPy: a call of it takes a quarter of a microsecond, and so
does anything that is asked of an argument. Where all are arrays of one type and one shape,
nothing is to be converted, broadcast or summed, and one look tells. It serves blocks of
large arrays, too: while one thread looks, another may wait for the interpreter's lock.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from gradspec.ir.rule import Kind
from gradspec.plan.array import Expr, Op, names
from gradspec.plan.plan import Term
from gradspec.primitives.row import Helper
from gradspec.targets.lines import Lines, indented
from gradspec.targets.numpy_outputs import may_be_number
from gradspec.targets.signature import scalars

if TYPE_CHECKING:
    from gradspec.targets.numpy_parts import Functions

_MOST = 6
"""Arguments of a function that looks at few elements first."""


def unless_few(given: list[str], lines: Lines, asked: int = 0) -> Lines:
    """The conversions, ``lines``, where the arguments ``given`` need any; ``dtype`` is
    their type. The last ``asked`` of them must not begin with 0.
    """
    call = f"{_name(len(given), asked)}({', '.join(given)})"
    return [f"dtype = {call}", "if dtype is None:", *indented(lines)]


def takes_few(functions: Functions, more: int = 0) -> bool:
    """Whether arrays of one floating type need no conversion, ``more`` of them upstream
    gradients.
    """
    plan = functions.plan
    return (
        not plan.is_ranked
        and not functions.is_traced
        and not plan.is_wide_forward
        and not plan.is_wide_backward
        and 1 <= len(plan.tensors) + more <= _MOST
        and all(i.kind in (Kind.FLOAT, Kind.NOGRAD) for i in plan.tensors)
        and all(i.shape.batch for i in plan.tensors)
        and not any(i.kind is Kind.STATIC_INT for i in plan.statics)
    )


def gives_few(functions: Functions) -> bool:
    """Whether gradients of arrays of one shape are arrays of that shape."""
    plan = functions.plan
    values = [t.value for g in plan.gradients if g is not None for t in g.terms]
    groups = [group for group in functions.backward.gradients if group is not None]
    return (
        takes_few(functions, len(plan.upstream))
        and all(groups)
        and not any(may_be_number(functions, value) for value in values)
    )


def are_typed(functions: Functions) -> bool:
    """Whether results have the type of the arrays that they are computed from: no number
    of another type takes part.
    """
    plan, block = functions.plan, functions.value
    values = (*(statement.value for statement in block.statements), *block.results)
    floats = all(o.kind is Kind.FLOAT for o in plan.outputs)
    return takes_few(functions) and floats and scalars(plan).isdisjoint(names(*values))


def sum_of(group: tuple[Term, ...]) -> Expr:
    """The terms of a gradient, added up."""
    values: list[Expr] = [term.value for term in group]
    return reduce(lambda one, other: Op("add", (one, other)), values)


# --- the functions that look -----------------------------------------------------------------


def _name(count: int, asked: int = 0) -> str:
    name = "_few" if count == 1 else f"_few{count}"
    return f"{name}_asked{asked}" if asked else name


_ONE = '''\
def _few(a: Any) -> np.dtype | None:
    """The type, if it is an array of a block at most that needs no conversion."""
    if type(a) is _Array and a.size <= 262144:
        dtype = a.dtype
        return dtype if dtype is _SINGLE or dtype is _DOUBLE else None
    return None
'''
_SEVERAL = '''\
def {name}({parameters}) -> np.dtype | None:
    """{sentence}
    """
    if (
        {conditions}
        and (dtype is _SINGLE or dtype is _DOUBLE)
    ):
        return dtype
    return None
'''
_FEW = """\
The type, if they are arrays of one type and one shape, of a block at most, that need
    no conversion."""
_ASKED = """\
The type, if they are arrays of one type and one shape, of a block at most; None also
    if an upstream gradient ({names}) begins with 0, as where nothing is asked."""


def _helper(count: int, asked: int = 0) -> Helper:
    """One for each number of arguments: a loop would take twice the time."""
    names_ = "abcdef"[:count]
    last = names_[count - asked :]
    tests = (
        " is ".join([*(f"type({n})" for n in names_), "_Array"]),
        " is ".join(["(dtype := a.dtype)", *(f"{n}.dtype" for n in names_[1:])]),
        " == ".join(f"{n}.shape" for n in names_),
        f"{'0 < ' if asked else ''}a.size <= 262144",
        *(f"{n}.item(0)" for n in last),
    )
    text = _SEVERAL.format(
        name=_name(count, asked),
        sentence=_ASKED.format(names=", ".join(last)) if asked else _FEW,
        parameters=", ".join(f"{n}: Any" for n in names_),
        conditions="\n        and ".join(tests),
    )
    return Helper(_name(count, asked), _ONE if count == 1 else text, _IMPORTS)


_IMPORTS = ("from typing import Any",)
HELPERS = (
    *(_helper(count) for count in range(1, _MOST + 1)),
    *(_helper(n, asked) for n in range(3, _MOST + 1) for asked in range(2, n)),
)
