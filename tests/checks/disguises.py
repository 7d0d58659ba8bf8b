"""True cotangents as people write them: each the derivative in another dress."""

from __future__ import annotations

DISGUISES = {
    "softplus by its complement": """
        rule f(x) -> y:
            y = log(1 + exp(x))
            dx = dy * (1 - 1 / (1 + exp(x)))
        """,
    "softplus by exp of its output": """
        rule f(x) -> y:
            y = log(1 + exp(x))
            dx = dy * (1 - exp(-y))
        """,
    "sigmoid by its output": """
        rule f(x) -> y:
            y = 1 / (1 + exp(-x))
            dx = dy * y * (1 - y)
        """,
    "sigmoid by cosh": """
        rule f(x) -> y:
            y = sigmoid(x)
            dx = dy / (4 * cosh(x / 2)**2)
        """,
    "sigmoid by tanh": """
        rule f(x) -> y:
            y = sigmoid(x)
            dx = dy * (1 - tanh(x / 2)**2) / 4
        """,
    "tanh by its output": """
        rule f(x) -> y:
            y = tanh(x)
            dx = dy * (1 - y**2)
        """,
    "tanh by exponentials of |x|": """
        rule f(x) -> y:
            y = tanh(x)
            dx = dy * 4 * exp(-2 * abs(x)) / (1 + exp(-2 * abs(x)))**2
        """,
    "silu": """
        rule f(x) -> y:
            y = x * sigmoid(x)
            dx = dy * (y + sigmoid(x) * (1 - y))
        """,
    "swish with a static": """
        rule f(x, beta: static = 1.0) -> y:
            y = x / (1 + exp(-beta * x))
            s = sigmoid(beta * x)
            dx = dy * (s + beta * x * s * (1 - s))
        """,
    "gelu by erf": """
        rule f(x) -> y:
            y = 0.5 * x * (1 + erf(x / sqrt(2)))
            dx = dy * (ndtr(x) + x * exp(-x**2 / 2) / sqrt(2 * pi))
        """,
    "gelu by tanh": """
        rule f(x) -> y:
            u = sqrt(2 / pi) * (x + 0.044715 * x**3)
            y = 0.5 * x * (1 + tanh(u))
            t = tanh(u)
            dx = dy * 0.5 * (1 + t + x * (1 - t * t) * sqrt(2 / pi) * (1 + 3 * 0.044715 * x * x))
        """,
    "mish by its polynomial": """
        rule f(x) -> y:
            y = x * tanh(log(1 + exp(x)))
            w = 4 * (x + 1) + 4 * exp(2 * x) + exp(3 * x) + exp(x) * (4 * x + 6)
            d = 2 * exp(x) + exp(2 * x) + 2
            dx = dy * exp(x) * w / d**2
        """,
    "log-cosh": """
        rule f(x) -> y:
            y = log(cosh(x))
            dx = dy * (exp(x) - exp(-x)) / (exp(x) + exp(-x))
        """,
    "abs by sign": """
        rule f(x) -> y:
            y = abs(x)
            dx = dy * sign(x)
        """,
    "abs by a quotient": """
        rule f(x) -> y:
            y = abs(x)
            dx = dy * x / abs(x) if x != 0 else 0
        """,
    "sqrt of a square": """
        rule f(x) -> y:
            y = sqrt(x * x)
            dx = dy if x >= 0 else -dy
        """,
    "leaky relu": """
        rule f(x, a: static = 0.01) -> y:
            y = x if x > 0 else a * x
            dx = dy * a + dy * (1 - a) * heaviside(x, 1)
        """,
    "elu by its output": """
        rule f(x, a: static = 1.0) -> y:
            y = x if x > 0 else a * (exp(x) - 1)
            dx = dy if x > 0 else dy * (y + a)
        """,
    "hardtanh": """
        rule f(x) -> y:
            y = max(min(x, 1), -1)
            dx = dy if abs(x) < 1 else 0
        """,
    "huber": """
        rule f(x, d: static = 1.0) -> y:
            assume d > 0
            y = 0.5 * x * x if abs(x) <= d else d * (abs(x) - 0.5 * d)
            dx = dy * clip(x, -d, d)
        """,
    "relu squared": """
        rule f(x) -> y:
            y = max(x, 0)**2
            dx = dy * (x + abs(x))
        """,
    "focal loss": """
        rule f(p, g: static = 2.0) -> y:
            assume 0 < p, p < 1
            y = -(1 - p)**g * log(p)
            dp = dy * (1 - p)**g * (g * p * log(p) + p - 1) / (p * (1 - p))
        """,
    "binary cross-entropy": """
        rule f(p, t: nograd) -> y:
            assume 0 < p, p < 1, 0 <= t, t <= 1
            y = -(t * log(p) + (1 - t) * log(1 - p))
            dp = dy * (p - t) / (p * (1 - p))
        """,
    "cross-entropy of logits": """
        rule f(x, t: nograd) -> y:
            y = max(x, 0) - x * t + log(1 + exp(-abs(x)))
            dx = dy * (sigmoid(x) - t)
        """,
    "atanh": """
        rule f(x) -> y:
            assume abs(x) < 1
            y = 0.5 * log((1 + x) / (1 - x))
            dx = dy / (1 - x**2)
        """,
    "asinh by a root": """
        rule f(x) -> y:
            y = asinh(x)
            dx = dy / sqrt(1 + x**2)
        """,
    "asin by its output": """
        rule f(x) -> y:
            assume -1 < x, x < 1
            y = asin(x)
            dx = dy / cos(y)
        """,
    "atan by its output": """
        rule f(x) -> y:
            y = atan(x)
            dx = dy * cos(y)**2
        """,
    "sine by the half angle": """
        rule f(x) -> y:
            y = sin(x)
            dx = dy * (2 * cos(x / 2)**2 - 1)
        """,
    "tan": """
        rule f(x) -> y:
            assume -1 < x, x < 1
            y = tan(x)
            dx = dy * (1 + y * y)
        """,
    "a power with a static": """
        rule f(x, n: static = 3.0) -> y:
            assume x > 0
            y = x**n
            dx = dy * n * y / x
        """,
    "a normal density": """
        rule f(x, m: nograd, s: static = 1.0) -> y:
            assume s > 0
            y = exp(-(x - m)**2 / (2 * s**2)) / (s * sqrt(2 * pi))
            dx = dy * y * (m - x) / s**2
        """,
    "a student density": """
        rule f(x, v: static = 3.0) -> y:
            assume v > 0
            y = (1 + x**2 / v)**(-(v + 1) / 2)
            dx = -dy * (v + 1) * x * y / (v + x * x)
        """,
    "gamma by digamma": """
        rule f(x) -> y:
            assume x > 0
            y = lgamma(x + 1)
            dx = dy * (digamma(x) + 1 / x)
        """,
    "logaddexp": """
        rule f(x, z) -> y:
            y = log(exp(x) + exp(z))
            dx = dy * exp(x - y)
            dz = dy * exp(z - y)
        """,
    "square root loss": """
        rule f(x, e: static = 0.5) -> y:
            y = sqrt(x * x + e * e) - e
            dx = dy * x / (y + e)
        """,
    "two outputs": """
        rule f(x, z) -> (y, w):
            y = x * z + sin(x)
            w = z**2
            dx = dy * (z + cos(x))
            dz = dy * x + 2 * z * dw
        """,
    "softsign": """
        rule f(x) -> y:
            y = x / (1 + abs(x))
            dx = dy * (1 - abs(y))**2
        """,
    "erf through its complement": """
        rule f(x) -> y:
            y = x * erfc(x)
            dx = dy * (1 - erf(x) - 2 * x * exp(-x * x) / sqrt(pi))
        """,
    "a surrogate's derivative": """
        rule f(x, k: static = 25.0) -> y:
            assume k > 0
            y = 1 if x > 0 else 0
            surrogate y = x / (1 + k * abs(x))
            dx = dy / (1 + k * abs(x))**2
        """,
}
