"""The runtime of modules emitted for NumPy."""
