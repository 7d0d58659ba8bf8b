"""Rules with equations whose gradients are written by hand, and errors in these."""

from __future__ import annotations

LINEAR = """
rule linear_system(a[..., n, n], b[..., n]) -> x[..., n]:
    solve x: sum(a[i, j] * x[j] for j) == b[i]
    solve u: sum(a[i, j] * u[i] for i) == dx[j]
    db[i] = u[i]
    da[i, j] = -u[i] * x[j]
"""

EXCHANGED = """
rule exchanged(a[n, n], b[n]) -> x[n]:
    solve x: b[i] == sum(a[i, j] * x[j] for j)
    solve u: dx[j] == sum(a[i, j] * u[i] for i)
    db[i] = u[i]
    da[i, j] = -u[i] * x[j]
"""

QUADRATIC = """
rule quadratic_form(a[n, n], b[n]) -> y[]:
    solve x: sum(a[i, j] * x[j] for j) == b[i]
    y = sum(b[i] * x[i] for i)
    solve u: sum(a[i, j] * u[i] for i) == dy * b[j]
    db[i] = u[i] + dy * x[i]
    da[i, j] = -u[i] * x[j]
"""

TRIANGULAR = """
rule triangular(a[n, n], b[n]) -> x[n]:
    solve x: sum(a[i, j] * x[j] for j if j <= i) == b[i]
    solve u: sum(a[i, j] * u[i] for i if j <= i) == dx[j]
    db[i] = u[i]
    da[i, j] = -u[i] * x[j] if j <= i else 0
"""

SYLVESTER = """
rule sylvester(a[m, m], b[n, n], c[m, n]) -> x[m, n]:
    solve x: sum(a[i, k] * x[k, j] for k) + sum(x[i, l] * b[l, j] for l) == c[i, j]
    solve u: sum(a[k, i] * u[k, j] for k) + sum(u[i, l] * b[j, l] for l) == dx[i, j]
    da[i, k] = -sum(u[i, j] * x[k, j] for j)
    db[l, j] = -sum(x[i, l] * u[i, j] for i)
    dc[i, j] = u[i, j]
"""

LYAPUNOV = """
rule lyapunov(a[n, n], q[n, n]) -> x[n, n]:
    solve x: sum(a[i, k] * x[k, j] for k) + sum(x[i, k] * a[j, k] for k) == q[i, j]
    solve u: sum(a[k, i] * u[k, j] for k) + sum(u[i, k] * a[k, j] for k) == dx[i, j]
    dq[i, j] = u[i, j]
    da[i, j] = -sum(u[i, k] * x[j, k] for k) - sum(u[k, i] * x[k, j] for k)
"""

RIDGE = """
rule ridge(x[m, n], y[m], lam) -> w[n]:
    assume lam > 0
    solve w: (sum(x[i, j] * sum(x[i, k] * w[k] for k) for i) + lam * w[j]
        == sum(x[i, j] * y[i] for i))
    solve u: sum(x[i, k] * sum(x[i, j] * u[j] for j) for i) + lam * u[k] == dw[k]
    dy[i] = sum(x[i, j] * u[j] for j)
    dlam = -sum(u[j] * w[j] for j)
    dx[i, j] = (u[j] * (y[i] - sum(x[i, k] * w[k] for k))
        - w[j] * sum(x[i, k] * u[k] for k))
"""

FIXED_POINT = """
rule fixed_point_layer(w[n, n], x[n]) -> z[n]:
    solve z: z[i] == tanh(sum(w[i, j] * z[j] for j) + x[i])
    solve u: u[j] == dz[j] + sum(u[i] * (1 - z[i]**2) * w[i, j] for i)
    dx[i] = u[i] * (1 - z[i]**2)
    dw[i, j] = u[i] * (1 - z[i]**2) * z[j]
"""

KEPLER = """
rule kepler(m, e) -> u:
    assume 0 <= e, e < 1
    solve u from m: u - e * sin(u) == m
    dm = du / (1 - e * cos(u))
    de = du * sin(u) / (1 - e * cos(u))
"""

CUBIC = """
rule cubic_flow(x, c) -> y:
    assume c > 0
    solve y: y + c * y**3 == x
    dx = dy / (1 + 3 * c * y**2)
    dc = -dy * y**3 / (1 + 3 * c * y**2)
"""

CELL = """
rule cell(w, x) -> z:
    assume abs(w) < 1
    solve z: z == tanh(w * z + x)
    dx = dz * (1 - z**2) / (1 - w * (1 - z**2))
    dw = dz * z * (1 - z**2) / (1 - w * (1 - z**2))
"""

BRANCH = """
rule branch(x) -> y:
    assume x > 0, y > 0
    solve y: y**2 == x
    dx = dy / (2 * sqrt(x))
"""

RADIUS = """
rule radius(x[n]) -> r[]:
    assume r > 0
    solve r: sum(x[i]**2 for i) == r**2
    dx[i] = dr * x[i] / r
"""

EACH = """
rule each(m[n], e[]) -> u[n]:
    assume 0 <= e, e < 1
    solve u from m[i]: u[i] - e * sin(u[i]) == m[i]
    dm[i] = du[i] / (1 - e * cos(u[i]))
    de = sum(du[i] * sin(u[i]) / (1 - e * cos(u[i])) for i)
"""

PROVED = (
    *(LINEAR, EXCHANGED, QUADRATIC, TRIANGULAR, SYLVESTER, LYAPUNOV, RIDGE),
    *(FIXED_POINT, KEPLER, CUBIC, CELL, BRANCH, RADIUS, EACH),
)

LAMBERT = """
rule lambert_w(x) -> y:
    assume y > -1
    solve y: y * exp(y) == x
    dx = dy * y / (x * (1 + y))
"""

KEPT_INVERSE = """
rule kept_inverse(a[n, n], b[n]) -> x[n]:
    solve c: sum(a[i, k] * c[k, j] for k) == (1 if i == j else 0)
    solve x: sum(a[i, j] * x[j] for j) == b[i]
    db[i] = sum(c[j, i] * dx[j] for j)
    da[i, j] = -sum(c[k, i] * dx[k] for k) * x[j]
"""

SCALED = """
rule scaled(a[n, n], b[n]) -> x[n]:
    solve x: sum(a[i, j] * x[j] for j) == b[i]
    solve u: 2 * sum(a[i, j] * u[i] for i) == dx[j]
    db[i] = 2 * u[i]
    da[i, j] = -2 * u[i] * x[j]
"""

CHOLESKY = """
rule cholesky(a[n, n]) -> l[n, n]:
    assume l[i, i] > 0
    solve l if j <= i: sum(l[i, k] * l[j, k] for k) == a[i, j]
    solve c: sum(c[i, k] * l[k, j] for k) == (1 if i == j else 0)
    p[i, j] = (1 if j < i else 0.5 if i == j else 0) * sum(l[k, i] * dl[k, j] for k if j <= k)
    s[i, j] = sum(c[k, i] * sum(p[k, m] * c[m, j] for m) for k)
    da[i, j] = s[i, j] + s[j, i] if j < i else s[i, i] if i == j else 0
"""

EIGH = """
rule eigh(a[n, n]) -> (w[n], v[n, n]):
    assume a[i, j] == a[j, i]
    solve v: sum(a[i, k] * v[k, j] for k) == v[i, j] * w[j]
    solve w: sum(v[k, j]**2 for k) == 1
    s[i, j] = sum(v[k, i] * dv[k, j] for k)
    m[i, j] = dw[j] if i == j else s[i, j] / (w[j] - w[i])
    da[i, j] = sum(sum(v[i, k] * m[k, l] for k) * v[j, l] for l)
"""

QR = """
rule qr(a[n, n]) -> (q[n, n], r[n, n]):
    assume r[i, i] > 0
    solve q: sum(q[i, k] * r[k, j] for k) == a[i, j]
    solve r[i, j] if i <= j: sum(q[k, i] * q[k, j] for k) == (1 if i == j else 0)
    solve c if i <= j: sum(r[i, k] * c[k, j] for k) == (1 if i == j else 0)
    m[i, j] = (sum(r[i, k] * dr[j, k] for k if j <= k)
        - sum(dq[k, i] * q[k, j] for k))
    t[i, j] = m[i, j] if j < i else m[j, i] if i < j else m[i, i]
    g[i, j] = dq[i, j] + sum(q[i, k] * t[k, j] for k)
    da[i, j] = sum(g[i, k] * c[j, k] for k)
"""

AGREES = (LAMBERT, KEPT_INVERSE, SCALED, CHOLESKY, EIGH, QR)
"""Right, and found to be so at points where the equations hold."""

WRONG = (
    (LINEAR, "a[i, j] * u[i] for i", "a[j, i] * u[i] for i", "b"),
    (LINEAR, "-u[i] * x[j]", "u[i] * x[j]", "a"),
    (LINEAR, "-u[i] * x[j]", "-u[j] * x[i]", "a"),
    (QUADRATIC, "u[i] + dy * x[i]", "u[i]", "b"),
    (TRIANGULAR, "-u[i] * x[j] if j <= i else 0", "-u[i] * x[j]", "a"),
    (SYLVESTER, "u[i, l] * b[j, l]", "u[i, l] * b[l, j]", "c"),
    (LYAPUNOV, " - sum(u[k, i] * x[k, j] for k)", "", "a"),
    (RIDGE, "\n        - w[j] * sum(x[i, k] * u[k] for k)", "", "x"),
    (FIXED_POINT, "dx[i] = u[i] * (1 - z[i]**2)", "dx[i] = u[i]", "x"),
    (FIXED_POINT, "(1 - z[i]**2) * z[j]", "(1 - z[i]**2) * z[i]", "w"),
    (KEPLER, "du * sin(u)", "du * sin(m)", "e"),
    (CUBIC, "-dy * y**3", "-dy * y**2", "c"),
    (CELL, "dz * z * (1 - z**2)", "dz * (1 - z**2)", "w"),
    (BRANCH, "dy / (2 * sqrt(x))", "-dy / (2 * sqrt(x))", "x"),
    (RADIUS, "dr * x[i] / r", "dr * x[i]", "x"),
    (LAMBERT, "(x * (1 + y))", "(x * (2 + y))", "x"),
    (KEPT_INVERSE, "c[j, i] * dx[j]", "c[i, j] * dx[j]", "b"),
    (SCALED, "-2 * u[i]", "-u[i]", "a"),
    (CHOLESKY, "s[i, j] + s[j, i] if", "s[i, j] if", "a"),
    (EIGH, "w[j] - w[i]", "w[i] - w[j]", "a"),
)
