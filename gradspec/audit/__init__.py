"""Measuring emitted modules in their frameworks, against ball arithmetic."""
