"""Every case, by file and rule."""

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

CASES = {
    (family.__name__.rpartition(".")[2], rule): spec
    for family in FAMILIES
    for rule, spec in family.CASES.items()
}
