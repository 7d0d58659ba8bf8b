"""The wheel holds all that compiling needs: the grammar and the shipped rules too."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_wheel_compiles_rules_by_itself(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation"]
    subprocess.run(
        [*build, "--outdir", str(tmp_path), str(ROOT)], check=True, capture_output=True
    )
    (wheel,) = tmp_path.glob("*.whl")
    installed = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
        names = archive.namelist()
    assert "gradspec/_rules/tutorial/log1pexp.grad" in names
    assert "gradspec/explain/GS401.md" in names
    assert "gradspec/measure/frameworks/on_torch.py" in names
    assert {name.split("/")[0].split("-")[0] for name in names} == {"gradspec"}
    (said,) = (
        path.read_text("utf-8") for path in installed.glob("*.dist-info/METADATA")
    )
    assert "Classifier: Typing :: Typed" in said and "Provides-Extra: all" in said
    page = said.partition("\n\n")[2]
    assert "The tutorial goes from" in page and "```python" in page
    links = re.findall(r"\]\((?!https://|#)[^)]*\)", page)
    assert not links, "dead on the page of an index"
    rules = installed / "gradspec" / "_rules" / "tutorial"
    child = subprocess.run(
        [sys.executable, "-m", "gradspec", "compile", str(rules), "--target", "all"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    assert (tmp_path / "generated" / "tf" / "log1pexp.py").is_file()
