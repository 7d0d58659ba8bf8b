"""Emitted modules without their rules: plain framework code of the forward expression.

What fails there is the framework's own; beside it a failure of a rule can be judged.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

from conforming import imported_as

PREFIX = "plain_"


def _runtime(module: ModuleType) -> ModuleType:
    """The runtime that the module imports."""
    package = module.__name__.rpartition(".")[0]
    return sys.modules[f"{package}._gradspec"]


@functools.cache
def torch_module(path: str) -> ModuleType:
    """What a `Function` computes forward, in its place."""
    module: ModuleType = imported_as(PREFIX, path)
    rule = _runtime(module).Rule

    def call(cls: Any, *arguments: Any) -> Any:
        made = cls.forward(*cls._inputs(arguments))
        if not cls._extra:
            return made
        return made[0] if len(made) == cls._extra + 1 else made[: -cls._extra]

    rule.call = classmethod(call)
    return module


def tf_module(path: str) -> ModuleType:
    """The core, recorded operation by operation."""
    module: ModuleType = imported_as(PREFIX, path)

    def recorded(_tensors: Any, results: Any, *_: Any, **__: Any) -> Any:
        return results

    untouched = SimpleNamespace(
        stop_recording=nullcontext,
        could_possibly_record=lambda: True,  # so that no compiler takes the whole
    )
    module.__dict__.update(_recorded=recorded, _record=untouched)
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
