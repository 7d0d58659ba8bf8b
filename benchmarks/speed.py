"""How fast emitted rules are, beside rules written by hand.

    python benchmarks/speed.py [--target torch,tf,numpy] [--sizes 1000,100000,10000000]

Every ratio is of medians of interleaved rounds in one process; each target has a process
of its own. Less than 1 is faster than the peer.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
from pathlib import Path

TARGETS = "torch,tf,numpy"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default=TARGETS)
    parser.add_argument("--sizes", default="1000,100000,10000000")
    parser.add_argument("--seconds", type=float, default=3.0, help="for each ratio")
    parser.add_argument("--threads", type=int, default=0, help="of torch; 0: its own")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    targets = asked.target.split(",")
    if asked.here:
        sizes = [int(float(size)) for size in asked.sizes.split(",")]
        module = importlib.import_module(f"speed_{targets[0]}")
        module.main(sizes, asked.seconds, asked.threads)
        return
    root = Path(__file__).parents[1]
    given = [f"--sizes={asked.sizes}", f"--seconds={asked.seconds}"]
    path = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    for target in targets:
        command = [sys.executable, __file__, "--here", f"--target={target}", *given]
        command.append(f"--threads={asked.threads}")
        environment = {**os.environ, "PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "3"}
        subprocess.run(command, check=True, env=environment)


if __name__ == "__main__":
    main()
