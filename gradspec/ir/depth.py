"""Recursion limit for deep expressions: no result depends on Python's limit.

Frameworks and notebooks raise Python's limit. Within ours a proof that recurses once a
level is found, or given up, wherever the compiler runs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_FRAMES = 10_000


@contextmanager
def deep() -> Iterator[None]:
    """Context with room for expressions as deep as the syntax permits, some frames a
    level (frames of Python's own functions take nothing from the machine's stack).
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
