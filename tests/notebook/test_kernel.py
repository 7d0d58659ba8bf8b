"""A notebook in a real kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")

CELLS = [
    "%load_ext gradspec",
    "%%gradspec --target numpy\nrule swish(x) -> y:\n    y = x / (1 + exp(-x))\n"
    "    dx = dy * (1 + exp(-x) + x * exp(-x)) / (1 + exp(-x))**2\n",
    "print(swish(0.0), swish_vjp(0.0)[1](1.0)[0])",
    "swish.plot();",
    "%%gradspec\nrule wrong(x) -> y:\n    y = sin(x)\n    dx = dy * sin(x)\n",
    "'wrong' in globals()",
    "%%gradspec --target caffe\nrule swish(x) -> y:\n    y = x\n",
    "import gradspec\n"
    "ops = gradspec.load('rule half(x, z) -> y:\\n    y = x / 2\\n')\nops.half(3.0, 0.0)",
    "%reload_ext gradspec",
]


@pytest.mark.filterwarnings("ignore")  # of zmq and asyncio
def test_cells(tmp_path: Path, cache_of_its_own: Path) -> None:
    cells = [nbformat.v4.new_code_cell(cell) for cell in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    place = {"metadata": {"path": str(tmp_path)}}
    client = nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources=place
    )
    client.execute()  # raises if a cell ends in a traceback
    outputs = [cell.outputs for cell in notebook.cells]
    _, shown, printed, drawn, refused, defined, advised, loaded, _ = outputs
    html = shown[0].data["text/html"]
    assert r"$\displaystyle y = \frac{x}{1 + e^{-x}}$" in html and "dx proved" in html
    assert _text(printed) == "0.0 0.5\n"
    assert any("image/png" in output.data for output in drawn)
    (once,) = refused  # the page alone: nothing has displayed the finding by itself
    assert once.data["text/html"].count("error[GS401]") == 1
    assert defined[0].data["text/plain"] == "False"
    assert "'caffe' is not one of" in _text(advised)
    assert "GradspecWarning: GS408: " in _text(loaded)
    assert "1.5" in loaded[-1].data["text/plain"]


def _text(outputs: list[Any]) -> str:
    return "".join(output.text for output in outputs if output.output_type == "stream")
