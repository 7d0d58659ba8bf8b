"""gradspec: write the mathematics once, get gradients that are right everywhere::

    import gradspec
    ops = gradspec.load("activations.grad", target="torch")
    ops.log1pexp(x)

`compile_paths` writes modules, `compile_text` gives one as text, `load` imports one,
`check_text` and `check_paths` give verdicts and findings, and `plot` draws a rule. ``%load_ext gradspec`` adds the cell magic ``%%gradspec`` to a
notebook.
"""

from __future__ import annotations

from typing import Any

from gradspec.api import (
    CompileError,
    CompileResult,
    GradspecWarning,
    check_paths,
    check_text,
    compile_paths,
    compile_text,
    load,
    plot,
    runtime_files,
)
from gradspec.diagnostics import Diagnostic
from gradspec.version import __version__

__all__ = [
    "CompileError",
    "CompileResult",
    "Diagnostic",
    "GradspecWarning",
    "__version__",
    "check_paths",
    "check_text",
    "compile_paths",
    "compile_text",
    "load",
    "plot",
    "runtime_files",
]


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext gradspec`` (called by IPython)."""
    from gradspec.notebook.page import register

    register(shell)
