"""The conformance matrix of the marker rules, as a page.

    python benchmarks/conformance.py                    every target, half an hour
    python benchmarks/conformance.py torch              one target
    python benchmarks/conformance.py torch export func  some of its groups of features

Each run writes its groups into benchmarks/conformance_<target>.json (what came out of
every cell, without times or places) and the whole page benchmarks/conformance.md from
these files.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # found as a script, too

from gradspec.measure import conformance  # noqa: E402
from gradspec.measure.features import Feature  # noqa: E402
from gradspec.options import Options  # noqa: E402
from gradspec.report.summary import cell_text, state_counts  # noqa: E402
from tests.conformance.features import FEATURES, RUNNERS  # noqa: E402

PAGE = Path(__file__).with_suffix(".md")
PACKAGES = {"numpy": "numpy", "torch": "torch", "tf": "tensorflow", "jax": "jax"}

HEAD = """# Conformance of the marker rules

Made by `python benchmarks/conformance.py`; [docs/conformance.md](../docs/conformance.md)
says how to read it. A cell that plain framework code (the same forward expression,
differentiated without a rule) fails as well says so in brackets; "-" is a feature that
asks for what a rule has not: forward mode of a gradient that is not linear in the
upstream one, difference quotients of a gradient that is declared to be another.
"""


def main(target: str = "", *groups: str) -> None:
    """Run what is asked for, then write the page of all that is known."""
    for name in [target] if target else FEATURES:
        for group, members in groupby(FEATURES[name], lambda f: f.group):
            if not groups or group in groups:
                known = _known(name) | {group: _run(name, tuple(members))}
                _data(name).write_text(json.dumps(known, indent=1) + "\n", "utf-8")
    known = {name: _known(name) for name in FEATURES}
    PAGE.write_text("\n".join([HEAD, *_sections(known)]) + "\n", "utf-8")


def _data(target: str) -> Path:
    return Path(__file__).with_name(f"conformance_{target}.json")


def _known(target: str) -> dict[str, Any]:
    """What earlier runs have found, by group."""
    path = _data(target)
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def _run(target: str, features: tuple[Feature, ...]) -> dict[str, Any]:
    given = conformance.markers(Options((target,)))
    matrix = conformance.matrix(target, (given,), features, runner=RUNNERS[target])
    cells = [asdict(cell) for cell in matrix.cells]
    print(f"{target}, {features[0].group}: {state_counts(matrix)}", flush=True)
    packages = importlib.metadata.packages_distributions()[PACKAGES[target]]
    return {"version": importlib.metadata.version(packages[0]), "cells": cells}


def _sections(known: dict[str, Any]) -> list[str]:
    lines = []
    for target, features in FEATURES.items():
        groups = known[target]
        if not groups:
            continue
        found = [c for group in groups.values() for c in group["cells"]]
        cells = {(c["rule"], c["feature"]): conformance.Cell(**c) for c in found}
        rules = tuple(dict.fromkeys(rule for rule, _ in cells))
        names = tuple(f.name for f in features if (rules[0], f.name) in cells)
        ordered = tuple(cells[rule, name] for rule in rules for name in names)
        matrix = conformance.Matrix(target, names, rules, ordered)
        version = max(group["version"] for group in groups.values())
        lines += [f"## {PACKAGES[target]} {version}", "", *_table(matrix), ""]
        lines += [f"{state_counts(matrix)}.", "", *_failures(matrix)]
        missing = [
            g for g in dict.fromkeys(f.group for f in features) if g not in groups
        ]
        if missing:
            lines += [
                f"Groups of features not run for this page: {', '.join(missing)}.",
                "",
            ]
    return lines


def _table(matrix: conformance.Matrix) -> list[str]:
    heads = [rule.removesuffix("_marker") for rule in matrix.rules]
    lines = [
        f"| feature | {' | '.join(heads)} |",
        f"| --- |{' --- |' * len(heads)}",
    ]
    cells = {(cell.rule, cell.feature): cell for cell in matrix.cells}
    for name in matrix.features:
        row = [cell_text(cells[rule, name]) for rule in matrix.rules]
        lines.append(f"| {name} | {' | '.join(row)} |")
    return lines


def _failures(matrix: conformance.Matrix) -> list[str]:
    """One line for each feature that fails, with what the first of its rules says."""
    lines = []
    for name in matrix.features:
        faults = [c for c in matrix.cells if c.feature == name and _fails(c)]
        if faults:
            message = faults[0].message
            lines.append(f"* {name}: {message}")
    return [*lines, ""] if lines else []


def _fails(cell: conformance.Cell) -> bool:
    return cell.state not in ("ok", "none")


if __name__ == "__main__":
    main(*sys.argv[1:])
