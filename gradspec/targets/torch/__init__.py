"""PyTorch modules: per rule a plain function over a `torch.autograd.Function`."""

from gradspec.targets.torch.dialect import MODULES, OPERATORS
from gradspec.targets.torch.rule import definitions

__all__ = ["MODULES", "OPERATORS", "definitions"]
