"""Contractions in PyTorch: matrix products where possible.

`torch.einsum` supports all of them, but is slower to start (12 µs where ``x @ w.mT``
takes 4) and unsupported by legacy `vmap`: the rest is arranged into matrices by a
runtime function. A row-wise inner product is a product and a sum: no intermediate is
larger than the arguments, and `einsum` takes six times as long.
"""

from __future__ import annotations

from dataclasses import dataclass

from gradspec.plan.arrays import Einsum
from gradspec.targets.expressions import ATOM, PRODUCT, Text
from gradspec.targets.page import Page

_BATCH = "..."
_NO_COLUMN, _FIRST = ".squeeze(-1)", "[0]"


@dataclass(frozen=True, slots=True)
class _Side:
    """One argument: its text, its letters, and whether it may have batch axes."""

    text: Text
    letters: str
    has_batch: bool

    def oriented(self, last: str) -> str:
        """The matrix with the axis ``last`` at its end, ready for an operator."""
        turned = self.letters[-1] != last
        return f"{self.text.within(ATOM)}.mT" if turned else self.text.within(PRODUCT)

    def column(self) -> str:
        return f"{self.text.within(ATOM)}.unsqueeze(-1)"


def einsum(node: Einsum, parts: tuple[Text, ...], page: Page) -> Text:
    """The shortest text of the contraction."""
    output = node.output.removeprefix(_BATCH)
    if len(parts) == 2:
        left, right = (
            _Side(text, word.removeprefix(_BATCH), word.startswith(_BATCH))
            for text, word in zip(parts, node.inputs, strict=True)
        )
        keeps = node.output.startswith(_BATCH)
        over_batch = not keeps and (left.has_batch or right.has_batch)
        found = _summed(left, right, output, over_batch, page)
        if found is None and not over_batch:
            found = _rows(left, right, output) or _product(left, right, output)
        if found is not None:
            return found
    if [f"{_BATCH}{node.output}"] == [*node.inputs]:
        name = page.axes("sum_over_batch")
        return Text(f"{name}({parts[0].text}, {len(output)})", ATOM)
    words = f'"{",".join(node.inputs)}->{node.output}"'
    name = page.axes("contraction") if len(parts) == 2 else "torch.einsum"
    return Text(f"{name}({words}, {', '.join(p.text for p in parts)})", ATOM)


def is_view(text: str) -> bool:
    """True if a contraction so written permutes axes after it has computed."""
    of_order = text.startswith(("contraction(", "contraction_(", "torch.einsum("))
    return of_order or text.endswith((_NO_COLUMN, _FIRST))


def _summed(
    left: _Side, right: _Side, output: str, over_batch: bool, page: Page
) -> Text | None:
    """``...ti,...tl->il``: outer products summed over all leading axes."""
    a, b = left.letters, right.letters
    if over_batch and sorted((a, b)) == ["", output] and len(output) == 1:
        weights, rows = (left, right) if b else (right, left)
        return Text(
            f"{page.axes('sum_of_outer')}({weights.column()}, {rows.text.text}){_FIRST}",
            ATOM,
        )
    if not (over_batch and a and b and a[:-1] == b[:-1]):
        return None
    if a[-1] == b[-1] or sorted(output) != sorted(a[-1] + b[-1]):
        return None
    first, second = (left, right) if output[0] == a[-1] else (right, left)
    name = page.axes("sum_of_outer")
    return Text(f"{name}({first.text.text}, {second.text.text})", ATOM)


def _rows(left: _Side, right: _Side, output: str) -> Text | None:
    """``...ij,...ij->...i``: rows multiplied and summed."""
    letters = left.letters
    if letters != right.letters or not letters.startswith(output) or letters == output:
        return None
    axes = tuple(range(len(output) - len(letters), 0))
    product = f"{left.text.within(PRODUCT)} * {right.text.within(PRODUCT + 1)}"
    return Text(f"torch.sum({product}, {axes[0] if len(axes) == 1 else axes})", ATOM)


def _product(left: _Side, right: _Side, output: str) -> Text | None:
    """One axis contracted between vectors or matrices, as in ``a @ b.mT``."""
    shared = [c for c in left.letters if c in right.letters and c not in output]
    if len(shared) != 1:
        return None
    left, right, output = _without_common(left, right, output)
    free = [side.letters.replace(shared[0], "", 1) for side in (left, right)]
    if max(map(len, free)) > 1 or sorted("".join(free)) != sorted(output):
        return None
    match len(free[0]), len(free[1]):
        case 1, 1:
            return _matrices(left, right, output, shared[0])
        case 0, 1:
            return _vector(left, right, shared[0])
        case 1, 0:
            return _vector(right, left, shared[0])
        case _:
            return None


def _without_common(left: _Side, right: _Side, output: str) -> tuple[_Side, _Side, str]:
    """The sides without the leading axes that all three share, which are batch axes."""
    a, b = left.letters, right.letters
    while a and b and output and a[0] == b[0] == output[0]:
        a, b, output = a[1:], b[1:], output[1:]
    if a == left.letters:
        return left, right, output
    return _Side(left.text, a, True), _Side(right.text, b, True), output


def _matrices(left: _Side, right: _Side, output: str, shared: str) -> Text | None:
    if output[0] not in left.letters:
        left, right = right, left
    first, second = left.oriented(shared), _second(right, shared)
    return Text(f"{first} @ {second}", PRODUCT)


def _second(side: _Side, shared: str) -> str:
    """The matrix whose first axis is the shared one, to the right of an operator."""
    if side.letters[0] == shared:
        return side.text.within(PRODUCT + 1)
    return f"{side.text.within(ATOM)}.mT"


def _vector(vector: _Side, matrix: _Side, shared: str) -> Text:
    """A vector times a matrix. The operator takes rows of vectors where the matrix has
    no batch axes, and one vector where the vector has none.
    """
    if not matrix.has_batch:
        text = f"{vector.text.within(PRODUCT)} @ {_second(matrix, shared)}"
        return Text(text, PRODUCT)
    first = matrix.oriented(shared)
    if not vector.has_batch:
        return Text(f"{first} @ {vector.text.within(PRODUCT + 1)}", PRODUCT)
    return Text(f"({first} @ {vector.column()}){_NO_COLUMN}", ATOM)
