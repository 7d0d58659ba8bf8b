"""PyTorch modules: a `torch.autograd.Function` with its formulas behind a plain function."""

from gradspec.targets.torch.dialect import OPERATORS
from gradspec.targets.torch.rule import definitions

__all__ = ["OPERATORS", "definitions"]
