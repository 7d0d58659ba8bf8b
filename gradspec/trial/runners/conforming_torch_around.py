"""Conformance of torch modules: what stands around the autograd engine: hooks, tensor
subclasses, modes, threads, files, other tracers.
"""

from __future__ import annotations

import io
import threading
from typing import Any

import torch
from conforming import require
from conforming_torch_setting import Layer, Setting, feature

# --- hooks, modes, subclasses ----------------------------------------------------------


@feature("hooks on tensors")
def tensor_hooks(s: Setting) -> Any:
    leaves = s.leaves()
    for leaf in leaves:
        leaf.register_hook(lambda g: 3 * g)
        leaf.register_post_accumulate_grad_hook(_divide)
    s.total(*leaves).backward()
    return s.listed([leaf.grad for leaf in leaves])


def _divide(leaf: Any) -> None:
    leaf.grad.div_(3)


@feature("hooks on modules")
def module_hooks(s: Setting) -> Any:
    layer, seen = Layer(s), []
    layer.register_full_backward_hook(lambda *_: seen.append("after"))
    layer.register_full_backward_pre_hook(lambda *_: seen.append("before"))
    layer().backward()
    require("before" in seen, f"hooks called: {seen}")
    return s.listed([weight.grad for weight in layer.weights])


@feature("anomaly mode")
def anomaly(s: Setting) -> Any:
    with torch.autograd.detect_anomaly(check_nan=True):
        return s.backward(s.total)


@feature("single-threaded engine")
def single_threaded(s: Setting) -> Any:
    with torch.autograd.set_multithreading_enabled(False):
        return s.backward(s.total)


@feature("threads")
def threads(s: Setting) -> Any:
    found: dict[int, Any] = {}

    def work(k: int) -> None:
        found[k] = s.backward(s.total)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    require(len(found) == 3 and found[0] == found[1] == found[2], "threads differ")
    return found[0]


class Marked(torch.Tensor):
    """A subclass as users write them."""


@feature("tensor subclass")
def subclass(s: Setting) -> Any:
    leaves = [x.clone().as_subclass(Marked).requires_grad_() for x in s.floats]
    total = s.total(*leaves)
    total.backward()
    return s.listed([x.grad for x in leaves])


@feature("dispatch mode")
def dispatch_mode(s: Setting) -> Any:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False):
        return s.backward(s.total)


@feature("function mode")
def function_mode(s: Setting) -> Any:
    class Passing(torch.overrides.TorchFunctionMode):
        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return function(*args, **(kwargs or {}))

    with Passing():
        return s.backward(s.total)


@feature("deterministic algorithms")
def deterministic(s: Setting) -> Any:
    torch.use_deterministic_algorithms(True)
    try:
        return s.backward(s.total)
    finally:
        torch.use_deterministic_algorithms(False)


# --- files and other tracers -----------------------------------------------------------


@feature("torch.save of a module")
def saved_module(s: Setting) -> Any:
    file = io.BytesIO()
    torch.save(Layer(s), file)
    file.seek(0)
    layer = torch.load(file, weights_only=False)
    layer().backward()
    return s.listed([weight.grad for weight in layer.weights])


@feature("jit.trace")
def jit_traced(s: Setting) -> Any:
    return s.backward(torch.jit.trace(s.total, s.leaves(), check_trace=False))


_RULES: list[Any] = []


@torch.fx.wrap
def _leaf(*given: Any, **statics: Any) -> Any:
    return _RULES[-1](*given, **statics)


def _called(*given: Any, **statics: Any) -> Any:
    return _leaf(*given, **statics)


@feature("fx.symbolic_trace, wrapped")
def symbolic_trace(s: Setting) -> Any:
    """As a leaf of the graph (`torch.fx.wrap`), as any function that asks for types."""
    _RULES.append(s.rule)
    s.rule = _called

    def total(floats: Any) -> Any:  # fx counts the arguments of what it traces
        return s.total(*(floats[k] for k in s.every))

    traced = torch.fx.symbolic_trace(total)
    return s.backward(lambda *floats: traced(floats))
