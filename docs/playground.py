"""Adds to the built site what the playground runs: Pyodide and the wheels of the prover.

    python docs/playground.py build/site/playground

needs npm, and pip with a registry. NumPy is not among them: Pyodide's own server has it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYODIDE = "pyodide@314.0.7"
PLATFORM = ("--platform", "pyemscripten_2026_0_wasm32", "--python-version", "314")
WHEELS = ("python-flint", "lark", "click", "platformdirs")


def main(out: Path) -> None:
    """Write ``pyodide/``, ``wheels/`` and ``wheels.json`` below a folder."""
    pip = [sys.executable, "-m", "pip", "-q"]
    wheels = out / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    wanted = [*PLATFORM, "--abi", "cp314", "--only-binary", ":all:", *WHEELS]
    _run(*pip, "download", "--no-deps", "-d", str(wheels), *wanted)
    _run(*pip, "wheel", "--no-deps", "-w", str(wheels), str(ROOT))
    (out / "wheels.json").write_text(
        json.dumps([w.name for w in sorted(wheels.iterdir())])
    )
    with tempfile.TemporaryDirectory() as folder:
        _run("npm", "install", "--silent", "--prefix", folder, PYODIDE)
        found = Path(folder, "node_modules", "pyodide")
        shutil.copytree(found, out / "pyodide", dirs_exist_ok=True)


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
