"""All rows, family by family."""

from __future__ import annotations

from gradspec.primitives.row import Infix, Prefix, Primitive, Template

_ALL = ("numpy", "torch", "tf")


def _infix(symbol: str, precedence: int) -> dict[str, Infix]:
    return {target: Infix(symbol, precedence) for target in _ALL}


ROWS: tuple[Primitive, ...] = (
    Primitive(
        "add",
        ("x", "y"),
        ball=lambda x, y: x + y,
        spellings=_infix("+", 9),
        partials=("1", "1"),
        sympy=lambda sp, x, y: x + y,
        model=lambda np, x, y: x + y,
    ),
    Primitive(
        "sub",
        ("x", "y"),
        ball=lambda x, y: x - y,
        spellings=_infix("-", 9),
        partials=("1", "-1"),
        sympy=lambda sp, x, y: x - y,
        model=lambda np, x, y: x - y,
    ),
    Primitive(
        "mul",
        ("x", "y"),
        ball=lambda x, y: x * y,
        spellings=_infix("*", 10),
        partials=("y", "x"),
        sympy=lambda sp, x, y: x * y,
        model=lambda np, x, y: x * y,
    ),
    Primitive(
        "div",
        ("x", "y"),
        ball=lambda x, y: x / y,
        spellings=_infix("/", 10),
        partials=("1 / y", "-out / y"),
        domain="y != 0",
        sympy=lambda sp, x, y: x / y,
        model=lambda np, x, y: x / y,
    ),
    Primitive(
        "neg",
        ("x",),
        ball=lambda x: -x,
        spellings={target: Prefix("-", 11) for target in _ALL},
        partials=("-1",),
        sympy=lambda sp, x: -x,
        model=lambda np, x: -x,
    ),
    Primitive(
        "exp",
        ("x",),
        ball=lambda x: x.exp(),
        spellings={
            "numpy": Template("np.exp({x})"),
            "torch": Template("torch.exp({x})"),
            "tf": Template("tf.exp({x})"),
        },
        partials=("out",),
        sympy=lambda sp, x: sp.exp(x),
        model=lambda np, x: np.exp(x),
        cost=8,
    ),
    Primitive(
        "log",
        ("x",),
        ball=lambda x: x.log(),
        spellings={
            "numpy": Template("np.log({x})"),
            "torch": Template("torch.log({x})"),
            "tf": Template("tf.math.log({x})"),
        },
        partials=("1 / x",),
        domain="x > 0",
        sympy=lambda sp, x: sp.log(x),
        model=lambda np, x: np.log(x),
        cost=8,
    ),
    Primitive(
        "gt",
        ("x", "y"),
        ball=None,
        spellings=_infix(">", 4),
        partials=(None, None),
        result="bool",
        sympy=lambda sp, x, y: sp.Gt(x, y),
        model=lambda np, x, y: x > y,
    ),
)
