"""Module → rules: every name, arity, index range, kind and type resolved; and the order
in which the files of a program are lowered."""

from __future__ import annotations

import ntpath
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeVar

from gradspec.diagnostics import Diagnostic, Outcome, error
from gradspec.ir.rule import Rule, companions
from gradspec.ir.walk import deep
from gradspec.lower.context import Findings, near, near_names
from gradspec.lower.foreign import derived_function, foreign_function
from gradspec.lower.module import (
    Extern,
    Failed,
    Function,
    Library,
    LoweredModule,
)
from gradspec.lower.rules import lower_function, lower_rule
from gradspec.primitives.foreign import ForeignFunction, operation
from gradspec.primitives.lookup import is_function
from gradspec.source import SHIPPED, Span
from gradspec.syntax import nodes

Definition = nodes.RuleDef | nodes.FunctionDef | nodes.ForeignDef
Items = dict[str, Rule | Function | Extern | Failed]


@deep()
def lower(
    module: nodes.Module,
    imports: Mapping[str, LoweredModule],
    offered: Mapping[str, str] = MappingProxyType({}),
) -> Outcome[LoweredModule]:
    """All sound rules and defs of a file, in the order written, and all its faults.

    ``imports`` holds the lowered files by resolved path. One that is not there is at
    fault (its reader has said so, or it is on a circle), and what needs it is left out.
    ``offered``: the files of rules that come with gradspec, by name, for suggestions.
    """
    findings = Findings(module.source)
    known = _import(module, imports, findings)
    imported = [i for i in known.values() if isinstance(i, Function | Extern)]
    definitions = _definitions(module, findings)
    _report_companions(definitions, findings)
    order, circles = arrange(definitions, lambda name: _needs(name, definitions))
    _report_circles(circles, definitions, findings)
    found = findings.diagnostics
    circular = {name for circle in circles for name in circle}
    known |= {name: Failed(name) for name in (*circular, *module.broken)}
    known |= _externs(definitions, order, known, findings)
    for name in order:
        if isinstance(definitions[name], nodes.ForeignDef):
            continue
        own = Findings(module.source)
        item = _lower(definitions[name], Library(known, name, offered), own)
        if name in circular:  # that one of them needs another is no news
            found += [d for d in own.diagnostics if d.is_error]
        else:
            known[name] = item or Failed(name)
            found += own.diagnostics
    items = [known[name] for name in definitions]
    lowered = LoweredModule(
        module.source,
        tuple(item for item in items if isinstance(item, Rule)),
        tuple(item for item in items if isinstance(item, Function)),
        tuple(item for item in items if isinstance(item, Extern)),
        tuple(imported),
        tuple(i.name for i in items if isinstance(i, Failed)) + module.broken,
    )
    return Outcome(lowered, _by_place(found))


def _lower(
    node: Definition, library: Library, findings: Findings
) -> Rule | Function | None:
    match node:
        case nodes.RuleDef():
            return lower_rule(node, library, findings)
        case nodes.FunctionDef():
            return lower_function(node, library, findings)
        case nodes.ForeignDef():
            return None


def _externs(
    definitions: Mapping[str, Definition],
    order: Iterable[str],
    known: Items,
    findings: Findings,
) -> Items:
    """The foreign functions of a file. Their derivatives may call one another, and defs:
    all are read with operations that say no derivatives, and then completed.
    """
    written = {n: d for n, d in definitions.items() if isinstance(d, nodes.ForeignDef)}
    if not written:
        return {}
    own = {name: foreign_function(node, findings) for name, node in written.items()}
    sound = {name: function for name, function in own.items() if function is not None}
    bare = {n: Extern(n, operation(n, sound)) for n in sound}
    visible: Items = {**known, **{n: Failed(n) for n in written}, **bare}
    for name in order:
        node = definitions[name]
        if isinstance(node, nodes.FunctionDef) and name not in visible:
            aside = Findings(findings.source)  # its faults are told when it is its turn
            called = lower_function(node, Library(visible, name), aside)
            visible[name] = called or Failed(name)
    whole: dict[str, ForeignFunction] = {}
    for name in sound:
        made = derived_function(written[name], sound, Library(visible, name), findings)
        if made is not None:
            whole |= {**made[1], name: made[0]}
    family = {**sound, **whole}
    return {
        name: Extern(name, operation(name, family)) if name in whole else Failed(name)
        for name in written
    }


def _by_place(found: list[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Diagnostics in the order of the text, whatever the order of work."""
    return tuple(sorted(found, key=lambda d: d.labels[0].span.start if d.labels else 0))


# --- definitions ---------------------------------------------------------------------


def _definitions(module: nodes.Module, findings: Findings) -> dict[str, Definition]:
    """Name → rule or def; a second one of the same name is reported and left out."""
    made: dict[str, Definition] = {}
    for item in module.items:
        if isinstance(item, nodes.Import):
            continue
        first = made.setdefault(item.name, item)
        if first is not item:
            help = "rename one of the two, or remove it"
            findings.twice("GS204", item, first.name_span, "defined", help)
    return made


def _report_companions(
    definitions: Mapping[str, Definition], findings: Findings
) -> None:
    """GS204 for a rule whose name, or a name of whose, belongs to another rule."""
    rules = {n: d for n, d in definitions.items() if isinstance(d, nodes.RuleDef)}
    owners = dict(rules)
    for rule in rules.values():
        is_learned = any(i.kind == "param" for i in rule.inputs)
        for name, what in companions(rule.name, is_learned).items():
            owner = owners.setdefault(name, rule)
            also = "" if owner.name == name else f", and of `{owner.name}`"
            if owner is not rule:
                findings.error(
                    "GS204",
                    f"`{name}` is {what} of `{rule.name}` in emitted modules{also}",
                    (rule if also else owner).name_span,
                    help="rename one of the two",
                )


def _needs(name: str, definitions: Mapping[str, Definition]) -> Iterator[str]:
    """The definitions that one calls; a built-in's name in itself is the built-in."""
    for call in _calls(definitions[name]):
        called = call.function
        if called in definitions and not (called == name and is_function(name)):
            yield called


def _calls(item: Definition) -> Iterator[nodes.Call]:
    for expr in _expressions(item):
        yield from (n for n in nodes.walk(expr) if isinstance(n, nodes.Call))


def _expressions(item: Definition) -> Iterator[nodes.Expr]:
    """The expressions of an item, in the order written."""
    if isinstance(item, nodes.ForeignDef):  # that they call each other is no circle
        return
    for part in (item,) if isinstance(item, nodes.FunctionDef) else item.body:
        match part:
            case nodes.Solve(start=start, condition=condition, value=value):
                yield from filter(None, (start, condition, value))
            case nodes.Assignment() | nodes.FunctionDef():
                yield part.value
            case nodes.Assume(conditions):
                yield from conditions


def _report_circles(
    circles: tuple[tuple[str, ...], ...],
    definitions: Mapping[str, Definition],
    findings: Findings,
) -> None:
    for circle in circles:
        path = " -> ".join((*circle, circle[0]))
        several = len(circle) > 1
        calls = _calls(definitions[circle[-1]])
        findings.error(
            "GS225",
            f"rules or defs call each other in a circle: {path}"
            if several
            else f"`{circle[0]}` calls itself",
            next(c.function_span for c in calls if c.function == circle[0]),
            label="this call closes the circle" if several else "",
            help="there is no recursion: write the formula out, or use a reduction",
        )


# --- imports -------------------------------------------------------------------------


def _import(
    module: nodes.Module, imports: Mapping[str, LoweredModule], findings: Findings
) -> Items:
    made: Items = {}
    places: dict[str, Span] = {}
    for item in module.items:
        if not isinstance(item, nodes.Import):
            continue
        origin = imports.get(resolve(module.source.path, item.path))
        for name in item.names:
            first = places.setdefault(name.id, name.span)
            if first is name.span:
                made[name.id] = _import_item(name, item, origin, findings)
            else:
                help = "remove one of the two"
                findings.twice("GS204", name, first, "imported", help)
    return made


def _import_item(
    name: nodes.Name,
    item: nodes.Import,
    origin: LoweredModule | None,
    findings: Findings,
) -> Rule | Function | Extern | Failed:
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
        meant=near_names(name.id, origin.names),
    )
    return Failed(name.id)


# --- files ----------------------------------------------------------------------------

K = TypeVar("K")


def resolve(importer: str, path: str) -> str:
    """The file that ``path``, written in ``importer``, means: ``a/b.grad`` and
    ``../c.grad`` give ``c.grad``. A shipped file may be named without ``.grad``.
    """
    if path.startswith(SHIPPED):
        return path if path.endswith(".grad") else f"{path}.grad"
    return posixpath.normpath(posixpath.join(posixpath.dirname(importer), path))


def is_absolute(path: str) -> bool:
    """True if ``path`` starts at a root or a drive: it would be another file on each
    machine.
    """
    return path.startswith("/") or ntpath.splitdrive(path)[0] != ""


def order(modules: Mapping[str, nodes.Module]) -> Outcome[tuple[str, ...]]:
    """The files, each after those that it imports (otherwise as given).

    Each circle is reported once; its files keep their place, so that their other faults
    are found too. Imports of files that are not in ``modules`` are passed over here.
    """

    def needs(path: str) -> Iterator[str]:
        return (target for _, target in _imports_of(path, modules))

    arranged, circles = arrange(modules, needs)
    return Outcome(arranged, tuple(_circle(circle, modules) for circle in circles))


def _imports_of(
    path: str, modules: Mapping[str, nodes.Module]
) -> Iterator[tuple[nodes.Import, str]]:
    for item in modules[path].items:
        if isinstance(item, nodes.Import):
            target = resolve(path, item.path)
            if target in modules:
                yield item, target


def _circle(circle: tuple[str, ...], modules: Mapping[str, nodes.Module]) -> Diagnostic:
    """The diagnostic for a cycle, from its first file in alphabetical order on."""
    start = circle.index(min(circle))
    circle = circle[start:] + circle[:start]
    last, first = circle[-1], circle[0]
    closing = next(i for i, target in _imports_of(last, modules) if target == first)
    return error(
        "GS220",
        "files import each other in a circle: " + " -> ".join((*circle, first)),
        modules[last].source,
        closing.path_span,
        label="this import closes the circle",
        help="move what the files share into one that imports none of them",
    )


def arrange(
    keys: Iterable[K], needs: Callable[[K], Iterable[K]]
) -> tuple[tuple[K, ...], tuple[tuple[K, ...], ...]]:
    """All keys, each after what it needs (otherwise in the order given), and the
    circles met on the way, each as the keys along it.

    Depth-first with its own stack: a chain may be longer than Python's.
    """
    done: dict[K, None] = {}
    circles: list[tuple[K, ...]] = []
    for start in keys:
        trail = {} if start in done else {start: iter(needs(start))}
        while trail:
            key = next(reversed(trail))
            for need in trail[key]:
                if need in trail:
                    along = tuple(trail)
                    circles.append(along[along.index(need) :])
                elif need not in done:
                    trail[need] = iter(needs(need))
                    break
            else:
                del trail[key]
                done[key] = None
    return tuple(done), tuple(circles)
