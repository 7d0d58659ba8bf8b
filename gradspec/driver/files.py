"""Reading files that anyone may have put there: only regular ones, and never a byte too
many.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path


def read_regular(path: Path, most: int) -> bytes:
    """The first ``most`` bytes of a regular file. OSError for anything else: opening a
    pipe would wait for who writes into it, and a device may never end.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as file:  # noqa: PTH123
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "it is not a regular file")
        return file.read(most)
