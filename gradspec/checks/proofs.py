"""Proofs of claims: both sides are equal, and the declared one exists where the other does."""

from __future__ import annotations

from dataclasses import replace

from gradspec.checks.evidence import Claim
from gradspec.checks.regions import is_always_true
from gradspec.symbolic.limit import Effort
from gradspec.symbolic.proof.prove import Definedness, Search, domain_of, search


def prove(claim: Claim, effort: Effort) -> Search:
    """A proof of the claim, if one is found with so much effort."""
    instance, claim = claim.instance, _where_equations_hold(claim)
    found = search(
        claim.declared,
        claim.derived,
        instance.assumed_in_proofs,
        effort,
        wrt=claim.input.name,
        whole=instance.whole,
        given=claim.given,
    )
    if found.proof is None or is_defined(claim, effort):
        return found
    return Search(None)


def _where_equations_hold(claim: Claim) -> Claim:
    known = claim.instance.solutions
    if known is None:
        return claim
    declared, derived = map(known.apply_equations, (claim.declared, claim.derived))
    return replace(claim, declared=declared, derived=derived)


def is_defined(claim: Claim, effort: Effort) -> bool:
    """True if the declared side is seen to be defined wherever the derivative is."""
    claim = _where_equations_hold(claim)
    instance = claim.instance
    definedness = Definedness(
        claim.declared, claim.derived, instance.whole, effort, claim.given
    )
    for _ in definedness.own:
        if definedness.proof(instance.assumed_in_proofs) is not None:
            return True
        lacking = definedness.lacking
        domain = None if lacking is None else domain_of(lacking)
        if lacking is None or domain is None or not is_always_true(instance, domain):
            return False
        definedness.granted.add(lacking.key)
    return True
