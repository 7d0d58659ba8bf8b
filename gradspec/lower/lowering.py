"""Module → rules: every name, arity, index range, kind and type resolved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gradspec.diagnostics import Diagnostic, Outcome
from gradspec.ir.depth import deep
from gradspec.ir.rule import Rule
from gradspec.lower.findings import Findings, near
from gradspec.lower.functions import lower_function
from gradspec.lower.imports import resolve
from gradspec.lower.library import Failed, Library, is_function
from gradspec.lower.module import Function, LoweredModule
from gradspec.lower.ordering import arrange
from gradspec.lower.rules import lower_rule
from gradspec.lower.tree import called, expressions
from gradspec.source import Span
from gradspec.syntax import nodes

Definition = nodes.RuleDef | nodes.FunctionDef


def lower(
    module: nodes.Module, imports: Mapping[str, LoweredModule]
) -> Outcome[LoweredModule]:
    """All sound rules and defs of a file, in the order written, and all its faults.

    ``imports`` holds the lowered files by resolved path. One that is not there is at
    fault (its reader has said so, or it is on a circle), and what needs it is left out.
    """
    with deep():
        return _lower_module(module, imports)


def _lower_module(
    module: nodes.Module, imports: Mapping[str, LoweredModule]
) -> Outcome[LoweredModule]:
    findings = Findings(module.source)
    imported = _import(module, imports, findings)
    definitions = _definitions(module, findings)
    order, circles = _arrange(definitions)
    found = findings.diagnostics + _circles(circles, definitions, module)
    circular = dict.fromkeys(name for circle in circles for name in circle)
    own: dict[str, Rule | Function | Failed] = {
        name: Failed(name) for name in (*circular, *module.broken)
    }
    for name in order:
        own_findings = Findings(module.source)
        library = Library(own, imported, name)
        item = _lower(definitions[name], library, own_findings)
        if name in circular:
            found += _without_notes(own_findings)
        else:
            own[name] = item or Failed(name)
            found += own_findings.diagnostics
    found += _lower_again(module, definitions, own, imported)
    return Outcome(_collect(module, definitions, own, imported), _by_place(found))


def _lower(
    node: Definition, library: Library, findings: Findings
) -> Rule | Function | None:
    match node:
        case nodes.RuleDef():
            return lower_rule(node, library, findings)
        case nodes.FunctionDef():
            return lower_function(node, library, findings)


def _without_notes(findings: Findings) -> list[Diagnostic]:
    """Diagnostics without notes that one item on a cycle needs another."""
    return [d for d in findings.diagnostics if d.is_error]


def _collect(
    module: nodes.Module,
    definitions: Mapping[str, Definition],
    own: Mapping[str, Rule | Function | Failed],
    imported: Mapping[str, Rule | Function | Failed],
) -> LoweredModule:
    items = [own[name] for name in definitions]
    return LoweredModule(
        module.source,
        tuple(item for item in items if isinstance(item, Rule)),
        tuple(item for item in items if isinstance(item, Function)),
        tuple(item for item in imported.values() if isinstance(item, Function)),
        tuple(i.name for i in items if isinstance(i, Failed)) + module.broken,
    )


def _by_place(found: list[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Diagnostics in the order of the text, whatever the order of work."""
    return tuple(sorted(found, key=lambda d: d.labels[0].span.start if d.labels else 0))


# --- definitions ---------------------------------------------------------------------


def _definitions(module: nodes.Module, findings: Findings) -> dict[str, Definition]:
    """Name → rule or def; a second one of the same name is reported."""
    made: dict[str, Definition] = {}
    for item in module.items:
        if isinstance(item, nodes.Import):
            continue
        first = made.setdefault(item.name, item)
        if first is not item:
            findings.error(
                "GS204",
                f"`{item.name}` is defined twice",
                item.name_span,
                label="defined here again",
                also=(findings.place(first.name_span, "first defined here"),),
                help="rename one of the two, or remove it",
            )
    return made


def _lower_again(
    module: nodes.Module,
    definitions: Mapping[str, Definition],
    own: Mapping[str, Rule | Function | Failed],
    imported: Mapping[str, Rule | Function | Failed],
) -> list[Diagnostic]:
    """Diagnostics inside definitions that repeat a name."""
    found: list[Diagnostic] = []
    for item in module.items:
        if isinstance(item, nodes.Import) or definitions[item.name] is item:
            continue
        findings = Findings(module.source)
        _lower(item, Library(own, imported, item.name), findings)
        found += _without_notes(findings)
    return found


def _arrange(
    definitions: Mapping[str, Definition],
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    def needs(name: str) -> Iterator[str]:
        for function in called(definitions[name]):
            its_own = function == name
            if function in definitions and not (its_own and is_function(name)):
                yield function

    return arrange(definitions, needs)


def _circles(
    circles: tuple[tuple[str, ...], ...],
    definitions: Mapping[str, Definition],
    module: nodes.Module,
) -> list[Diagnostic]:
    findings = Findings(module.source)
    for circle in circles:
        path = " -> ".join((*circle, circle[0]))
        several = len(circle) > 1
        findings.error(
            "GS225",
            f"rules or defs call each other in a circle: {path}"
            if several
            else f"`{circle[0]}` calls itself",
            _call_of(circle[-1], circle[0], definitions),
            label="this call closes the circle" if several else "",
            help="there is no recursion: write the formula out, or use a reduction",
        )
    return findings.diagnostics


def _call_of(caller: str, callee: str, definitions: Mapping[str, Definition]) -> Span:
    calls = (n for e in expressions(definitions[caller]) for n in nodes.walk(e))
    return next(
        n.function_span
        for n in calls
        if isinstance(n, nodes.Call) and n.function == callee
    )


# --- imports -------------------------------------------------------------------------


def _import(
    module: nodes.Module, imports: Mapping[str, LoweredModule], findings: Findings
) -> dict[str, Rule | Function | Failed]:
    made: dict[str, Rule | Function | Failed] = {}
    places: dict[str, Span] = {}
    for item in module.items:
        if not isinstance(item, nodes.Import):
            continue
        origin = imports.get(resolve(module.source.path, item.path))
        if resolve(module.source.path, item.path) == module.source.path:
            origin = _itself(module)
        for name in item.names:
            first = places.setdefault(name.id, name.span)
            if first is name.span:
                made[name.id] = _imported(name, item, origin, findings)
            else:
                _imported_twice(name, first, findings)
    return made


def _itself(module: nodes.Module) -> LoweredModule:
    """A stand-in for a file that imports itself, with its names."""
    names = (i.name for i in module.items if not isinstance(i, nodes.Import))
    return LoweredModule(module.source, failed=(*names, *module.broken))


def _imported(
    name: nodes.Name,
    item: nodes.Import,
    origin: LoweredModule | None,
    findings: Findings,
) -> Rule | Function | Failed:
    if origin is None or name.id in origin.failed:
        return Failed(name.id)
    found = origin.find(name.id)
    if found is not None:
        return found
    listed = ", ".join(f"`{n}`" for n in origin.names[:8]) or "nothing"
    findings.error(
        "GS221",
        f'"{item.path}" has no rule or def `{name.id}`',
        name.span,
        help=near(name.id, origin.names) or f"it defines {listed}",
    )
    return Failed(name.id)


def _imported_twice(name: nodes.Name, first: Span, findings: Findings) -> None:
    findings.error(
        "GS204",
        f"`{name.id}` is imported twice",
        name.span,
        label="imported here again",
        also=(findings.place(first, "first imported here"),),
        help="remove one of the two",
    )
