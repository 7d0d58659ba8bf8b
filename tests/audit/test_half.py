"""Half precision: gradients are rounded once."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradspec.driver.discover import discover
from gradspec.driver.run import compile_entries
from gradspec.measure import audits
from gradspec.options import AuditOptions, Options

RULES = Path(__file__).parents[2] / "rules" / "activations"


@pytest.mark.shared_cache  # the searches are those of all who compile them
def test_gradients_are_rounded_once() -> None:
    """All 65,536 inputs: outputs that the backward reads are not read as rounded."""
    paths = [str(RULES / "sigmoidal.grad"), str(RULES / "smooth.grad")]
    entries = discover(paths).value or ()
    options = Options(("torch", "numpy"))
    results = compile_entries(entries, options, 1, lambda _: None)
    names = ("sigmoid", "gaussian", "squareplus")
    asked = AuditOptions(("float16", "bfloat16"), 1, 10, 1, names, ("emitted",))
    done = audits.run(entries, results, options, asked, lambda _: None)
    assert not any(audit.absent or audit.faults for audit in done)
    found = [f for audit in done for f in audit.findings]
    assert {f.rule for f in found} == {*names}
    assert {f.side for f in found} == {"emitted"}
    for finding in found:
        told = (finding.rule, finding.name, finding.target, finding.dtype)
        assert finding.whole.count > 25_000, told
        assert not finding.whole.bad, told
        assert finding.whole.worst <= 1.0, told
