"""Emitted modules without their rules: plain framework code of the forward expression.

What fails there is the framework's own; beside it a failure of a rule can be judged.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from conforming import imported_as

PREFIX = "plain_"


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
