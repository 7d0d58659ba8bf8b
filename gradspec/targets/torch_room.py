"""Memory for large results of torch, in large pages.

glibc maps every tensor of 32 MiB or more anew and gives it back at once, and Linux then
hands out its pages one by one while it is first written: at 4 KiB each that takes longer
than the products that fill them. NumPy asks for large pages for its arrays; torch does not
unless the environment says so before it is imported.
"""

from __future__ import annotations

from gradspec.primitives.row import Helper

ROOM = Helper(
    "_room",
    '''\
_MADVISE = getattr(ctypes.CDLL(None), "madvise", None) if os.name == "posix" else None
_HUGEPAGE = getattr(mmap, "MADV_HUGEPAGE", None)


def _room(like: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """An empty tensor; of 32 MiB or more, on Linux, in large pages, which are given out
    in a fraction of the time.
    """
    room = like.new_empty(shape)
    size, start = room.untyped_storage().nbytes(), room.data_ptr()
    if size >= 1 << 25 and _MADVISE is not None and _HUGEPAGE is not None:
        skipped = -start % mmap.PAGESIZE
        _MADVISE(
            ctypes.c_void_p(start + skipped),
            ctypes.c_size_t(size - skipped),
            ctypes.c_int(_HUGEPAGE),
        )
    return room
''',
    imports=("import ctypes", "import mmap", "import os"),
)
