"""Rules over named axes, for the tests of the targets and for trials."""

from __future__ import annotations

RULES = """
rule softmax(x[..., n]) -> y[..., n]:
    e[i] = exp(x[i] - max(x[j] for j))
    y[i] = e[i] / sum(e[j] for j)
    dx[i] = y[i] * (dy[i] - sum(dy[j] * y[j] for j))

rule log_softmax(x[..., n]) -> y[..., n]:
    y[i] = x[i] - logsumexp(x[j] for j)
    dx[i] = dy[i] - exp(y[i]) * sum(dy[j] for j)

rule linear(x[..., k], w[m, k], b[m]) -> y[..., m]:
    y[i] = sum(x[l] * w[i, l] for l) + b[i]
    dx[l] = sum(dy[i] * w[i, l] for i)
    dw[i, l] = dy[i] * x[l]
    db[i] = dy[i]

rule layer_norm(x[..., n], g[n], b[n], eps: static = 1e-5) -> y[..., n]:
    mu = mean(x[j] for j)
    r = 1 / sqrt(mean((x[j] - mu)**2 for j) + eps)
    y[i] = (x[i] - mu) * r * g[i] + b[i]
    h[i] = dy[i] * g[i]
    s[i] = (x[i] - mu) * r
    dx[i] = r * (h[i] - mean(h[j] for j) - s[i] * mean(h[j] * s[j] for j))
    dg[i] = dy[i] * (x[i] - mu) * r
    db[i] = dy[i]

rule cross_entropy(x[..., n], t[...]: int) -> loss[...]:
    loss = logsumexp(x[j] for j) - x[t]
    p[i] = exp(x[i] - logsumexp(x[j] for j))
    dx[i] = dloss * (p[i] - (1 if i == t else 0))

rule attention(q[..., n, d], k[..., m, d], v[..., m, c]) -> o[..., n, c]:
    s[i, j] = sum(q[i, l] * k[j, l] for l) / sqrt(d)
    a[i, j] = exp(s[i, j] - logsumexp(s[i, l] for l))
    o[i, z] = sum(a[i, j] * v[j, z] for j)
    da[i, j] = sum(do[i, z] * v[j, z] for z)
    ds[i, j] = a[i, j] * (da[i, j] - sum(da[i, l] * a[i, l] for l))
    dq[i, l] = sum(ds[i, j] * k[j, l] for j) / sqrt(d)
    dk[j, l] = sum(ds[i, j] * q[i, l] for i) / sqrt(d)
    dv[j, z] = sum(a[i, j] * do[i, z] for i)

rule trace(x[..., n, n]) -> y[...]:
    y = sum(x[i, i] for i)
    dx[i, j] = dy if i == j else 0

rule outer(x[..., n], y[..., m]) -> z[..., n, m]:
    z[i, j] = x[i] * y[j]
    dx[i] = sum(dz[i, j] * y[j] for j)
    dy[j] = sum(dz[i, j] * x[i] for i)

rule mse(x[n], t[n]: nograd) -> loss[]:
    loss = mean((x[i] - t[i])**2 for i)
    dx[i] = dloss * 2 * (x[i] - t[i]) / n

rule scaled_rows(x[..., n], a) -> y[..., n]:
    y[i] = a * x[i]
    dx[i] = dy[i] * a
    da = sum(dy[i] * x[i] for i)

rule third(x[..., 4]) -> y[...]:
    y = x[2]
    dx[i] = dy if i == 2 else 0

rule prefix(x[..., n]) -> y[..., n]:
    y[i] = sum(x[j] for j if j <= i)
    dx[j] = sum(dy[i] for i if i >= j)

rule total(x[..., n]) -> y[...]:
    y = sum(x[i] for i)
    dx[i] = dy

rule positions(x[..., n]) -> y[...]:
    y = sum(x[i] * i for i) / n
    dx[i] = dy * i / n

rule two(x[..., n], w[n]) -> (s[...], z[..., n]):
    s = sum(x[i] * w[i] for i)
    z[i] = x[i]**2
    dx[i] = ds * w[i] + 2 * dz[i] * x[i]
    dw[i] = ds * x[i]

rule smoothness(x[..., n]) -> y[...]:
    y = sum((x[i + 1] - x[i])**2 for i if i < n - 1)

rule embedding(w[n, m], t[...]: int) -> y[..., m]:
    y[i] = w[t, i]

rule conv1d(x[..., n], w[k], m: static int = 3) -> y[..., m]:
    y[i] = sum(x[i + j] * w[j] for j)

rule largest(x[..., n]) -> y[...]:
    y = max(x[i] for i)

rule window(x[..., k], k: static int = 2) -> y[...]:
    y = sum(x[i] for i) / k

rule causal(p[..., n, n], v[..., n, d]) -> y[..., n, d]:
    y[i, k] = sum(p[i, j] * v[j, k] for j if j <= i)

rule distances(x[..., n, d], z[..., m, d]) -> y[..., n, m]:
    y[i, j] = sum((x[i, k] - z[j, k])**2 for k)

rule bilinear(x[..., n], a[k, n, m], z[..., m]) -> y[..., k]:
    y[i] = sum(x[p] * a[i, p, q] * z[q] for p, q)

rule mean_square(x[n, m], t[n, m]: nograd) -> loss[]:
    loss = mean((x[i, j] - t[i, j])**2 for i, j)

rule reversed_row(x[..., n]) -> y[..., n]:
    y[i] = x[n - 1 - i] * i

rule columns(x[..., n, m]) -> y[..., m, n]:
    y[j, i] = exp(x[i, j]) / sum(exp(x[k, j]) for k)

rule gather_rows(x[..., n, m], t[..., n]: int) -> y[..., n]:
    y[i] = x[i, t[i]]

rule chosen_rows(x[..., n, d], t[..., n]: int) -> y[..., n, d]:
    y[i, k] = x[t[i], k]

rule lookup(w[v, d], t: int) -> y[..., d]:
    y[k] = w[t, k]

rule several(x[..., n], w[n, n]) -> (y[..., n], s, q[..., n, n]):
    y[i] = sum(w[i, j] * x[j] for j)
    s = sum(x[i] * x[i] for i)
    q[i, j] = x[i] * w[i, j]

rule extremes(x[..., n, m]) -> (a, b[..., n], c[..., m], d):
    a = max(x[i, j] for i, j)
    b[i] = min(x[i, j] for j)
    c[j] = logsumexp(x[i, j] for i)
    d = prod(x[i, j] for i, j)

rule nested(x[..., n], z[..., m]) -> y:
    y = sum(log(sum(exp(x[i] * z[j]) for j)) for i)

rule fixed(x[..., 3], m[2, 2]) -> y[..., 2]:
    y[i] = x[0] * m[i, 1] + x[2] * m[0, i]

rule squares(a[..., n, n]) -> (t, d[..., n], s[..., n, n]):
    t = sum(a[i, i] for i)
    d[i] = a[i, i]
    s[i, j] = (a[i, j] + a[j, i]) / 2

rule shifted(x[..., n]) -> y[..., n]:
    y[i] = (x[i + 2] if i + 2 < n else 0) + (x[i - 1] if i >= 1 else x[0])

rule pairs(x[..., 4]) -> y[..., 2]:
    y[i] = x[2 * i] * x[2 * i + 1]

rule quadratic(x[..., n], mu[n], p[n, n]) -> y:
    y = sum((x[i] - mu[i]) * p[i, j] * (x[j] - mu[j]) for i, j)

rule product4(a[n, n], b[m, m]) -> c[n, m, n, m]:
    c[i, j, k, l] = a[i, k] * b[j, l]

rule masked(x[..., n], keep[..., n]: bool) -> y[..., n]:
    y[i] = x[i] if keep[i] else -x[i]**2

rule first_axis(x[n], z[n, m]) -> y[m]:
    y[j] = sum(x[i] * z[i, j] for i)

rule averaged(x[..., n], b: static = 0.5) -> (y, z):
    y = mean(x[i]**2 for i if i > 0 or n < 2)
    z = log(mean(exp(x[i] / b) for i))
"""
