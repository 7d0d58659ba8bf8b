"""TensorFlow modules: a private core with its gradient behind a plain function, which
converts and passes on by position.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from gradspec.ir.rule import Input, Kind, Output
from gradspec.plan.account import Account
from gradspec.plan.account import account as booked
from gradspec.plan.array import names
from gradspec.plan.at_hand import without_composites
from gradspec.plan.plan import Backward, ModulePlan, RulePlan
from gradspec.plan.program import Vocabulary, forward, joined_backward
from gradspec.targets import (
    tf_blocks,
    tf_double,
    tf_layer_shapes,
    tf_ranked_texts,
)
from gradspec.targets import tf_texts as texts
from gradspec.targets.docstring import docstring, module_docstring
from gradspec.targets.expansion import expander, with_slopes
from gradspec.targets.lines import Lines, indented
from gradspec.targets.python import Dialect, Needs, needs
from gradspec.targets.shares import with_shares
from gradspec.targets.signature import (
    declared_shapes,
    fresh,
    parameters,
)
from gradspec.targets.skeleton import laid_out, module_text, table_helpers, used_helpers
from gradspec.targets.tf_core import core_lines, decorating, kept_names
from gradspec.targets.tf_double import (
    FORMULAS,
    is_cheaper,
    may_be_doubled,
)
from gradspec.targets.tf_in_place import in_place
from gradspec.targets.tf_kept import kept
from gradspec.targets.tf_layer import (
    is_activation,
    layer_class,
    registration,
    tf_layers,
)
from gradspec.targets.tf_parts import Core
from gradspec.targets.tf_powers import with_powers
from gradspec.targets.tf_raw import RAW, raw
from gradspec.targets.tf_sizes import numbers, with_sizes
from gradspec.targets.tf_texts import DIALECT
from gradspec.targets.together import together, with_forward
from gradspec.targets.unasked import answered
from gradspec.targets.unnamed import unnamed

RESERVED = texts.RESERVED
EMITS_NAMED_AXES = True

_TENSOR = "tf.Tensor"


def module(plan: ModulePlan) -> str:
    """The text of the module."""
    return _module(plan, [_core(rule, name, False) for rule, name in _named(plan)])


def traced_module(plan: ModulePlan) -> str:
    """The same, printing what goes through each rule."""
    return _module(plan, [_core(rule, name, True) for rule, name in _named(plan)])


def _module(plan: ModulePlan, cores: Sequence[Core]) -> str:
    wants = Needs(("import tensorflow as tf",))
    definitions: list[Lines] = []
    for core in cores:
        wants |= needs(core.values, core.scope)
        if core.short:
            wants |= needs(core.short.values, core.short.scope)
        known = [registration(plan)] if is_activation(core.plan) else []
        definitions += [core_lines(core), [*known, *_public(core)]]
    layers = tf_layers(plan)
    definitions += [layer_class(plan, layer) for layer in layers]
    text = "\n".join(laid_out(lines) for lines in definitions)
    own = (
        *tf_blocks.HELPERS,
        *tf_double.HELPERS,
        *texts.HELPERS,
        *tf_ranked_texts.HELPERS,
        *tf_layer_shapes.HELPERS,
    )
    decorators = [
        texts.UNCONVERTED.name,
        *(d for core in cores for d in decorating(core)),
    ]
    ways = " ".join(f"{name}()" for name in decorators)
    blocks = tf_blocks.called(text)
    double = f"{tf_double.IS_NARROW.name}() {tf_blocks.IS_WATCHED.name}()"
    double = double if "@_or_double" in text else ""
    helpers = used_helpers((*own, *wants.helpers), f"{text}\n{ways} {blocks} {double}")
    called = " ".join(helper.text for helper in helpers)
    wants |= Needs(
        (
            *(line for helper in helpers for line in helper.imports),
            *(["import operator"] if "operator.index)" in text else []),
            *(["import functools"] if "@functools." in text else []),
            *(["import sys"] if "=sys.stdout" in text else []),
        )
    )
    return module_text(
        module_docstring(plan),
        wants.imports,
        [*(rule.name for rule in plan.rules), *(layer.name for layer in layers)],
        [
            texts.RECORD.strip().splitlines(),
            *([RAW.strip().splitlines()] if "_raw." in text + called else []),
            *(helper.text.strip().splitlines() for helper in helpers),
            *definitions,
        ],
    )


def account(plan: RulePlan) -> Account:
    """What the rule costs."""
    core = _core(plan, "_", False)
    kept = kept_names(core)
    ends = {*core.tensors, *(output.name for output in core.plan.outputs)}
    return booked(
        plan,
        core.forward,
        core.backward,
        (name for name in kept if name in ends),
        (name for name in kept if name not in ends),
    )


def _named(plan: ModulePlan) -> list[tuple[RulePlan, str]]:
    """Each rule with the name of its core: ``complex_op`` has ``_complex_op``, unless
    a helper has that name.
    """
    own = texts.HELPERS + tf_ranked_texts.HELPERS + tf_blocks.HELPERS
    helpers = own + tf_double.HELPERS + tf_layer_shapes.HELPERS + table_helpers("tf")
    taken = {"_record", "_raw", *(helper.name for helper in helpers)}
    taken |= {
        name
        for helper in helpers
        for name in re.findall(r"^(_[A-Z]\w*)(?:: .+)? = ", helper.text, re.M)
    }
    taken |= {f"_{rule.name}_double" for rule in plan.rules}
    return [(rule, fresh(f"_{rule.name}", taken)) for rule in plan.rules]


def _core(rule: RulePlan, name: str, is_traced: bool) -> Core:
    core = _made(rule, name, is_traced, DIALECT)
    plan = may_be_doubled(core)
    if plan is None:
        return core
    short = _made(plan, name, False, raw(DIALECT, plan))
    return replace(core, short=short) if is_cheaper(short, core) else core


def _made(rule: RulePlan, name: str, is_traced: bool, dialect: Dialect) -> Core:
    rule = with_sizes(rule)
    rule = rule if rule.is_ranked else answered(without_composites(rule))
    fixed = numbers(rule)
    expand = with_powers(with_forward(together(expander("tf", fixed), fixed)), fixed)
    expand = expand if rule.is_ranked else kept(expand, fixed)
    if dialect is not DIALECT:
        expand = expander("tf", fixed, FORMULAS)
    words = Vocabulary(expand, texts.RESERVED)
    outputs = {output.name for output in rule.outputs}
    keep = tuple(saved for saved in rule.saved if saved not in outputs)
    results = forward(rule, words, keep)
    behind = unnamed(with_shares(rule, results, joined_backward(rule, words)))
    if not is_traced:
        results = in_place(results, _needed(rule, behind))
    return Core(
        name, with_slopes(rule, words.expand), results, behind, is_traced, dialect
    )


def _needed(rule: RulePlan, backward: Backward) -> frozenset[str]:
    """The names of the forward pass that are used after it."""
    steps = (step.value for step in backward.statements)
    terms = (term.value for group in backward.gradients for term in group or ())
    return frozenset([*names(*steps, *terms), *(o.name for o in rule.outputs)])


# --- the public function -----------------------------------------------------------------


def _public(core: Core) -> Lines:
    plan = core.plan
    returned = _TENSOR
    if len(plan.outputs) > 1:
        returned = f"tuple[{', '.join(_TENSOR for _ in plan.outputs)}]"
    return [
        f"@{texts.UNCONVERTED.name}",
        f"def {plan.name}({parameters(plan, _TENSOR)}) -> {returned}:",
        docstring(plan.docs),
        *indented([*_conversions(plan), *_call(core)]),
    ]


def _call(core: Core) -> Lines:
    """The core applied; outputs without a gradient have none in TensorFlow either."""
    function = f"{core.name}({', '.join(core.statics)})" if core.statics else core.name
    call = f"{function}({', '.join(core.tensors)})"
    outputs = core.plan.outputs
    if all(_result(o, "y") == "y" for o in outputs):
        return [f"return {call}"]
    if len(outputs) == 1:
        return [f"return {_result(outputs[0], call)}"]
    results = [_result(o, o.name) for o in outputs]
    return [
        f"{', '.join(o.name for o in outputs)} = {call}",
        f"return {', '.join(results)}",
    ]


def _result(output: Output, value: str) -> str:
    return f"tf.stop_gradient({value})" if output.kind is Kind.NOGRAD else value


def _conversions(plan: RulePlan) -> Lines:
    floats = [i.name for i in plan.tensors if i.kind in (Kind.FLOAT, Kind.NOGRAD)]
    lines = []
    if len(floats) == 1:
        lines.append(
            f'{floats[0]} = _floating("{plan.name}", "{floats[0]}", {floats[0]})'
        )
    elif floats:
        named = ", ".join(f"{name}={name}" for name in floats)
        lines.append(f'{", ".join(floats)} = _promote("{plan.name}", {named})')
    lines += [
        _checked(plan, _discrete(i), i) for i in plan.tensors if i.name not in floats
    ]
    lines += [line for i in plan.statics for line in _number(plan, i)]
    if plan.is_ranked:
        return lines + _shapes(plan)
    lines += [_checked(plan, "_rank0", i) for i in plan.tensors if not i.shape.batch]
    return lines


def _number(plan: RulePlan, i: Input) -> Lines:
    """A static parameter as a Python number, which it nearly always is."""
    whole = i.kind is Kind.STATIC_INT
    kind, made = ("int", "operator.index") if whole else ("float", "float")
    return [
        f"if type({i.name}) is not {kind}:",
        f'    {i.name} = _number("{plan.name}", "{i.name}", {i.name}, {made})',
    ]


def _shapes(plan: RulePlan) -> Lines:
    """Positions are int64; shapes are as declared."""
    lines = [
        f"{i.name} = tf.cast({i.name}, tf.int64)"
        for i in plan.tensors
        if i.kind is Kind.INT
    ]
    declared = ", ".join(declared_shapes(plan))
    return [*lines, f'_check_shapes("{plan.name}", {declared})'] if declared else lines


def _discrete(i: Input) -> str:
    return "_integer" if i.kind is Kind.INT else "_boolean"


def _checked(plan: RulePlan, helper: str, i: Input) -> str:
    return f'{i.name} = {helper}("{plan.name}", "{i.name}", {i.name})'
