"""The text of a lifted rule: the tree of expressions, printed by the language's printer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from gradspec.ir.expr import Apply, Bound, Const, Expr, Idx, Reduce, Ref, Size, show
from gradspec.ir.walk import names, nodes, transform
from gradspec.lift.names import AXES, LETTERS
from gradspec.lift.reading import Lifted, Variable
from gradspec.lift.values import Axes, Extent, extent_named, with_indices
from gradspec.primitives.frameworks import CLIP
from gradspec.source import Source
from gradspec.syntax.parse import parse
from gradspec.syntax.printer import print_module

Change = Callable[[Expr], Expr]


def same(value: Expr) -> Expr:
    return value


@dataclass(frozen=True)
class Form:
    """How a rule is written: with changes of both passes, more assumptions, outputs that
    have no gradient, values that are put in the place of inputs, and gradients that are
    left out or declared on purpose."""

    forward: Change = same
    backward: Change = same
    assumed: tuple[str, ...] = ()
    without: frozenset[str] = frozenset()
    fixed: dict[str, Expr] = field(default_factory=dict)
    put: Change = same
    only: frozenset[str] | None = None
    reason: str = ""
    doc: str = ""
    surrogate: str = ""
    """In the place of the first output, for what is differentiated."""
    is_derived: bool = False


class Writer:
    """The text of one rule in one form; ``lines`` are its lines by what they define."""

    def __init__(self, rule: Lifted, name: str, form: Form) -> None:
        self.rule, self.form = rule, form
        self.name = name
        self.lets = {let.name: let for let in rule.lets}
        taken = {v.name for v in (*rule.inputs, *rule.outputs)} | set(self.lets)
        taken |= {f"d{v.name}" for v in (*rule.inputs, *rule.outputs)}
        self.letters = [c for c in LETTERS if c not in taken] + [
            f"i{k}" for k in range(1, 20) if f"i{k}" not in taken
        ]
        self.axes = [c for c in AXES if c not in taken] + [
            f"n{k}" for k in range(1, 20) if f"n{k}" not in taken
        ]
        self.sizes: dict[Extent, str] = {}
        self.has_axes = any(v.axes for v in (*rule.inputs, *rule.outputs))

    def text(self) -> str:
        rule, form = self.rule, self.form
        values = {n: self._change(v, "forward") for n, v in rule.values.items()}
        kept = rule.gradients if form.only is None else form.only
        gradients = {
            n: self._change(g, "backward")
            for n, g in rule.gradients.items()
            if g is not None and n in kept
        }
        changed = {
            n: self._change(let.value, let.phase)
            for n, let in self.lets.items()
            if n not in values
        }
        needed = self._needed_locals([*values.values(), *gradients.values()], changed)
        heads = [
            self._head(v, gradients) for v in rule.inputs if v.name not in form.fixed
        ]
        used = {n for v in (*values.values(), *gradients.values()) for n in names(v)}
        used |= {n for k in needed for n in names(changed[k])}
        used |= {n for c in rule.conditions for n in names(c)}
        heads = [h for h in heads if h is not None and (not h[1] or h[2] in used)]
        body = [
            f"    assume {t}"
            for t in self._assumptions(values, gradients, changed, needed)
        ]
        body += self._forward(values, changed, needed)
        for n in needed:
            if self.lets[n].phase == "backward":
                body.append(self._line(n, self.lets[n].axes, changed[n]))
        for variable in rule.inputs:
            if variable.name in gradients and not form.is_derived:
                start = "override " if form.reason else ""
                end = f' because "{form.reason}"' if form.reason else ""
                line = self._line(
                    f"d{variable.name}", variable.axes, gradients[variable.name], start
                )
                body.append(line + end)
        doc = [f'    """{form.doc}"""'] if form.doc else []
        inputs = ", ".join(text for text, *_ in heads)
        return "\n".join(
            [f"rule {self.name}({inputs}) -> {self._outputs()}:", *doc, *body, ""]
        )

    def _forward(
        self, values: dict[str, Expr], changed: dict[str, Expr], needed: list[str]
    ) -> Iterator[str]:
        axes = {o.name: o.axes for o in self.rule.outputs}
        done: set[str] = set()
        for let in self.rule.lets:
            if let.name in values:
                done.add(let.name)
                yield self._line(let.name, axes[let.name], values[let.name])
            elif let.name in needed and let.phase == "forward":
                yield self._line(let.name, let.axes, changed[let.name])
        for name, value in values.items():
            if name not in done:
                yield self._line(name, axes[name], value)
        if self.form.surrogate:
            yield f"    surrogate {self.rule.outputs[0].name} = {self.form.surrogate}"

    def _change(self, value: Expr, phase: str) -> Expr:
        change = self.form.forward if phase == "forward" else self.form.backward
        fixed = self.form.fixed

        def put(node: Expr) -> Expr:
            return fixed.get(node.name, node) if isinstance(node, Ref) else node

        changed = transform(value, put) if fixed else value
        return change(transform(changed, self.form.put))

    def _needed_locals(
        self, used: Iterable[Expr], changed: dict[str, Expr]
    ) -> list[str]:
        """The locals that are used, in their order."""
        found: set[str] = set()
        todo = list(used)
        while todo:
            for name in names(todo.pop()):
                if name in changed and name not in found:
                    found.add(name)
                    todo.append(changed[name])
        return [name for name in changed if name in found]

    # --- the head ---------------------------------------------------------------------

    def _head(
        self, variable: Variable, gradients: dict[str, Expr]
    ) -> tuple[str, bool, str]:
        if variable.is_static:
            default = (
                ""
                if variable.default is None
                else f" = {show(Const(variable.default))}"
            )
            return f"{variable.name}: static{default}", True, variable.name
        kind = "" if variable.name in gradients else ": nograd"
        return self._declare(variable) + kind, bool(kind), variable.name

    def _outputs(self) -> str:
        parts = []
        for one in self.rule.outputs:
            has_none = not one.takes_gradient or one.name in self.form.without
            parts.append(self._declare(one) + (": nograd" if has_none else ""))
        is_plain = len(parts) == 1 and ":" not in parts[0]
        return parts[0] if is_plain else f"({', '.join(parts)})"

    def _declare(self, variable: Variable) -> str:
        inner = ["..."] if variable.is_open and self.has_axes else []
        inner += [self._size(i.extent) for i in variable.axes if i is not None]
        if not inner:
            return variable.name if variable.is_open else f"{variable.name}[]"
        return f"{variable.name}[{', '.join(inner)}]"

    def _size(self, extent: Extent) -> str:
        root = extent.root
        if root not in self.sizes:
            self.sizes[root] = self.axes[len(self.sizes)]
        return self.sizes[root]

    # --- lines --------------------------------------------------------------------------

    def _assumptions(self, *parts: object) -> Iterator[str]:
        yield from self.form.assumed
        for condition in self.rule.conditions:
            yield self._text(condition, {})
        values, gradients, changed, needed = parts
        assert isinstance(values, dict) and isinstance(gradients, dict)
        assert isinstance(changed, dict) and isinstance(needed, list)
        every = [*values.values(), *gradients.values(), *(changed[n] for n in needed)]
        yield from self._bounds(every)

    def _bounds(self, every: Iterable[Expr]) -> Iterator[str]:
        """The order of the bounds of a clip, where they are numbers of the caller."""
        numbers = {v.name for v in self.rule.inputs if not v.axes}
        numbers -= {n for n, g in self.rule.gradients.items() if g is not None}
        done: set[str] = set()
        for value in every:
            for node in nodes(value):
                if not isinstance(node, Apply) or node.op != CLIP:
                    continue
                low, high = node.args[1:]
                used = names(low) | names(high)
                if used and used <= numbers:
                    text = f"{self._text(low, {})} < {self._text(high, {})}"
                    if text not in done:
                        done.add(text)
                        yield text

    def _line(self, name: str, axes: Axes, value: Expr, start: str = "") -> str:
        known: dict[str, str] = {}
        own = [i for i in axes if i is not None]
        for index in own:
            known[index.name] = self.letters[len(known)]
        ranged = list(known.values())
        if name in self.lets:  # elsewhere, the axes of the name say the range
            used = {i for n in nodes(value) if isinstance(n, Ref) for i in n.indices}
            if not used.issuperset(i.value for i in own):
                ranged = [f"{known[i.name]} in {self._size(i.extent)}" for i in own]
        left = f"{name}[{', '.join(ranged)}]" if own else name
        return f"    {start}{left} = {self._text(value, known)}"

    def _text(self, value: Expr, known: dict[str, str]) -> str:
        """The expression with letters for its indices, and sizes by their axes."""
        known = dict(known)

        def visit(node: Expr) -> Expr:
            match node:
                case Size(axis=axis):
                    return Size(self._size(extent_named(axis)))
                case Reduce(op=op, bounds=bounds, body=body, where=where):
                    for bound in bounds:
                        known.setdefault(bound.index, self.letters[len(known)])
                    made = tuple(Bound(known[b.index], "") for b in bounds)
                    return Reduce(op, made, body, where)
                case _:
                    return node

        shaped = transform(value, visit)
        return show(with_indices(shaped, {k: Idx(v) for k, v in known.items()}))


def rule_text(rule: Lifted, name: str, form: Form | None = None) -> str:
    """The text of a rule, as it is checked."""
    return Writer(rule, name, form or Form()).text()


def laid_out(text: str) -> str:
    """The text in the layout of the language's printer."""
    module = parse(Source("lifted.grad", text))
    return text if module.value is None or module.failed else print_module(module.value)
