"""Functions of other modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._named import named_function
from ._gradspec import Array


def foreign(call: str) -> Callable[..., Array]:
    """A function of arrays; its values have the arrays' floating type."""
    function, _ = named_function(call)

    def apply(*arrays: Any) -> Array:
        kind = np.result_type(*arrays)
        made: Array = np.asarray(function(*arrays)).astype(kind, copy=False)
        return made

    return apply
