"""Notebooks: the magic ``%%gradspec``, its output, and plots of rules."""
