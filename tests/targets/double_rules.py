"""Rules whose gradients have a zero beside which float32 loses its digits."""

GATED = """
rule silu(x) -> y:
    y = x / (1 + exp(-x))

rule swish(x, beta: static = 1.0) -> y:
    y = x / (1 + exp(-beta * x))

rule mish(x) -> y:
    y = x * tanh(log(1 + exp(x)))

rule both(a, b) -> y:
    y = log(exp(a) + exp(b))
"""
GELU = """
rule gelu(x) -> y:
    y = x * (1 + erf(x / sqrt(2))) / 2
"""
