"""The shape of one row of the table of primitives: all that is known of a built-in.

Formulas (meaning, partials, domain, expansions) are text in gradspec's own expression
language over the arguments ``x``, ``y``, ``z`` and, in partials, the result ``out``;
`gradspec.primitives.lookup` turns them into expressions on first use. Evaluators are
duck-typed callables, so that the table imports neither flint nor sympy nor numpy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from fractions import Fraction
from operator import methodcaller
from typing import Any, TypeAlias

# --- how a target says it -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Infix:
    """A binary Python operator: ``x + y``. Higher precedence binds tighter (Python's
    own order: or 1, and 2, not 3, comparison 4, | 5, & 7, + - 9, * / % 10, unary 11,
    ** 12, atom 14).
    """

    symbol: str
    precedence: int


@dataclass(frozen=True, slots=True)
class Prefix:
    """A unary Python operator: ``-x``."""

    symbol: str
    precedence: int


@dataclass(frozen=True, slots=True)
class Template:
    """A call or attribute: ``torch.special.erfcx({x})``; each argument exactly once."""

    text: str


@dataclass(frozen=True, slots=True)
class Expand:
    """A primitive that the target lacks, expanded to this formula (so that parts are
    shared).
    """

    formula: str


@dataclass(frozen=True, slots=True)
class Runtime:
    """A function of the target's runtime: ``name`` in its ``module``, "special" or
    "core" (``_special.py`` and ``_gradspec.py`` in `gradspec/runtime/<target>`).
    """

    name: str
    module: str = "special"


@dataclass(frozen=True, slots=True)
class Missing:
    """A primitive that the target does not support: ``reason`` is reported (GS501)."""

    reason: str


@dataclass(frozen=True, slots=True)
class Foreign:
    """A function of a module that is not gradspec's, called ``name`` in rules: its path,
    and what it is called with (parameters and numbers). ``is_own`` if it takes the
    arrays of the target, else it takes those of NumPy.
    """

    name: str
    path: str
    arguments: tuple[str, ...]
    is_own: bool


Spelling: TypeAlias = Infix | Prefix | Template | Expand | Runtime | Missing | Foreign


# --- the row ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Primitive:
    """One built-in.

    name        as written in a rule (or the operator's word: add, sub, …)
    params      argument names in order: ("x",), ("x", "y"), …
    types       "real", "int" or "bool" per argument (an int or bool argument accepts
                no real; a real argument accepts an int); () for all real
    result      "real", "int" or "bool"
    meaning     formula over the reals; None when elementary
    partials    formula of ∂out/∂argument; None where the argument takes no gradient.
                The *form* matters: ``out * sigmoid(-x)`` is accurate where
                ``out * (1 - out)`` is not.
    domain      condition under which the function is real and finite; "" for all reals
    kinks       conditions ("x == 0") at which the derivative does not exist, each
                with the value chosen and why
    is_step     the derivative is zero wherever it exists (sign, floor, …)
    is_commutative
                the order of its two numbers does not matter
    is_exact    nothing is rounded: the result is an argument or an integer
    symmetry    "odd" or "even" in its only argument (neither: "")
    zero_from   for a rounding to integers: the start of the interval of length 1 on
                which it is 0
    bounds      the least and the largest value, as formulas ("": there is none)
    inverse     formula of the x whose result is ``out``: of several the one on the same
                side of 0 as ``x``; undefined where there is none (not given: "")
    mistaken    functions that authors confuse it with
    ball        enclosure by ball arithmetic: takes python-flint ``arb`` values (and
                True, False or None for conditions); a constant's takes one ball, any,
                to know the type
    series      the function of a power series (FLINT's, of rationals or of balls), where
                it has one about every point but its edges; None: see its meaning
    coefficient a bound of one Taylor coefficient (not the first) about any of the numbers
                of a ball, where dividing balls would give too large a one
    optional    numbers for the last arguments where the user leaves them out
    sympy       takes the sympy module, then sympy expressions; None: SymPy sees an
                uninterpreted function (it turns a step into a Dirac delta, and sorts
                the conditions of a ``Piecewise`` for seconds)
    model       takes the numpy module, then float64 arrays; left out, NumPy's function if
                the row is spelled as one, else None: use ``ball``
    cost        in multiplications of a float32 array (numpy, no vector maths library)
    notation    LaTeX of the function's name, or of a call with ``#1``, ``#2`` for its
                arguments, where mathematicians write no name ("": its own name)
    source      of the formula (DLMF, Abramowitz & Stegun, a paper, a manual)
    spellings   per target: "numpy", "torch", "tf", "jax"; and "python", of plain numbers,
                where the standard library has it (elsewhere the meaning is expanded);
                left out, the function of the row's name in every runtime
    """

    name: str
    params: tuple[str, ...] = ("x",)
    _: KW_ONLY
    ball: Callable[..., Any]
    spellings: Mapping[str, Spelling] = field(default_factory=dict)
    partials: tuple[str | None, ...] = ()
    meaning: str | None = None
    domain: str = ""
    kinks: tuple[tuple[str, str], ...] = ()
    is_step: bool = False
    is_commutative: bool = False
    is_exact: bool = False
    symmetry: str = ""
    zero_from: Fraction | None = None
    bounds: tuple[str, str] = ("", "")
    inverse: str = ""
    mistaken: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    optional: tuple[int, ...] = ()
    result: str = "real"
    series: Callable[[Any], Any] | None = None
    coefficient: Callable[[Any, int], Any] | None = None
    sympy: Callable[..., Any] | None = None
    model: Callable[..., Any] | None = None
    cost: float = 1.0
    notation: str = ""
    source: str = ""
    notes: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not self.spellings:
            object.__setattr__(self, "spellings", everywhere(self.name))
        if self.model is None:
            object.__setattr__(self, "model", _model(self.spellings["numpy"]))

    @property
    def arity(self) -> int:
        return len(self.params)

    @property
    def is_piecewise(self) -> bool:
        """True for an argument, or its negative, wherever it is smooth: ``max``,
        ``abs``.
        """
        return self.is_exact and not self.is_step

    @property
    def least_arity(self) -> int:
        """The number of arguments that the user must give."""
        return len(self.params) - len(self.optional)

    @property
    def argument_types(self) -> tuple[str, ...]:
        """``types``, with the default of all real arguments filled in."""
        return self.types or ("real",) * len(self.params)


def same_named_row(name: str, **known: Any) -> Primitive:
    """A row of ``x`` whose enclosure, SymPy function and, unless ``known`` gives another,
    power series have its own name."""
    method = methodcaller(name)
    known = {"series": method} | known
    return Primitive(
        name, ball=method, sympy=lambda sp, x: getattr(sp, name)(x), **known
    )


# --- spelling -------------------------------------------------------------------------


TARGETS = ("numpy", "torch", "tf", "jax")
_PARAMS = ("x", "y", "z")


def infix(symbol: str, precedence: int, **other: Spelling) -> dict[str, Spelling]:
    """One Python operator everywhere, but for the targets named in ``other``."""
    operator = Infix(symbol, precedence)
    return dict.fromkeys((*TARGETS, "python"), operator) | other


def prefix(symbol: str, precedence: int, **other: Spelling) -> dict[str, Spelling]:
    """One unary operator everywhere, but for the targets named in ``other``."""
    operator = Prefix(symbol, precedence)
    return dict.fromkeys((*TARGETS, "python"), operator) | other


def calls(
    arity: int,
    numpy: str | Spelling,
    torch: str | Spelling,
    tf: str | Spelling,
    python: str = "",
    jax: str | Spelling = "",
) -> dict[str, Spelling]:
    """Functions called with the arguments in order: ``"np.exp"`` is ``np.exp(x)``. A
    name without a module is a function of the runtime, but for plain numbers.

    JAX has the names of NumPy and SciPy: ``jax`` is given where they do not apply.
    """
    given = {"numpy": numpy, "torch": torch, "tf": tf, "jax": jax or as_in_jax(numpy)}
    found = {target: _function(arity, how) for target, how in given.items()}
    return found | ({"python": call(arity, python)} if python else {})


def _function(arity: int, how: str | Spelling) -> Spelling:
    if isinstance(how, str):
        return call(arity, how) if "." in how else Runtime(how)
    return how


_NUMPY = re.compile(r"np\.(\w+)\(")


def _model(numpy: Spelling) -> Callable[..., Any] | None:
    """The function of the numpy module by which a row is spelled."""
    called = _NUMPY.match(numpy.text) if isinstance(numpy, Template) else None
    return called and (lambda np, *args: getattr(np, called[1])(*args))


def call(arity: int, name: str) -> Template:
    """``name(x, y)``."""
    return Template(f"{name}({', '.join(f'{{{param}}}' for param in _PARAMS[:arity])})")


def as_in_jax(numpy: str | Spelling) -> str | Spelling:
    """JAX's name of a function, or formula, from that of NumPy or SciPy."""
    match numpy:
        case str():
            return numpy.replace("np.", "jnp.")
        case Expand():
            return numpy
        case _:
            raise AssertionError(f"how does JAX say {numpy}?")


def everywhere(name: str) -> dict[str, Spelling]:
    """The runtime function ``name`` on every target."""
    return dict.fromkeys(TARGETS, Runtime(name))
