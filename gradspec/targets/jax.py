"""JAX modules: a private `custom_jvp` behind a plain function.

A `custom_jvp` serves both directions: JAX transposes the tangents for reverse mode. A
backward pass that is not linear in its upstream gradient (an override may be so) has no
forward derivative; it becomes a `custom_vjp`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gradspec.ir.rule import Input, Kind, Output
from gradspec.plan.account import Account
from gradspec.plan.account import account as booked
from gradspec.plan.array import names as names_of
from gradspec.plan.at_hand import (
    with_outputs_at_hand,
    without_locals,
    without_names,
)
from gradspec.plan.plan import ModulePlan, Nature, RulePlan
from gradspec.plan.program import Vocabulary, forward, joined_backward
from gradspec.plan.pushing import Pushforward, is_linear, pushforward
from gradspec.targets import jax_ranked_texts
from gradspec.targets import jax_texts as texts
from gradspec.targets.docstring import docstring, module_docstring
from gradspec.targets.expansion import expander, with_slopes
from gradspec.targets.jax_core import core_lines
from gradspec.targets.jax_parts import Core, Way
from gradspec.targets.jax_rounded import rounded
from gradspec.targets.jax_start import jax_layers, start_function, start_name
from gradspec.targets.lines import Lines, indented
from gradspec.targets.python import Needs, needs
from gradspec.targets.shares import with_shares
from gradspec.targets.signature import (
    declared_shapes,
    fresh,
    parameters,
    scalars,
    whole_statics,
)
from gradspec.targets.skeleton import laid_out, module_text, table_helpers, used_helpers
from gradspec.targets.together import together
from gradspec.targets.unnamed import unnamed

RESERVED = texts.RESERVED
EMITS_NAMED_AXES = True
TRANSPOSES_TANGENTS = True

_ARRAY = "jax.Array"
_NAMING = "jax.ad_checkpoint import checkpoint_name"
_SUFFIXES = {
    Way.PLAIN: (),
    Way.PUSHED: ("jvp",),
    Way.TRANSPOSED: ("jvp",),
    Way.PULLED: ("forward", "backward"),
}


def module(plan: ModulePlan) -> str:
    """The text of the module."""
    return _module(plan, _cores(plan, False))


def traced_module(plan: ModulePlan) -> str:
    """The same, printing what goes through each rule. It has no forward mode: tangents
    do not come with upstream gradients.
    """
    return _module(plan, _cores(plan, True))


def _module(plan: ModulePlan, cores: Sequence[Core]) -> str:
    wants = Needs(("import jax", "import jax.numpy as jnp"))
    definitions: list[Lines] = []
    for core in cores:
        wants |= needs(core.values, core.scope)
        definitions += [*core_lines(core), *_again(core), _public(core)]
    layers = jax_layers(plan)
    definitions += [start_function(plan, layer) for layer in layers]
    text = "\n".join(laid_out(lines) for lines in definitions)
    own = (*texts.HELPERS, *jax_ranked_texts.HELPERS)
    helpers = used_helpers((*own, *wants.helpers), text)
    wants |= Needs(tuple(line for helper in helpers for line in helper.imports))
    wants |= Needs(
        (
            *(["import operator"] if "operator.index(" in text else []),
            *(["import functools"] if "@functools." in text else []),
            *([f"from {_NAMING}"] if "checkpoint_name(" in text else []),
        )
    )
    if "jnp." not in text + "".join(helper.text for helper in helpers):
        wants = replace(
            wants, imports=tuple(w for w in wants.imports if "jnp" not in w)
        )
    return module_text(
        module_docstring(plan),
        wants.imports,
        [*(r.name for r in plan.rules), *(start_name(plan, x) for x in layers)],
        [*(helper.text.strip().splitlines() for helper in helpers), *definitions],
    )


def account(plan: RulePlan) -> Account:
    """What the rule costs. Of a rule over named axes JAX keeps what it finds necessary."""
    core = _core(plan, "_", (), _way(plan, False), False)
    outputs = [o.name for o in core.outputs]
    used = tuple(n for n in core.tensors if n in core.backward_uses)
    saved = [name for name in core.asked if name not in outputs]
    steps = (s for s in core.backward.statements if s.name not in core.asked)
    told = booked(
        plan,
        core.forward,
        replace(core.backward, statements=tuple(steps)),
        (*used, *(name for name in core.asked if name in outputs)),
        None if plan.is_ranked else saved,
    )
    again = set(outputs) & {*names_of(*core.backward_values)} - set(core.asked)
    return replace(told, backward=told.backward + told.forward) if again else told


# --- cores -------------------------------------------------------------------------------


def _cores(plan: ModulePlan, is_traced: bool) -> list[Core]:
    """Each rule's core: ``complex_op`` has ``_complex_op`` and ``_complex_op_jvp``,
    unless a helper or another core has that name.
    """
    helpers = texts.HELPERS + jax_ranked_texts.HELPERS + table_helpers("jax")
    taken = {helper.name for helper in helpers}
    found = []
    for rule in plan.rules:
        way = _way(rule, is_traced)
        name = fresh(f"_{rule.name}", taken)
        taken.add(name)
        derived = tuple(fresh(f"{name}_{suffix}", taken) for suffix in _SUFFIXES[way])
        taken.update(derived)
        again = fresh(f"{name}_{texts.AGAIN}", taken)
        taken.add(again)
        found.append(replace(_core(rule, name, derived, way, is_traced), again=again))
    return found


def _way(plan: RulePlan, is_traced: bool) -> Way:
    gradients = [g for g in plan.gradients if g is not None]
    if not gradients:
        return Way.PLAIN
    if is_traced or not is_linear(plan):
        return Way.PULLED
    moves = any(g.terms for g in gradients)
    return Way.TRANSPOSED if plan.is_ranked and moves else Way.PUSHED


def _core(
    rule: RulePlan, name: str, derived: tuple[str, ...], way: Way, is_traced: bool
) -> Core:
    fixed = scalars(rule)
    words = Vocabulary(
        together(expander("jax", fixed), fixed), texts.RESERVED | texts.LOCALS
    )
    if rule.nature is Nature.EXACT:
        rule = with_outputs_at_hand(without_locals(rule))
    else:
        rule = without_names(rule)
    results = forward(rule, words)
    core = Core(
        name,
        derived,
        way,
        with_slopes(rule, words.expand),
        results,
        pushforward(rule, words) if way is Way.PUSHED else Pushforward((), ()),
        unnamed(with_shares(rule, results, joined_backward(rule, words))),
        is_traced,
    )
    return rounded(core)


# --- the public function -----------------------------------------------------------------


def _public(core: Core) -> Lines:
    plan = core.plan
    returned = _ARRAY
    if len(plan.outputs) > 1:
        returned = f"tuple[{', '.join(_ARRAY for _ in plan.outputs)}]"
    return [
        f"def {plan.name}({parameters(plan, _ARRAY)}) -> {returned}:",
        docstring(plan.docs),
        *indented([*_conversions(plan), *_in_step(core), *_call(core)]),
    ]


def _again(core: Core) -> list[Lines]:
    """The core as a function that keeps its arguments alone for the backward pass, and
    what the author saves: JAX would keep slopes, and arguments that were widened.
    """
    if not core.is_frugal:
        return []
    saved = ", ".join(f'"{name}"' for name in core.asked)
    comma = "," if len(core.asked) == 1 else ""
    options = [str(len(core.tensors)), *([f"({saved}{comma})"] if saved else [])]
    return [
        [
            f"@_frugal({', '.join(options)})",
            f"def {core.again}({', '.join([*core.tensors, *core.statics])}):",
            *indented(_applied(core)),
        ]
    ]


def _in_step(core: Core) -> Lines:
    """Inputs of a rule that JAX pulls, in `shard_map`: one that devices share beside one
    that they do not.
    """
    if core.way is not Way.PULLED or len(core.tensors) == 1:
        return []
    names = ", ".join(core.tensors)
    return [f"{names} = _in_step({names})"]


def _call(core: Core) -> Lines:
    """What the public function returns."""
    if not core.is_frugal:
        return _applied(core)
    return [f"return {core.again}({', '.join([*core.tensors, *core.statics])})"]


def _applied(core: Core) -> Lines:
    """The core applied, and its results in the type of the arguments."""
    arguments = [_argument(core, i) for i in core.plan.tensors]
    call = f"{core.name}({', '.join([*arguments, *core.statics])})"
    outputs = core.outputs
    if all(_result(core, o, "y") == "y" for o in outputs):
        return [f"return {call}"]
    if len(outputs) == 1:
        return [f"return {_result(core, outputs[0], call)}"]
    results = [_result(core, o, o.name) for o in outputs]
    return [
        f"{', '.join(o.name for o in outputs)} = {call}",
        f"return {', '.join(results)}",
    ]


def _argument(core: Core, i: Input) -> str:
    if i.name not in core.floats:
        return i.name
    helper = "_in_double" if core.is_double else "_widen"
    text = f"{helper}({i.name})" if core.is_widened else i.name
    return f"jax.lax.stop_gradient({text})" if core.way is Way.PLAIN else text


def _result(core: Core, output: Output, value: str) -> str:
    if core.is_widened and output.kind in (Kind.FLOAT, Kind.NOGRAD):
        return f"_narrow({value}, {core.floats[0]}.dtype)"
    return value


def _conversions(plan: RulePlan) -> Lines:
    floats = [i.name for i in plan.tensors if i.kind in (Kind.FLOAT, Kind.NOGRAD)]
    lines = []
    if len(floats) == 1:
        lines.append(
            f'{floats[0]} = _floating("{plan.name}", "{floats[0]}", {floats[0]})'
        )
    elif floats:
        lines.append(
            f'{", ".join(floats)} = _promote("{plan.name}", {_keywords(floats)})'
        )
    lines += [_discrete(plan, i) for i in plan.tensors if i.name not in floats]
    lines += whole_statics(plan)
    lines += [f"{i.name} = float({i.name})" for i in plan.statics if _is_real(i)]
    rank0 = [i.name for i in plan.tensors if not i.shape.batch]
    declared = ", ".join(declared_shapes(plan))
    if plan.is_ranked and declared:
        lines.append(f'_check_shapes("{plan.name}", {declared})')
    elif rank0:
        lines.append(f'_check_rank0("{plan.name}", {_keywords(rank0)})')
    return lines


def _is_real(i: Input) -> bool:
    return i.kind is Kind.STATIC


def _discrete(plan: RulePlan, i: Input) -> str:
    helper = "_integer" if i.kind is Kind.INT else "_boolean"
    return f'{i.name} = {helper}("{plan.name}", "{i.name}", {i.name})'


def _keywords(names: list[str]) -> str:
    return ", ".join(f"{name}={name}" for name in names)
