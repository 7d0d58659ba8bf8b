"""Hand-written gradients read out of Python files, as rules with verdicts."""
