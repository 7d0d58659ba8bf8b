"""NumPy modules: for each rule ``f`` the functions ``f``, ``f_vjp`` and ``f_jvp``."""

from gradspec.targets.numpy.dialect import MODULES, OPERATORS
from gradspec.targets.numpy.rule import definitions

__all__ = ["MODULES", "OPERATORS", "definitions"]
