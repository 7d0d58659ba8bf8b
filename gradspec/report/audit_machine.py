"""An audit for machines: one JSON document (schema in docs/audit.md)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from gradspec.options import AuditOptions

if TYPE_CHECKING:
    from gradspec.audit.cases import Finding
    from gradspec.audit.measure import Measure, Spot
    from gradspec.driver.audits import TargetAudit

FORMAT_VERSION = 2


def document(audits: Iterable[TargetAudit], options: AuditOptions) -> str:
    """The findings of all targets."""
    audits = tuple(audits)
    data = {
        "version": FORMAT_VERSION,
        "points": options.points,
        "findings": [_finding(f) for audit in audits for f in audit.findings],
        "faults": [
            {
                "target": audit.target,
                "rule": rule,
                "dtype": dtype,
                "side": side,
                "message": message,
            }
            for audit in audits
            for rule, dtype, side, message in audit.faults
        ],
        "absent": {a.target: a.absent for a in audits if a.absent},
    }
    return json.dumps(data, indent=2, ensure_ascii=False)


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "path": finding.display,
        "rule": finding.rule,
        "target": finding.target,
        "dtype": finding.dtype,
        "order": finding.order,
        "quantity": finding.name,
        "side": finding.side,
        "whole": _measure(finding.whole),
        "core": _measure(finding.core),
    }


def _measure(measure: Measure) -> dict[str, Any]:
    return {
        "points": measure.count,
        "bad": measure.bad,
        "share_bad": measure.share,
        "max_error": _number(measure.worst),
        "at": None if measure.at is None else _spot(measure.at),
        "max_ulp": _number(measure.ulp),
        "bad_points": [_spot(spot) for spot in measure.examples],
    }


def _spot(spot: Spot) -> dict[str, Any]:
    return {
        "inputs": {name: _number(value) for name, value in spot.inputs},
        "got": _number(spot.got),
        "truth": _number(spot.truth),
    }


def _number(value: float) -> float | str:
    """JSON has no NaN and no infinity: they are texts."""
    return value if math.isfinite(value) else repr(value)
