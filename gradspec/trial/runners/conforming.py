"""One cell of the conformance matrix: a rule through one feature of a framework.

Run as ``python <runner>.py JOB RESULT``: every cell is written to RESULT as it is done,
so that the parent knows which one a crash is due to.
"""

from __future__ import annotations

import copy
import functools
import importlib
import json
import math
import pickle
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from trying import orders, try_rules

from gradspec.trial import loading

Case = dict[str, Any]
Run = Callable[[Any], Any]

RELATIVE = 2e-4
"""Single precision, relative to the largest element of a gradient."""

HALF = 0.05
"""Tolerance of a feature that computes in bfloat16."""

DOUBLE = 1e-9
"""Tolerance of a feature in float64, which a single-precision step would exceed."""


class Register(dict[str, Run]):
    """The functions of a runner by the names of their features."""

    def __call__(self, name: str) -> Callable[[Run], Run]:
        def register(function: Run) -> Run:
            self[name] = function
            return function

        return register


def main(
    register: Register,
    setting: Any,
    plain: Callable[[str], ModuleType],
    parts: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Every cell of the job, or every rule of a trial; ``setting`` makes what a feature
    is given of a rule, ``plain`` the module that leaves differentiation to the
    framework; ``parts`` are modules that register the features of a group.
    """
    job = loading.job()
    for group in {feature["group"] for feature in job["features"]} & {*parts}:
        importlib.import_module(parts[group])
    if job["trial"]:
        setting.prepare_trial()
        try_rules(job, register, setting)
        return
    left = set(map(tuple, job["left"]))
    for path, case in (
        (m["path"], case) for m in job["modules"] for case in m["rules"]
    ):
        load = plain if case["way"] == "plain" else imported

        def made(path: str = path, case: Case = case, load: Any = load) -> Any:
            return setting(load(path), case)

        for feature in job["features"]:
            key = (path, case["rule"], case["way"], feature["name"])
            if key in left:
                loading.report({"key": key, "state": "started"})
                run = register[feature["name"]]
                state, message = _cell(run, made, case, feature)
                loading.report({"key": key, "state": state, "message": message})


def _cell(
    run: Run,
    build: Callable[[], Any],
    case: Case,
    feature: dict[str, Any],
) -> tuple[str, str]:
    try:
        setting = build()
        made = run(setting)
        got = None if made is None else setting.listed(made)
    except Exception as fault:
        return "error", told(fault)
    order = feature["order"]
    if not order and got is None:  # it has checked what there is to check
        return "ok", ""
    room = HALF if feature["half"] else DOUBLE if feature["double"] else RELATIVE
    expected, lost = (orders(one)[order] for one in (case, {**case, **case["bare"]}))
    if _agree(got, expected, room):
        return "ok", ""
    if lost is not None and _agree(got, lost, room):
        return "dropped", "what the forward expression gives came out"
    return "wrong", f"got {_short(got)}, expected {_short(_flat(expected))}"


def told(fault: Exception) -> str:
    """The first line of an exception's message, or the last if the first only
    announces."""
    words = [line.strip() for line in str(fault).splitlines() if line.strip()] or [""]
    if words[0].endswith(":"):
        words.reverse()
    frames = traceback.extract_tb(fault.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(fault).__name__}: {words[0][:160]}{where}"


def _flat(gradients: dict[str, Any]) -> list[list[float]]:
    return [values for _, values in gradients.values()]


def _agree(got: list[Any] | None, expected: dict[str, Any], room: float) -> bool:
    """True if shapes and elements agree. ``got`` has [shape, values] for each
    gradient."""
    if got is None or len(got) != len(expected):
        return False
    for (shape, values), wanted in zip(got, expected.values(), strict=True):
        if wanted is None or list(shape) != list(wanted[0]):
            return False
        true = wanted[1]
        slack = room * max([1e-3, *(abs(v) for v in true)])
        if len(values) != len(true):
            return False
        for a, b in zip(values, true, strict=True):
            if not (math.isfinite(a) and abs(a - b) <= slack):
                return False
    return True


def _short(values: Any) -> str:
    text = json.dumps(values)
    return text if len(text) <= 90 else f"{text[:87]}..."


def emptied(case: Case, inputs: list[Any]) -> list[Any]:
    """The inputs with a batch of size zero, where they have its first axis."""
    names = [name for name, _ in case["inputs"]]
    pairs = zip(names, inputs, strict=True)
    return [x[:0] if name in case["batched"] else x for name, x in pairs]


def elsewhere(case: Case) -> Case:
    """The call with other statics. Integers may be sizes of axes, which stay."""
    kept = int if case["axes"] else ()
    statics = {
        name: value if isinstance(value, kept) else value + 1
        for name, value in case["statics"].items()
    }
    return {**case, "statics": statics}


def unused(rule: Any, path: str, case: Case) -> Any:
    """The rule of a freshly imported module, before any call."""
    if case["way"] == "plain":
        return rule
    return getattr(imported_as("unused_", path), case["rule"])


def rows(case: Case) -> tuple[int, list[bool], list[bool]]:
    """The size of the batch's first axis; which inputs, and which upstream gradients,
    have it.
    """
    sizes = {name: case["given"][name][0][0] for name in case["batched"]}
    size = max(sizes.values(), default=0)
    inputs = [sizes.get(name) == size for name, _ in case["inputs"]]
    return size, inputs, [name in case["rows"] for name in case["upstream"]]


def require(condition: bool, message: str) -> None:
    """Raise ValueError unless the condition holds; for features without a gradient."""
    if not condition:
        raise ValueError(message)


def imported(path: str) -> ModuleType:
    """The emitted module under a name of its own, which pickling finds."""
    return loading.imported(path)


def imported_as(prefix: str, path: str) -> ModuleType:
    """The module at ``path`` in a package whose name begins with ``prefix``."""
    return loading.imported(path, prefix)


# --- without rules --------------------------------------------------------------------

PREFIX = "plain_"
"""Of modules without their rules, plain framework code of the forward expression: what
fails there is the framework's own."""


def _runtime(module: ModuleType) -> ModuleType:
    """The runtime that the module imports."""
    package = module.__name__.rpartition(".")[0]
    return sys.modules[f"{package}._gradspec"]


@functools.cache
def torch_module(path: str) -> ModuleType:
    """The module with the forward code of each `Function` in its place."""
    module: ModuleType = imported_as(PREFIX, path)
    rules = _runtime(module).Rule.__subclasses__()
    for rule in rules:
        rule.call = staticmethod(_forward(rule))
    return module


def _forward(rule: Any) -> Any:
    """The rule's forward pass, of functions that compilers can trace."""
    converted, rounded, extra = rule._inputs, rule._rounded, rule._extra

    def call(*arguments: Any) -> Any:
        inputs = converted(*arguments)
        made = rounded(*inputs)
        outputs = made if isinstance(made, tuple) else (made,)
        count = len(outputs) - extra
        found = tuple(_attached(y, inputs) for y in outputs[:count])
        return found if count > 1 else found[0]

    return call


def _attached(output: Any, inputs: tuple[Any, ...]) -> Any:
    """A step has no graph in PyTorch; its derivative is 0 all the same."""
    if not output.requires_grad and output.is_floating_point():
        for x in inputs:
            if getattr(x, "requires_grad", False):
                output = output + 0 * x
    return output


def tf_module(path: str) -> ModuleType:
    """The module with each rule's forward code recorded operation by operation."""
    module: ModuleType = imported_as(PREFIX, path)
    runtime: Any = _runtime(module)

    def applied(core: Any, tensors: Any, precision: Any, _is_linear: bool) -> Any:
        results, _ = core(*runtime._widened(tensors, precision))
        wide = runtime._widened(tensors, precision)
        types = {x.dtype for w, x in zip(wide, tensors, strict=True) if w is not x}
        outputs = results if isinstance(results, tuple) else (results,)
        for dtype in types:
            cast = functools.partial(runtime.tf.cast, dtype=dtype)
            outputs = tuple(cast(y) if y.dtype.is_floating else y for y in outputs)
        return outputs if isinstance(results, tuple) else outputs[0]

    runtime._applied = applied
    return module


class _Ruleless:
    """In place of `jax.custom_jvp` and `jax.custom_vjp`."""

    def __init__(self, core: Callable[..., Any], **_: Any) -> None:
        self.core = core

    def __call__(self, *arguments: Any) -> Any:
        return self.core(*arguments)

    def defjvp(self, *_: Any, **__: Any) -> None:
        """Nothing is declared."""

    defvjp = defjvp


def jax_module(path: str) -> ModuleType:
    """The core alone."""
    real = sys.modules["jax"]
    sys.modules["jax"] = _Other(real, custom_jvp=_Ruleless, custom_vjp=_Ruleless)
    try:
        module: ModuleType = imported_as(PREFIX, path)
        return module
    finally:
        sys.modules["jax"] = real


class _Other(ModuleType):
    """A framework some of whose names stand for something else."""

    def __init__(self, real: ModuleType, **names: Any) -> None:
        super().__init__(real.__name__)
        self.__dict__.update(names)
        self.__dict__["_real"] = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


# --- features that frameworks have alike ----------------------------------------------


def first_of(stacked: Iterable[Any]) -> list[Any]:
    """Of two calls the first."""
    return [g[0] for g in stacked]


def transforms(library: Any) -> dict[str, Run]:
    """The features of the transforms of a ``library``, by JAX's names."""
    grad, vmap, vjp, jvp = library.grad, library.vmap, library.vjp, library.jvp

    def gradient(s: Any) -> Any:
        return grad(s.total, s.every)

    def probed(s: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        """The gradient of a function times the probes."""
        return lambda *floats: s.probed(grad(function, s.every)(*floats))

    def linearized(s: Any) -> Any:
        push = library.linearize(s.total, *s.floats)[1]
        return s.along(lambda tangents: push(*tangents))

    def some_inputs(s: Any) -> Any:
        found = []
        for place, x in enumerate(s.stacked()):
            given = [*s.floats]
            given[place] = x
            axes = tuple(0 if k == place else None for k in s.every)
            found.append(vmap(gradient(s), axes)(*given)[place][0])
        return found

    def grad_of_vmap(s: Any) -> Any:
        def total_of_two(*floats: Any) -> Any:
            return vmap(s.total)(*(s.stack([x, x]) for x in floats)).sum()

        return [g / 2 for g in grad(total_of_two, s.every)(*s.floats)]

    def jvp_of_vmap(s: Any) -> Any:
        def push(tangents: Any) -> Any:
            moved = tuple(s.stack([t, 0 * t]) for t in tangents)
            return jvp(vmap(s.total), tuple(s.stacked()), moved)[1][0]

        return s.along(push)

    def vmap_twice(s: Any) -> Any:
        thrice = (s.stack([x] * 3) for x in s.stacked())
        return [g[2, 0] for g in vmap(vmap(gradient(s)))(*thrice)]

    jacrev, jacfwd = library.jacrev, library.jacfwd
    return {
        "vjp, values": lambda s: vjp(s.tuple_of, *s.floats)[0],
        "jvp, values": lambda s: jvp(
            s.tuple_of, s.floats, tuple(0 * x + 1 for x in s.floats)
        )[0],
        "vmap, values": lambda s: first_of(vmap(s.tuple_of)(*s.stacked())),
        "grad": lambda s: gradient(s)(*s.floats),
        "vjp": lambda s: vjp(s.tuple_of, *s.floats)[1](tuple(s.upstream)),
        "jvp": lambda s: s.along(lambda t: jvp(s.total, s.floats, t)[1]),
        "linearize": linearized,
        "vmap": lambda s: first_of(vmap(gradient(s))(*s.stacked())),
        "vmap over the last axis": lambda s: [
            g[..., 0] for g in vmap(gradient(s), -1, -1)(*s.stacked(-1))
        ],
        "vmap in vmap": vmap_twice,
        "vmap of one input beside others": some_inputs,
        "grad of vmap": grad_of_vmap,
        "jvp of vmap": jvp_of_vmap,
        "jacrev": lambda s: jacrev(s.total, s.every)(*s.floats),
        "jacfwd": lambda s: jacfwd(s.total, s.every)(*s.floats),
        "grad of grad": lambda s: grad(probed(s, s.total), s.every)(*s.floats),
        "grad of grad of grad": lambda s: grad(probed(s, probed(s, s.total)), s.every)(
            *s.floats
        ),
        "jvp of grad (hvp)": lambda s: s.along(
            lambda t: jvp(probed(s, s.total), s.floats, t)[1]
        ),
    } | {
        name: lambda s, outer=outer, inner=inner: s.contracted(
            outer(inner(s.total, s.every), s.every)(*s.floats)
        )
        for name, outer, inner in (
            ("jacrev of jacrev", jacrev, jacrev),
            ("jacfwd of jacrev (hessian)", jacfwd, jacrev),
            ("jacrev of jacfwd", jacrev, jacfwd),
            ("jacfwd of jacfwd", jacfwd, jacfwd),
        )
    }


def _of_keyword(s: Any) -> Any:
    s.by_keyword()
    return s.first()


def _pickled(s: Any) -> Any:
    s.rule = copy.deepcopy(pickle.loads(pickle.dumps(s.rule)))
    return s.first()


def _one_output(s: Any) -> Any:
    """The gradient of one output; the others have no cotangent."""
    found = [0 * x for x in s.floats]
    for k, u in enumerate(s.upstream):
        parts = s.of(lambda *f, k=k, u=u: s.dot(s.outputs(*f)[k], u))
        found = [a + b for a, b in zip(found, parts, strict=True)]
    return found


EAGER: dict[str, Run] = {
    "keyword call": _of_keyword,
    "one output at a time": _one_output,
    "pickle and deepcopy": _pickled,
}
"""Features of TensorFlow and JAX."""
