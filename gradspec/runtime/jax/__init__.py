"""The runtime of modules emitted for JAX."""
