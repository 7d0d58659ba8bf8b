"""Jobs that emitted modules are given in a framework, each done in a process of its own.

A job has a kind, the name of the module of ``frameworks/`` that does it: ``trial``,
``conformance`` or ``audit``. It has modules by their paths, and of each the cases of
its rules: plain data for JSON that says how a rule is called (`calls.signature`), and
what is to come out.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradspec.diagnostics import Diagnostic, Outcome
from gradspec.driver import cache
from gradspec.driver.cache import FileResult, put
from gradspec.driver.discover import Entry, read_entry
from gradspec.driver.run import gather_outcomes, run_within_budget
from gradspec.ir.plain import use_shelf
from gradspec.measure import runners
from gradspec.options import Options
from gradspec.source import Source
from gradspec.targets.target import Emitted

if TYPE_CHECKING:
    from gradspec.ir.rule import Judged, Rule

FRAMEWORKS = {
    "numpy": ("numpy", "pip install numpy scipy"),
    "torch": ("torch", "pip install torch"),
    "tf": ("tensorflow", "pip install tensorflow-cpu"),
    "jax": ("jax", "pip install jax"),
}
"""By target, the package that its modules import, and the way to install it."""

LONGEST_SECONDS = 3600.0
"""Time limit of one rule's result."""

Case = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Subject:
    """The modules of a file, by target, and the cases of its rules."""

    display: str
    modules: Mapping[str, Emitted]
    cases: tuple[Case, ...]


def subjects(
    results: Iterable[FileResult], cases: Iterable[Iterable[Case]]
) -> tuple[Subject, ...]:
    """The compiled files with their cases."""
    return tuple(
        Subject(result.display, {m.target: m for m in result.modules}, tuple(own))
        for result, own in zip(results, cases, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Framework:
    """The framework of a target. Files of its jobs are in ``folder``; ``script`` is the
    program that does them.
    """

    target: str
    folder: Path
    script: Path

    @staticmethod
    def of(target: str, folder: Path, script: Path | None = None) -> Framework:
        """With the script that comes with gradspec, if no other one is given."""
        own = folder / target
        own.mkdir(parents=True, exist_ok=True)
        return Framework(target, own, script or script_of(target))

    @property
    def missing(self) -> str:
        """The reason why nothing can be run; none if it can."""
        if self.target not in FRAMEWORKS or not self.script.exists():
            return f"{self.target} has no runner"
        package, install = FRAMEWORKS[self.target]
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed ({install})"
        return ""

    def modules(self, given: Iterable[Subject]) -> list[Case]:
        """The modules of the target, written to files, with the cases of the rules that
        they define (a rule with axes may be checked only)."""
        found = []
        for number, subject in enumerate(given):
            emitted = subject.modules.get(self.target)
            if emitted is not None:
                names = re.findall(r"^def (\w+)\(", emitted.text, re.MULTILINE)
                path = put(self.folder / f"file_{number}", emitted)
                cases = [
                    _rough_case(case) if self.target in case["kernels"] else case
                    for case in subject.cases
                    if case["rule"] in names
                ]
                own = {"display": subject.display, "path": str(path), "cases": cases}
                found.append(own)
        return found

    def do(
        self,
        kind: str,
        modules: list[Case],
        heard: Callable[[Any], object],
        longest: float = LONGEST_SECONDS,
        **more: Any,
    ) -> str:
        """Do a job, of which ``heard`` takes each result; the reason for which it ended
        early, if it did."""
        job = {"kind": kind, "modules": modules, **more}
        return runners.run(self.script, job, self.folder / kind, longest, heard)


def _rough_case(case: Case) -> Case:
    """The case of a rule that has kernels there: in float32, of inputs with the same batch
    axes, without difference quotients and second derivatives, which are the formula's."""
    calls = [
        call | {"second": None, "third": None}
        for call in case.get("calls", ())
        if call["is_even"]
    ]
    return case | {"exact": False, "is_rough": True, "calls": calls}


def script_of(target: str) -> Path:
    """The script that runs a target's modules."""
    return Path(__file__).parent / "frameworks" / f"on_{target}.py"


# --- cases of trials and of the conformance suite ------------------------------------


def cases_of(
    options: Options, is_suite: bool, entry: Entry
) -> Outcome[tuple[Case, ...]]:
    """The cases of a file that has been compiled."""
    source = read_entry(entry).value
    if source is None:
        return Outcome(())
    with use_shelf(cache.rules()):
        return cases(source, entry.root, options, is_suite)


def cases(
    source: Source, root: str, options: Options, is_suite: bool
) -> Outcome[tuple[Case, ...]]:
    """The cases of the rules of a text that are emitted: for the conformance suite if
    ``is_suite``, else for a trial.
    """
    from gradspec.driver.load import load
    from gradspec.ir.rule import Chosen
    from gradspec.measure import foreign
    from gradspec.measure.cases import conformance_case, trial_case
    from gradspec.pipeline import check_module
    from gradspec.plan.gradients import is_linear
    from gradspec.plan.planning import plan_module
    from gradspec.primitives.foreign import use_real

    module = load(source, root).module
    checked = check_module(module, options)[0] if module else ()
    written = tuple(Chosen(judged, judged.rule) for judged in checked)
    linear = {p.name: is_linear(p) for p in plan_module(source, written).rules}
    make = conformance_case if is_suite else trial_case

    def of_rule(rule: Rule) -> tuple[Case, ...]:
        case = make(rule, linear[rule.name])
        return () if case is None else (case,)

    rules = [one.rule for one in checked if one.rule.name in linear]
    rules = [rule for rule in rules if not (is_suite and rule.kernels)]
    with use_real(foreign.real):
        told = tuple(foreign.faults(rules))
        if any(d.is_error for d in told):
            return Outcome(None, told)
        found = gather_outcomes(
            run_within_budget(r, "trying", options, partial(of_rule, r)) for r in rules
        )
        cases = sum(found.value or (), ())
        told += tuple(kernel_faults(checked, cases, options))
    return Outcome(cases, (*told, *found.diagnostics))


def kernel_faults(
    checked: Iterable[Judged], cases: Iterable[Case], options: Options
) -> Iterator[Diagnostic]:
    """Errors in the kernels of the rules on the targets of the options;
    ``cases`` are their trials, if these are made."""
    by_name = {case["rule"]: case for case in cases}
    for judged in checked:
        own = tuple(k for k in judged.rule.kernels if k.target in options.targets)
        if own:
            from gradspec.measure import kernels

            rule = replace(judged.rule, kernels=own)
            case = by_name.get(rule.name)
            yield from kernels.faults(replace(judged, rule=rule), case)
