"""Errors about the arguments of a rule, in the words of its caller, and checks of them.
They are written once for all frameworks.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

_NUMBERLESS = re.compile(r"bool|complex|str|bytes|[<|][US]")
"""Types of which Python would make numbers all the same."""

_OUTSIDE = re.compile(
    r"positions|out of (range|(DATA )?bounds)|exceeds dimension|is not in \[|Expected (begin|size)"
)
"""Words of the frameworks' errors for a position outside of its axis."""


def number(rule: str, name: str, value: Any, is_whole: bool) -> float | int:
    """A static as a Python number."""
    if type(value) is (int if is_whole else float):
        return value
    kind = str(getattr(value, "dtype", type(value).__name__))
    try:
        if _NUMBERLESS.search(kind) or tuple(getattr(value, "shape", ())):
            raise TypeError
        return operator.index(value) if is_whole else float(value)
    except (TypeError, ValueError, OverflowError):
        raise no_number(rule, name, value, is_whole) from None


def no_number(rule: str, name: str, value: Any, is_whole: bool) -> TypeError:
    """The error for a static that is not one number."""
    kind = type(value).__name__
    shown = f"a value of the type {kind}"
    if tuple(getattr(value, "shape", ())):
        shown = f"an array of the shape {tuple(value.shape)}"
    elif isinstance(value, str):
        shown = "a string"
    elif value is None or isinstance(value, bool | float):
        shown = f"{value}"
    wanted = f": {shown} ({kind}) is not an integer" if is_whole else f", not {shown}"
    return TypeError(f"{rule}: {name} must be a number{wanted}")


def unreadable(rule: str, name: str, fault: Exception) -> TypeError:
    """The error for an argument of which the framework makes no array."""
    return TypeError(f"{rule}: {name} is not an array of numbers: {fault}")


def checking_axes(
    rule: str, kinds: Mapping[str, str], axes: Mapping[str, str]
) -> Callable[[tuple[Any, ...]], None]:
    """A function that raises an error for shapes other than declared; a size that a
    static gives is that number, and must be one.
    """
    names = tuple(kinds)
    statics = [(n, k) for k, n in enumerate(names) if kinds[n] in ("whole", "known")]
    lengths = [(n, k) for n, k in statics if n in axes]
    shaped = {n: pattern for n, pattern in axes.items() if n not in dict(statics)}
    named = {n: pattern.removeprefix("...").split() for n, pattern in shaped.items()}
    counts = Counter(axis for own in named.values() for axis in own)
    counts.update(n for n, _ in statics)
    patterns = []
    for name, own in named.items():
        ends = [(axis, k - len(own)) for k, axis in enumerate(own)]
        shared = [pair for pair in ends if counts[pair[0]] > 1 or pair[0].isdigit()]
        has_batch = axes[name].startswith("...")
        patterns.append((names.index(name), has_batch, len(own), tuple(shared)))
    numbers = {axis: int(axis) for axis in counts if axis.isdigit()}

    def check(inputs: tuple[Any, ...]) -> None:
        sizes = dict(numbers)
        for name, place in statics:
            sizes[name] = inputs[place]
        for name, place in lengths:
            check_size(rule, name, inputs[place])
        for place, has_batch, count, shared in patterns:
            shape = inputs[place].shape
            rank = len(shape)
            fits = rank == count or (rank > count and has_batch)
            for axis, end in shared if fits else ():
                fits = fits and sizes.setdefault(axis, shape[end]) == shape[end]
            if not fits:
                raise misshapen(names[place], shape, sizes)

    def misshapen(name: str, shape: Any, sizes: Mapping[str, Any]) -> ValueError:
        words = axes[name].split()
        known = [f"{n} = {sizes[n]}" for n in dict.fromkeys(named[name]) if n in sizes]
        told = [text for text in known if not text[0].isdigit()]
        return ValueError(
            f"{rule}: {name} must have the shape [{', '.join(words)}]"
            f"{' with ' * bool(told)}{', '.join(told)}, not {tuple(shape)}"
            f"{'' if words else ': it has rank 0'}"
        )

    return check


def check_size(rule: str, name: str, size: int) -> None:
    """Raise an error if a static, the size of an axis, is negative."""
    if size < 0:
        raise ValueError(
            f"{rule}: {name} is the size of an axis, and {size} is negative"
        )


def explain(
    fault: Exception,
    rule: str,
    inputs: Mapping[str, Any],
    kinds: Mapping[str, str],
    axes: Mapping[str, str],
) -> None:
    """Raise a framework's error again in the words of the rule's caller, if the reason
    is that arguments do not broadcast, or that a position is outside of its axis.
    """
    shapes = {n: tuple(x.shape) for n, x in inputs.items() if hasattr(x, "shape")}
    batch = {}
    for name, shape in shapes.items():
        words = axes.get(name, "...").split()
        count = len(shape) - len(words) + 1 if "..." in words else 0
        batch[name] = shape[:count]
    for first, second in combinations(batch, 2):
        pairs = zip(batch[first][::-1], batch[second][::-1], strict=False)
        if any(m != n and not {1, None} & {m, n} for m, n in pairs):
            raise ValueError(
                f"{rule}: {first} and {second} do not broadcast: they have the shapes"
                f" {shapes[first]} and {shapes[second]}"
            ) from fault
    if _OUTSIDE.search(f"{fault}"):
        whole = [n for n, x in inputs.items() if isinstance(x, int)]
        whole += [n for n, kind in kinds.items() if kind == "integer" and n in shapes]
        found = ", ".join(f"{n} is {_shown_range(inputs[n])}" for n in whole)
        raise IndexError(
            f"{rule}: a position is outside of its axis"
            f"{', where ' * bool(whole)}{found} ({fault})"
        ) from fault


def _shown_range(value: Any) -> str:
    if isinstance(value, int):
        return f"{value}"
    try:
        return f"from {int(value.min())} to {int(value.max())}"
    except (AttributeError, TypeError, ValueError, RuntimeError):  # it is not known
        return "an array"
