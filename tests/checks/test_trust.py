"""Wrong gradients whose fault lies where no ordinary sample does: thin domains, upstream
gradients, sizes, single points, statics. None is accepted."""

from __future__ import annotations

import pytest

from tests.checks.written import checked

SQUARE = "rule r(x) -> y:\n    y = x**2\n    dx = "
ROWS = "rule r(x[n]) -> y[n]:\n    y[i] = x[i]**2\n    dx[i] = dy[i] * 2 * x[i] * "

WRONG = {
    # --- a domain without interior
    "thin pair": "rule r(a, b) -> z:\n    assume a <= b, b <= a\n    z = a * b\n    da = dz * (b if a < 30000000 else 2 * b)\n    db = dz * a",
    "thin circle": "rule r(a, b, c) -> z:\n    assume a <= b, b <= c, c <= a\n    z = a * b + c\n    da = dz * (b if a < 30000000 else 2 * b)\n    db = dz * a\n    dc = dz",
    "thin strip": "rule r(a, b) -> z:\n    assume a <= b, b <= a\n    z = a * b\n    da = dz * (2 * b if 7.3 < a < 7.3001 else b)\n    db = dz * a",
    "thin equation": "rule r(a, b) -> z:\n    assume a == b\n    z = a * b\n    da = dz * (2 * b if 7.3 < a < 7.3001 else b)\n    db = dz * a",
    # --- single points and far regions
    "single point of a hinge": "rule r(a, b, t: nograd) -> z:\n    z = max(0, b - t * a)\n    da = (-dz * t if b - t * a > 0 else -0.5 * dz * t if 0 == b - t * a else 0) * (1 if a**3 + a != 3.203125 else 2)",
    "single point of a window": "rule r(v, width: static = 1.0) -> s:\n    assume width > 0\n    s = clip(v / width, -0.5, 0.5)\n    dv = (ds / width if -0.5 <= v / width and v / width <= 0.5 else 0) * (1 if v**3 + v != 3.203125 else 2)",
    "index of a channel": "rule r(x[c, n], w[h, c, k], m: static int) -> y[h, m]:\n    y[o, i] = sum(x[a, i + j] * w[o, a, j] for a, j)\n    dw[i, j, l] = sum(dy[i, p] * x[j, p + l] for p) * (1 if i < 4 else 2)",
    "index of a window": "rule r(x[n], w[k], m: static int) -> y[m]:\n    y[i] = sum(x[i + j] * w[j] for j)\n    dw[l] = sum(dy[p] * x[p + l] for p) * (1 if l < 5 else 2)",
    "undefined far out": "rule r(x) -> y:\n    y = log(1 - tanh(x)**2)\n    dx = -8 * dy * tanh(x) / (1 - square(tanh(x))) * sigmoid(2 * x) * sigmoid(-2 * x) * sqrt(30000000 - x) / sqrt(30000000 - x)",
    # --- not linear in the upstream gradient
    "dy dy / dy": SQUARE + "dy * dy * 2 * x / dy",
    "dy == 0": SQUARE + "dy * 2 * x + (1 if dy == 0 else 0)",
    "dy far": SQUARE + "dy * 2 * x if abs(dy) < 1e30 else 0",
    "dy near": SQUARE + "dy * 2 * x if abs(dy) > 1e-9 else 0",
    "dy clipped": SQUARE + "clip(dy, -1e9, 1e9) * 2 * x",
    "dy beyond": SQUARE + "sqrt(dy**2) * sign(dy) * 2 * x + max(dy - 1e12, 0)",
    "dy of two": "rule r(x) -> (y, z):\n    y = x**2\n    z = 3 * x\n    dx = dy * 2 * x + 3 * dz + (1 if dy == dz else 0)",
    "dy root": SQUARE
    + "(dy**3)**(1/3) * 2 * x if dy > 0 else dy * 2 * x + max(-dy - 1e9, 0)",
    "dy sizes": "rule r(x[n]) -> y[n]:\n    y[i] = x[i]**2\n    dx[i] = clip(dy[i], -1e9, 1e9) * 2 * x[i]",
    # --- sizes
    **{
        f"size {c}": ROWS + f"({c})"
        for c in (
            "1 if n <= 4 else 2",
            "1 if n <= 5 else 2",
            "1 if n <= 6 else 2",
            "1 if n != 7 else 2",
            "1 if i < 4 else 2",
            "1 if i < 7 else 2",
            "1 if i <= min(n, 7) else 2",
            "1 if i % 7 != 6 else 2",
            "1 if 2 * n != 14 else 3",
        )
    },
    "size cumsum": "rule r(x[n]) -> y[n]:\n    y[i] = sum(x[j] for j if j <= i)\n    dx[i] = sum(dy[j] for j if j >= i and j - i < 6)",
    "size prod": "rule r(x[n]) -> y:\n    y = prod(x[j] for j)\n    dx[i] = dy * prod(x[j] for j if j != i and j < 6)",
    "size matmul": "rule r(a[n, k], b[k, m]) -> c[n, m]:\n    c[i, j] = sum(a[i, l] * b[l, j] for l)\n    da[i, l] = sum(dc[i, j] * b[l, j] for j) * (1 if i != 5 else 2)\n    db[l, j] = sum(dc[i, j] * a[i, l] for i)",
    "size batch": "rule r(x[..., n]) -> y[..., n]:\n    y[i] = x[i]**2\n    dx[i] = dy[i] * 2 * x[i] * (1 if n <= 8 else 2)",
    "size two": "rule r(x[n, m]) -> y[n, m]:\n    y[i, j] = x[i, j]**2\n    dx[i, j] = dy[i, j] * 2 * x[i, j] * (1 if n != 4 or m != 4 else 2)",
    "size gather": "rule r(x[n], t[m]: int) -> y[m]:\n    y[k] = x[t[k]]\n    dx[i] = sum(dy[k] for k if t[k] == i) * (1 if i < 5 else 2)",
    # --- points that solving does not reach
    "point cubic": SQUARE + "dy * (2 * x if x**3 + x != 388.328125 else 100)",
    "point circle": "rule r(a, b) -> z:\n    assume a**2 + b**2 == 25\n    z = a + b\n    da = dz * (1 if a != 3 else 2)\n    db = dz",
    "point exp": SQUARE + "dy * (2 * x if exp(x) != 1 else 1)",
    "point product": "rule r(x, t) -> y:\n    y = x * t\n    dx = dy * (t if x * t != 6 else 1)\n    dt = dy * x",
    # --- undefined where the derivative is not
    "root far": SQUARE + "dy * 2 * x * sqrt(30000000 - x) / sqrt(30000000 - x)",
    "log far": SQUARE + "dy * 2 * x + 0 * log(30000000 - x)",
    "root squared": SQUARE + "dy * (2 * x + sqrt(30000000 - x)**2 + x - 30000000)",
    "acos far": SQUARE + "dy * 2 * x + 0 * acos(x / 40000000)",
    # --- thresholds in plain sight
    "static abs": "rule r(x, beta: static = 1.0) -> y:\n    y = beta * x\n    dx = dy * abs(beta)",
    "static max": "rule r(x, beta: static = 1.0) -> y:\n    y = beta * x\n    dx = dy * max(beta, 0.9)",
    "static min": "rule r(x, beta: static = 1.0) -> y:\n    y = beta * x\n    dx = dy * min(beta, 4)",
    "static half": "rule r(x, p: static = 0.5) -> y:\n    y = p * x\n    dx = dy * min(p, 0.5)",
    "static int": "rule r(x, k: static int = 2) -> y:\n    y = k * x**2\n    dx = dy * 2 * x * min(k, 40)",
    "static int square": "rule r(x, k: static int = 2) -> y:\n    y = k * x**2\n    dx = dy * k * (2 * x if k * k != 1764 else x)",
    "int square": "rule r(x, t: int) -> y:\n    y = x**2 + t\n    dx = dy * (2 * x if t * t != 1764 else x)",
    "nograd cubic": "rule r(x, t: nograd) -> y:\n    y = x * t\n    dx = dy * (t if t**3 + t != 68 else 100)",
    "even root": "rule r(x, t: nograd) -> y:\n    y = x * sign((t - 7.25)**2)\n    dx = dy",
    "even root of four": "rule r(x, t: nograd) -> y:\n    y = x * sign((t - 7.25)**4)\n    dx = dy",
    "far cubic": SQUARE + "dy * (2 * x + max(x**3 + x - 3e20, 0))",
    "narrow bump": SQUARE + "dy * (2 * x + max(0.0001 - (x - 7.3)**2, 0))",
    "narrower bump": SQUARE
    + "dy * (2 * x + max(1e-9 - (x**3 - 7.3 * x**2 + x - 7.3)**2, 0))",
    "far norm": "rule r(x[n]) -> s:\n    s = sum(x[j]**2 for j)\n    dx[i] = ds * 2 * x[i] * (1 if s < 1e13 else 0)",
    "far hyperbola": "rule r(a, b) -> z:\n    assume a * b == 2\n    z = a + b\n    da = dz * (1 if a < 4000000 else 2)\n    db = dz",
    "strip on a simplex": "rule r(x[n]) -> s:\n    assume sum(x[i] for i) == 1\n    s = sum(x[j]**2 for j)\n    dx[i] = ds * (2 * x[i] + (1 if 7.3 < x[i] < 7.301 else 0))",
    "thirteenth": SQUARE
    + "dy * (2 * x + "
    + " + ".join(f"max(x - {k}e7, 0) - max(x - {k}e7, 0)" for k in range(1, 13))
    + " + max(x - 5e8, 0))",
    # --- long decimals
    "amplified": SQUARE
    + "dy * (2 * x + 10000000000000 * (0.12345678901 - 0.12345678902))",
}


def refused(text: str) -> bool:
    outcome = checked(text)
    return outcome.failed


@pytest.mark.parametrize("name", WRONG)
def test_wrong_gradients_are_refused(name: str) -> None:
    outcome = checked(WRONG[name])
    assert outcome.failed, [
        (v.input, v.status, v.sizes) for v in outcome.value.verdicts
    ]
