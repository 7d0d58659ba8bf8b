"""TensorFlow modules: for each rule one function, decorated as `tf.custom_gradient` would."""

from gradspec.targets.tf.dialect import OPERATORS
from gradspec.targets.tf.rule import definitions

__all__ = ["OPERATORS", "definitions"]
