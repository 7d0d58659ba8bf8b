"""Rules with recurrences whose gradients are written by hand, and errors in these."""

from __future__ import annotations

LINEAR = """
rule linear_rnn(a[..., n], x[..., n], h0) -> h[..., n]:
    h[t] = a[t] * (h[t - 1] if t > 0 else h0) + x[t]
    g[t] = dh[t] + (a[t + 1] * g[t + 1] if t < n - 1 else 0)
    dx[t] = g[t]
    da[t] = g[t] * (h[t - 1] if t > 0 else h0)
"""

SELECTIVE = """
rule selective_scan(x[n, d], z[n, d], a[d, s], b[n, s], c[n, s]) -> y[n, d]:
    h[t, i, k] = (exp(z[t, i] * a[i, k]) * (h[t - 1, i, k] if t > 0 else 0)
        + z[t, i] * b[t, k] * x[t, i])
    y[t, i] = sum(c[t, k] * h[t, i, k] for k)
    g[t, i, k] = (dy[t, i] * c[t, k]
        + (g[t + 1, i, k] * exp(z[t + 1, i] * a[i, k]) if t < n - 1 else 0))
    dx[t, i] = sum(g[t, i, k] * z[t, i] * b[t, k] for k)
    dz[t, i] = sum(g[t, i, k] * (b[t, k] * x[t, i]
        + (a[i, k] * exp(z[t, i] * a[i, k]) * h[t - 1, i, k] if t > 0 else 0)) for k)
    da[i, k] = sum(g[t, i, k] * z[t, i] * exp(z[t, i] * a[i, k]) * h[t - 1, i, k]
        for t if t > 0)
    db[t, k] = sum(g[t, i, k] * z[t, i] * x[t, i] for i)
    dc[t, k] = sum(dy[t, i] * h[t, i, k] for i)
"""

ELMAN = """
rule elman(w[d, d], x[n, d]) -> h[n, d]:
    h[t, i] = tanh((sum(w[i, j] * h[t - 1, j] for j) if t > 0 else 0) + x[t, i])
    g[t, j] = dh[t, j] + (sum(g[t + 1, i] * (1 - h[t + 1, i]**2) * w[i, j] for i)
        if t < n - 1 else 0)
    dx[t, i] = g[t, i] * (1 - h[t, i]**2)
    dw[i, j] = sum(g[t, i] * (1 - h[t, i]**2) * h[t - 1, j] for t if t > 0)
"""

ALL_POLE = """
rule all_pole(x[n], a[n, k]) -> y[n]:
    y[t] = x[t] - sum(a[t, j] * y[t - j - 1] for j if j < t)
    g[t] = dy[t] - sum(a[t + j + 1, j] * g[t + j + 1] for j if t + j + 1 < n)
    dx[t] = g[t]
    da[t, j] = -g[t] * y[t - j - 1] if j < t else 0
"""

SOFT_DTW = """
rule soft_dtw(d[m, n], gamma: static = 1.0) -> r[m, n]:
    assume gamma > 0
    r[i, j] = d[i, j] - (gamma * log((exp(-r[i - 1, j] / gamma) if i > 0 else 0)
        + (exp(-r[i, j - 1] / gamma) if j > 0 else 0)
        + (exp(-r[i - 1, j - 1] / gamma) if i > 0 and j > 0 else 0))
        if i > 0 or j > 0 else 0)
    e[i, j] = (dr[i, j]
        + (e[i + 1, j] * exp((r[i + 1, j] - r[i, j] - d[i + 1, j]) / gamma)
            if i < m - 1 else 0)
        + (e[i, j + 1] * exp((r[i, j + 1] - r[i, j] - d[i, j + 1]) / gamma)
            if j < n - 1 else 0)
        + (e[i + 1, j + 1] * exp((r[i + 1, j + 1] - r[i, j] - d[i + 1, j + 1]) / gamma)
            if i < m - 1 and j < n - 1 else 0))
    dd[i, j] = e[i, j]
"""

CHAIN = """
rule chain(e[n, s], w[s, s]) -> a[n, s]:
    a[t, j] = e[t, j] + (logsumexp(a[t - 1, i] + w[i, j] for i) if t > 0 else 0)
    g[t, i] = da[t, i] + (sum(g[t + 1, j] * exp(a[t, i] + w[i, j] + e[t + 1, j]
        - a[t + 1, j]) for j) if t < n - 1 else 0)
    de[t, j] = g[t, j]
    dw[i, j] = sum(g[t, j] * exp(a[t - 1, i] + w[i, j] + e[t, j] - a[t, j])
        for t if t > 0)
"""

GATED = """
rule gated(x[n, d], u[d, d]) -> y[n, d]:
    f[t, k] = sigmoid(x[t, k] + (sum(u[k, l] * h[t - 1, l] for l) if t > 0 else 0))
    c[t, k] = f[t, k] * (c[t - 1, k] if t > 0 else 0) + x[t, k]
    h[t, k] = f[t, k] * c[t, k]
    y[t, k] = h[t, k]
    p[t, k] = dy[t, k] + (sum(r[t + 1, l] * u[l, k] for l) if t < n - 1 else 0)
    q[t, k] = p[t, k] * f[t, k] + (q[t + 1, k] * f[t + 1, k] if t < n - 1 else 0)
    r[t, k] = f[t, k] * (1 - f[t, k]) * (p[t, k] * c[t, k]
        + (q[t, k] * c[t - 1, k] if t > 0 else 0))
    dx[t, k] = q[t, k] + r[t, k]
    du[k, l] = sum(r[t, k] * h[t - 1, l] for t if t > 0)
"""

BACKWARDS = """
rule discounted(r[..., n], gamma) -> g[..., n]:
    g[t] = r[t] + (gamma * g[t + 1] if t < n - 1 else 0)
    u[t] = dg[t] + (gamma * u[t - 1] if t > 0 else 0)
    dr[t] = u[t]
    dgamma = sum(u[t] * g[t + 1] for t if t < n - 1)
"""

STRIDED = """
rule strided(x[n], a, k: static int) -> y[n]:
    assume k > 0
    y[t] = x[t] + (a * y[t - k] if t >= k else 0)
    g[t] = dy[t] + (a * g[t + k] if t + k < n else 0)
    dx[t] = g[t]
    da = sum(g[t] * y[t - k] for t if t >= k)
"""

RIGHT: tuple[str, ...] = (
    LINEAR,
    SELECTIVE,
    ELMAN,
    ALL_POLE,
    SOFT_DTW,
    CHAIN,
    GATED,
    BACKWARDS,
)
"""Every gradient is proved at every size."""

WRONG: tuple[tuple[str, str, str, str], ...] = (
    # rule, what is written, the error, the gradient that is wrong
    (LINEAR, "a[t + 1] * g[t + 1]", "a[t] * g[t + 1]", "x"),
    (LINEAR, "a[t + 1] * g[t + 1]", "a[t + 1] * dh[t + 1]", "x"),
    (LINEAR, "dh[t] + (", "(", "x"),
    (LINEAR, "da[t] = g[t] * (h[t - 1]", "da[t] = g[t] * (h[t]", "a"),
    (LINEAR, "else h0)\n", "else 0)\n", "a"),
    (SELECTIVE, "exp(z[t + 1, i] * a[i, k]) if", "exp(z[t, i] * a[i, k]) if", "x"),
    (SELECTIVE, "dy[t, i] * c[t, k]\n", "dy[t, i]\n", "b"),
    (SELECTIVE, "(b[t, k] * x[t, i]\n        + (a", "(0\n        + (a", "z"),
    (
        SELECTIVE,
        "h[t - 1, i, k]\n        for t if t > 0",
        "h[t, i, k]\n        for t",
        "a",
    ),
    (ELMAN, "* w[i, j] for i)", "* w[j, i] for i)", "x"),
    (ELMAN, "(1 - h[t + 1, i]**2)", "(1 - h[t, i]**2)", "x"),
    (ELMAN, "(1 - h[t, i]**2) * h[t - 1, j]", "(1 - h[t, i]**2) * h[t - 1, i]", "w"),
    (ALL_POLE, "a[t + j + 1, j] * g", "a[t, j] * g", "x"),
    (ALL_POLE, "-g[t] * y", "g[t] * y", "a"),
    (SOFT_DTW, "- d[i, j + 1]) / gamma", "- d[i + 1, j]) / gamma", "d"),
    (SOFT_DTW, "r[i + 1, j + 1] - r[i, j]", "r[i + 1, j + 1] - r[i + 1, j]", "d"),
    (CHAIN, "exp(a[t, i] + w[i, j]", "exp(a[t, i] + w[j, i]", "e"),
    (CHAIN, "for t if t > 0)", "for t if t > 1)", "w"),
    (GATED, "r[t + 1, l] * u[l, k]", "r[t + 1, l] * u[k, l]", "x"),
    (GATED, "q[t + 1, k] * f[t + 1, k]", "q[t + 1, k] * f[t, k]", "x"),
    (GATED, "dx[t, k] = q[t, k] + r[t, k]", "dx[t, k] = q[t, k]", "x"),
    (BACKWARDS, "gamma * u[t - 1] if t > 0", "gamma * u[t - 1] if t > 1", "r"),
    (STRIDED, "(a * g[t + k] if t + k < n", "(a * g[t + 1] if t + 1 < n", "x"),
    (STRIDED, "for t if t >= k", "for t if t > k", "a"),
    (STRIDED, "dx[t] = g[t]", "dx[t] = g[t] if k < 3 else 0", "x"),
    (STRIDED, "dx[t] = g[t]", "dx[t] = g[t] if k <= n else 0", "x"),
    (BACKWARDS, "u[t] * g[t + 1] for t", "u[t + 1] * g[t + 1] for t", "gamma"),
)
