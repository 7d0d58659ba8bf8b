"""What stands at a place of a text: the item, the name, where it is defined and where
else it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gradspec.source import Span
from gradspec.syntax import nodes
from gradspec.syntax.scan import scan
from gradspec.syntax.tokens import Token


@dataclass(frozen=True, slots=True)
class Place:
    """A name in a module, and the item and the statement around it. ``tokens`` are all
    names of the text, each with the type of the token before and behind it, and the
    number of brackets that are open there."""

    module: nodes.Module
    token: Token
    item: nodes.Item | None
    statement: nodes.Statement | None
    tokens: tuple[tuple[Token, str, int], ...]

    @property
    def name(self) -> str:
        return self.token.text

    @property
    def variable(self) -> nodes.Parameter | None:
        """The input or output that it names, as itself or as its gradient."""
        if not isinstance(self.item, nodes.RuleDef) or self.is_called:
            return None
        named = {p.name: p for p in (*self.item.inputs, *self.item.outputs)}
        return named.get(self.name) or named.get(self.name.removeprefix("d"))

    @property
    def is_called(self) -> bool:
        """True of the name of a function."""
        behind = next(after for t, after, _ in self.tokens if t == self.token)
        return behind in ("LPAR", "DOT") or self._is_head

    @property
    def _is_head(self) -> bool:
        item = self.item
        return isinstance(item, nodes.Import) or (
            isinstance(item, nodes.Named) and item.name_span == self.token.span
        )


def place_at(module: nodes.Module, at: int) -> Place | None:
    """The name at an offset, or just before it."""
    tokens = tuple(_names(module.source.text))
    here = (t for t, _, _ in tokens if t.start <= at <= t.end)
    token = next(here, None)
    if token is None:
        return None
    item = next((i for i in module.items if _holds(i, token)), None)
    body = item.body if isinstance(item, nodes.RuleDef) else ()
    statement = next((s for s in body if _holds(s, token)), None)
    return Place(module, token, item, statement, tokens)


def _holds(node: nodes.Node, token: Token) -> bool:
    return node.span.start <= token.start and token.end <= node.span.end


def _names(text: str) -> Iterator[tuple[Token, str, int]]:
    tokens, depth = scan(text).tokens, 0
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        depth += (token.type in ("LPAR", "LSQB")) - (token.type in ("RPAR", "RSQB"))
        if token.type == "NAME":
            yield token, after.type if after else "", depth


def definition(place: Place) -> Span | None:
    """Where the name is defined in this text; None if it is not."""
    item = place.item
    if place.variable is not None and place.name == place.variable.name:
        return place.variable.name_span
    if isinstance(item, nodes.RuleDef) and not place.is_called:
        for statement in item.body:
            if isinstance(statement, nodes.Assignment) and statement.name == place.name:
                return statement.name_span
        if place.variable is not None:
            return place.variable.name_span
    for other in place.module.items:
        if isinstance(other, nodes.Named) and other.name == place.name:
            return other.name_span
    spans = occurrences(place)
    return spans[0][0] if spans and not place.is_called else None


def import_of(place: Place) -> nodes.Import | None:
    """The import that brings the name."""
    items = (item for item in place.module.items if isinstance(item, nodes.Import))
    return next((i for i in items if place.name in {n.id for n in i.names}), None)


def occurrences(place: Place) -> list[tuple[Span, str]]:
    """All places of what the name stands for, with what stands before the name there: the
    ``d`` of a gradient. An index is known in its statement, other names in their item,
    rules and defs in the whole text.
    """
    if place.is_called:
        called = [t for t, _, _ in place.tokens if t.text == place.name]
        heads = {i.name_span for i in place.module.items if isinstance(i, nodes.Named)}
        return [
            (t.span, "") for t in called if t.span in heads or _at(place, t).is_called
        ]
    if place.item is None:
        return []
    variable = place.variable
    name = place.name if variable is None else variable.name
    around = place.item if variable or _is_of_item(place) else place.statement
    within = (around or place.item).span
    found = []
    for token, after, depth in place.tokens:
        prefix = "d" if variable and token.text == f"d{name}" else ""
        is_keyword = after == "EQUAL" and depth > 0
        is_inside = within.start <= token.start < within.end
        is_value = after not in ("LPAR", "DOT") and not is_keyword
        if token.text == prefix + name and is_inside and is_value:
            found.append((token.span, prefix))
    return found


def _at(place: Place, token: Token) -> Place:
    item = next((i for i in place.module.items if _holds(i, token)), None)
    return Place(place.module, token, item, None, place.tokens)


def _is_of_item(place: Place) -> bool:
    """True of a local, of an axis, and of what a def takes."""
    item = place.item
    if not isinstance(item, nodes.RuleDef):
        return True
    locals_ = {s.name for s in item.body if isinstance(s, nodes.Assignment)}
    axes = {a for p in (*item.inputs, *item.outputs) if p.axes for a in p.axes.axes}
    return place.name in locals_ | axes


def renaming(place: Place, new: str) -> list[tuple[Span, str]] | None:
    """The changes that give what stands at a place another name; None if it cannot have
    this one, or stands in a text in quotes too."""
    variable = place.variable
    if variable is not None and place.name != variable.name:
        if not new.startswith("d"):
            return None
        new = new[1:]
    found = occurrences(place)
    within = place.module if place.is_called else place.item
    text = place.module.source.text
    if isinstance(within, nodes.RuleDef):
        text = place.module.source.slice(within.span)
    words = re.findall(r"\w+", text)
    quoted = " ".join(re.findall(r'"[^"\n]*\([^"\n]*\)"', text))  # a foreign call
    if not re.fullmatch(r"[A-Za-z]\w*", new, re.ASCII) or not found:
        return None
    if new in words or f"d{new}" in words or re.search(rf"\b{place.name}\b", quoted):
        return None
    return [(span, prefix + new) for span, prefix in found]
