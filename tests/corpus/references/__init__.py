"""Every case, by file and rule."""

from pathlib import Path

from tests.corpus.case import with_header
from tests.corpus.references import (
    activations,
    assorted,
    control,
    distributions,
    elementary,
    losses,
    odd,
    physics,
    quantisers,
    shared,
    special,
    spikes,
)

FAMILIES = (
    activations,
    assorted,
    control,
    distributions,
    elementary,
    losses,
    odd,
    physics,
    quantisers,
    shared,
    special,
    spikes,
)

RULES = Path(__file__).parents[1] / "rules"

CASES = {
    (stem, rule): with_header(spec, RULES / f"{stem}.grad", rule)
    for family in FAMILIES
    for stem in [family.__name__.rpartition(".")[2]]
    for rule, spec in family.CASES.items()
}
