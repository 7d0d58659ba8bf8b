"""What the editor says of a name: Markdown for its hover, and a line above each rule."""

from __future__ import annotations

from gradspec.driver.checking import CheckedRule, CheckResult
from gradspec.editor.places import Place
from gradspec.primitives.lookup import is_function, primitive
from gradspec.report.summary import describe
from gradspec.source import Source, Span
from gradspec.syntax import nodes


def hover(place: Place, result: CheckResult) -> str:
    """What is known of a name: a rule with its gradients and verdicts, a built-in with
    its derivative and domain, a value with its formula. Empty if nothing is known."""
    rules = {rule.name: rule for rule in result.rules}
    item, name = place.item, place.name
    if place.is_called:
        if name in rules:
            return _rule(rules[name], place)
        named = (i for i in place.module.items if isinstance(i, nodes.FunctionDef))
        text = next((_text(place, i.span) for i in named if i.name == name), "")
        return code(text) if text else _built_in(name)
    if not isinstance(item, nodes.RuleDef):
        return ""
    checked = rules.get(item.name)
    told = [code(_text(place, s.span)) for s in _definitions(item, name)]
    if place.variable is not None:
        kind = place.variable.kind or "float"
        is_input = place.variable in item.inputs
        told.append(f"{'input' if is_input else 'output'} of `{item.name}`, {kind}")
        told += _gradients(checked, place.variable.name) if checked else []
    return "\n\n".join(told)


def lens(rule: CheckedRule) -> str:
    """The verdicts of a rule in a line."""
    return ", ".join(describe(g.verdict) for g in rule.gradients) or "no gradient"


def _rule(rule: CheckedRule, place: Place) -> str:
    """Its text, without docstring and examples, and its gradients."""
    items = (i for i in place.module.items if isinstance(i, nodes.RuleDef))
    item = next((i for i in items if i.name == rule.name), None)
    source, lines = rule.source, [f"rule {rule.name}"]
    if item is not None:
        source = place.module.source
        ends = (s.span.start for s in item.body)
        head = source.text[item.span.start : min(ends, default=item.span.end)]
        shown = (s for s in item.body if not isinstance(s, nodes.Example))
        lines = [head.partition('"""')[0].rstrip(), *(_line(source, s) for s in shown)]
    domain = [line.strip() for line in lines if line.strip().startswith("assume ")]
    on = [f"on the domain `{one.removeprefix('assume ')}`" for one in domain]
    return "\n\n".join([code("\n".join(lines)), *_gradients(rule), *on])


def _line(source: Source, statement: nodes.Statement) -> str:
    return f"    {source.slice(statement.span)}"


def _gradients(rule: CheckedRule, name: str = "") -> list[str]:
    """The gradients of a rule, or that of one input."""
    return [
        f"**{describe(one.verdict)}**{_method(one.verdict.method)}\n\n{code(one.formula)}"
        for one in rule.gradients
        if name in ("", one.input)
    ]


def _method(method: str) -> str:
    return f", by {method}" if method else ""


def _definitions(item: nodes.RuleDef, name: str) -> list[nodes.Statement]:
    return [s for s in item.body if isinstance(s, nodes.Assignment) and s.name == name]


def _built_in(name: str) -> str:
    if not is_function(name):
        return ""
    row = primitive(name)
    told = [f"**{name}**({', '.join(row.params)})"]
    if row.meaning:
        told.append(f"`{row.meaning}`")
    pairs = zip(row.params, row.partials, strict=False)
    told += [f"derivative by {p}: `{formula}`" for p, formula in pairs if formula]
    told += [f"on the domain `{row.domain}`"] if row.domain else []
    told += [f"no derivative where `{where}`: {why}" for where, why in row.kinks]
    return "\n\n".join(told)


def _text(place: Place, span: Span) -> str:
    return place.module.source.slice(span)


def code(text: str) -> str:
    """A text of rules in Markdown."""
    return f"```grad\n{text}\n```"
