"""Audit of torch modules, beside torch's own functions and its autograd."""

from __future__ import annotations

import math
from functools import partial

import torch
import torch.nn.functional as F
from auditing import Audit, Function, Library, main
from setting_torch import Setting


def _plain(function: Function) -> Function:
    """A loss without its mean over the elements."""
    return partial(function, reduction="none")


LIBRARY = Library(
    (torch, torch.special, F),
    {
        "stop": lambda x: x.detach(),
        "logsigmoid": F.logsigmoid,
        "softplus": F.softplus,
        "sinc": lambda x: torch.sinc(x / math.pi),
    },
    {
        "softplus": lambda x, beta: F.softplus(x, beta),
        "leaky_relu": lambda x, slope: F.leaky_relu(x, slope),
        "softshrink": lambda x, threshold: F.softshrink(x, threshold),
        "hardshrink": lambda x, threshold: F.hardshrink(x, threshold),
        "hardtanh": lambda x, low, high: F.hardtanh(x, low, high),
        "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
        "bce": _plain(F.binary_cross_entropy),
        "bce_with_logits": _plain(F.binary_cross_entropy_with_logits),
        "gaussian_nll": lambda mu, var, t: F.gaussian_nll_loss(
            mu, t, var, full=True, eps=0.0, reduction="none"
        ),
        "poisson_nll": partial(_plain(F.poisson_nll_loss), log_input=False, eps=0.0),
        "log_poisson_nll": _plain(F.poisson_nll_loss),
        "kl_div": _plain(F.kl_div),
        "squared_error": _plain(F.mse_loss),
        "absolute_error": _plain(F.l1_loss),
        "huber": _plain(F.huber_loss),
        "smooth_l1": _plain(F.smooth_l1_loss),
        "power": torch.pow,
        "sinc": torch.sinc,
        "trigamma": lambda x: torch.polygamma(1, x),
        "entropy": torch.special.entr,
        "log1pexp": F.softplus,
    },
)


class TorchAudit(Audit):
    """See `auditing.Audit`."""

    library = LIBRARY
    setting = Setting


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(TorchAudit())
