"""How fast emitted rules are, beside rules written by hand.

    python benchmarks/speed.py [--target torch,tf,jax,numpy] [--sizes 1000,100000,10000000]
    python benchmarks/speed.py --write      also into benchmarks/speed.md

Every ratio is of medians of interleaved rounds in one process; each target has a process
of its own. Less than 1 is faster than the peer. `SPEED_CLOCK=cpu` counts the time of the
process alone, for a machine that does other things as well.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from timing import LONG, MEAN

TARGETS = "torch,tf,jax,numpy"
PAGE = Path(__file__).with_name("speed.md")
Section = Mapping[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default=TARGETS)
    parser.add_argument("--sizes", default="1000,100000,10000000")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each ratio")
    parser.add_argument("--threads", type=int, default=0, help="0: the framework's own")
    parser.add_argument("--rules", default="", help="these alone, with commas")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.here:
        _measure(asked)
        return
    found = [s for target in asked.target.split(",") for s in _child(target, asked)]
    if asked.write:
        PAGE.write_text(page(found), encoding="utf-8")


def _measure(asked: argparse.Namespace) -> None:
    """In the process of one target."""
    sizes = [int(float(size)) for size in asked.sizes.split(",")]
    only = [name for name in asked.rules.split(",") if name]
    importlib.import_module(f"speed_{asked.target}").main(
        sizes, asked.seconds, asked.threads, only
    )
    sections = importlib.import_module("timing").SECTIONS
    Path(asked.here).write_text(json.dumps([asdict(s) for s in sections]))


def _child(target: str, asked: argparse.Namespace) -> list[Section]:
    root = Path(__file__).parents[1]
    path = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "3"}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sections.json"
        given = [f"--sizes={asked.sizes}", f"--seconds={asked.seconds}"]
        given += [f"--threads={asked.threads}", f"--rules={asked.rules}"]
        command = [sys.executable, __file__, f"--here={file}", f"--target={target}"]
        subprocess.run([*command, *given], check=True, env=environment)
        return list(json.loads(file.read_text()))


# --- the page ---------------------------------------------------------------------------

HEAD = """\
# Speed of emitted rules

Made by `python benchmarks/speed.py --write`: times of emitted rules over those of a peer,
medians of interleaved rounds in one process, forward and backward. Less than 1 is faster.
The experts' rules are public implementations (`benchmarks/experts*.py`); a composite is the
plain formula, which the framework differentiates. A ratio beyond what its table is to reach
is **bold**. {long} have long gradients, for accuracy; they are not in the means.
"""


def page(sections: Sequence[Section]) -> str:
    """The page: a table for each section."""
    head = HEAD.format(long=", ".join(f"`{name}`" for name in LONG))
    return "\n".join([head, *("\n".join(_lines(s)) + "\n" for s in sections)])


def _lines(section: Section) -> Iterator[str]:
    mean, cell = section["mean"], section["cell"]
    yield f"## {section['title']}\n"
    yield f"Means to be at most {mean:g}, single ratios at most {cell:g}.\n"
    yield f"| rule | {' | '.join(section['head'])} |"
    yield f"| --- |{' --- |' * len(section['head'])}"
    for name, values in section["rows"]:
        bound = mean if name == MEAN else cell
        yield f"| {name} | {' | '.join(_cell(v, bound) for v in values)} |"


def _cell(value: float, bound: float) -> str:
    text = f"{value:.2f}" if value < 10 else f"{value:.1f}"
    return text if value <= bound else f"**{text}**"


if __name__ == "__main__":
    main()
