"""gradspec: write the mathematics once, get gradients that are right everywhere.

    import gradspec
    ops = gradspec.load("activations.grad", target="torch")
    ops.log1pexp(x)

`compile_paths` writes modules, `compile_text` gives one as text, `load` imports one.
"""

__version__ = "0.1.0"

from gradspec.api import (
    CompileError,
    CompileResult,
    compile_paths,
    compile_text,
    load,
    runtime_files,
)
from gradspec.diagnostics import Diagnostic

__all__ = [
    "CompileError",
    "CompileResult",
    "Diagnostic",
    "__version__",
    "compile_paths",
    "compile_text",
    "load",
    "runtime_files",
]
