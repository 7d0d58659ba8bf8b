"""Short ways to write the spellings of a row.

Besides the targets there is ``"python"``, for values fixed for the whole call (statics,
constants), computed before any array exists. It is given where the standard library has
the function; elsewhere such a value must be made an array first.
"""

from __future__ import annotations

from gradspec.primitives.row import Expand, Infix, Prefix, Runtime, Spelling, Template

TARGETS = ("numpy", "torch", "tf", "jax")
_PARAMS = ("x", "y", "z")


def infix(symbol: str, precedence: int, **other: Spelling) -> dict[str, Spelling]:
    """The same Python operator everywhere, but for the targets named in ``other``."""
    operator = Infix(symbol, precedence)
    return dict.fromkeys((*TARGETS, "python"), operator) | other


def prefix(symbol: str, precedence: int, **other: Spelling) -> dict[str, Spelling]:
    """The same unary operator everywhere, but for the targets named in ``other``."""
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
    """Functions called with the arguments in order: ``"np.exp"`` is ``np.exp(x)``.

    JAX has the names of NumPy and SciPy: ``jax`` is given where they do not apply.
    """
    given = {"numpy": numpy, "torch": torch, "tf": tf, "jax": jax or as_in_jax(numpy)}
    given |= {"python": python} if python else {}
    return {
        target: call(arity, name) if isinstance(name, str) else name
        for target, name in given.items()
    }


def call(arity: int, name: str) -> Template:
    """``name(x, y)``, with the import that the first part of ``name`` asks for."""
    holes = ", ".join(f"{{{param}}}" for param in _PARAMS[:arity])
    called = name.removeprefix("jax.") if name.startswith("jax.special.") else name
    return Template(f"{called}({holes})", imports_of(name))


def as_in_jax(numpy: str | Spelling) -> str | Spelling:
    """JAX's name of a function, or formula, from that of NumPy or SciPy."""
    match numpy:
        case str():
            return numpy.replace("np.", "jnp.")
        case Expand():
            return numpy
        case _:
            raise AssertionError(f"how does JAX say {numpy}?")


def value(text: str) -> Template:
    """A constant: ``np.pi``."""
    return Template(text, imports_of(text))


def imports_of(name: str) -> tuple[str, ...]:
    """The import beyond the target's own module that a dotted name begins with."""
    match name.split(".", maxsplit=1)[0]:
        case "math":
            return ("import math",)
        case "jax" if name.startswith("jax.special."):
            return ("from jax.scipy import special",)
        case _:
            return ()


def special(name: str) -> Runtime:
    """A function of the target's runtime module of special functions."""
    return Runtime(name)


def everywhere(name: str) -> dict[str, Spelling]:
    """The runtime function ``name`` on every target."""
    return dict.fromkeys(TARGETS, special(name))
