"""Wrong gradients as public projects shipped them: refuted, and with which diagnosis.

    python benchmarks/shipped_wrong.py

The rules are those of ``tests/checks/shipped/``, where each has a line on what is wrong
and the words that its diagnosis must have. They are known to the makers of the checker:
this is a check that nothing gets lost, no trial on unseen rules.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.checks.shipped import Shipped, shipped
from tests.checks.written import checked


def main() -> None:
    rows = [_row(one) for one in shipped()]
    for right, refuted, spent, one, told in rows:
        mark = "right" if right else ("refuted" if refuted else "ACCEPTED")
        print(f"{mark:8} {1000 * spent:6.0f} ms  {one.seen}")
        print(f"                    {told or '(no diagnosis)'}")
    times = sorted(spent for _, _, spent, _, _ in rows)
    refuted = sum(row[1] for row in rows)
    right = sum(row[0] for row in rows)
    print(f"\n{len(rows)} wrong gradients, {refuted} refuted, {right} with the right")
    print(f"diagnosis; median {1000 * times[len(times) // 2]:.0f} ms of CPU time")


def _row(one: Shipped) -> tuple[bool, bool, float, Shipped, str]:
    begun = time.process_time()
    found = checked(one.text).diagnostics
    spent = time.process_time() - begun
    errors = [d for d in found if d.code in ("GS401", "GS402", "GS416", "GS431")]
    labels = [label.message for d in errors for label in d.labels]
    told = "; ".join((*labels, *(note for d in errors for note in d.notes)))
    right = bool(errors) and all(word in told for word in one.words)
    return right, bool(errors), spent, one, told


if __name__ == "__main__":
    main()
