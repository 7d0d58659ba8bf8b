"""Closed forms: outputs and cotangents as one expression each, locals inlined.

An output is then an expression in the inputs, a cotangent one in the inputs and the
upstream cotangents; that is what proof, truth and trials evaluate. For elementwise
rules only: indexed locals need their indices renamed.
"""

from __future__ import annotations

from collections.abc import Mapping

from gradspec.ir.expr import Expr
from gradspec.ir.rule import Declared, Derived, Override, Rule
from gradspec.ir.walk import names, substitute


def outputs(rule: Rule) -> dict[str, Expr]:
    """Every output's value in terms of the inputs, calls to other rules kept."""
    lets = {let.name: let.value for let in rule.forward}
    done: dict[str, Expr] = {}
    return {output.name: _resolve(output.name, lets, done) for output in rule.outputs}


def cotangents(rule: Rule) -> dict[str, Expr]:
    """``d<input>`` for every input that has an entry, calls kept."""
    lets = {let.name: let.value for let in (*rule.forward, *rule.backward_locals)}
    found: dict[str, Expr] = {}
    for variable, entry in zip(rule.inputs, rule.backward, strict=True):
        if isinstance(entry, Declared | Derived | Override):
            found[f"d{variable.name}"] = entry.value
    lets.update(found)
    done: dict[str, Expr] = {}
    return {name: _resolve(name, lets, done) for name in found}


def _resolve(name: str, lets: Mapping[str, Expr], done: dict[str, Expr]) -> Expr:
    """The value of a let with every name in it resolved; lowering has made sure that no
    name is used before its assignment, so this ends.
    """
    if name not in done:
        value = lets[name]
        inner = {n: _resolve(n, lets, done) for n in sorted(names(value)) if n in lets}
        done[name] = substitute(value, inner)
    return done[name]
