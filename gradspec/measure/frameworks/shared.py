"""Features that frameworks have alike."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from gradspec.measure.frameworks.setting import Case, Function, Run

PLAIN = "plain_"
"""Before the names of modules without their rules."""


def runtime_of(module: ModuleType) -> Any:
    """The runtime that an emitted module imports."""
    package = module.__name__.rpartition(".")[0]
    return sys.modules[f"{package}._gradspec"]


def require(condition: bool, message: str) -> None:
    """Raise ValueError unless the condition holds; for features without a gradient."""
    if not condition:
        raise ValueError(message)


def first_of(stacked: Iterable[Any]) -> list[Any]:
    """Of two calls the first."""
    return [g[0] for g in stacked]


def rows(case: Case) -> tuple[int, list[bool], list[bool]]:
    """The size of the batch's first axis; which inputs, and which upstream gradients,
    have it.
    """
    sizes = {name: case["given"][name][0][0] for name in case["batched"]}
    size = max(sizes.values(), default=0)
    inputs = [sizes.get(name) == size for name, _ in case["inputs"]]
    return size, inputs, [name in case["rows"] for name in case["upstream"]]


# --- formats and shapes ----------------------------------------------------------------


def in_format(name: str) -> Run:
    """The gradients where everything is of a format: outputs and gradients are, too."""

    def run(s: Any) -> Any:
        s.made_in(name)
        found = list(s.first())
        kinds = {str(x.dtype) for x in (*s.outputs(*s.floats), *found)}
        require(all(name in kind for kind in kinds), f"results of {kinds}")
        return found

    return run


def without_calls(s: Any) -> None:
    """Of a batch of size zero the gradients have the shapes of the inputs."""
    pairs = zip(s.case["inputs"], s.inputs, strict=True)
    s.inputs = [x[:0] if n in s.case["batched"] else x for (n, _), x in pairs]
    s.upstream = [0 * y for y in s.outputs(*s.floats)]
    shapes = [list(x.shape) for x in s.floats]
    require([s.flat(g)[0] for g in s.first()] == shapes, "gradients of other shapes")


def one_output(s: Any) -> Any:
    """The gradient of one output; the others have no cotangent."""
    parts = [
        s.of(lambda *f, k=k, u=u: s.dot(s.outputs(*f)[k], u))
        for k, u in enumerate(s.upstream)
    ]
    return [sum(gradients) for gradients in zip(*parts, strict=True)]


# --- transforms ------------------------------------------------------------------------


def around_one(
    s: Any,
    vmap: Callable[..., Function],
    run: Callable[[Function, Any], Any],
    count: int = 2,
) -> list[Any]:
    """Gradients from around a batch of one input, with the others outside it, each
    input in turn: an output that depends on the others alone must not count once for
    each call. ``run`` makes them of a number, which is the first of ``count`` calls, as
    a function of the floating inputs, and of these.
    """
    found = []
    for place, x in enumerate(s.inputs):
        axes = tuple(0 if k == place else None for k in range(len(s.inputs)))
        given = list(s.inputs)
        given[place] = s.stack([x] * count)

        def first(*floats: Any, axes: Any = axes, given: Any = given) -> Any:
            return vmap(s.weighed, axes)(*s.among(given, floats))[0]

        gradients = list(run(first, tuple(given[k] for k in s.places)))
        for k, own in enumerate(s.places):
            if own == place:  # the other calls add nothing
                gradients[k] = gradients[k].sum(0)
        found.append(gradients)
    return [sum(parts) / len(found) for parts in zip(*found, strict=True)]


def transforms(library: Any) -> dict[str, Run]:
    """The features of the transforms of a ``library``, by JAX's names."""
    grad, vmap, jvp = library.grad, library.vmap, library.jvp
    jacrev, jacfwd = library.jacrev, library.jacfwd

    def some_inputs(s: Any) -> Any:
        found = []
        for place, x in enumerate(s.stacked()):
            given = [*s.floats]
            given[place] = x
            axes = tuple(0 if k == place else None for k in s.every)
            found.append(vmap(grad(s.total, s.every), axes)(*given)[place][0])
        return found

    def vmap_twice(s: Any) -> Any:
        thrice = (s.stack([x] * 3) for x in s.stacked())
        return [g[2, 0] for g in vmap(vmap(grad(s.total, s.every)))(*thrice)]

    return {
        "grad": lambda s: grad(s.total, s.every)(*s.floats),
        "jvp": lambda s: s.along(lambda t: jvp(s.total, s.floats, t)[1]),
        "vmap": lambda s: first_of(vmap(grad(s.total, s.every))(*s.stacked())),
        "vmap of one input beside others": some_inputs,
        "vmap in vmap": vmap_twice,
        "grad of vmap over one input": lambda s: around_one(
            s, vmap, lambda first, floats: grad(first, s.every)(*floats)
        ),
        "jacfwd": lambda s: jacfwd(s.total, s.every)(*s.floats),
        "jacfwd of jacrev (hessian)": lambda s: s.contracted(
            jacfwd(jacrev(s.total, s.every), s.every)(*s.floats)
        ),
    }
