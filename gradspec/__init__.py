"""gradspec: write the mathematics once, get gradients that are right everywhere."""

__version__ = "0.1.0"
