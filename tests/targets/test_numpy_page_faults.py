"""Arrays between arguments and results lie in memory that the process keeps."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from gradspec.targets import numpy as target
from tests.targets.emission import RULES, planned

FAULTS = """
import resource, sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import module

x = np.linspace(-3.0, 3.0, 100_000)
y = np.empty_like(x)

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        module.complex_op(x, x, out=(y, y.copy()))
        module.swish_vjp(x)[1](x)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
print(faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's way")
def test_memory_of_what_lies_between_is_not_given_back_each_time(
    tmp_path: Path,
) -> None:
    """Ten thousand page faults otherwise: each array of 128 KiB is mapped anew."""
    text = target.module(planned(RULES))
    (tmp_path / "module.py").write_text(text, encoding="utf-8")
    env = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    call = [sys.executable, "-c", FAULTS, str(tmp_path)]
    found = subprocess.run(call, capture_output=True, text=True, env=env, check=True)
    assert int(found.stdout) < 200
