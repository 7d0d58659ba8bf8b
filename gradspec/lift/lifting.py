"""Files to findings: every site once, with one verdict and one reason."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from gradspec.ir.expr import show
from gradspec.ir.walk import deep
from gradspec.lift import judging, of_torch
from gradspec.lift.expressions import STEPS
from gradspec.lift.names import is_free
from gradspec.lift.paths import Paths, lift_site, sites_of
from gradspec.lift.project import MARKERS, File, Project, Unreadable, read
from gradspec.lift.reading import Lifted, Site, Variable
from gradspec.lift.rules import Form, Writer, laid_out, rule_text
from gradspec.lift.values import CannotLift, IsBroken
from gradspec.lift.verdicts import FINDINGS, NOT_LIFTED, PERHAPS, Judge, Judged
from gradspec.symbolic.limit import Effort

_MOST_TRIED = 3
"""Further hypotheses about ranks under which a refutation has to hold."""

_ORDER = [
    "proved",
    "agrees",
    "guard",
    NOT_LIFTED,
    "surrogate",
    "needs",
    "refuted",
    "broken",
]
"""Verdicts on paths: that of a site is the last of them in this order."""

_PURPOSE = re.compile(r"#\s*gradspec:\s*on purpose,?\s*because\s+(.+?)\s*$")
LARGEST = 4000
"""Characters of a rule beyond which it is not judged."""


@dataclass(frozen=True)
class PathFinding:
    """The verdict on one path, under its conditions."""

    when: tuple[str, ...]
    verdict: str
    reason: str


@dataclass(frozen=True)
class Finding:
    """The verdict on one site. ``kind`` is that of what is not lifted; ``rule`` is the
    text of its rules, ``detail`` are further lines about a refutation, and ``place`` is
    the line of Python that the reason is about."""

    file: str
    line: int
    name: str
    framework: str
    verdict: str
    reason: str
    kind: str = ""
    place: int | None = None
    paths: tuple[PathFinding, ...] = ()
    assumptions: tuple[str, ...] = ()
    rule: str = ""
    detail: tuple[str, ...] = ()
    inputs: tuple[tuple[str, int, str, str], ...] = ()
    """The inputs of a refuted rule: name, number of axes, "number" or "constant" if it
    takes no gradient, default."""
    point: str = ""
    """The counterexample of a refuted rule, as it is shown."""

    @property
    def is_finding(self) -> bool:
        return self.verdict in FINDINGS


@dataclass(frozen=True)
class Report:
    """All findings, and the files that could not be read, each with a reason."""

    findings: tuple[Finding, ...]
    unread: tuple[tuple[str, str], ...]
    files: int


@deep()
def lift(
    paths: Sequence[str],
    with_tests: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """The findings of all Python files below paths."""
    project = Project(paths)
    findings: list[Finding] = []
    unread: list[tuple[str, str]] = []
    files = [f for f in project.files if with_tests or not f.is_test]
    for file in files:
        try:
            text = read(file.path)
            if not MARKERS.search(text):
                continue
            module = project.module(file, text)
        except Unreadable as fault:
            unread.append((file.shown, str(fault)))
            continue
        progress(file.shown)
        taken: set[str] = set()
        for site in sites_of(module, project):
            project.effort = Effort(STEPS)
            findings.append(_finding(site, project, file, taken))
    return Report(tuple(findings), tuple(unread), len(files))


def _finding(site: Site, project: Project, file: File, taken: set[str]) -> Finding:
    start = Finding(file.shown, site.line, site.name, site.framework, NOT_LIFTED, "")
    name = _rule_name(site, taken)
    try:
        found = _verdict_on(site, project, name, start)
    except IsBroken as fault:
        found = replace(start, verdict="broken", reason=fault.text, place=fault.line)
    except CannotLift as fault:
        reason = f"{fault.kind}: {fault.text}"
        found = replace(start, reason=reason, kind=fault.kind, place=fault.line)
        try:
            if site.framework == "torch":
                of_torch.check_structure(site)
        except IsBroken as broken:
            found = replace(
                start, verdict="broken", reason=broken.text, place=broken.line
            )
    purpose = _purpose(site)
    if purpose and found.is_finding:
        told = f"on purpose, because {purpose}"
        return replace(found, verdict="surrogate", reason=told, detail=(), place=None)
    return found


def _verdict_on(site: Site, project: Project, name: str, start: Finding) -> Finding:
    """The verdict under the first hypothesis about ranks, unless one that is as likely
    denies a refutation."""
    hypotheses = lift_site(site, project)
    paths = next(hypotheses)
    found = _of_paths(paths, name, start)
    if found.verdict != "refuted" or paths.ranks.is_plain:
        return found
    least = [rank for _, rank in paths.ranks.ranks]
    others = (
        one
        for one in hypotheses
        if all(
            (r > 0) == (k > 0)
            for (_, r), k in zip(one.ranks.ranks, least, strict=False)
        )
    )
    for other in islice(others, _MOST_TRIED):
        again = _of_paths(other, name, start)
        is_weak = again.reason.endswith(PERHAPS)  # small sizes may be flat
        if again.verdict not in ("refuted", NOT_LIFTED) and not is_weak:
            told = f"{'; '.join(_ranks(other.lifted[0]))}; then: {again.reason}"
            verdict = (
                "needs" if again.verdict in ("proved", "agrees") else again.verdict
            )
            return replace(again, verdict=verdict, reason=told)
    return found


def _kind(variable: Variable, rule: Lifted) -> str:
    if variable.is_static:
        return "number"
    return "constant" if rule.gradients.get(variable.name) is None else ""


def _of_paths(paths: Paths, name: str, start: Finding) -> Finding:
    done: list[tuple[Lifted, Judged]] = []
    for rule in paths.lifted:
        if len(rule_text(rule, name)) > LARGEST:
            raise CannotLift("language", "a rule that is too large")
        done.append((rule, Judge(rule, name).verdict()))
    several = len(done) > 1
    findings = tuple(
        PathFinding(_conditions(rule), one.verdict, one.reason) for rule, one in done
    )
    rule, worst = max(done, key=lambda pair: _ORDER.index(pair[1].verdict))
    reason = worst.reason
    if several and any(one.verdict != worst.verdict for _, one in done):
        reason += f" (where {' and '.join(_conditions(rule))})"
    for note in rule.notes:
        reason += f"; {note}"
    assumptions = tuple(dict.fromkeys(a for r, _ in done for a in _assumptions(r)))
    texts = []
    for k, (one, judged) in enumerate(done):
        own = name if not several else f"{name}_{_suffix(_conditions(one), k)}"
        texts.append(_rule_to_write(one, judged, own, start))
    shown = tuple(
        (
            v.name,
            len(v.axes),
            _kind(v, rule),
            "" if v.default is None else str(float(v.default)),
        )
        for v in rule.inputs
    )
    return replace(
        start,
        verdict=worst.verdict,
        reason=reason,
        kind="domain" if worst.verdict == NOT_LIFTED else "",
        place=worst.line,
        paths=findings,
        assumptions=assumptions,
        rule="\n".join(texts),
        detail=worst.detail,
        inputs=shown,
        point=worst.point,
    )


# --- what is assumed ------------------------------------------------------------------


def _conditions(rule: Lifted) -> tuple[str, ...]:
    return (*rule.decisions, *(show(c) for c in rule.conditions))


def _ranks(rule: Lifted) -> Iterator[str]:
    for variable in rule.inputs:
        if not variable.is_static and not variable.is_open:
            count = len(variable.axes)
            yield f"`{variable.name}` has {count} ax{'i' if count == 1 else 'e'}s"
    for name in rule.squares:
        yield f"`{name}` is square"


def _assumptions(rule: Lifted) -> Iterator[str]:
    arrays = [v for v in rule.inputs if not v.is_static]
    if len(arrays) > 1 and rule.ranks.is_plain:
        yield "arrays of one shape"
    yield from _ranks(rule)
    yield from rule.axes_chosen
    for variable in rule.inputs:
        if variable.is_static and variable.default is None:
            yield f"`{variable.name}` is a number"


# --- the rules that are written -----------------------------------------------------------


def _rule_to_write(rule: Lifted, judged: Judged, name: str, start: Finding) -> str:
    """The rule as `--out` gives it: it compiles as it is. A refuted one has the derived
    gradient, and the declared one as a comment."""
    origin = f"From `{start.name}`, {start.file}:{start.line}"
    assumed = "; ".join(_assumptions(rule))
    doc = f"{origin}. Assumes: {assumed}." if assumed else f"{origin}."
    doc = doc.replace("\\", "/").replace('"', "'")
    if judged.verdict != "refuted":
        form = replace(judged.form, doc=doc)
        if judged.verdict in ("needs", "agrees") and judging.check(
            rule_text(rule, name, form)
        ).of("refuted"):
            form = Form(doc=doc, reason=judged.verdict)
        return laid_out(rule_text(rule, name, form))
    whole = Writer(rule, name, Form()).text()
    text = rule_text(rule, name, Form(doc=doc, is_derived=True))
    stated = [
        line for line in whole.splitlines() if re.match(r"    d\w+(\[|\s=)", line)
    ]
    mine = [line for line in stated if line not in text]
    comments = "".join(f"    # declared: {line.strip()}\n" for line in mine)
    derived = f"    {judged.fix}\n" if judged.fix else ""
    whole = text.rstrip("\n") + "\n" + derived
    if not derived or judging.rule_of(whole)[0] is None:
        whole = text
    return laid_out(whole.rstrip("\n") + "\n" + comments)


_ENDINGS = re.compile(r"(_?(Function|Func|Fn|Op|Autograd))+$")


def _rule_name(site: Site, taken: set[str]) -> str:
    """`bump` of `Bump`, `_bump`, `BumpFn`; the enclosing function is added where two have
    one name."""
    bare = _ENDINGS.sub("", site.name.strip("_")) or site.name.strip("_")
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", bare).lower()
    name = re.sub(r"\W", "_", name).strip("_") or "rule_of_it"
    if not is_free(name):
        name = f"{name}_rule"
    base = name
    for node in reversed(site.around):
        if name in taken and isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = f"{node.name.strip('_').lower()}_{base}"
    number = 2
    while name in taken:
        name, number = f"{base}_{number}", number + 1
    taken.add(name)
    return name


def _suffix(conditions: tuple[str, ...], number: int) -> str:
    told = "_and_".join(
        c.replace("is true", "").replace("is not true", "is not") for c in conditions
    )
    words = re.sub(r"\W+", "_", told).strip("_")
    return f"when_{words}" if 0 < len(words) <= 40 else f"path_{number + 1}"


def _purpose(site: Site) -> str:
    """The reason of a baseline comment on the first lines of a site."""
    lines = site.module.text.splitlines()
    decorators = [d.lineno for d in site.node.decorator_list]
    first = min([site.line, *decorators])
    for line in lines[first - 1 : site.line]:
        found = _PURPOSE.search(line)
        if found:
            return found[1]
    return ""
