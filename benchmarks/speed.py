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
The experts' rules are public implementations (`benchmarks/experts.py`,
`benchmarks/experts_tf.py`); a composite is the plain formula, which the framework
differentiates. Each table says what its columns are to reach; a ratio that does not is
**bold**. NumPy modules evaluate large arrays with the threads that the process may use;
what is copied beside them is copied by one thread and by two, and the faster counts; at
1e7 it is 80 MB at least, scaled to the bytes in question, for less would stay in a cache.

{totals}
"""


def page(sections: Sequence[Section]) -> str:
    """The page: how many ratios are within, then the tables."""
    totals = [_total(section) for section in sections]
    parts = [HEAD.format(totals="\n".join(f"* {line}" for line in totals if line))]
    for section in sections:
        parts.append("\n".join(_lines(section)) + "\n")
    return "\n".join(parts)


def _total(section: Section) -> str:
    aimed = [
        value <= bound
        for _, values in section["rows"]
        for value, bound in zip(values, section["within"], strict=True)
        if bound is not None
    ]
    return f"{section['title']}: {sum(aimed)} of {len(aimed)} within" if aimed else ""


def _lines(section: Section) -> Iterator[str]:
    yield f"## {section['title']}\n"
    yield f"| rule | {' | '.join(section['head'])} |"
    yield f"| --- |{' --- |' * len(section['head'])}"
    aims = ("" if b is None else f"at most {b:g}" for b in section["within"])
    yield f"| *to reach* | {' | '.join(aims)} |"
    for name, values in section["rows"]:
        cells = map(_cell, values, section["within"])
        yield f"| {name} | {' | '.join(cells)} |"


def _cell(value: float, bound: float | None) -> str:
    text = f"{value:.2f}" if value < 10 else f"{value:.1f}"
    return text if bound is None or value <= bound else f"**{text}**"


if __name__ == "__main__":
    main()
