"""The runtime of modules emitted for PyTorch."""
