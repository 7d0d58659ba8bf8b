"""PyTorch modules: a private `torch.autograd.Function` behind a plain function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gradspec.ir.rule import Input, Kind, Output, Shape
from gradspec.plan.account import Account
from gradspec.plan.account import account as booked
from gradspec.plan.plan import Block, ModulePlan, RulePlan
from gradspec.plan.program import Vocabulary, forward, pushforward, split_backward
from gradspec.primitives.texts_torch import ACTIVE
from gradspec.targets import torch_fused, torch_kernels, torch_ranked_texts
from gradspec.targets import torch_texts as texts
from gradspec.targets.docstring import docstring, module_docstring
from gradspec.targets.expansion import expander, with_slopes
from gradspec.targets.lines import Lines, indented
from gradspec.targets.python import Needs, needs
from gradspec.targets.signature import declared_shapes, fresh, parameters, scalars
from gradspec.targets.skeleton import laid_out, module_text, used_helpers
from gradspec.targets.together import paired
from gradspec.targets.torch_again import (
    DIFFERENTIATED,
    UNBATCHED,
    computed_again,
    kept_locals,
    outputs_declared,
)
from gradspec.targets.torch_backward import backward_method
from gradspec.targets.torch_batches import BATCHED_WITH
from gradspec.targets.torch_blocks import (
    APPLIED,
    APPLIED_BY_SIZE,
    APPLIED_BY_TYPE,
    HELPERS,
    blocked_passes,
)
from gradspec.targets.torch_double import double_class, doubled, doubled_passes
from gradspec.targets.torch_export import exported_function, exported_name
from gradspec.targets.torch_forward import forward_method, setup_context_method
from gradspec.targets.torch_given import (
    checked,
    floating,
    keywords,
    known_exponents,
    numbers,
)
from gradspec.targets.torch_kernel_texts import OUTWEIGHS_CALLS
from gradspec.targets.torch_kernels import loop_slope
from gradspec.targets.torch_layer import layer_class, torch_layers
from gradspec.targets.torch_native import (
    APPLIED_NATIVELY,
    APPLIED_NATIVELY_BY_SIZE,
    is_native,
)
from gradspec.targets.torch_parts import Function
from gradspec.targets.torch_room import written_methods, written_passes
from gradspec.targets.torch_tangent import jvp_method
from gradspec.targets.unnamed import unnamed

RESERVED = texts.RESERVED
EMITS_NAMED_AXES = True

_TENSOR = "torch.Tensor"


def module(plan: ModulePlan) -> str:
    """The text of the module."""
    return _module(plan, [_function(rule, name, False) for rule, name in _named(plan)])


def traced_module(plan: ModulePlan) -> str:
    """The same, printing what goes through each rule."""
    return _module(plan, [_function(rule, name, True) for rule, name in _named(plan)])


def _module(plan: ModulePlan, functions: Sequence[Function]) -> str:
    wants = Needs()
    definitions: list[Lines] = []
    for function in functions:
        wants |= needs(function.values, function.scope("x"))
        made = doubled(function, _words(function.plan))
        in_loop = replace(function, in_loop=loop_slope(made))
        definitions.append(lines := _class(in_loop))
        if made is not None:
            wants |= needs(made.values, made.scope("x"))
            definitions.append(double_class(made))
        definitions.append(_in_graph(function))
        if exported := exported_function(function, lines):
            definitions.append(exported)
        definitions += [_applied(function, made), _public(function)]
    layers = torch_layers(plan)
    definitions += [layer_class(layer) for layer in layers]
    text = "\n".join(laid_out(lines) for lines in definitions)
    by_size = "_in_blocks(" in text or "_in_room(" in text
    applied = APPLIED_BY_SIZE if by_size else APPLIED
    applied = APPLIED_BY_TYPE if "in_double=(" in text else applied
    own = (
        ACTIVE,
        DIFFERENTIATED,
        UNBATCHED,
        BATCHED_WITH,
        *HELPERS,
        OUTWEIGHS_CALLS,
        applied,
        APPLIED_NATIVELY_BY_SIZE if by_size else APPLIED_NATIVELY,
        *texts.HELPERS,
    )
    fused = (*torch_fused.HELPERS, *torch_kernels.HELPERS)
    more = (*fused, *torch_ranked_texts.HELPERS, *wants.helpers)
    if "operator.index(" in text:
        wants |= Needs(("import operator",))
    helpers = used_helpers(dict.fromkeys((*own, *more)), text)
    wants |= Needs(tuple(line for helper in helpers for line in helper.imports))
    return module_text(
        module_docstring(plan),
        ("import torch", *wants.imports),
        [*(rule.name for rule in plan.rules), *(layer.name for layer in layers)],
        [*(helper.text.strip().splitlines() for helper in helpers), *definitions],
    )


def account(plan: RulePlan) -> Account:
    """What the rule costs."""
    function = _function(plan, "_", False)
    further = tuple(assign.name for assign in function.kept)
    residuals = function.residuals
    return booked(
        plan,
        function.forward,
        function.backward,
        (name for name in residuals if name not in further),
        (name for name in residuals if name in further),
    )


def _named(plan: ModulePlan) -> list[tuple[RulePlan, str]]:
    """Each rule with the name of its class: ``complex_op`` has ``_ComplexOp``."""
    taken: set[str] = set()
    found = []
    for rule in plan.rules:
        camel = "".join(part[:1].upper() + part[1:] for part in rule.name.split("_"))
        name = fresh(f"_{camel}", taken)
        taken.add(name)
        found.append((rule, name))
    return found


def _function(rule: RulePlan, name: str, is_traced: bool) -> Function:
    words = _words(rule)
    kept = kept_locals(rule, words)
    further = tuple(Output(assign.name, Kind.NOGRAD, Shape()) for assign in kept)
    plan = replace(rule, outputs=(*rule.outputs, *further))
    plan = with_slopes(plan, words.expand)
    backward = unnamed(split_backward(plan, words))
    return Function(
        name,
        plan,
        forward(plan, words),
        backward,
        is_traced,
        _tangents(rule, words, backward.residuals),
        kept,
        computed_again(rule, words, backward.residuals),
    )


def _words(rule: RulePlan) -> Vocabulary:
    expand = paired(expander("torch", scalars(rule)))
    return Vocabulary(expand, RESERVED | texts.LOCALS)


def _tangents(
    rule: RulePlan, words: Vocabulary, residuals: tuple[str, ...]
) -> Block | None:
    """The forward mode from what the backward pass keeps as well."""
    if rule.tangents is None or all(g is None for g in rule.gradients):
        return None
    sound = {o.name for o in rule.outputs} - {*outputs_declared(rule)}
    return pushforward(rule, words, tuple(n for n in residuals if n in sound))


# --- definitions -------------------------------------------------------------------------


def _class(function: Function) -> Lines:
    """The whole class."""
    return [
        f"class {function.name}(torch.autograd.Function):",
        "    generate_vmap_rule = True",
        *("", *indented(forward_method(function))),
        *("", *indented(setup_context_method(function))),
        *("", *indented(backward_method(function))),
        *indented(written_methods(function)),
        *(
            ["", *indented(forward_mode)]
            if (forward_mode := jvp_method(function))
            else []
        ),
    ]


def _in_graph(function: Function) -> Lines:
    """The rule for `torch.compile`, which would differentiate the forward pass under
    `torch.func` if it looked inside.
    """
    arguments = ", ".join(i.name for i in function.plan.inputs)
    return [
        "@torch.compiler.allow_in_graph",
        f"def {_in_graph_name(function)}({arguments}):",
        *(f"    {line}" for line in known_exponents(function)),
        f"    return {function.name}.apply({arguments})",
    ]


def _in_graph_name(function: Function) -> str:
    return f"_{function.plan.name}_in_graph"


def _applied(function: Function, made: Function | None) -> Lines:
    """The rule as the public function calls it."""
    ways = [function.name, _in_graph_name(function), exported_name(function)]
    if made is None and is_native(function):
        ways = ways[:2]
        ways += _large(function)
        named = ", ".join(ways)
        return [f"_apply_{function.plan.name} = _applied_natively({named})"]
    ways += _large(function)
    if made is not None:
        own, written = {*doubled_passes(made)}, {*written_passes(function)}
        both = {*blocked_passes(function), *own}
        split = _in_blocks(made, tuple(sorted(both, reverse=True)))
        if written and not written & own:
            split = f"_in_room({split})"
        ways.append(f"in_double=({made.name}, {split})")
    return [f"_apply_{function.plan.name} = _applied({', '.join(ways)})"]


def _large(function: Function) -> Lines:
    """The rule for large tensors, if it has a way of its own."""
    passes = blocked_passes(function)
    way = _in_blocks(function, passes) if passes else function.name
    if written_passes(function):
        return [f"_in_room({way})"]
    return [way] if passes else []


def _in_blocks(function: Function, passes: tuple[str, ...]) -> str:
    named = [f', "{name}"' for name in passes if len(passes) == 1]
    return f"_in_blocks({function.name}{''.join(named)})"


def _public(function: Function) -> Lines:
    plan = function.plan
    returned = _TENSOR
    results = function.results
    if len(results) > 1:
        returned = f"tuple[{', '.join(_TENSOR for _ in results)}]"
    arguments = ", ".join(i.name for i in plan.inputs)
    taken = ""
    if function.kept:
        taken = "[0]" if len(results) == 1 else f"[:{len(results)}]"
    return [
        "@torch.fx.wrap",
        f"def {plan.name}({parameters(plan, _TENSOR)}) -> {returned}:",
        docstring(plan.docs),
        *indented(_conversions(function)),
        f"    return _apply_{plan.name}({arguments}){taken}",
    ]


def _conversions(function: Function) -> Lines:
    plan = function.plan
    floats = [i.name for i in plan.tensors if i.kind in (Kind.FLOAT, Kind.NOGRAD)]
    lines = floating(plan, floats) if floats else []
    lines += [_discrete(plan, i) for i in plan.tensors if i.name not in floats]
    lines += numbers(function)
    rank0 = [i.name for i in plan.tensors if not i.shape.batch]
    declared = ", ".join(declared_shapes(plan))
    if plan.is_ranked and declared:
        lines += checked(plan, f'_check_shapes("{plan.name}", {declared})')
    elif rank0:
        lines.append(f'_check_rank0("{plan.name}", {keywords(rank0)})')
    return lines


def _discrete(plan: RulePlan, i: Input) -> str:
    helper = "_integer" if i.kind is Kind.INT else "_boolean"
    return f'{i.name} = {helper}("{plan.name}", "{i.name}", {i.name})'
