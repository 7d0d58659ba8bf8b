"""The peak of forward and backward in the memory that the process holds, on Linux.

    python benchmarks/resident.py [--target torch,tf] [--rules silu,gelu,tanh,sigmoid]

Bytes an element of a tensor of 2**26, by the kernel's high-water mark (`VmHWM`, set back
before the call), each in a process of its own: a check of the accounts in `memory.py`,
which cannot see what a compiler allocates inside a kernel. float32; inputs not counted.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # found as a script, too

from benchmarks import memory  # noqa: E402
from gradspec.driver.cache import import_module  # noqa: E402
from gradspec.driver.discover import discover  # noqa: E402
from gradspec.driver.run import compile_entries  # noqa: E402
from gradspec.ir.rule import Rule  # noqa: E402
from gradspec.options import Options  # noqa: E402

ELEMENTS = 1 << 26
WARM = 1 << 22
"""Elements of a first call, which compiles and loads what is needed once."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="torch,tf")
    parser.add_argument("--rules", default="silu,gelu,softplus,tanh,sigmoid,erf")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.side:
        side = "" if asked.side == "ours" else f" {asked.side}"
        print(_measured(asked.rules, asked.target, side))
        return
    for target in asked.target.split(","):
        for rule in asked.rules.split(","):
            ours, native = (_child(target, rule, side) for side in ("ours", "native"))
            print(f"{target:6} {rule:10} {ours:6.1f}  native {native:6.1f}", flush=True)


def _child(target: str, rule: str, side: str) -> float:
    """In a process of its own: allocators keep what was freed."""
    given = [f"--target={target}", f"--rules={rule}", f"--side={side}"]
    command = [sys.executable, __file__, *given]
    made = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(made.stdout.split()[-1])


def _measured(name: str, target: str, side: str) -> float:
    rule, function = _emitted(name, target)
    call = memory._sides(rule, function, target, "float32")[side]
    both = {"torch": _torch, "tf": _tf}[target]
    both(rule, call, WARM)()
    prepared = both(rule, call, ELEMENTS)
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # sets VmHWM back (proc(5))
    held = prepared()
    peak = _status("VmHWM")
    del held
    return (peak - before) / ELEMENTS


def _emitted(name: str, target: str) -> tuple[Rule, Callable[..., Any]]:
    """The shipped rule of that name, and its function."""
    entries = discover((str(ROOT / "rules"),)).value or ()
    for entry in entries:
        named = [r for r in memory._rules(entry) if r.name == name]
        if named:
            (result,) = compile_entries((entry,), Options((target,)), 1, lambda _: None)
            (module,) = result.modules
            text = import_module(module)
            return named[0], getattr(text, name)
    raise SystemExit(f"no shipped rule is called {name}")


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(f"{key}:"))
    return int(line.split()[1]) * 1024


def _torch(rule: Rule, call: Callable[..., Any], elements: int) -> Callable[[], Any]:
    """Forward and backward with inputs at hand."""
    import torch

    columns = memory._columns(rule, elements)
    inputs = [torch.from_numpy(column).requires_grad_() for column in columns]

    def both() -> Any:
        y = call(*inputs)
        return y, torch.autograd.grad(y, inputs, torch.ones_like(y))

    return both


def _tf(rule: Rule, call: Callable[..., Any], elements: int) -> Callable[[], Any]:
    """The same under an eager tape."""
    import tensorflow as tf

    inputs = [tf.constant(column) for column in memory._columns(rule, elements)]

    def both() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            y = call(*inputs)
        return y, tape.gradient(y, inputs)

    return both


if __name__ == "__main__":
    main()
