"""The version of gradspec, which emitted modules and their runtimes name."""

__version__ = "0.1.0"
