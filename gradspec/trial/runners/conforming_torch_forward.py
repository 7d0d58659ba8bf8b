"""Conformance of torch modules: forward mode within what is compiled.

What a compiler that failed within forward mode has left open is closed when Python collects
it, in the middle of some later cell: each of these has a process of its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import torch
from conforming import Run, require, told
from conforming_torch_compiled import compiled
from conforming_torch_setting import Setting, feature, slopes


def _apart(name: str) -> Callable[[Run], Run]:
    """A feature whose cells have processes of their own."""

    def register(run: Run) -> Run:
        def forked(s: Setting) -> Any:
            here, there = os.pipe()
            child = os.fork()
            if not child:
                try:
                    os.write(there, json.dumps(_answer(run, s)).encode())
                finally:
                    os._exit(0)  # never back into the loop over cells
            os.close(there)
            with os.fdopen(here, "rb") as end:
                text = end.read()
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            require(bool(text), f"the process ended with {code}")
            found, fault = json.loads(text)
            require(not fault, fault)
            return found

        return feature(name)(forked)

    return register


def _answer(run: Run, s: Setting) -> tuple[Any, str]:
    try:
        return run(s), ""
    except Exception as fault:
        return None, told(fault)


@_apart("compile of func.jvp, one input at a time")
def compiled_jvp_of_one(s: Setting) -> Any:
    """The other inputs have no tangents, which are not tangents of zero."""
    found = []
    for place, x in enumerate(s.floats):

        def push(x: Any, tangent: Any, place: int = place) -> Any:
            def alone(x: Any) -> Any:
                return s.total(*s.floats[:place], x, *s.floats[place + 1 :])

            return torch.func.jvp(alone, (x,), (tangent,))[1]

        run = compiled(push)
        found += slopes(lambda t, x=x, run=run: run(x, *t), [x])
    return s.listed(found)


@_apart("compile of jacfwd of jacfwd")
def compiled_jacfwd_twice(s: Setting) -> Any:
    second = torch.func.jacfwd(torch.func.jacfwd(s.total, s.every), s.every)
    return s.contracted(compiled(second)(*s.floats))


def _pushed(s: Setting, function: Any) -> Any:
    """The derivatives of several results along the probes."""
    return lambda *floats: torch.func.jvp(function, floats, tuple(s.probes))[1]


def _outputs(s: Setting) -> Any:
    return lambda *floats: tuple(s.outputs(*floats))


def _weighed(s: Setting, function: Any) -> Any:
    """Upstream gradients times results. Not within two transforms of forward mode: what
    they hold times a tensor from outside is an error of the compiler's own.
    """
    return lambda *floats: sum(
        (y * u).sum() for y, u in zip(function(*floats), s.upstream, strict=True)
    )


def _twice(s: Setting) -> Any:
    """The derivative along the probes, and of this along given tangents."""
    once = _pushed(s, _outputs(s))

    def push(floats: Any, tangents: Any) -> Any:
        return _weighed(s, lambda *f: torch.func.jvp(once, f, tangents)[1])(*floats)

    return push


@_apart("compile of jvp of jvp")
def compiled_jvp_twice(s: Setting) -> Any:
    push = compiled(_twice(s))
    return s.along(lambda tangents: push(s.floats, tangents))


@_apart("compile of vmap of jvp of jvp")
def compiled_jvps_in_vmap(s: Setting) -> Any:
    """Two calls, of which the first counts."""
    push = compiled(torch.func.vmap(_twice(s), (0, None)))
    stacked = tuple(torch.stack([x, 2 * x]) for x in s.floats)
    return s.along(lambda tangents: push(stacked, tangents)[0])


@_apart("compile of grad of jvp of jvp")
def compiled_grad_of_jvps(s: Setting) -> Any:
    twice = _pushed(s, _pushed(s, _outputs(s)))
    return s.listed(compiled(torch.func.grad(_weighed(s, twice), s.every))(*s.floats))


@_apart("compile of jvp of grad of jvp")
def compiled_jvp_of_grad_of_jvp(s: Setting) -> Any:
    once = _weighed(s, _pushed(s, _outputs(s)))
    third = _pushed(s, torch.func.grad(once, s.every))
    return s.listed(compiled(third)(*s.floats))
