"""Kernels: foreign functions that compute outputs or gradients of a rule on one target."""

from __future__ import annotations

from collections.abc import Iterator

from gradspec.ir.rule import Kernel
from gradspec.lower.context import Findings, near
from gradspec.lower.header import Declaration
from gradspec.syntax import nodes

TARGETS = ("numpy", "torch")
"""The targets whose modules can call kernels."""


def read_kernels(
    node: nodes.RuleDef, made: Declaration, findings: Findings
) -> tuple[Kernel, ...]:
    """The kernels of a rule, in the order written."""
    found: dict[tuple[str, str], Kernel] = {}
    for statement in node.body:
        if isinstance(statement, nodes.Kernel):
            for kernel in _kernels(statement, made, findings):
                for name in kernel.names:
                    if found.setdefault((kernel.target, name), kernel) is not kernel:
                        told = f"two foreign functions compute `{name}` for {kernel.target}"
                        findings.error("GS267", told, statement.span, help="keep one")
    return tuple(dict.fromkeys(found.values()))


def _kernels(
    node: nodes.Kernel, made: Declaration, findings: Findings
) -> Iterator[Kernel]:
    names = tuple(name.id for name in node.names)
    gradients = tuple(i.cotangent for i in made.inputs if i.takes_gradient)
    outputs = tuple(o.name for o in made.outputs)
    is_gradient = names[0] in gradients
    known = gradients if is_gradient else outputs
    for name in node.names:
        if name.id not in known or names.count(name.id) > 1:
            findings.error(
                "GS267",
                f"`{name.id}` is not to be computed by a foreign function here",
                name.span,
                help="`extern` names all outputs, or gradients of inputs, each once: "
                + ", ".join(f"`{n}`" for n in (*outputs, *gradients)),
            )
            return
    if not is_gradient and set(names) != set(outputs):
        missing = next(name for name in outputs if name not in names)
        findings.error(
            "GS267",
            f"`{missing}` is not computed: one function computes all outputs",
            node.span,
            help=f"write `extern ({', '.join(outputs)}) = …`",
        )
        return
    given = tuple(i.name for i in made.inputs)
    if is_gradient:
        given += (*outputs, *(o.cotangent for o in made.outputs if o.takes_gradient))
    for call in node.calls:
        yield from _calls(call, names, is_gradient, given, findings)


def _calls(
    node: nodes.ForeignCall,
    names: tuple[str, ...],
    is_gradient: bool,
    given: tuple[str, ...],
    findings: Findings,
) -> Iterator[Kernel]:
    if not node.targets:
        findings.error(
            "GS265",
            "say for which target this function computes it",
            node.span,
            help=f'`extern {names[0]} = "{node.path}" for torch`: the others have the'
            " formula",
        )
    strange = [a for a in node.arguments or () if a.isidentifier() and a not in given]
    if node.arguments is None or strange:
        what = f"`{strange[0]}` cannot be passed" if strange else "what is passed to it"
        told = (
            f"{what} to `{node.path}`"
            if strange
            else f"`{node.path}` is called with nothing"
        )
        findings.error(
            "GS267",
            told,
            node.span,
            help=f"it can be called with {', '.join(given)}, and with numbers",
        )
        return
    for target in node.targets:
        if target.id not in TARGETS:
            findings.error(
                "GS265",
                f"`{target.id}` is no target that calls such functions",
                target.span,
                help=near(target.id, TARGETS) or f"targets: {', '.join(TARGETS)}",
            )
            continue
        call = f"{node.path}({', '.join(node.arguments)})"
        yield Kernel(names, is_gradient, target.id, call, node.span)
