"""Large CPU tensors in torch: which passes are evaluated a block at a time, and the
private functions that do it.

The formula stands once. A block is a slice of every tensor, and the class's own `forward`
and `backward` are called with it: what lies between arguments and results stays in the
cache, and the results are those of whole tensors, bit for bit.
"""

from __future__ import annotations

from gradspec.plan.array import Expr, Op
from gradspec.primitives.lookup import primitive
from gradspec.primitives.row import Helper
from gradspec.primitives.table_beside import BESIDE
from gradspec.primitives.texts_torch import CHOICE, IS_PLAIN, IS_WATCHED, WHERE
from gradspec.targets.passes import WORTH_BLOCKS, is_float
from gradspec.targets.torch_costs import in_single
from gradspec.targets.torch_fused import operations, whole, whole_forward
from gradspec.targets.torch_parts import Function
from gradspec.targets.torch_room import IN_ROOM, ROOM, SHARED_ROOM

_WORTH_ROOM = 4.0
"""Products that one call must cost to be copied, from the cache."""


def blocked_passes(function: Function) -> tuple[str, ...]:
    """Those that gain: elementwise, and with values between arguments and results, or one
    function that takes longer than a copy into pages that are large."""
    tensors = [i.name for i in function.plan.tensors]
    if function.plan.is_ranked or function.is_traced:
        return ()
    if function.inputs[0].name not in tensors:
        return ()
    both = {
        "forward": operations(function.forward_values, whole_forward, function.scalars),
        "backward": operations(function.backward_values, whole, function.scalars),
    }
    values = {"forward": function.forward_values, "backward": function.backward_values}
    return tuple(
        name
        for name, made in both.items()
        if sum(map(_passes, made)) >= WORTH_BLOCKS
        or in_single(values[name], function.scalars) >= _WORTH_ROOM
    )


def _passes(node: Expr) -> int:
    """A private function of ours goes through memory several times, but for one that
    only gives a shape.
    """
    if isinstance(node, Op) and node.primitive != BESIDE:
        spelling = primitive(node.primitive).spellings.get("torch")
        if isinstance(spelling, Helper):
            return WORTH_BLOCKS
    return int(is_float(node))


APPLIED = Helper(
    "_applied",
    '''\
def _applied(
    function: type[torch.autograd.Function],
    in_graph: Callable[..., Any],
    exported: Callable[..., Any],
) -> Callable[..., Any]:
    """The rule on the way that keeps its gradient.

    A compiler must not look inside, nor see tangents that come from outside of its graph:
    they would follow its operations. torch.export keeps no Function. Where no transform
    of torch.func is active, the C++ apply does without binding a signature.
    """
    eager = super(torch.autograd.Function, function).apply
    is_compiling, forward_mode = torch.compiler.is_compiling, torch.autograd.forward_ad
    apart = torch.compiler.disable(function.apply)

    def apply(*arguments: Any) -> Any:
        if is_compiling():
            if torch.compiler.is_exporting():
                return exported(*arguments)
            is_dual = forward_mode._current_level >= 0 and not _transforms_are_active()
            return (apart if is_dual else in_graph)(*arguments)
        if _transforms_are_active():
            return function.apply(*arguments)
        return eager(*arguments)

    return apply
''',
    imports=("from collections.abc import Callable", "from typing import Any"),
)

APPLIED_BY_SIZE = Helper(
    "_applied",
    '''\
def _applied(
    function: type[torch.autograd.Function],
    in_graph: Callable[..., Any],
    exported: Callable[..., Any],
    in_blocks: type[torch.autograd.Function] | None = None,
) -> Callable[..., Any]:
    """The rule on the way that keeps its gradient.

    A compiler must not look inside, nor see tangents that come from outside of its graph:
    they would follow its operations. torch.export keeps no Function. Where no transform
    of torch.func is active, the C++ apply does without binding a signature.
    """
    eager = super(torch.autograd.Function, function).apply
    large = super(torch.autograd.Function, in_blocks or function).apply
    is_compiling, forward_mode = torch.compiler.is_compiling, torch.autograd.forward_ad
    apart = torch.compiler.disable(function.apply)

    def apply(*arguments: Any) -> Any:
        if is_compiling():
            if torch.compiler.is_exporting():
                return exported(*arguments)
            is_dual = forward_mode._current_level >= 0 and not _transforms_are_active()
            return (apart if is_dual else in_graph)(*arguments)
        if _transforms_are_active():
            return function.apply(*arguments)
        first = arguments[0]
        if type(first) is torch.Tensor and first.numel() >= _LARGE:
            return large(*arguments)
        return eager(*arguments)

    return apply
''',
    imports=("from collections.abc import Callable", "from typing import Any"),
)

APPLIED_BY_TYPE = Helper(
    "_applied",
    '''\
def _applied(
    function: type[torch.autograd.Function],
    in_graph: Callable[..., Any],
    exported: Callable[..., Any],
    in_blocks: type[torch.autograd.Function] | None = None,
    in_double: tuple[type[torch.autograd.Function], ...] = (),
) -> Callable[..., Any]:
    """The rule on the way that keeps its gradient.

    A compiler must not look inside, nor see tangents that come from outside of its graph:
    they would follow its operations. torch.export keeps no Function. Where no transform
    of torch.func is active, the C++ apply does without binding a signature.
    ``in_double`` are the class for small and that for other narrow tensors on a CPU.
    """
    eager = super(torch.autograd.Function, function).apply
    large = super(torch.autograd.Function, in_blocks or function).apply
    narrow = [super(torch.autograd.Function, way).apply for way in in_double]
    short, medium = narrow or (eager, eager)
    is_compiling, forward_mode = torch.compiler.is_compiling, torch.autograd.forward_ad
    apart = torch.compiler.disable(function.apply)

    def apply(*arguments: Any) -> Any:
        if is_compiling():
            if torch.compiler.is_exporting():
                return exported(*arguments)
            is_dual = forward_mode._current_level >= 0 and not _transforms_are_active()
            return (apart if is_dual else in_graph)(*arguments)
        if _transforms_are_active():
            return function.apply(*arguments)
        first = arguments[0]
        if type(first) is not torch.Tensor or forward_mode._current_level >= 0:
            return eager(*arguments)
        if narrow and first.is_cpu and first.dtype is not torch.float64:
            way = short if first.numel() < _MEDIUM else medium
        else:
            way = eager if first.numel() < _LARGE else large
        return way(*arguments)

    return apply
''',
    imports=("from collections.abc import Callable", "from typing import Any"),
)

LARGE = Helper(
    "_LARGE",
    '''\
_LARGE = 1 << 22
"""Elements from which a tensor is evaluated in blocks, more than a cache holds."""

_MEDIUM = 1 << 19
"""The same in float64."""

torch.empty(_LARGE, device="cpu")  # glibc then keeps what operations give back
''',
)

IN_BLOCKS = Helper(
    "_in_blocks",
    '''\
def _in_blocks(
    function: type[torch.autograd.Function], *passes: str
) -> type[torch.autograd.Function]:
    """``function``, whose ``passes`` (both, if none is named) go over large tensors a
    block at a time.

    What lies between arguments and results then stays in the cache, where whole tensors
    go through memory once for each operation.
    """

    def forward(*arguments: Any) -> Any:
        if not _can_be_split(arguments):
            return function.forward(*arguments)
        return _joined(function.forward, arguments)

    def backward(ctx: Any, *upstream: torch.Tensor | None) -> Any:
        if torch.is_grad_enabled() or torch.compiler.is_compiling():
            return function.backward(ctx, *upstream)
        saved = ctx.saved_tensors  # once: it may be computed again each time
        kept = {"needs_input_grad": ctx.needs_input_grad, **vars(ctx)}

        def gradients(values: tuple[Any, ...], kept: dict[str, Any]) -> Any:
            kept = {**kept, "saved_tensors": values[: len(saved)]}
            context = types.SimpleNamespace(**kept)
            return function.backward(context, *values[len(saved) :])

        def block(*values: torch.Tensor | None) -> Any:
            shape = next(value.shape for value in values if value is not None)
            own = {k: shape if k in shapes else kept[k] for k in kept}
            return gradients(values, own)

        shapes = {k: v for k, v in kept.items() if isinstance(v, torch.Size)}
        values = (*saved, *upstream)
        if not _can_be_split(values, tuple(shapes.values())):
            return gradients(values, kept)
        return _joined(block, values)

    methods = {"forward": forward, "backward": backward}
    chosen = {name: staticmethod(methods[name]) for name in passes or methods}
    return types.new_class(
        function.__name__, (function,), exec_body=lambda body: body.update(chosen)
    )
''',
    imports=(
        "import types",
        "from collections.abc import Callable",
        "from typing import Any",
    ),
)

CAN_BE_SPLIT = Helper(
    "_can_be_split",
    '''\
def _can_be_split(values: tuple[Any, ...], shapes: tuple[torch.Size, ...] = ()) -> bool:
    """Whether the tensors have one shape and are plain, and nothing looks on."""
    if _is_watched():
        return False
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    alike = len({*shapes, *(tensor.shape for tensor in tensors)}) == 1
    return alike and all(_is_plain(tensor) for tensor in tensors)
''',
    imports=("from typing import Any",),
)

JOINED = Helper(
    "_joined",
    '''\
def _joined(compute: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    """``compute`` of each block of the values, put together."""
    like = next(value for value in values if isinstance(value, torch.Tensor))
    size = torch.get_num_threads() << 16  # 64k elements for the cache of each core
    sizes = [size] * (like.numel() // size - 1)
    # the last has the rest: few elements go other ways
    sizes.append(like.numel() - sum(sizes))
    blocks = zip(
        *(
            (
                value.reshape(-1).split(sizes)
                if isinstance(value, torch.Tensor)
                else itertools.repeat(value)
            )
            for value in values
        )
    )
    wholes: list[Any] = []
    start = 0
    for block in blocks:
        made = compute(*block)
        parts = made if isinstance(made, tuple) else (made,)
        if not wholes:
            wholes = [
                part if part is None else _shared_room(part, like.shape)
                for part in parts
            ]
        for whole, part in zip(wholes, parts):
            if part is not None:
                whole.view(-1)[start : start + part.numel()] = part
        start += size
    return tuple(wholes) if isinstance(made, tuple) else wholes[0]
''',
    imports=(
        "import itertools",
        "from collections.abc import Callable",
        "from typing import Any",
    ),
)

HELPERS = (
    IS_PLAIN,
    IS_WATCHED,
    WHERE,
    CHOICE,
    CAN_BE_SPLIT,
    ROOM,
    SHARED_ROOM,
    JOINED,
    LARGE,
    IN_BLOCKS,
    IN_ROOM,
)
"""In the order in which a module has them."""
