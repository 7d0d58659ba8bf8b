"""Code shared by modules emitted by gradspec 0.1.0 for PyTorch: arguments, residuals,
transforms.

gradspec copies this file unchanged beside the modules that import it. A rule is a class
that holds only its formulas, as functions of tensors and Python numbers; `Rule`
provides the rest for PyTorch: residuals, half precision, forward mode, transforms,
compilers, export.
"""

from __future__ import annotations

import hashlib
import inspect
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.compiler import is_compiling, is_dynamo_compiling, is_exporting

from .._arguments import checking_axes, explain, no_number, number, unreadable

_transforms_are_active = torch._C._are_functorch_transforms_active
_inside = torch._C._functorch

HALF = {torch.float16: torch.float32, torch.bfloat16: torch.float32}
"""Types that are computed in wider ones: results are rounded once."""
WIDE = dict.fromkeys((*HALF, torch.float32), torch.float64)

_FLOATS = ("floating", "nograd")
_SCHEMA = {"number": "Scalar", "whole": "SymInt", "known": "SymInt"}
_PYTHON = {"number": float, "whole": int, "known": int}
_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class _Formulas:
    """A rule as its backward pass sees it: compilers that trace that pass cannot read
    attributes of a Function.
    """

    name: str
    kinds: Mapping[str, str]
    extra: int
    constant: tuple[int, ...]
    value: Callable[..., Any]
    pullback: Callable[..., Any]
    pushforward: Callable[..., Any] | None
    residuals: Callable[..., tuple[Any, ...]] | None


class Rule(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """A function with a gradient of its own.

    A subclass has static methods:

    * ``value(*inputs)``: the output, or a tuple of outputs; the last ``extra`` are locals
      that the pullback takes.
    * ``pullback(needs, *residuals, *cotangents)``: gradients of the first inputs, which
      autograd sums to the shape and rounds to the type of each. ``needs`` tells which are
      asked for. Of several cotangents some may be None, unless the rule ``fills`` them.
    * ``pushforward(*residuals, *tangents)``: the tangents of the outputs that have one.
      Without it, the pullback: a derivative that is its own transpose. None: the rule
      has no forward mode.
    * ``residuals(*inputs, *outputs)``: what these are given. Without it, the inputs.

    and the decorator `rule`, with the rule's name; ``kinds`` of inputs that are not
    floating: "nograd" (floating without a gradient), "integer", "boolean", and last
    "number", "whole" and "known" (a whole number that is no compiler's symbol);
    ``axes``, declared shapes as in ``{"x": "... n"}``; ``computed_in``; ``constant``,
    the places of outputs without a gradient; ``is_exact``, whether the gradient is the
    derivative of ``value``; ``outputs``, their number; ``inputs``, the names of the
    inputs, where those of ``value`` do not tell.
    """

    value: ClassVar[Callable[..., Any]]
    pullback: ClassVar[Callable[..., Any]]
    pushforward: ClassVar[Callable[..., Any] | None]
    residuals: ClassVar[Callable[..., tuple[Any, ...]] | None] = None
    call: ClassVar[Callable[..., Any]]
    """The rule applied to the arguments of its public function."""

    _formulas: ClassVar[_Formulas]
    _name: ClassVar[str]
    _kinds: ClassVar[dict[str, str]]
    _computed_in: ClassVar[Mapping[torch.dtype, torch.dtype]]
    _extra: ClassVar[int]
    _has_numbers: ClassVar[bool]
    _fills: ClassVar[bool]
    _constant: ClassVar[tuple[int, ...]]
    _inputs: ClassVar[Callable[..., tuple[Any, ...]]]
    _rounded: ClassVar[Callable[..., Any]]

    generate_vmap_rule = True

    @classmethod
    def forward(cls, *inputs: Any) -> Any:
        """The forward pass, called by autograd."""
        made = cls._rounded(*inputs)
        if (
            isinstance(made, tuple)
            and _transforms_are_active()
            and not is_dynamo_compiling()
        ):
            return tuple(_batched_alike(made, inputs))
        return made

    @classmethod
    def setup_context(cls, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save the residuals; only the inputs where the residuals are recomputed."""
        outputs = output if isinstance(output, tuple) else (output,)
        dtype = _dtype(inputs)
        wide = cls._computed_in.get(dtype)
        ctx.rule, ctx.wide = cls._formulas, wide and _wide(wide, inputs)
        ctx.again = wide is not None and cls.residuals is not None
        kept, ctx.numbers = inputs, ()
        if cls.residuals is not None and not ctx.again:
            kept = cls.residuals(*inputs, *outputs)
        ctx.count = len(kept)
        if cls._extra:  # a second derivative must see through what was kept
            kept = (*kept, *inputs)
        if cls._has_numbers:
            ctx.numbers = [None if isinstance(v, Tensor) else v for v in kept]
            kept = tuple([v for v in kept if isinstance(v, Tensor)])
        ctx.save_for_backward(*kept)
        if cls.pushforward is not None and (
            forward_ad._current_level >= 0 or is_compiling() or _transforms_are_active()
        ):
            ctx.save_for_forward(*kept)
            ctx.dtype, ctx.shapes = dtype, [y.shape for y in outputs]
        if cls._constant:
            fixed = [_without_batch(outputs[k]) for k in cls._constant]
            ctx.mark_non_differentiable(*fixed)
        if len(outputs) > 1:
            ctx.set_materialize_grads(cls._fills)
            ctx.moving = [
                x.shape
                for x, kind in zip(inputs, cls._kinds.values(), strict=True)
                if kind in _FLOATS
            ]

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor | None) -> Any:
        """Gradients of the inputs."""
        rule, given = ctx.rule, cotangents
        if rule.constant:
            given = tuple(d for k, d in enumerate(cotangents) if k not in rule.constant)
        if len(given) == 1 and given[0] is None:
            return (None,) * len(ctx.needs_input_grad)
        differentiated = torch.is_grad_enabled() or forward_ad._current_level >= 0
        kept, given = _in_working_dtype(ctx, ctx.saved_tensors, given, differentiated)
        found = rule.pullback(ctx.needs_input_grad, *kept, *given)
        found = found if isinstance(found, tuple) else (found,)
        return found + (None,) * (len(ctx.needs_input_grad) - len(found))

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> Any:
        """Tangents of the outputs."""
        rule = ctx.rule
        if rule.pushforward is None:
            raise NotImplementedError(f"{rule.name} has no forward mode")
        with forward_ad._set_fwd_grad_enabled(True):  # or tangents of tangents were 0
            saved = tuple(map(_primal, ctx.saved_tensors))
            kept, moving = _in_working_dtype(
                ctx, saved, tuple(_tangents(ctx, tangents)), True
            )
            made = rule.pushforward(*kept, *moving)
            dots = iter(made if isinstance(made, tuple) else (made,))
            found = tuple(
                None if k in rule.constant else next(dots).expand(shape).to(ctx.dtype)
                for k, shape in enumerate(ctx.shapes)
            )
            return found if len(found) > 1 else found[0]


def rule(
    name: str,
    *,
    kinds: Mapping[str, str] = _NOTHING,
    axes: Mapping[str, str] = _NOTHING,
    computed_in: Mapping[torch.dtype, torch.dtype] = HALF,
    extra: int = 0,
    constant: tuple[int, ...] = (),
    fills: bool = False,
    is_exact: bool = True,
    outputs: int = 1,
    inputs: Sequence[str] = (),
) -> Callable[[type[Rule]], type[Rule]]:
    """The decorator that registers a rule with PyTorch, see `Rule`."""

    def decorate(cls: type[Rule]) -> type[Rule]:
        code = inspect.unwrap(cls.value).__code__
        names = inputs or code.co_varnames[: code.co_argcount]
        cls._name, cls._computed_in = name, computed_in
        cls._kinds = {n: kinds.get(n, "floating") for n in names}
        cls._extra, cls._fills = extra, fills
        is_mixed = any(kind in _PYTHON for kind in cls._kinds.values())
        cls._has_numbers = is_mixed or extra > 0  # a local may be a choice by a size
        cls._constant = (*constant, *range(outputs, outputs + extra))
        if not hasattr(cls, "pushforward"):
            cls.pushforward = staticmethod(_transpose(cls.pullback))
        # a compiler that looked inside would differentiate ``forward``
        torch.compiler.allow_in_graph(cls)
        # of a Function a compiler reads methods alone, so that these have what they need
        told = (cls._name, cls._kinds, extra, cls._constant)
        formulas = (cls.value, cls.pullback, cls.pushforward, cls.residuals)
        cls._formulas = _Formulas(*told, *formulas)
        cls._rounded = staticmethod(_rounding(cls.value, cls._kinds, computed_in))
        exported = cls._rounded if is_exact else _operation(cls, outputs)
        cls._inputs = staticmethod(_converting(name, cls._kinds, axes))
        cls.call = staticmethod(_calling(cls, cls._inputs, exported, extra, axes))
        return cls

    return decorate


def _transpose(pullback: Callable[..., Any]) -> Callable[..., Any]:
    """The pullback of one gradient as a pushforward."""

    def pushforward(*given: Any) -> Any:
        return pullback((True,), *given)

    return pushforward


def _calling(
    cls: type[Rule],
    converted: Callable[..., tuple[Any, ...]],
    exported: Callable[..., Any],
    extra: int,
    axes: Mapping[str, str],
) -> Callable[..., Any]:
    """The implementation of a rule's public function, for eager mode, compilers and
    export.
    """
    eager = super(torch.autograd.Function, cls).apply  # .apply binds a signature
    outside = torch.compiler.disable(cls.apply)

    def call(*arguments: Any) -> Any:
        inputs = converted(*arguments)
        if is_compiling():
            if is_exporting():
                made = exported(*inputs)
            elif forward_ad._current_level >= 0 and not _transforms_are_active():
                made = outside(*inputs)  # a graph would not see dual numbers
            else:
                made = cls.apply(*inputs)
        else:
            try:
                apply = cls.apply if _transforms_are_active() else eager
                made = apply(*inputs)
            except (IndexError, RuntimeError) as fault:
                given = dict(zip(cls._kinds, inputs, strict=True))
                explain(fault, cls._name, given, cls._kinds, axes)
                raise
        if not extra:
            return made
        return made[0] if len(made) == extra + 1 else made[:-extra]

    return call


def _rounding(
    value: Callable[..., Any],
    kinds: Mapping[str, str],
    computed_in: Mapping[torch.dtype, torch.dtype],
) -> Callable[..., Any]:
    """``value`` computed in the dtype of the computation, rounded once."""
    numbers = [k for k, kind in enumerate(kinds.values()) if kind == "number"]

    def call_rounded(*inputs: Any) -> Any:
        dtype = _dtype(inputs)
        if dtype in computed_in:
            wide = _wide(computed_in[dtype], inputs)
            return _cast(value(*_cast(inputs, wide)), dtype)
        made = value(*inputs)
        if numbers and any(isinstance(inputs[k], Tensor) for k in numbers):
            return _cast(made, dtype)  # they may be of another type
        return made

    return call_rounded


def _converting(
    rule: str, kinds: Mapping[str, str], axes: Mapping[str, str]
) -> Callable[..., tuple[Any, ...]]:
    """A converter of arguments to tensors of one floating type, and numbers."""
    names, words = tuple(kinds), tuple(kinds.values())
    count = sum(word in _FLOATS for word in words)
    types = [_PYTHON.get(word) for word in words[count:]]
    is_plain = None not in types and all(word in _FLOATS for word in words[:count])
    check_axes = checking_axes(rule, kinds, axes)

    def are_ready(arguments: tuple[Any, ...]) -> bool:
        pairs = zip(arguments[count:], types, strict=True)
        return _are_alike(arguments[:count]) and all(type(x) is t for x, t in pairs)

    def convert(*arguments: Any) -> tuple[Any, ...]:
        inputs = arguments
        if not (is_plain and count and are_ready(arguments)):
            given = dict(zip(names, arguments, strict=True))
            floats = {n: given[n] for n in names if kinds[n] in _FLOATS}
            made = dict(zip(floats, _promote(rule, floats), strict=True))
            inputs = tuple(
                made[n] if n in made else _convert(rule, n, kinds[n], given[n])
                for n in names
            )
            inputs = _numbers_alike(inputs, words)
        if axes:
            check_axes(inputs)
        return inputs

    return convert


def sum_to(gradient: Tensor, x: Tensor) -> Tensor:
    """``gradient`` summed over the axes along which ``x`` was broadcast."""
    shape = x.shape
    try:
        return gradient if gradient.shape == shape else gradient.sum_to_size(shape)
    except RuntimeError:  # a compiler has no numbers for the sizes, and compares none
        padded = [1] * (gradient.dim() - len(shape)) + list(shape)
        axes = [k for k, size in enumerate(padded) if type(size) is int and size == 1]
        return gradient.sum(axes, keepdim=True).view(shape) if axes else gradient


def plus(total: Tensor | None, term: Tensor) -> Tensor:
    """``total + term``, where there may be no total yet."""
    return term if total is None else total + term


def scalar_like(like: Tensor, value: Any) -> Tensor:
    """``value`` as a tensor without axes, of the type of ``like``."""
    if isinstance(value, Tensor):
        return value.to(like.dtype)
    try:
        return like.new_full((), value)
    except NotImplementedError:  # of a nested tensor
        return torch.full((), value, dtype=like.dtype, device=like.device)


def broadcast_full(
    value: Any, *like: Tensor, dtype: torch.dtype | None = None
) -> Tensor:
    """``value`` in its joint shape with the tensors, and the dtype of the first."""
    first = like[0] if len(like) == 1 else torch.broadcast_tensors(*like)[0]
    if isinstance(value, Tensor):
        return torch.zeros_like(first, dtype=dtype) + value
    return torch.full_like(first, value, dtype=dtype)


def broadcast_like(x: Tensor, y: Tensor) -> Tensor:
    """``x`` broadcast with ``y``, and in the vmap batch of ``y``."""
    if y.is_nested:  # its shape has sizes that are no numbers
        return x - torch.zeros_like(y, dtype=x.dtype)
    return x - y.new_zeros((), dtype=x.dtype).expand(y.shape)


# --- between the passes --------------------------------------------------------------------


def _in_working_dtype(
    ctx: Any, saved: tuple[Any, ...], others: tuple[Any, ...], is_differentiated: bool
) -> Any:
    """The residuals, and the other values passed to a pass, in the dtype of the
    computation.
    """
    if ctx.wide is not None:
        saved, others = _cast(saved, ctx.wide), _cast(others, ctx.wide)
    kept = saved
    if ctx.numbers:
        left = iter(saved)
        kept = tuple(next(left) if n is None else n for n in ctx.numbers)
    inputs = kept[ctx.count :] if ctx.rule.extra else kept
    if ctx.again or (ctx.rule.extra and is_differentiated):
        made = ctx.rule.value(*inputs)
        made = made if isinstance(made, tuple) else (made,)
        return ctx.rule.residuals(*inputs, *made), others
    return kept[: ctx.count], others


def _dtype(inputs: Sequence[Any]) -> torch.dtype | None:
    for x in inputs:
        if isinstance(x, Tensor) and x.is_floating_point():
            return x.dtype
    return torch.get_default_dtype()


def _wide(dtype: torch.dtype, inputs: Sequence[Any]) -> torch.dtype:
    """float64, but float32 on a device without float64."""
    on_mps = any(isinstance(x, Tensor) and x.device.type == "mps" for x in inputs)
    return torch.float32 if on_mps else dtype


def _is_floating(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _cast(value: Any, dtype: Any) -> Any:
    """``value`` with its floating tensors cast to another type."""
    if isinstance(value, tuple):
        return tuple(_cast(v, dtype) for v in value)
    return value.to(dtype) if _is_floating(value) else value


def _tangents(ctx: Any, tangents: tuple[Tensor | None, ...]) -> Iterator[Tensor]:
    """Tangents of the inputs with a gradient: zeros for None."""
    kinds = tuple(ctx.rule.kinds.values())
    moved = [k for k, kind in enumerate(kinds) if kind == "floating"]
    floats = [k for k, kind in enumerate(kinds) if kind in _FLOATS]
    like = next(t for t in tangents if t is not None)
    for k in moved:
        tangent = tangents[k]
        if tangent is None:
            tangent = like.new_zeros(ctx.moving[floats.index(k)])
        yield tangent


def _primal(tensor: Tensor) -> Tensor:
    """``tensor`` without its jvp tangent; vmap batches are unwrapped and restored."""
    if _inside.is_batchedtensor(tensor):
        primal = _primal(_inside.get_unwrapped(tensor))
        axis, level = _inside.maybe_get_bdim(tensor), _inside.maybe_get_level(tensor)
        return _inside._add_batch_dim(primal, axis, level)
    return forward_ad.unpack_dual(tensor, level=0).primal


def _without_batch(tensor: Tensor) -> Tensor:
    """The tensor that holds a batch of vmap: the one that autograd knows."""
    if _transforms_are_active() and tensor.is_floating_point():
        while _inside.is_batchedtensor(tensor):
            tensor = _inside.get_unwrapped(tensor)
    return tensor


def _batched_alike(
    outputs: tuple[Any, ...], inputs: tuple[Any, ...]
) -> Iterator[Tensor]:
    """Outputs in each vmap batch of any input: the cotangent of an unbatched output
    would be summed over the batch before it reaches the rule.
    """
    tensors = [x for x in inputs if isinstance(x, Tensor)]
    for y in outputs:
        zero = sum(x.new_zeros((), dtype=y.dtype) for x in tensors)
        yield y + zero if y.is_floating_point() else y


def _operation(rule: type[Rule], outputs: int) -> Callable[..., Any]:
    """The rule as one node of an exported graph, which cannot contain a Function. Its
    name has a digest of the rule, so that a saved program finds this rule or none.
    """
    given = [f"{_SCHEMA.get(kind, 'Tensor')} {n}" for n, kind in rule._kinds.items()]
    count = outputs + rule._extra
    made = "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"
    schema = f"({', '.join(given)}) -> {made}"
    codes = [inspect.unwrap(f).__code__ for f in (rule.value, rule.pullback)]
    text = repr([(schema, c.co_code, c.co_consts, c.co_names) for c in codes])
    name = f"{rule._name}_{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    if not hasattr(torch.ops.gradspec, name):
        ways = {name: schema}
        if "Scalar " in schema:  # a static may be a tensor, too
            ways[f"{name}.tensors"] = schema.replace("Scalar ", "Tensor ")
        for way, taken in ways.items():
            torch.library.define(f"gradspec::{way}", taken)
            for key in ("CompositeImplicitAutograd", "FuncTorchDynamicLayerFrontMode"):
                torch.library.impl(f"gradspec::{way}", key, rule.apply)
    return getattr(torch.ops.gradspec, name)  # type: ignore[no-any-return]


# --- arguments -----------------------------------------------------------------------------


def _are_alike(values: Sequence[Any]) -> bool:
    """True if these are floating tensors of one type."""
    first, others = values[0], values[1:]
    is_floating = isinstance(first, Tensor) and first.is_floating_point()
    if not others:
        return is_floating
    return is_floating and all(
        isinstance(v, Tensor) and v.dtype is first.dtype for v in others
    )


def _promote(rule: str, values: Mapping[str, Any]) -> tuple[Tensor, ...]:
    """Tensors of one floating type, the widest; Python numbers take it over."""
    if not values or _are_alike(tuple(values.values())):
        return tuple(values.values())
    tensors = [v for v in values.values() if isinstance(v, Tensor)]
    for name, value in values.items():
        if isinstance(value, Tensor) and not value.is_floating_point():
            raise TypeError(
                f"{rule}: {name} must be a floating tensor, not {value.dtype}; "
                f"convert it first, as in {name}.to(torch.float32)"
            )
    types = [v.dtype for v in tensors] or [torch.get_default_dtype()]
    kind: dict[str, Any] = {"dtype": reduce(torch.promote_types, types)}
    if tensors:
        kind["device"] = tensors[0].device
    return tuple(
        v.to(kind["dtype"]) if isinstance(v, Tensor) else _as_tensor(rule, n, v, **kind)
        for n, v in values.items()
    )


def _as_tensor(rule: str, name: str, value: Any, **kind: Any) -> Tensor:
    """A number as a tensor; a compiler's symbol for a number remains one."""
    if isinstance(value, torch.SymInt | torch.SymFloat | float) or (
        isinstance(value, int) and is_compiling()
    ):
        return torch.scalar_tensor(value, **kind)
    if isinstance(value, torch.fx.Proxy):
        raise TypeError(
            "torch.fx finds a rule by its name in a module: call module.rule(x), "
            "or say torch.fx.wrap('rule') where it was imported by name"
        )
    try:
        return torch.as_tensor(value, **kind)
    except (RuntimeError, TypeError, ValueError) as fault:
        raise unreadable(rule, name, fault) from fault


def _convert(rule: str, name: str, kind: str, value: Any) -> Any:
    """An integer or boolean tensor, or a number."""
    if kind in ("known", "whole"):
        is_whole = isinstance(value, int | torch.SymInt)  # as a symbol is to a compiler
        if not is_whole or isinstance(value, bool):
            return number(rule, name, value, is_whole=True)
        return operator.index(value) if kind == "known" else value
    if kind == "number":
        return value if type(value) is float else _number(rule, name, value)
    if not isinstance(value, Tensor):
        is_count = kind == "integer" and type(value) in (int, torch.SymInt)
        dtype = torch.int64 if is_count else None
        value = (
            torch.scalar_tensor(value, dtype=dtype)
            if is_count
            else _as_tensor(rule, name, value)
        )
    is_bool = value.dtype == torch.bool
    if (
        value.is_floating_point()
        or value.is_complex()
        or is_bool != (kind == "boolean")
    ):
        a, to = ("an", "torch.int64") if kind == "integer" else ("a", "torch.bool")
        raise TypeError(
            f"{rule}: {name} must be {a} {kind} tensor, not {value.dtype}; "
            f"convert it first, as in {name}.to({to})"
        )
    return value.long() if kind == "integer" and value.itemsize < 4 else value


def _number(rule: str, name: str, value: Any) -> Any:
    """A static as a float; a compiler's symbol or a tensor without gradient is kept."""
    if isinstance(value, Tensor):
        if value.requires_grad:
            raise TypeError(
                f"{rule}: {name} is static and gets no gradient; "
                f"give a number, as in {name}.item()"
            )
        if value.is_complex():
            raise TypeError(f"{rule}: {name} must be a real number, not {value.dtype}")
        if value.dim():
            raise no_number(rule, name, value, is_whole=False)
        return value
    if isinstance(value, torch.SymInt | torch.SymFloat):
        return torch.sym_float(value)
    if isinstance(value, bool | str):
        raise no_number(rule, name, value, is_whole=False)
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise no_number(rule, name, value, is_whole=False) from None


def _numbers_alike(inputs: tuple[Any, ...], kinds: tuple[str, ...]) -> tuple[Any, ...]:
    """Statics that are tensors, or all as tensors if one is: torch has functions for
    numbers and for tensors, but not for a mixture.
    """
    places = [k for k, kind in enumerate(kinds) if kind == "number"]
    like = next((inputs[k] for k in places if isinstance(inputs[k], Tensor)), None)
    if like is None:
        return inputs
    wide = _wide(torch.float64, [like])
    made = list(inputs)
    for k in places:
        if not isinstance(made[k], Tensor):
            made[k] = torch.scalar_tensor(made[k], dtype=wide, device=like.device)
    return tuple(made)


# --- assumptions ----------------------------------------------------------------------


def require(found: Any, rule: str, *assumed: str) -> None:
    """Raise a ValueError unless every assumption holds at all elements; ``found`` has
    one boolean tensor for each of them. In a compiled graph it is an assertion, which
    raises a RuntimeError."""
    for holds, text in zip(found if assumed[1:] else (found,), assumed, strict=True):
        if is_compiling():
            torch._assert_async(holds.all(), f"{rule} assumes {text}")
            continue
        every = holds
        while _inside.is_functorch_wrapped_tensor(every):
            every = _inside.get_unwrapped(every)  # of vmap the whole batch
        wrong = every.numel() - int(every.count_nonzero())
        if wrong:
            size = every.numel()
            raise ValueError(f"{rule} assumes {text}: false at {wrong} of {size}")
