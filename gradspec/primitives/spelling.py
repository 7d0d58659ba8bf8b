"""Short ways to write the spellings of a row.

Besides the targets there is ``"python"``: what a value fixed for the whole call (a
static, a constant) is computed with, before any array exists. It is given where the
standard library has the function; elsewhere such a value must be made an array first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from gradspec.primitives.row import Expand, Helper, Infix, Prefix, Spelling, Template
from gradspec.primitives.texts_choice import NUMPY_WHERE
from gradspec.primitives.texts_kept import TF_RECIPROCAL
from gradspec.primitives.texts_torch import WHERE

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

    JAX has the names of NumPy and SciPy: ``jax`` is given where that will not do.
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
    """What NumPy or SciPy calls a function, or writes out, as JAX does."""
    match numpy:
        case str():
            return numpy.replace("np.", "jnp.").replace("special.", "jax.special.")
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
        case "special":
            return ("from scipy import special",)
        case "jax" if name.startswith("jax.special."):
            return ("from jax.scipy import special",)
        case _:
            return ()


def everywhere(
    name: str,
    text: str,
    imports: tuple[str, ...] = (),
    needs: tuple[Mapping[str, Helper], ...] = (),
    **names: dict[str, str],
) -> dict[str, Helper]:
    """One private function for all targets, from one text.

    In the text ``xp.`` is the target's module, ``Array`` its type, ``PI`` its constant;
    a further word stands for what ``names`` gives for each target. ``needs`` are the
    other private functions that it calls, for a target that lacks them. From a line
    ``WIDEN`` to ``ROUNDED(y)`` NumPy computes in float64, as SciPy's own functions do. A line
    ``r = 1.0 / x`` is a call of ``_reciprocal`` in TensorFlow (`texts_kept.py`), and
    ``a == b`` one of ``tf.equal``: between tensors of a graph of TensorFlow 1 the operator
    asks whether they are the same object.
    """
    return {
        target: _written(
            target,
            name,
            text,
            imports,
            tuple(need[target] for need in needs if target in need),
            names,
        )
        for target in TARGETS
    }


def behind(bound: str, value: str) -> dict[str, str]:
    """``value``, which does not exceed ``bound``: where the optimiser of a graph or XLA sees
    two constants added to a number one after the other it makes one of them, and what they
    are two for is lost (`table_fence.py`).
    """
    bare = value.removeprefix("(").removesuffix(")")
    fenced = f"xp.minimum({bare}, {bound})"
    return dict.fromkeys(TARGETS, value) | dict.fromkeys(("tf", "jax"), fenced)


def listed(coefficients: Iterable[float], indent: int = 4) -> str:
    """A tuple of numbers as Black writes it in a function's body."""
    inner = " " * (indent + 4)
    lines = "".join(f"{inner}{c!r},\n" for c in coefficients)
    return f"(\n{lines}{' ' * indent})"


_WORDS = {
    "numpy": {"xp.": "np.", "Array": "np.ndarray", "PI": "np.pi"},
    "torch": {"xp.": "torch.", "Array": "torch.Tensor", "PI": "torch.pi"},
    "tf": {"xp.": "tf.", "Array": "tf.Tensor", "PI": "math.pi"},
    "jax": {"xp.": "jnp.", "Array": "jax.Array", "PI": "jnp.pi"},
}


_CHOICES = {"numpy": NUMPY_WHERE, "torch": WHERE}
"""Where choosing by bits is faster."""

_WIDTH = {
    "    WIDEN\n": dict.fromkeys(TARGETS, "")
    | {"numpy": "    dtype, x = x.dtype, x.astype(np.float64, copy=False)\n"},
    "ROUNDED(y)": dict.fromkeys(TARGETS, "y") | {"numpy": "y.astype(dtype)"},
}


_COMPARED = re.compile(
    r"(?<!if )(?P<open>\()?(?<![.\w])(?P<x>\w+(?: [-+] \w+)?) (?P<op>==|!=) "
    r"(?P<y>\d\.\d|\w+)(?![.\w])(?(open)\))"
)
"""A comparison of arrays in a text, alone or in brackets; not one by a number."""


def _compared(found: re.Match[str]) -> str:
    word = {"==": "tf.equal", "!=": "tf.not_equal"}[found["op"]]
    return f"{word}({found['x']}, {found['y']})"


def _written(
    target: str,
    name: str,
    text: str,
    imports: tuple[str, ...],
    needs: tuple[Helper, ...],
    names: dict[str, dict[str, str]],
) -> Helper:
    for word, meant in {**names, **_WIDTH}.items():
        text = text.replace(word, meant[target])
    if target == "tf" and "= 1.0 / " in text:
        text = re.sub(r"= 1\.0 / (.*)", r"= _reciprocal(\1)", text)
        needs = (TF_RECIPROCAL, *needs)
    if target == "tf":
        text = _COMPARED.sub(_compared, text)
    if target in _CHOICES and "xp.where(" in text:
        text, needs = text.replace("xp.where(", "_where("), (_CHOICES[target], *needs)
    for word, replacement in _WORDS[target].items():
        text = text.replace(word, replacement)
    needed = [*imports]
    if "math.pi" in text:
        needed.append("import math")
    if "special." in text and target == "numpy":
        needed.append("from scipy import special")
    if "special." in text and target == "jax":
        needed.append("from jax.scipy import special")
    return Helper(name, text, tuple(needed), needs)
