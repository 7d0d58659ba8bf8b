"""Findings of `lift` as text, JSON, GitHub's commands and SARIF, and scripts that repeat a
refutation with the framework's own check.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import PurePosixPath
from typing import Any

from gradspec.lift.lifting import Finding, Report
from gradspec.lift.verdicts import NOT_LIFTED
from gradspec.report.diagnostics import escape_data, escape_property, printable
from gradspec.report.sarif import sarif_log
from gradspec.report.streams import align_columns
from gradspec.version import __version__

_LOUD = {"refuted": "REFUTED", "broken": "BROKEN"}
_COUNTED = {
    "proved": "proved",
    "agrees": "agreeing",
    "refuted": "refuted",
    "broken": "broken",
    "surrogate": "surrogate",
    "guard": "guard",
    "needs": "conditional",
    NOT_LIFTED: "not lifted",
}
_DO = {
    "kernel": "call kernels",
    "communication": "communicate",
    "loop": "loop",
    "random": "are random",
    "autograd": "differentiate in the backward",
    "reshape": "rearrange elements",
    "indexing": "use parts of arrays",
    "import": "use other modules",
    "function": "use functions without a counterpart",
    "shape": "have shapes that are open",
    "gradient shape": "return gradients of another shape",
    "callback": "call what they are given",
    "branch": "branch on elements",
}
_CODES = {"refuted": "GS401", "broken": "GS760"}
_TITLES = {
    "refuted": "a hand-written gradient is not the derivative",
    "broken": "a hand-written gradient cannot run",
}


def text(report: Report, why: bool, with_assumptions: bool, seconds: float) -> str:
    """A line for each site, one for all of a file that are not lifted, and the totals."""
    rows: list[tuple[str, ...]] = []
    for _, group in groupby(report.findings, key=lambda f: f.file):
        found = tuple(group)
        left = [f for f in found if f.verdict == NOT_LIFTED]
        for one in found:
            if one.verdict != NOT_LIFTED or why or len(left) == 1:
                rows += _rows(one, with_assumptions)
        if len(left) > 1 and not why:
            told = f"{_reasons(left)} (--why lists them)"
            rows.append((left[0].file, f"{len(left)} sites", NOT_LIFTED, told))
    lines = align_columns(rows).splitlines() if rows else []
    lines += [f"{name}: {reason}; not read" for name, reason in report.unread]
    return "\n".join(
        printable(line.rstrip()) for line in (*lines, "", *_closing(report, seconds))
    )


def _rows(one: Finding, with_assumptions: bool) -> Iterator[tuple[str, ...]]:
    word = _LOUD.get(one.verdict, one.verdict)
    place = PurePosixPath(one.file).name
    at = f"  ({place}:{one.place})" if one.place else ""
    lines = [one.reason, *one.detail]
    lines[min(1, len(lines) - 1)] += at
    yield f"{one.file}:{one.line}", one.name, word, lines[0]
    for line in lines[1:]:
        yield "", "", "", line
    if with_assumptions and one.assumptions:
        yield "", "", "", f"assuming: {'; '.join(one.assumptions)}"


def _reasons(found: list[Finding]) -> str:
    kinds = Counter(_DO.get(f.kind, "are not read") for f in found)
    return ", ".join(f"{n} {what}" for what, n in kinds.most_common())


def _closing(report: Report, seconds: float) -> Iterator[str]:
    found = report.findings
    if not found:
        yield f"no hand-written gradient in {_quantity(report.files, 'file')}"
        return
    counts = Counter(f.verdict for f in found)
    told = [
        f"{counts[v]} {w}{'s' if w in ('surrogate', 'guard') and counts[v] > 1 else ''}"
        for v, w in _COUNTED.items()
        if counts[v]
    ]
    yield f"{_quantity(len(found), 'site')}: {', '.join(told)}  ({seconds:.0f} s)"
    if counts[NOT_LIFTED] == len(found):
        yield "Nothing could be lifted: these gradients are no formulas that a file fixes."
    elif any(f.assumptions for f in found):
        yield "Assumed: arrays of one shape where nothing else is said (--assumptions)"


def _quantity(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


# --- for machines -----------------------------------------------------------------------


def document(report: Report) -> str:
    """A list with one object for each site."""
    return json.dumps([_data(f) for f in report.findings], indent=2)


def _data(one: Finding) -> dict[str, Any]:
    return {
        "file": one.file,
        "line": one.line,
        "name": one.name,
        "framework": one.framework,
        "verdict": one.verdict,
        "paths": [
            {"when": list(p.when), "verdict": p.verdict, "reason": p.reason}
            for p in one.paths
        ],
        "assumptions": list(one.assumptions),
        "reason": _whole_reason(one),
        "rule": one.rule,
    }


def _whole_reason(one: Finding) -> str:
    at = f" (line {one.place})" if one.place else ""
    return "; ".join((one.reason, *one.detail)) + at


def github(report: Report) -> Iterator[str]:
    """Errors for findings, notices for guards."""
    for one in report.findings:
        if one.is_finding or one.verdict == "guard":
            level = "error" if one.is_finding else "notice"
            title = escape_property(_TITLES.get(one.verdict, "equal but for a guard"))
            place = f"file={escape_property(one.file)},line={one.place or one.line}"
            message = escape_data(f"{one.name}: {_whole_reason(one)}")
            yield f"::{level} {place},title={title}::{message}"


def sarif(report: Report) -> str:
    """A log of SARIF 2.1.0, whose results are the findings."""
    rules = [
        {"id": _CODES[v], "shortDescription": {"text": _TITLES[v]}} for v in _CODES
    ]
    results = [
        {
            "ruleId": _CODES[one.verdict],
            "level": "error",
            "message": {"text": f"{one.name}: {_whole_reason(one)}"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": one.file},
                        "region": {"startLine": one.place or one.line},
                    }
                }
            ],
        }
        for one in report.findings
        if one.is_finding
    ]
    return sarif_log("gradspec lift", rules, results)


# --- files ------------------------------------------------------------------------------


def rule_files(report: Report) -> Iterator[tuple[str, str]]:
    """A `.grad` file for each Python file with lifted sites: its path and its text."""
    for file, group in groupby(report.findings, key=lambda f: f.file):
        rules = [f.rule.rstrip("\n") for f in group if f.rule]
        if rules:
            head = f"# Lifted from {file} by gradspec {__version__}\n\n"
            yield (
                f"{_inside(file).removesuffix('.py')}.grad",
                head + "\n\n".join(rules) + "\n",
            )


def _inside(file: str) -> str:
    parts = PurePosixPath(file).parts
    return "/".join(p for p in parts if p not in ("/", "..") and ":" not in p)


def scripts(findings: Iterable[Finding]) -> Iterator[tuple[str, str]]:
    """A script for each refuted site, which the user may run: its name and its text."""
    for one in findings:
        if one.verdict == "refuted":
            stem = PurePosixPath(one.file).stem
            yield f"repro_{stem}_{one.name}.py", _script(one)


def _script(one: Finding) -> str:
    path = PurePosixPath(one.file)
    point = dict(_AT_POINT.findall(one.point))
    rows = [
        (i[0], i[2], _argument(one.framework, *i, point.get(i[0], "")))
        for i in one.inputs
    ]
    is_torch = one.framework == "torch"  # its check takes any input
    varied = [row for row in rows if is_torch or not row[1]]
    given = "".join(f"{text}, " for *_, text in varied)
    called = f"{one.name}.apply" if is_torch else one.name
    if len(varied) < len(rows):
        values = (text if kind else name for name, kind, text in rows)
        names = ", ".join(name for name, *_ in varied)
        called = f"lambda {names}: {one.name}({', '.join(values)})"
    lines = [
        f"# {printable(one.name)}, {printable(one.file)}:{one.line}: {printable(one.reason)}",
        "import sys",
        f"sys.path.insert(0, {path.parent.as_posix()!r})",
        *_IMPORTS[one.framework],
        f"from {path.stem} import {one.name}  # it may need another import",
        f"given = ({given.rstrip() if len(varied) == 1 else given[:-2]})",
        _CHECKS[one.framework].format(called),
    ]
    return "\n".join(lines) + "\n"


_IMPORTS = {
    "torch": ("import torch",),
    "tf": ("import numpy as np", "import tensorflow as tf"),
    "jax": ("import numpy as np", "from jax.test_util import check_grads"),
}
_CHECKS = {
    "torch": "torch.autograd.gradcheck({}, given)",
    "tf": "for own, differences in zip(*tf.test.compute_gradient({}, given)):\n"
    "    np.testing.assert_allclose(own, differences, rtol=2e-3, atol=2e-3)",
    "jax": "check_grads({}, given, order=1, modes=['rev'])",
}


_AT_POINT = re.compile(r"(\w+) = ([-+\d.e\[][-+\d.e\[\], ]*)(?=, \w+ = |$)")
"""Names and values of a counterexample: numbers, or rows of them."""


def _argument(
    framework: str, name: str, axes: int, kind: str, default: str, value: str
) -> str:
    """The value at the counterexample; what plays no part in it is any other."""
    if kind == "number":
        return value or default or "2.0"
    asked = "" if kind else ", requires_grad=True"
    if value and framework == "torch":
        return f"torch.tensor({value}, dtype=torch.float64{asked})"
    if value:
        return f"np.array({value}, 'float32')"
    sizes = ", ".join(["3"] * max(axes, 1))
    if framework == "torch":
        return f"torch.randn({sizes}, dtype=torch.float64{asked})"
    return f"np.random.standard_normal(({sizes},)).astype('float32')"
