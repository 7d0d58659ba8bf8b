"""TensorFlow modules: per rule one function, wrapped like `tf.custom_gradient`."""

from gradspec.targets.tf.dialect import MODULES, OPERATORS
from gradspec.targets.tf.rule import definitions

__all__ = ["MODULES", "OPERATORS", "definitions"]
