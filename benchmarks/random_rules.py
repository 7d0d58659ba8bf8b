"""Random rules over axes: right ones, with a value and a derivative almost everywhere."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from random import Random

Scope = tuple[tuple[str, str], ...]
"""Indices with the axes that they range over."""

CONSTANTS = ("2", "0.5", "3", "1.5", "pi", "0.1")
LOCALS = ("sqrt(2)", "1 / n", "a / 2", "log(k + 1)", "n - 1", "2 * pi", "a**2", "-1")
SMOOTH = [
    "tanh",
    "sin",
    "cos",
    "sigmoid",
    "softplus",
    "erf",
    "exp_",
    "square",
    "cube",
    "abs",
    "relu",
]
ABOVE = ["exp_", "sigmoid", "softplus", "one_plus", "one_plus"]
INDICES = "ijlpqrstuv"


@dataclass
class Input:
    """An input. ``points`` is the axis into which an integer points; ``is_loose`` if it
    may point beyond it, or to no element (-100).
    """

    name: str
    axes: tuple[str, ...]
    is_batched: bool = False
    kind: str = ""
    points: str = ""
    is_loose: bool = False
    is_positive: bool = False

    def text(self) -> str:
        inside = ", ".join(["..."] * self.is_batched + [*self.axes])
        return f"{self.name}[{inside}]" + (f": {self.kind}" if self.kind else "")


@dataclass
class Draw:
    """One rule, as it is drawn."""

    r: Random
    name: str
    inputs: list[Input] = field(default_factory=list)
    arrays: dict[str, tuple[str, ...]] = field(default_factory=dict)
    numbers: list[str] = field(default_factory=lambda: ["a", "k"])

    def one_in(self, count: float) -> bool:
        return self.r.random() * count < 1

    def rule(self) -> str:
        r = self.r
        is_batched = self.one_in(3)
        shapes: tuple[tuple[str, ...], ...] = (
            ("n",),
            ("m",),
            ("n", "m"),
            ("n", "n"),
            (),
        )
        for name in "xwv"[: r.choice((1, 2, 2, 3))]:
            axes = ("n",) if name == "x" else r.choice((*shapes, ("n", "3")))
            batch = is_batched and (name == "x" or self.one_in(2))
            kind = "nograd" if name != "x" and self.one_in(6) else ""
            made = Input(name, axes, batch, kind, is_positive=self.one_in(3))
            self.inputs.append(made)
            self.arrays[name] = axes
        known = [a for i in self.inputs for a in i.axes if a != "3"]
        for name in "tg"[: r.choice((0, 1, 1, 2))]:
            axes = r.choice(((r.choice(known),), (r.choice(known),), ()))
            batch = is_batched and self.one_in(2)
            points, loose = r.choice(known), self.one_in(2)
            self.inputs.append(Input(name, axes, batch, "int", points, loose))
        known = [*dict.fromkeys([*known, *(a for i in self.inputs for a in i.axes)])]
        lines = []
        for name in "cd"[: r.choice((0, 0, 1, 2))]:
            lines.append(f"{name} = {r.choice(LOCALS)}")
            self.numbers.append(name)
        self.numbers += [a for a in known if a != "3"]
        for name in "hz"[: r.choice((0, 0, 1, 2))]:
            lines.append(self.let(name, r.choice(((), ("n",), ("n",), ("n", "n")))))
        outputs = []
        for name in "yo"[: r.choice((1, 1, 2))]:
            axes = r.choice(
                ((), (r.choice(known),), (r.choice(known), r.choice(known)))
            )
            lines.append(self.let(name, axes, depth=r.choice((2, 3, 3, 4))))
            outputs.append(Input(name, axes, is_batched).text())
        given = ", ".join([i.text() for i in self.inputs])
        found = outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})"
        assumed = self.assumed()
        head = (
            f"rule {self.name}({given}, a: static = 1.5, k: static int = 2) -> {found}:"
        )
        return "\n    ".join([head, *assumed, *lines]) + "\n"

    def assumed(self) -> list[str]:
        found = []
        for i in self.inputs:
            at = f"[{', '.join(INDICES[: len(i.axes)])}]" if i.axes else ""
            found += [f"assume {i.name}{at} > 0"] if i.is_positive else []
        return found

    def let(self, name: str, axes: tuple[str, ...], depth: int = 2) -> str:
        scope = tuple(zip(INDICES, axes, strict=False))
        value = f"{self.element(scope)} * {self.real(scope, depth)}"
        if self.one_in(8):
            value = self.element(scope)
        elif self.one_in(3):
            value = self.real(scope, depth) + " + " + self.element(scope)
        elif axes and self.one_in(4):
            value = self.reduction(scope, depth) + " * " + self.element(scope)
        for i, axis in scope:
            if not re.search(rf"\[(\w+, )?{i}[],]", value):
                fit = [n for n, own in self.arrays.items() if axis in own]
                found = self.r.choice(fit)
                at = [self.position(own, scope)[0] for own in self.arrays[found]]
                at[self.arrays[found].index(axis)] = i
                value = f"{value} + {self.at(found, tuple(at))}"
        self.arrays[name] = axes
        return f"{self.at(name, tuple(i for i, _ in scope))} = {value}"

    # --- references --------------------------------------------------------------------

    def position(self, axis: str, scope: Scope) -> list[str]:
        """Positions of an axis that surely exist."""
        found = [i for i, own in scope if own == axis] * 3
        for t in self.inputs:
            if t.points == axis and not t.is_loose:
                at = [[i for i, own in scope if own == own_axis] for own_axis in t.axes]
                if all(at):
                    found.append(self.at(t.name, tuple(self.r.choice(p) for p in at)))
        return found or ["0"]

    def at(self, name: str, indices: tuple[str, ...]) -> str:
        return f"{name}[{', '.join(indices)}]" if indices else name

    def reference(self, name: str, scope: Scope) -> str:
        axes = self.arrays[name]
        indices = tuple(self.r.choice(self.position(axis, scope)) for axis in axes)
        return self.at(name, indices)

    def element(self, scope: Scope) -> str:
        """An element of an array, of one that has the indices if there is one."""
        wanted = {axis for _, axis in scope}
        fit = [n for n, axes in self.arrays.items() if wanted & {*axes}]
        tensors = [i.name for i in self.inputs if not i.points]
        name = self.r.choice([*fit, *tensors])
        if scope and self.arrays[name] and self.one_in(5):
            return self.beyond(name, scope)
        return self.reference(name, scope)

    def beyond(self, name: str, scope: Scope) -> str:
        """An element at a position that need not exist, where it does."""
        axis, *rest = self.arrays[name]
        others = tuple(self.r.choice(self.position(a, scope)) for a in rest)
        place, guard = self.loose(axis, scope)
        other = self.r.choice(("0", "1", self.number(), self.reference(name, scope)))
        return f"({self.at(name, (place, *others))} if {guard} else {other})"

    def loose(self, axis: str, scope: Scope) -> tuple[str, str]:
        """A position and the condition on which it exists."""
        options = []
        for i, own in scope:
            if own == axis:
                options += [(f"{i} + 1", f"{i} + 1 < {axis}"), (f"{i} - 1", f"{i} > 0")]
                options += [(f"2 * {i} + 1", f"2 * {i} + 1 < {axis}")]
                options += [(f"{axis} - 1 - {i}", f"{i} >= 0")]
            elif own not in ("3", axis):
                options.append((f"{i} + 0", f"{i} < {axis}"))
        for t in self.inputs:
            at = [[i for i, own in scope if own == a] for a in t.axes]
            if t.points == axis and t.is_loose and all(at):
                place = self.at(t.name, tuple(self.r.choice(p) for p in at))
                options += [(place, f"0 <= {place} < {axis}")] * 2
                options += [(place, f"{place} >= 0 and {place} < {axis}")]
        return self.r.choice(options or [("0", f"{axis} > 0")])

    def number(self) -> str:
        return self.r.choice([*CONSTANTS, *self.numbers])

    # --- expressions -------------------------------------------------------------------

    def real(self, scope: Scope, depth: int) -> str:
        r = self.r
        if depth <= 0:
            return self.number() if self.one_in(3) else self.element(scope)
        way = r.choices(
            ("binary", "unary", "above", "choice", "reduction", "number"),
            (6, 4, 3, 3, 4 if len(scope) < 4 else 0, 1),
        )[0]
        a = self.real(scope, depth - 1)
        match way:
            case "binary":
                b = self.real(scope, depth - 1)
                p = self.above(scope, depth - 1)
                return r.choice(
                    (
                        f"({a} + {b})",
                        f"({a} - {b})",
                        f"{a} * ({b})",
                        f"({a}) / ({p})",
                        f"max({a}, {b})",
                        f"min({b}, {a})",
                        f"max({a}, {self.number()})",
                        f"hypot({p}, {self.number()})",
                        f"atan2({a}, {p})",
                        f"logaddexp({a}, {b})",
                        f"hypot({a}, {p})",
                    )
                )
            case "unary":
                return written(r.choice(SMOOTH), a)
            case "above":
                p = self.above(scope, depth - 1)
                power = r.choice(
                    ("a", "(1 / n)", "(1 / k)", "(-0.5)", "1.5", "(a - 1)")
                )
                return r.choice(
                    (f"log({p})", f"sqrt({p})", f"1 / ({p})", f"({p})**{power}")
                    + (f"lgamma({p})",) * self.one_in(4)
                    + (f"digamma({self.number_above()}) * {a}",) * self.one_in(2)
                )
            case "choice":
                b = self.real(scope, depth - 1)
                if self.one_in(8):
                    b = a
                return f"({a} if {self.condition(scope)} else {b})"
            case "reduction":
                return self.reduction(scope, depth - 1)
            case _:
                return self.number()

    def number_above(self) -> str:
        found = [n for n in self.numbers if n not in ("c", "d")]
        return self.r.choice((*found, "2", "0.5", "sqrt(3)"))

    def above(self, scope: Scope, depth: int) -> str:
        """A value that is positive everywhere."""
        fit = [i.name for i in self.inputs if i.is_positive]
        if fit and self.one_in(2):
            return self.reference(self.r.choice(fit), scope)
        if self.one_in(6):
            return self.number_above()
        a = self.real(scope, depth - 1)
        return written(self.r.choice(ABOVE), a)

    def condition(self, scope: Scope) -> str:
        r = self.r
        options = [f"{self.number()} > 1", "k == 2", "a <= 2", f"{self.number()} < n"]
        options += [f"{self.element(scope)} > {r.choice(('0.3', '0.7', 'a', '-0.2'))}"]
        for i, _ in scope:
            options += [f"{i} > 1", f"{i} == 0", f"{i} != 1", f"{i} < k"]
        pairs = [(i, j) for i, a in scope for j, b in scope if a == b and i != j]
        for i, j in pairs:
            options += [f"{i} {r.choice(('<', '<=', '==', '!='))} {j}"] * 2
        for t in self.inputs:
            at = [[i for i, own in scope if own == a] for a in t.axes]
            if t.points and all(at):
                place = self.at(t.name, tuple(r.choice(p) for p in at))
                options += [
                    f"{place} == {r.choice(self.position(t.points, scope))}"
                ] * 2
                options += [f"{place} > 0"]
        found = r.choice(options)
        if self.one_in(8):
            found = f"{found} {r.choice(('and', 'or'))} {r.choice(options)}"
        return f"not ({found})" if self.one_in(10) else found

    def reduction(self, scope: Scope, depth: int) -> str:
        """A reduction over an axis of an array, or over two."""
        r = self.r
        fit = [n for n, axes in self.arrays.items() if axes]
        name = r.choice(fit)
        free = [i for i in INDICES if i not in dict(scope)]
        count = 2 if len(self.arrays[name]) > 1 and self.one_in(2) else 1
        places = r.sample(range(len(self.arrays[name])), count)
        bound = {place: free[k] for k, place in enumerate(places)}
        inner = (*scope, *((bound[p], self.arrays[name][p]) for p in places))
        indices = tuple(
            bound.get(p) or r.choice(self.position(axis, inner))
            for p, axis in enumerate(self.arrays[name])
        )
        body = self.at(name, indices)
        if self.one_in(6):
            body = f"({self.real(inner, depth)}) + {body}"
        elif not self.one_in(4):
            body = f"{body} * {self.real(inner, depth)}"
        op = r.choice(
            ["sum", "sum", "sum", "sum", "mean", "max", "min", "logsumexp", "prod"]
        )
        where = ""
        if self.one_in(3):
            j, axis = inner[-1]
            same = [i for i, own in scope if own == axis]
            if op == "sum":
                where = f" if {self.condition(inner)}"
            elif same:
                where = f" if {j} {r.choice(('<=', '>='))} {r.choice(same)}"
        found = ", ".join(bound.values())
        return f"{op}({body} for {found}{where})"


def written(function: str, arg: str) -> str:
    match function:
        case "cube":
            return f"({arg})**3"
        case "exp_":
            return f"exp(sin({arg}))"
        case "one_plus":
            return f"(1 + ({arg})**2)"
        case _:
            return f"{function}({arg})"


def drawn(r: Random, name: str) -> tuple[str, list[Input]]:
    """The text of a rule, and its inputs."""
    draw = Draw(r, name)
    return draw.rule(), draw.inputs
