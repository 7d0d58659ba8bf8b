"""Wrong gradients whose fault lies where no ordinary sample does: thin domains, upstream
gradients, sizes, single points, statics. None is accepted."""

from __future__ import annotations

import pytest

from gradspec.diagnostics import Severity
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
    "single point beside factors": "rule r(x, t, w: nograd) -> z:\n    z = w * x * t\n    dx = dz * w * t * (1 if x**3 + x != 3.203125 else 2)",
    "single point beside a difference": "rule r(x, t: nograd, w: nograd) -> z:\n    z = w * (x - t)**2\n    dx = dz * w * 2 * (x - t) * (1 if x**3 + x != 3.203125 else 2)",
    "rows of seven": "rule r(x[n, k], v[n]) -> y[k]:\n    assume x[i, j] > 0\n    y[j] = sum(x[i, j] * v[i] for i) / sum(x[i, j] for i)\n    dv[i] = sum(dy[j] * x[i, j] / sum(x[l, j] for l) for j) * (1 if k <= 6 else 2)\n    dx[i, j] = dy[j] * (v[i] - y[j]) / sum(x[l, j] for l) * (1 if k <= 6 else 2)",
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
    # --- sizes, regions and points at which nothing was looked at before
    "size of a strided axis": "rule r(x[n], w[m]) -> y[n]:\n    y[i] = x[i] * w[2 * i]\n    dx[i] = dy[i] * w[2 * i] * (1 if i < 6 else 2)",
    "element beyond an axis, cancelled": "rule r(x[n]) -> y[n]:\n    y[i] = x[i]**2\n    dx[i] = dy[i] * 2 * x[i] + (x[i + 3] - x[i + 3] if i >= 6 else 0)",
    "element beyond an axis": "rule r(x[n]) -> y[n]:\n    y[i] = x[i]**2\n    dx[i] = dy[i] * (2 * x[i] if i < 6 else x[i + 3])",
    "size 3000000": "rule r(x[n]) -> y[n]:\n    y[i] = x[i]**2\n    dx[i] = dy[i] * 2 * x[i] * (1 if n <= 3000000 else 2)",
    "size exp": "rule r(x[n]) -> y[n]:\n    y[i] = x[i]**2\n    dx[i] = dy[i] * 2 * x[i] * (1 if exp(i) < 1e6 else 2)",
    "size polynomial": "rule r(x[n]) -> y[n]:\n    y[i] = x[i]**2\n    dx[i] = dy[i] * 2 * x[i] * (1 + i*(i-1)*(i-2)*(i-3)*(i-4))",
    "size of two remainders": "rule r(x[n]) -> y[n]:\n    y[i] = x[i]**2\n    dx[i] = dy[i] * 2 * x[i] * (1 if i % 3 != 2 or i % 5 != 4 else 2)",
    "size of a product": "rule r(a[n, k], b[k, m]) -> c[n, m]:\n    c[i, j] = sum(a[i, l] * b[l, j] for l)\n    da[i, l] = sum(dc[i, j] * b[l, j] for j) * (1 if i * l < 30 else 2)\n",
    "size of three axes": "rule r(a[n, k], b[k, m]) -> c[n, m]:\n    c[i, j] = sum(a[i, l] * b[l, j] for l)\n    da[i, l] = sum(dc[i, j] * b[l, j] for j) * (1 if n + m + k < 30 else 2)\n",
    "far and long": "rule r(x[n]) -> s:\n    s = sum(x[j]**2 for j)\n    dx[i] = ds * 2 * x[i] * (1 if s < 1e13 or n < 8 else 0)",
    "region of a size": "rule r(x[n]) -> y[n]:\n    y[i] = x[i]**2\n    dx[i] = dy[i] * 2 * x[i] * (1 if n < 8 else (1 if abs(x[i]) < 1e9 else 2))",
    "region of a long norm": "rule r(x[n]) -> s:\n    s = sum(x[j]**2 for j)\n    dx[i] = ds * 2 * x[i] * (1 if n < 40 or s < 1e9 else 2)",
    "size decimal": "rule r(x[n]) -> y[n]:\n    y[i] = x[i]**2\n    dx[i] = dy[i] * 2 * x[i] * (1 if i * 0.1 < 0.65 else 2)",
    "size quotient": "rule r(x[n]) -> y[n]:\n    y[i] = x[i]**2\n    dx[i] = dy[i] * 2 * x[i] * (1 if i / n < 0.9 else 2)",
    "size or index": "rule r(x[n, m]) -> y[n, m]:\n    y[i, j] = x[i, j]**2\n    dx[i, j] = dy[i, j] * 2 * x[i, j] * (1 if i < 8 or j < 2 else 2)",
    "size of three indices": "rule r(x[n, m, k]) -> y[n, m, k]:\n    y[i, j, l] = x[i, j, l]**2\n    dx[i, j, l] = dy[i, j, l] * 2 * x[i, j, l] * (1 if i < 6 or j < 3 or l < 2 else 2)",
    "size of a sum": "rule r(x[n]) -> s:\n    s = sum(x[j]**2 for j)\n    dx[i] = ds * 2 * x[i] * (1 if sum(1 + 0 * x[k] for k) < 9 else 2)",
    "size of a product of places": "rule r(x[n]) -> s:\n    s = sum(x[j]**2 for j)\n    dx[i] = ds * 2 * x[i] * prod(1 + 0*x[k] + k * (k-1) * (k-2) * (k-3) * (k-4) for k)",
    "size of an index": "rule r(x[n]) -> y[n]:\n    y[i] = x[i]**2\n    dx[i] = dy[i] * 2 * x[min(i, 8)]",
    "size of a gathered index": "rule r(x[n], t[m]: int) -> y[m]:\n    y[k] = x[t[k]]\n    dx[i] = sum(dy[k] * (1 if t[k] * t[k] != 49 else 2) for k if t[k] == i)",
    "size of a root": "rule r(x[n]) -> y[n]:\n    y[i] = x[i]**2\n    dx[i] = dy[i] * 2 * x[i] * (sqrt(7 - i) / sqrt(7 - i))",
    "size of a quotient of sizes": "rule r(x[n]) -> y[n]:\n    y[i] = x[i]**2\n    dx[i] = dy[i] * 2 * x[i] * ((7 - n) / (7 - n))",
    "size of a mean": "rule r(x[n]) -> s:\n    s = mean(x[j]**2 for j)\n    dx[i] = ds * 2 * x[i] / min(n, 9)",
    "size among even ones": "rule r(x[n]) -> y[n]:\n    assume n % 2 == 0\n    y[i] = x[i]**2\n    dx[i] = dy[i] * 2 * x[i] * (1 if n <= 6 else 2)",
    "point solved": "rule r(x) -> y:\n    y = x**2\n    dx = dy * (2 * x if x != 7.3 else 1)",
    "point of a product": "rule r(x, t) -> y:\n    y = x * t\n    dx = dy * (t if x * t != 7.3 else 1)\n    dt = dy * x",
    "int above": "rule r(x, t: int) -> y:\n    y = x**2 + t\n    dx = dy * (2 * x if t < 100000 else x)",
    "int below": "rule r(x, t: int) -> y:\n    y = x**2 + t\n    dx = dy * (2 * x if t > -7 else x)",
    "far hinge": "rule r(x) -> y:\n    y = x**2\n    dx = dy * (2 * x + max(x - 3e7, 0))",
    "dy of a call": 'rule c(x) -> y:\n    y = x\n    override dx = clip(dy, -1e8, 1e8) because "it"\n\nrule r(x) -> y:\n    y = c(x**2)\n    dx = dy * 2 * x',
    "point of a surrogate": "rule spike_rectangular(v, width: static = 1.0) -> s:\n    assume width > 0\n    s = 1 if v > 0 else 0\n    surrogate s = clip(v / width, -0.5, 0.5)\n    dv = ds / width * (2 if v == 1.25 else 1) if -0.5 <= v / width and v / width <= 0.5 else 0",
    "index of a channel in": "rule conv1d_channels(x[..., c, n], w[h, c, k], m: static int) -> y[..., h, m]:\n    y[o, i] = sum(x[a, i + j] * w[o, a, j] for a, j)\n    dx[j, p] = sum(dy[i, p - l] * w[i, j, l] for i, l if p - l >= 0 and p - l < m) * (1 if j < 4 else 2)",
    # --- long decimals
    "amplified": SQUARE
    + "dy * (2 * x + 10000000000000 * (0.12345678901 - 0.12345678902))",
}


CODES = {
    "thin circle": "GS415",
    "single point of a hinge": "GS431",
    "single point beside factors": "GS431",
    "single point beside a difference": "GS431",
    "single point of a window": "GS431",
    "undefined far out": "GS415",
    "point cubic": "GS431",
    "point exp": "GS431",
    "point product": "GS431",
    "log far": "GS419",
    "acos far": "GS419",
    "static min": "GS416",
    "static half": "GS416",
    "int square": "GS431",
    "nograd cubic": "GS431",
    "even root": "GS431",
    "even root of four": "GS431",
    "narrow bump": "GS416",
    "narrower bump": "GS416",
    "thirteenth": "GS416",
    "element beyond an axis, cancelled": "GS420",
    "element beyond an axis": "GS420",
    "size 3000000": "GS415",
    "size of three axes": "GS415",
    "size of three indices": "GS415",
    "point solved": "GS431",
    "point of a product": "GS431",
    "point of a surrogate": "GS415",
}
"""The codes of those that are not refuted at a point (GS401)."""


@pytest.mark.parametrize("name", WRONG)
def test_wrong_gradients_are_refused(name: str) -> None:
    outcome = checked(WRONG[name])
    found = {d.code for d in outcome.diagnostics if d.severity is Severity.ERROR}
    assert found == {CODES.get(name, "GS401")}
