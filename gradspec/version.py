"""The version of gradspec, which the runtimes of emitted modules name, and those of what
it works with."""

from __future__ import annotations

__version__ = "0.1.0"

_LIBRARIES = (
    *("click", "lark", "numpy", "platformdirs", "python-flint", "rich", "sympy"),
    *("scipy", "torch", "tensorflow", "tensorflow-cpu", "jax", "jaxlib", "matplotlib"),
)


def versions() -> str:
    """What a report of a fault should say: gradspec, Python, the system, and each library
    that is installed, a line each.
    """
    import platform
    from importlib import metadata

    lines = [f"gradspec {__version__}"]
    lines += [f"Python {platform.python_version()}", platform.platform()]
    for name in _LIBRARIES:
        try:
            lines.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return "\n".join(lines)
