"""Audit of torch modules, beside torch's own functions and its autograd."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from auditing import Arrays, Case, Function, floats, main, outputs

special = torch.special

OPERATIONS: Mapping[str, Function] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "mod": torch.remainder,
    "pow": torch.pow,
    "neg": lambda x: -x,
    "stop": lambda x: x.detach(),
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
    "eq": lambda x, y: x == y,
    "ne": lambda x, y: x != y,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "not": lambda x: ~x,
    "select": lambda c, x, y: torch.where(c, x, y),
    "exp": torch.exp,
    "expm1": torch.expm1,
    "exp2": torch.exp2,
    "log": torch.log,
    "log1p": torch.log1p,
    "log2": torch.log2,
    "log10": torch.log10,
    "sigmoid": torch.sigmoid,
    "logsigmoid": F.logsigmoid,
    "softplus": F.softplus,
    "logaddexp": torch.logaddexp,
    "logit": torch.logit,
    "xlogy": torch.xlogy,
    "xlog1py": special.xlog1py,
    "square": torch.square,
    "reciprocal": torch.reciprocal,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "hypot": torch.hypot,
    "abs": torch.abs,
    "max": torch.maximum,
    "min": torch.minimum,
    "clip": lambda x, low, high: torch.minimum(torch.maximum(x, low), high),
    "relu": torch.relu,
    "sign": torch.sign,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "round": torch.round,
    "trunc": torch.trunc,
    "sin": torch.sin,
    "cos": torch.cos,
    "tan": torch.tan,
    "sinc": lambda x: torch.sinc(x / math.pi),
    "asin": torch.asin,
    "acos": torch.acos,
    "atan": torch.atan,
    "atan2": torch.atan2,
    "sinh": torch.sinh,
    "cosh": torch.cosh,
    "tanh": torch.tanh,
    "asinh": torch.asinh,
    "acosh": torch.acosh,
    "atanh": torch.atanh,
    "erf": torch.erf,
    "erfc": torch.erfc,
    "erfcx": special.erfcx,
    "erfinv": torch.erfinv,
    "ndtr": special.ndtr,
    "ndtri": special.ndtri,
    "log_ndtr": special.log_ndtr,
    "lgamma": torch.lgamma,
    "digamma": torch.digamma,
    "i0": torch.i0,
    "i1": special.i1,
    "i0e": special.i0e,
    "i1e": special.i1e,
}

NATIVES: Mapping[str, Function] = {
    "relu": torch.relu,
    "relu6": F.relu6,
    "leaky_relu": lambda x, slope: F.leaky_relu(x, slope),
    "elu": lambda x, alpha: F.elu(x, alpha),
    "selu": torch.selu,
    "celu": lambda x, alpha: F.celu(x, alpha),
    "softshrink": lambda x, threshold: F.softshrink(x, threshold),
    "hardshrink": lambda x, threshold: F.hardshrink(x, threshold),
    "tanhshrink": F.tanhshrink,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "softsign": F.softsign,
    "hardsigmoid": F.hardsigmoid,
    "hardtanh": lambda x, low, high: F.hardtanh(x, low, high),
    "logsigmoid": F.logsigmoid,
    "softplus": lambda x, beta: F.softplus(x, beta),
    "silu": F.silu,
    "mish": F.mish,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "hardswish": F.hardswish,
    "bce": lambda p, t: F.binary_cross_entropy(p, t, reduction="none"),
    "bce_with_logits": lambda x, t: F.binary_cross_entropy_with_logits(
        x, t, reduction="none"
    ),
    "gaussian_nll": lambda mu, var, t: F.gaussian_nll_loss(
        mu, t, var, full=True, eps=0.0, reduction="none"
    ),
    "poisson_nll": lambda rate, t: F.poisson_nll_loss(
        rate, t, log_input=False, eps=0.0, reduction="none"
    ),
    "log_poisson_nll": lambda x, t: F.poisson_nll_loss(x, t, reduction="none"),
    "kl_div": lambda x, t: F.kl_div(x, t, reduction="none"),
    "squared_error": lambda x, t: F.mse_loss(x, t, reduction="none"),
    "absolute_error": lambda x, t: F.l1_loss(x, t, reduction="none"),
    "huber": lambda x, t, delta: F.huber_loss(x, t, reduction="none", delta=delta),
    "smooth_l1": lambda x, t, beta: F.smooth_l1_loss(x, t, reduction="none", beta=beta),
    "i0": torch.i0,
    "i1": special.i1,
    "i0e": special.i0e,
    "i1e": special.i1e,
    "rsqrt": torch.rsqrt,
    "power": torch.pow,
    "exp2": torch.exp2,
    "sinc": torch.sinc,
    "asin": torch.asin,
    "acos": torch.acos,
    "atan": torch.atan,
    "asinh": torch.asinh,
    "acosh": torch.acosh,
    "atanh": torch.atanh,
    "erf": torch.erf,
    "erfc": torch.erfc,
    "erfcx": special.erfcx,
    "erfinv": torch.erfinv,
    "lgamma": torch.lgamma,
    "digamma": torch.digamma,
    "trigamma": lambda x: torch.polygamma(1, x),
    "ndtr": special.ndtr,
    "log_ndtr": special.log_ndtr,
    "ndtri": special.ndtri,
    "expm1": torch.expm1,
    "log1p": torch.log1p,
    "hypot": torch.hypot,
    "atan2": torch.atan2,
    "entropy": special.entr,
    "xlogy": torch.xlogy,
    "xlog1py": special.xlog1py,
    "logaddexp": torch.logaddexp,
    "logit": torch.logit,
    "log1pexp": F.softplus,
}


class TorchAdapter:
    """See `auditing.Adapter`."""

    operations = OPERATIONS
    natives = NATIVES

    def emitted(self, module: ModuleType, case: Case, columns: list[Any]) -> Arrays:
        return self.own(getattr(module, case["rule"]), case, columns)

    def compiled(self, function: Function, case: Case, columns: list[Any]) -> Arrays:
        return {}

    def own(self, function: Function, case: Case, columns: list[Any]) -> Arrays:
        inputs = [
            _tensor(column, kind, case["dtype"])
            for column, (_, kind) in zip(columns, case["inputs"], strict=True)
        ]
        found: Arrays = {}
        for name, value in outputs(case, function(*inputs, **case["statics"])):
            found[f"0:{name}:"] = _array(value)
            if case["order"] >= 1 and case["differentiable"]:
                found |= _derivatives(case, name, value, inputs)
        return found

    def constant(self, value: float, case: Case) -> Any:
        return torch.tensor(value, dtype=getattr(torch, case["dtype"]))


def _derivatives(case: Case, name: str, value: Any, inputs: list[Any]) -> Arrays:
    found: Arrays = {}
    leaves = [inputs[k] for k in floats(case)]
    firsts = _slopes(value, leaves, case["order"] >= 2)
    for place, first in zip(floats(case), firsts, strict=True):
        variable = case["inputs"][place][0]
        found[f"1:{name}:{variable}"] = _array(first)
        if case["order"] >= 2:
            (second,) = _slopes(first, [inputs[place]], False)
            found[f"2:{name}:{variable}"] = _array(second)
    return found


def _slopes(value: Any, leaves: list[Any], again: bool) -> tuple[Any, ...]:
    if not value.requires_grad:
        return tuple(torch.zeros_like(leaf) for leaf in leaves)
    slopes = torch.autograd.grad(
        [value],
        leaves,
        [torch.ones_like(value)],
        retain_graph=True,
        create_graph=again,
        materialize_grads=True,
    )
    return tuple(slopes)


def _tensor(column: Any, kind: str, dtype: str) -> Any:
    wanted = {"int": torch.int64, "bool": torch.bool}.get(kind, getattr(torch, dtype))
    tensor = torch.from_numpy(np.array(column, dtype=np.float64)).to(wanted)
    return tensor.requires_grad_(kind == "float")


def _array(tensor: Any) -> Any:
    return tensor.detach().to(torch.float64).numpy()


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(TorchAdapter())
