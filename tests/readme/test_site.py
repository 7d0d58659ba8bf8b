"""The site: built strictly from a copy of the pages, with a gallery of a few rules."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RULES = """rule cosine_gap(x[..., n], w[n]) -> y[..., n]:
    \"\"\"Shares, weighed: their *sum* is [not] 1.\"\"\"
    assume w[i] > 0
    y[i] = w[i] * exp(x[i]) / sum(exp(x[j]) for j)

rule gap(x, z) -> y:
    y = hypot(x, z) * sigmoid(x)
    dz = dy * z / hypot(x, z) * sigmoid(x)
"""

pytestmark = pytest.mark.site
for package in ("sphinx", "furo", "myst_parser", "sphinx_design", "matplotlib"):
    pytest.importorskip(package, reason="`pip install --group docs` brings it")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the pages; the sources stand beside it."""
    root = tmp_path_factory.mktemp("site")
    made = shutil.ignore_patterns("gallery")
    shutil.copytree(ROOT / "docs", root / "docs", ignore=made)
    (root / "docs" / "decisions").mkdir(exist_ok=True)
    (root / "benchmarks").mkdir()
    for page in (*ROOT.glob("benchmarks/*.md"), *ROOT.glob("*.md")):
        shutil.copy(page, root / page.relative_to(ROOT))
    (root / "rules").mkdir()
    (root / "rules" / "gaps.grad").write_text(RULES)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", "docs"]
    subprocess.run([*command, ".", "html"], cwd=root, check=True, timeout=200)
    return root / "html"


def test_the_gallery_shows_formula_evidence_picture_and_code(site: Path) -> None:
    page = (site / "docs" / "gallery" / "gaps" / "gap.html").read_text("utf-8")
    assert r"\sqrt{x^{2} + z^{2}} \, \sigma\left(x\right)" in page
    assert "dz proved: by" in page
    assert "dx derived: SymPy's derivative agrees at" in page.replace("’", "'")
    assert re.findall(r"sd-tab-label[^>]*>\s*(\w+)", page) == [
        *("PyTorch", "TensorFlow", "JAX", "NumPy")
    ]
    assert (site / "_images" / "gap.svg").exists()


def test_rules_over_axes_have_a_picture_of_the_jacobian(site: Path) -> None:
    page = (site / "docs" / "gallery" / "gaps" / "cosine_gap.html").read_text("utf-8")
    assert 'alt="Jacobian of cosine_gap"' in page
    assert "their *sum* is [not] 1" in page
    assert "∂y/∂x at size 8" in (site / "_images" / "cosine_gap.svg").read_text("utf-8")


def test_the_reference_has_what_is_exported(site: Path) -> None:
    page = (site / "docs" / "reference.html").read_text("utf-8")
    import gradspec

    for name in gradspec.__all__:
        assert name.startswith("_") or f'id="gradspec.{name}"' in page, name


def test_the_side_bar_has_every_page(site: Path) -> None:
    page = (site / "docs" / "limits.html").read_text("utf-8")
    side = page[page.index("sidebar-tree") : page.index('<div class="main">')]
    found = {href.partition("#")[0] for href in re.findall(r'href="([^"]+)"', side)}
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    wanted = {
        name.replace(".md", ".html") for name in pages - {"README.md", "limits.md"}
    }
    wanted |= {"gallery/index.html", "../CONTRIBUTING.html", "../benchmarks/speed.html"}
    assert wanted - found == set()


def test_pages_and_pictures_have_no_time_stamps(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = site.parent
    monkeypatch.syspath_prepend(root / "docs")
    from gallery import write_gallery

    again = tmp_path / "gallery"
    write_gallery(root / "rules", again, root / "benchmarks" / "accuracy.md", 1)
    made = [p.relative_to(again) for p in again.rglob("*") if p.is_file()]
    assert len(made) == 6  # an index, a family, and two rules with a picture each
    for path in made:
        assert (again / path).read_bytes() == (
            root / "docs/gallery" / path
        ).read_bytes()
