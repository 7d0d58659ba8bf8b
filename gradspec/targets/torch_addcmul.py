"""A product added to something is one call of torch: it goes through memory once where two
would go twice, and costs a short tensor one call.

`torch.addcmul` rounds once where the processor multiplies and adds at once, so a product
is not fused into a sum of products: where two products cancel exactly, what the rounding
of one alone has lost would be left. Compilers get the operations one by one: they fuse
them, and in PyTorch 2.13 inductor makes kernels of `addcmul` that crash (the Hessian of a
rule with two inputs).
"""

from __future__ import annotations

from collections.abc import Mapping

from gradspec.plan.array import Expr, Literal, Op
from gradspec.primitives.row import Helper
from gradspec.targets.python import ATOM, PRODUCT, Scope, Text, texts_of

ADD_PRODUCT = Helper(
    "_add_product",
    '''\
_OWN = {torch.Tensor, torch.nn.Parameter}


def _add_product(
    total: torch.Tensor, a: torch.Tensor, b: torch.Tensor, times: float = 1.0
) -> torch.Tensor:
    """``total + times * a * b`` in one pass, unless a compiler looks on, which fuses, or
    one is a subclass, which may know nothing of it (nested tensors).
    """
    if (
        torch.compiler.is_compiling()
        or torch._C._len_torch_dispatch_stack()
        or not {type(total), type(a), type(b)} <= _OWN
    ):
        return total + (a * b if times == 1.0 else times * a * b)
    return torch.addcmul(total, a, b, value=times)
''',
)

_PRODUCTS = ("mul", "div", "square", "pow")


def added_product(node: Op, texts: Mapping[Expr, Text]) -> Text | None:
    """``c + a * b`` and ``c - a * b`` of tensors in one call."""
    match node:
        case Op("add", (Op("mul") as product, c)) if not _is_product(c):
            sign = ""
        case Op("add", (c, Op("mul") as product)) if not _is_product(c):
            sign = ""
        case Op("sub", (c, Op("mul") as product)) if not _is_product(c):
            sign = ", -1.0"
        case _:
            return None
    if texts[product].precedence != PRODUCT:
        return None  # a call of torch has the whole of it
    a, b = product.args
    if any(texts[x].is_scalar for x in (a, b, c)):
        return None
    given = ", ".join(texts[x].text for x in (c, a, b))
    return Text(f"_add_product({given}{sign})", ATOM)


def _is_product(node: Expr) -> bool:
    """Whether the value may be the negative of another product, to the last digit."""
    todo = [node]
    while todo:
        node = todo.pop()
        if isinstance(node, Op) and node.primitive in _PRODUCTS:
            return True
        if isinstance(node, Op) and node.primitive in ("neg", "add", "sub"):
            todo += node.args
    return False


def accumulated(total: str, value: Expr, scope: Scope) -> str | None:
    """A product added to ``total``, a name that may hold None, in one call."""
    texts = texts_of(value, scope)
    if (found := _factors(value, texts)) is None:
        return None
    number, a, b = found
    times = f", {number}" if number else ""
    together = f"_add_product({total}, {a}, {b}{times})"
    return f"{texts[value].text} if {total} is None else {together}"


def _factors(value: Expr, texts: Mapping[Expr, Text]) -> tuple[str, str, str] | None:
    """A number and two tensors of which the value is the product, if there are just
    these; the number may be missing.
    """
    number, tensors = "", []
    todo = [value]
    while todo:
        node = todo.pop()
        match node:
            case Op("mul", (a, b)):
                todo += [b, a]
            case Literal() if not number:
                number = texts[node].text
            case _ if texts[node].is_scalar:
                return None
            case _:
                tensors.append(texts[node].text)
    if len(tensors) != 2:
        return None
    return number, tensors[0], tensors[1]
