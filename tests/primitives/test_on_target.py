"""What the rows say of subnormal numbers on each target, asked of the frameworks."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from gradspec.primitives.lookup import primitive, rows
from gradspec.primitives.measured import FAULTS
from gradspec.primitives.on_target import FLUSHING

SETUPS = {
    "numpy": "import numpy as xp; array = xp.array\n"
    "sigmoid = lambda u: xp.exp(u) / (1 + xp.exp(u))",
    "torch": "import torch as xp; sigmoid = xp.sigmoid\n"
    "array = lambda v, dtype: xp.tensor(v, dtype=getattr(xp, dtype))",
    "tf": "import tensorflow as xp; sigmoid = xp.sigmoid; array = xp.constant",
    "jax": "import jax; jax.config.update('jax_enable_x64', True)\n"
    "import jax.numpy as xp; sigmoid = jax.nn.sigmoid; array = xp.array",
}

SCRIPT = """
import json, math
{setup}
found = {{}}
for dtype, tiny in (("float32", 2.0**-126), ("float64", 2.0**-1022)):
    small = array([tiny / 2], dtype=dtype)
    half, twice = array([0.5], dtype=dtype), array([tiny], dtype=dtype)
    end = array([math.log(tiny) - 0.5], dtype=dtype)
    past = array([math.log(tiny) - 2.0], dtype=dtype)
    found[dtype] = {{
        "mul": half * twice, "div": twice / array([2.0], dtype=dtype),
        "add": small + array([0.0], dtype=dtype), "exp": xp.exp(end),
        "mul of small": small * array([4.0], dtype=dtype),
        "sigmoid": sigmoid(end), "sigmoid far": sigmoid(past),
        "neg": -small, "abs": xp.abs(small),
    }}
print(json.dumps({{d: {{n: float(v[0]) for n, v in r.items()}} for d, r in found.items()}}))
"""


@pytest.mark.parametrize("target", sorted(SETUPS))
def test_targets_treat_subnormal_numbers_as_is_said(target: str) -> None:
    text = SCRIPT.format(setup=SETUPS[target])
    run = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True
    )
    for found in json.loads(run.stdout).values():
        flushes = target in FLUSHING
        for name in ("mul", "div", "add", "exp", "mul of small"):
            assert (found[name] == 0) == flushes, (target, name)
            assert primitive(name.partition(" ")[0]).on[target].flushes == flushes
        sigmoid = primitive("sigmoid").on[target]
        assert (found["sigmoid"] == 0) == (sigmoid.vanishes >= 0.5)
        assert (found["sigmoid far"] == 0) == (sigmoid.vanishes > 0)
        for name in ("neg", "abs"):
            assert primitive(name).on[target].vanishes == 0
            assert found[name] != 0


def test_every_fault_is_in_a_row() -> None:
    """None is lost for a name that is spelled otherwise in the table."""
    known = {row.name: row.on for row in rows()}
    for (name, target, dtype), spans in FAULTS.items():
        assert known[name][target].faults(dtype) == spans
    assert {name for name, on in known.items() if on["torch"].vanishes} == {"sigmoid"}
