"""How fast the compiler is: rules a second per core, cold and unchanged, and memory.

    python benchmarks/compile_speed.py
    python benchmarks/compile_speed.py --rules [PATH]

Each run is a fresh process on one core with an empty cache folder (cold) or the one that
the cold run left (unchanged). The peer is the same process start without any work
(``gradspec --help``), so that the ratio between the two is free of the machine's speed.

``--rules`` tells the seconds (of the processor's time) that stabilising a rule takes: the
median and the largest over the rules of PATH (those shipped), and the five slowest.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

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


def stabilising(path: str) -> Iterator[tuple[str, float]]:
    """Each rule, and the seconds for it: all targets share the result."""
    from gradspec import pipeline
    from gradspec.driver.discover import discover, read
    from gradspec.driver.load import load
    from gradspec.options import Options
    from gradspec.stabilise.stabilise import stabilise

    for entry in discover([path]).value or ():
        source = read(entry.display, entry.root).value
        module = load(source, entry.root).module if source else None
        if module is None:
            continue
        for rule in pipeline.check_module(module, Options())[0]:
            begun = time.process_time()
            stabilise(rule)
            yield f"{entry.display}:{rule.rule.name}", time.process_time() - begun


def table(path: str) -> None:
    """Median, maximum and the slowest."""
    every = sorted((one, name) for name, one in stabilising(path))
    seconds = [one for one, _ in every]
    print(
        f"{len(every)} rules, median {median(seconds):.2f} s,"
        f" largest {seconds[-1]:.2f} s, together {sum(seconds):.0f} s"
    )
    for one, name in every[:-6:-1]:
        print(f"    {one:6.2f} s  {name}")


def main() -> None:
    if sys.argv[1:2] == ["--rules"]:
        table((*sys.argv[2:], "rules")[0])
        return
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/generated"
        command = ["compile", "rules/", "--target", "all", "--out", out]
        start, _ = run(["--help"], folder)
        cold, told = run(command, f"{folder}/cache")
        again = min(run(command, f"{folder}/cache")[0] for _ in range(3))
        shutil.rmtree(f"{folder}/cache/results")
        moved = run(command, f"{folder}/cache")[0]
    rules = int(re.match(r"(\d+) rules", told).group(1))  # type: ignore[union-attr]
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(told.strip().splitlines()[-1])
    print(f"start alone   {start:6.2f} s")
    print(f"cold          {cold:6.2f} s  {rules / cold:6.1f} rules a second, one core")
    print(f"unchanged     {again:6.2f} s  {again / start:6.1f} times the start alone")
    print(
        f"rules kept    {moved:6.2f} s  every file read anew, each rule from the cache"
    )
    print(f"peak memory   {peak:6.0f} MB")


if __name__ == "__main__":
    main()
