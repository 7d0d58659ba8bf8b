"""Features that frameworks have alike: function transforms of `torch.func` and JAX, and
a few calls of TensorFlow and JAX.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterable
from typing import Any

from conforming import Run


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
        def whole(*floats: Any) -> Any:
            return vmap(s.total)(*(s.stack([x, x]) for x in floats)).sum()

        return [g / 2 for g in grad(whole, s.every)(*s.floats)]

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
