"""Trying emitted modules in their own frameworks, in child processes."""
