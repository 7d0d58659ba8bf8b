"""Code shared by emitted modules: one real module for each framework.

The compiler reads these files as text and copies them, as they are, to the root of the
output folder of each target. Nothing else in gradspec imports them.
"""
