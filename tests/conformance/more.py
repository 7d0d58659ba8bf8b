"""What the runners of this folder share: calls in the way of users, and transforms."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

from gradspec.driver.emitted import import_file
from gradspec.measure.frameworks.shared import first_of


def other_statics(s: Any) -> Any:
    """The same call with other statics. Integers may be sizes of axes, which stay."""
    kept = int if s.case["axes"] else ()
    given = s.case["statics"].items()
    other = {n: v if isinstance(v, kept) else v + 1 for n, v in given}
    here = copy.copy(s)
    here.case = {**s.case, "statics": other}
    return here


def calls_between(s: Any, change: Any = lambda rule: rule) -> Any:
    """Nothing may stay of a call but what its own gradient has: of a freshly imported
    module, with other calls before the rule's and between its two passes."""
    if s.case["way"] != "plain":
        module = import_file(s.path, "unused_")
        s.rule = getattr(module, s.case["rule"])
    s.rule = change(s.rule)

    def move() -> None:
        other_statics(s).first(*(x / 2 for x in s.floats))

    def total(*floats: Any) -> Any:
        made = s.total(*floats)
        move()
        return made

    move()
    return s.of(total)


def by_keyword(s: Any) -> Any:
    """The setting, which calls the rule by keywords from now on."""
    names, rule = [name for name, _ in s.case["inputs"]], s.rule
    s.rule = lambda *given, **statics: rule(
        **dict(zip(names, given, strict=True)), **statics
    )
    return s


def copied(s: Any) -> Any:
    """The gradients of a pickled and copied rule."""
    s.rule = copy.deepcopy(pickle.loads(pickle.dumps(s.rule)))
    return s.first()


def alone(s: Any, place: int) -> Callable[[Any], Any]:
    """The total as a function of one input."""
    return lambda x: s.total(*s.floats[:place], x, *s.floats[place + 1 :])


def each_alone(s: Any) -> list[Any]:
    """The gradient of one input at a time."""
    floats = enumerate(s.floats)
    return [s.gradient(alone(s, place), [x])[0] for place, x in floats]


def transforms(library: Any) -> dict[str, Any]:
    """Further features of the transforms of a library, by JAX's names."""
    grad, vmap, vjp, jvp = library.grad, library.vmap, library.vjp, library.jvp

    def probing(s: Any, function: Any) -> Any:
        """The gradients of a function, times the probes."""
        return lambda *f: s.probed(grad(function, s.every)(*f))

    def grad_of_vmap(s: Any) -> Any:
        def of_two(*floats: Any) -> Any:
            return vmap(s.total)(*(s.stack([x, x]) for x in floats)).sum()

        return [g / 2 for g in grad(of_two, s.every)(*s.floats)]

    def jvp_of_vmap(s: Any) -> Any:
        def push(tangents: Any) -> Any:
            moved = tuple(s.stack([t, 0 * t]) for t in tangents)
            return jvp(vmap(s.total), tuple(s.stacked()), moved)[1][0]

        return s.along(push)

    def linearized(s: Any) -> Any:
        push = library.linearize(s.total, *s.floats)[1]
        return s.along(lambda tangents: push(*tangents))

    def twice(name: str) -> Any:
        outer, inner = (getattr(library, each) for each in name.split(" of "))
        return lambda s: s.contracted(
            outer(inner(s.total, s.every), s.every)(*s.floats)
        )

    second = ("jacrev of jacrev", "jacrev of jacfwd", "jacfwd of jacfwd")
    return {name: twice(name) for name in second} | {
        "vjp, values": lambda s: vjp(s.tuple_of, *s.floats)[0],
        "jvp, values": lambda s: jvp(
            s.tuple_of, s.floats, tuple(0 * x + 1 for x in s.floats)
        )[0],
        "vmap, values": lambda s: first_of(vmap(s.tuple_of)(*s.stacked())),
        "vjp": lambda s: vjp(s.tuple_of, *s.floats)[1](tuple(s.upstream)),
        "linearize": linearized,
        "vmap over the last axis": lambda s: [
            g[..., 0] for g in vmap(grad(s.total, s.every), -1, -1)(*s.stacked(-1))
        ],
        "grad of vmap": grad_of_vmap,
        "jvp of vmap": jvp_of_vmap,
        "jacrev": lambda s: library.jacrev(s.total, s.every)(*s.floats),
        "grad of grad": lambda s: grad(probing(s, s.total), s.every)(*s.floats),
        "grad of grad of grad": lambda s: grad(
            probing(s, probing(s, s.total)), s.every
        )(*s.floats),
        "jvp of grad (hvp)": lambda s: s.along(
            lambda t: jvp(probing(s, s.total), s.floats, t)[1]
        ),
    }
