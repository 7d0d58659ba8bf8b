"""The conformance matrix of the marker rules: which features keep them.

The whole matrix takes half an hour and is `benchmarks/conformance.py`, whose result is
pinned; the tests of conformance compare the cells that they run (`changed`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from gradspec.measure.conformance import Cell, Matrix
from tests.contract.files import ROOT
from tests.contract.tables import Row, differences, read

TARGETS = ("numpy", "torch", "tf", "jax")
KEPT, NOT_ASKED, PLAIN_TOO = "kept", "not applicable", "fails in plain code too"


def outcome(cell: Cell) -> str:
    """What came out of a cell, in the contract's words."""
    if cell.state == "ok":
        return KEPT
    if cell.state == "none":
        return NOT_ASKED
    return cell.state if cell.failed else PLAIN_TOO


def rows(target: str, cells: Iterable[Cell]) -> list[Row]:
    """A row a feature, with the outcome of each marker rule that was run."""
    found: dict[str, Row] = {}
    for cell in cells:
        row = found.setdefault(
            cell.feature, {"target": target, "feature": cell.feature}
        )
        row[cell.rule.removesuffix("_marker")] = outcome(cell)
    return list(found.values())


def measured() -> list[Row]:
    """What the last run of the benchmark has found."""
    found = []
    for target in TARGETS:
        place = ROOT / "benchmarks" / f"conformance_{target}.json"
        groups = json.loads(place.read_text("utf-8")).values()
        cells = [Cell(**cell) for group in groups for cell in group["cells"]]
        found += rows(target, cells)
    return found


def changed(matrix: Matrix) -> list[str]:
    """The cells of a run that are not as pinned (rule, feature, was, is), and why."""
    now = rows(matrix.target, matrix.cells)
    asked = {row["feature"] for row in now}
    pinned = (row for row in read("cells") if row["target"] == matrix.target)
    found = differences("cells", (r for r in pinned if r["feature"] in asked), now)
    failed = [c for c in matrix.cells if c.state not in ("ok", "none")]
    why = [f"{c.rule}, {c.feature}: {c.message}" for c in failed]
    return [*found, *why] if found else []
