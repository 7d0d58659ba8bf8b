"""Which rules of the corpora a run tries in ways that take long.

``GRADSPEC_CORPUS=all pytest tests/corpus`` tries all (minutes); without it a share, which
the hash of a name chooses.
"""

from __future__ import annotations

import os
import zlib

IS_WHOLE = os.environ.get("GRADSPEC_CORPUS") == "all"


def is_tried(name: str, share: int) -> bool:
    """One name of ``share``, or every name."""
    return IS_WHOLE or zlib.crc32(name.encode()) % share == 0
