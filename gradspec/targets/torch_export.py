"""What `torch.export` sees of a rule.

An exported graph holds operations and no `Function`: one that is traced is differentiated
by its forward pass, and the rule is lost. A rule whose gradient is another is therefore an
operation of its own, which the graph keeps as one node; run, it is the `Function` again,
under every transform.
"""

from __future__ import annotations

import hashlib

from gradspec.ir.rule import Kind
from gradspec.plan.plan import Nature
from gradspec.targets.lines import Lines
from gradspec.targets.torch_parts import Function

_TYPES = {Kind.STATIC: "Scalar", Kind.STATIC_INT: "SymInt"}
"""Types of a schema; all others are tensors."""


def exported_name(function: Function) -> str:
    """The way of a rule under export. An exact one is its forward in plain operations,
    so that a saved program can be loaded where this module is not.
    """
    if function.plan.nature is Nature.EXACT:
        return f"{function.name}.forward"
    return f"_{function.plan.name}_exported"


def exported_function(function: Function, text: Lines) -> Lines:
    """The operation of a rule whose class has this text."""
    if function.plan.nature is Nature.EXACT:
        return []
    schema = _schema(function)
    told = "\n".join([schema, *text])
    name = f"{function.plan.name}_{hashlib.sha256(told.encode()).hexdigest()[:8]}"
    made = f'_operation("{name}", "{schema}", {function.name})'
    return [f"{exported_name(function)} = {made}"]


def _schema(function: Function) -> str:
    given = ", ".join(
        f"{_TYPES.get(i.kind, 'Tensor')} {i.name}" for i in function.inputs
    )
    made = ", ".join("Tensor" for _ in function.outputs)
    return f"({given}) -> {f'({made})' if len(function.outputs) > 1 else made}"
