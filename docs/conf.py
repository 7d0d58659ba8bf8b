"""The site, built by Sphinx from the root of the repository (CONTRIBUTING has the
command): the pages of docs/ and benchmarks/, and a gallery that the compiler makes."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import gradspec
from gradspec.editor.highlighting import GradLexer

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # the workers that draw import `gallery`

project = html_title = "gradspec"
version = release = gradspec.__version__
default_role = "py:obj"
root_doc = "docs/README"
include_patterns = ["docs/**", "benchmarks/*.md", "CHANGELOG.md", "CONTRIBUTING.md"]
exclude_patterns = ["docs/site/**"]
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_design",
]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
html_theme = "furo"
html_extra_path = ["site"]
html_show_copyright = html_show_sourcelink = False


def setup(app: Any) -> None:
    app.add_config_value("gallery", "rules", "env")
    app.add_lexer("grad", GradLexer)
    app.connect("builder-inited", _write_gallery)
    app.connect("source-read", _with_sidebar)


def _write_gallery(app: Any) -> None:
    from gallery import write_gallery

    root = Path(app.srcdir)
    figures = root / "benchmarks" / "accuracy.md"
    pages = HERE / "gallery"
    write_gallery(root / app.config.gallery, pages, figures, os.cpu_count() or 1)


def _with_sidebar(app: Any, page: str, content: list[str]) -> None:
    """What the index lists, part by part, is the side bar, with what else there is."""
    if page != app.config.root_doc:
        return
    parts = {"": ["tutorial", "gallery/index"]}
    for part in content[0].split("\nFor ")[1:]:
        caption, _, text = part.partition(":")
        parts[f"For {caption}"] = re.findall(r"\]\(([^):]+)\.md\)", text)
    parts["Measured"] = ["../benchmarks/README", "../benchmarks/[a-z]*", "../CHANGELOG"]
    for caption, pages in parts.items():
        head = ["```{toctree}", ":hidden:", ":glob:"]
        head += [f":caption: {caption}"] if caption else []
        content[0] += "\n\n" + "\n".join([*head, "", *pages, "```"])
