"""References by file and rule."""

from __future__ import annotations

from tests.corpus.ranked.case import Case
from tests.corpus.ranked.references import (
    classification,
    geometry,
    layers,
    metrics,
    normalisations,
    segmentation,
    sequences,
)

_MODULES = (
    classification,
    geometry,
    layers,
    metrics,
    normalisations,
    segmentation,
    sequences,
)

CASES: dict[tuple[str, str], Case] = {
    (module.__name__.rpartition(".")[2], rule): spec
    for module in _MODULES
    for rule, spec in module.CASES.items()
}
