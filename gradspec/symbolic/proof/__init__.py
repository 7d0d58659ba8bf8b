"""Equality of expressions, proved by normal forms on regions."""
