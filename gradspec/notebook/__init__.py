"""Notebooks: the magic ``%%gradspec``, what it shows, and plots of rules."""
