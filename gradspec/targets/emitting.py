"""Emission of a module: choice of target, unsupported rules, the frame of the text."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256

from gradspec.diagnostics import Diagnostic, Outcome, error, warning
from gradspec.ir.expr import spoken
from gradspec.ir.rule import companions
from gradspec.plan.arrays import Expr
from gradspec.plan.cost import cost_summary
from gradspec.plan.operations import missing
from gradspec.plan.plan import ModulePlan, RulePlan
from gradspec.plan.program import Operators, program
from gradspec.targets import target_named
from gradspec.targets.layout import WIDTH, statement
from gradspec.targets.lines import Lines
from gradspec.targets.target import MARK, Definition, Emitted, Page


def emit(
    plan: ModulePlan, name: str, *, trace: bool = False, costs: bool = False
) -> Outcome[Emitted]:
    """ModulePlan → Emitted. With ``trace`` the module prints its values, with ``costs``
    it comes with the cost summaries of its rules.

    A rule that the target does not support (GS501), or that has a name reserved by the
    emitted text (GS503), is an error and is left out; one that cannot be emitted yet is
    a warning (GS502). ValueError when there is no such target.
    """
    target = target_named(name)
    found: list[Diagnostic] = [*_unplanned_warnings(plan)]
    rules: list[RulePlan] = []
    for rule in plan.rules:
        faults = tuple(_faults(rule, name, target.OPERATORS))
        found += faults
        rules += [] if faults else [rule]
    programs = [program(rule, target.OPERATORS, name) for rule in rules]
    if not programs:
        return Outcome(None, tuple(found))
    names = {p.name for p in programs}.union(*(p.variables for p in programs))
    for p in programs:
        names |= {*companions(p.name, any(i.is_param for i in p.inputs))}
    page = Page(plan.path, names)
    domains = {p.domain for p in programs}
    definitions = [
        Definition(d.lines) if p.name in domains else d
        for p in programs
        for d in target.definitions(p, page, trace=trace)
        if p.name not in domains or d.public in ((), (p.name,))
    ]
    module = Emitted(
        name,
        plan.path,
        module_text(plan, page, definitions, target.MODULES),
        page.runtime,
        tuple(map(cost_summary, programs, rules)) if costs else (),
    )
    return Outcome(module, tuple(found))


def _faults(rule: RulePlan, target: str, operators: Operators) -> Iterable[Diagnostic]:
    yield from _collisions(rule, target, operators.reserved)
    for op, reason in missing([*_expressions(rule)], operators.spellings, target):
        yield error(
            "GS501",
            f"{rule.name} needs {spoken(op)}, which {target} does not have: {reason}",
            rule.source,
            rule.span,
            help=f"write it with functions that {target} has, or leave {target} out of"
            " --target for this file",
        )


def _collisions(
    plan: RulePlan, target: str, reserved: frozenset[str]
) -> Iterator[Diagnostic]:
    """GS503 for a rule, or an input of it, whose name the emitted text needs: it is
    public and cannot be renamed.
    """
    others = {i.name for i in plan.inputs}
    if plan.name in reserved:
        yield _name_in_use(plan, f"the rule {plan.name}", plan.name, target)
    for i in plan.inputs:
        if i.name in reserved:
            yield _name_in_use(
                plan, f"the input {i.name} of {plan.name}", i.name, target
            )
        elif i.name.removesuffix("_dot") in others - {i.name}:
            yield error(
                "GS503",
                f"{plan.name} has inputs {i.name.removesuffix('_dot')} and {i.name}",
                plan.source,
                plan.span,
                label=f"{i.name} is the name of the other's tangent in emitted modules",
                help="give the input another name",
            )


def _name_in_use(plan: RulePlan, what: str, name: str, target: str) -> Diagnostic:
    return error(
        "GS503",
        f"{what} cannot be emitted for {target}: modules use the name {name} themselves",
        plan.source,
        plan.span,
        help=f"give it another name, or leave {target} out of --target for this file",
    )


def _expressions(rule: RulePlan) -> Iterable[Expr]:
    yield from (let.value for let in (*rule.constants, *rule.forward))
    yield from (gradient.whole for gradient in rule.gradients if gradient)


def _unplanned_warnings(plan: ModulePlan) -> Iterable[Diagnostic]:
    for unplanned in plan.unplanned:
        yield warning(
            "GS502",
            f"{unplanned.rule} is checked but not emitted: {unplanned.reason}",
            unplanned.source,
            unplanned.span,
            help="`gradspec explain GS502` tells what cannot be emitted yet",
        )


# --- the frame of a module -------------------------------------------------------------
#
# Header, imports, ``__all__``, definitions.


_TEXT = ('"""', 'r"""', "#")
"""Beginnings of docstrings and comments."""

_MATH = {"math": "import math"}
"""For Python numbers, on every target."""


_MODULE = re.compile(r"(?<![\w.\"])(\w+)\.(?=[A-Za-z])")
"""The name of a module, before that of its function."""


def module_text(
    plan: ModulePlan,
    page: Page,
    definitions: Sequence[Definition],
    modules: Mapping[str, str],
) -> str:
    """The whole text, of lines of at most 88 columns."""
    assignments = page.assignments
    lines = [line for d in definitions for line in d.lines]
    code = "\n".join(line for line in lines if not line.lstrip().startswith(_TEXT))
    used = {*_MODULE.findall(code)}
    wanted = [line for name, line in {**modules, **_MATH}.items() if name in used]
    names = sorted((n for d in definitions for n in d.public), key=_public_key)
    public = ", ".join(f'"{name}"' for name in names)
    parts = [
        _header(plan),
        "from __future__ import annotations",
        *_import_groups([*wanted, *page.imports], page.relative),
        statement(f"__all__ = [{public}]"),
        *(["\n".join(map(statement, assignments))] if assignments else []),
    ]
    texts = [laid_out(d.lines) for d in definitions]
    return "\n\n".join(parts) + "".join(f"\n\n\n{text}" for text in texts) + "\n"


def _header(plan: ModulePlan) -> str:
    """The head of a module: generator and source file. The version of gradspec stands in
    the runtime alone, so that an upgrade leaves modules as they are."""
    digest = sha256(plan.source.text.encode()).hexdigest()[:16]
    return (
        f"{MARK} from {plan.origin} (SHA-256 {digest}).\n"
        f"# Do not edit: change {plan.origin} and compile it again."
    )


def laid_out(lines: Lines) -> str:
    """Logical lines as text. A docstring is a single entry with line ends, and stays as
    it is.
    """
    return "\n".join(map(_laid_out, lines))


def _laid_out(line: str) -> str:
    text = line.lstrip(" ")
    if not text or text.startswith(_TEXT[:2]):
        return line
    return statement(text, (len(line) - len(text)) // 4)


def _import_groups(absolute: Lines, relative: Iterable[str]) -> Lines:
    """The standard library, the framework, the runtime."""
    lines = sorted(absolute, key=_import_key)
    groups = [
        [line for line in lines if _is_standard(line)],
        [line for line in lines if not _is_standard(line)],
        [*relative],
    ]
    return ["\n".join(map(_import, group)) for group in groups if group]


def _import(line: str) -> str:
    """An import; one that is too long has one name per line."""
    if len(line) <= WIDTH:
        return line
    head, _, names = line.partition(" import ")
    rows = "".join(f"    {name},\n" for name in names.split(", "))
    return f"{head} import (\n{rows})"


def _public_key(name: str) -> tuple[bool, str]:
    """Classes before functions, each by name."""
    return not name[:1].isupper(), name


def _is_standard(line: str) -> bool:
    return line.split()[1].split(".", maxsplit=1)[0] in sys.stdlib_module_names


def _import_key(line: str) -> tuple[bool, str]:
    """Plain imports before ``from`` imports, each by name."""
    return line.startswith("from"), line.split()[1]
