"""The runtime of modules emitted for TensorFlow."""
