"""How fast the compiler is: rules a second per core, cold and unchanged, and memory.

    python benchmarks/compile_speed.py

Each run is a fresh process on one core with an empty cache folder (cold) or the one that
the cold run left (unchanged). The peer is the same process start without any work
(``gradspec --help``), so that the ratio between the two is free of the machine's speed.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(arguments: list[str], cache: str) -> tuple[float, str]:
    """Seconds of wall time, and what was printed."""
    begun = time.perf_counter()
    child = subprocess.run(
        [sys.executable, "-m", "gradspec", *arguments],
        cwd=ROOT,
        env={**os.environ, "GRADSPEC_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return time.perf_counter() - begun, child.stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/generated"
        command = ["compile", "rules/", "--target", "all", "--out", out]
        start, _ = run(["--help"], folder)
        cold, told = run(command, f"{folder}/cache")
        again = min(run(command, f"{folder}/cache")[0] for _ in range(3))
    rules = int(re.match(r"(\d+) rules", told).group(1))  # type: ignore[union-attr]
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(told.strip().splitlines()[-1])
    print(f"start alone   {start:6.2f} s")
    print(f"cold          {cold:6.2f} s  {rules / cold:6.1f} rules a second, one core")
    print(f"unchanged     {again:6.2f} s  {again / start:6.1f} times the start alone")
    print(f"peak memory   {peak:6.0f} MB")


if __name__ == "__main__":
    main()
