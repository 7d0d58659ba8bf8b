"""Rules over named axes, one for each thing that index notation can say."""

from __future__ import annotations

RULES = {
    "softmax": """
rule softmax(x[..., n]) -> y[..., n]:
    e[i] = exp(x[i] - max(x[j] for j))
    y[i] = e[i] / sum(e[j] for j)
""",
    "softmax_unshifted": """
rule softmax(x[..., n]) -> y[..., n]:
    y[i] = exp(x[i]) / sum(exp(x[j]) for j)
""",
    "linear": """
rule linear(x[..., k], w[m, k], b[m]) -> y[..., m]:
    y[i] = sum(x[l] * w[i, l] for l) + b[i]
""",
    "layer_norm": """
rule ln(x[..., n], g[n], b[n], eps: static = 0.5) -> y[..., n]:
    mu = mean(x[j] for j)
    v = mean((x[j] - mu)**2 for j)
    r = 1 / sqrt(v + eps)
    y[i] = (x[i] - mu) * r * g[i] + b[i]
""",
    "rms_norm": """
rule rms(x[..., n], g[n], eps: static = 0.5) -> y[..., n]:
    r = 1 / sqrt(mean(x[j]**2 for j) + eps)
    y[i] = x[i] * r * g[i]
""",
    "logsumexp": """
rule lse(x[..., n]) -> y[...]:
    y = logsumexp(x[j] for j)
""",
    "log_softmax": """
rule logsm(x[..., n]) -> y[..., n]:
    y[i] = x[i] - log(sum(exp(x[j]) for j))
""",
    "cross_entropy": """
rule ce(x[..., n], t[...]: int) -> y[...]:
    l[i] = x[i] - logsumexp(x[j] for j)
    y = -l[t]
""",
    "trace": """
rule tr(x[..., n, n]) -> y[...]:
    y = sum(x[i, i]**2 for i)
""",
    "total_variation": """
rule tv(x[..., n]) -> y[...]:
    y = sum((x[i + 1] - x[i])**2 for i if i + 1 < n)
""",
    "differences": """
rule tv(x[n]) -> y[]:
    d[i] = x[i + 1] - x[i]
    y = sum(d[i]**2 for i if i < n - 1)
""",
    "lag": """
rule lag(x[n]) -> y[n]:
    y[i] = x[i - 1] * x[i] if i > 0 else x[0]
""",
    "product": """
rule p(x[..., n]) -> y[...]:
    y = prod(x[i] for i)
""",
    "product_of_pairs": """
rule p(x[n, m]) -> y[]:
    y = prod(x[i, j] + 1 for i, j if i <= j)
""",
    "largest": """
rule p(x[..., n]) -> y[...]:
    y = max(x[i]**2 for i if i > 0) + min(x[i] for i)
""",
    "prefix_sums": """
rule p(x[..., n]) -> y[..., n]:
    y[i] = sum(x[j]**2 for j if j <= i)
""",
    "prefix_means": """
rule p(x[..., n]) -> y[..., n]:
    y[i] = mean(exp(x[j]) for j if j <= i)
""",
    "attention": """
rule attn(q[..., n, d], k[..., m, d], v[..., m, e]) -> y[..., n, e]:
    s[i, j] = sum(q[i, l] * k[j, l] for l) / sqrt(d)
    p[i, j] = exp(s[i, j]) / sum(exp(s[i, l]) for l)
    y[i, c] = sum(p[i, j] * v[j, c] for j)
""",
    "cosine": """
rule cosine(a[..., n], b[..., n]) -> y[...]:
    y = sum(a[i]*b[i] for i) / (sqrt(sum(a[i]**2 for i)) * sqrt(sum(b[i]**2 for i)))
""",
    "normalise": """
rule l2(x[..., n]) -> y[..., n]:
    y[i] = x[i] / sqrt(sum(x[j]**2 for j))
""",
    "distances": """
rule pd(x[..., n, d], z[..., m, d]) -> y[..., n, m]:
    y[i, j] = sum((x[i, l] - z[j, l])**2 for l)
""",
    "bilinear": """
rule bil(x[..., n], w[n, m], z[..., m]) -> y[...]:
    y = sum(x[i] * w[i, j] * z[j] for i, j)
""",
    "outer": """
rule outer(x[n], z[m]) -> y[m, n]:
    y[j, i] = x[i] * z[j]
""",
    "convolution": """
rule conv(x[..., n], w[3]) -> y[..., n]:
    y[i] = sum(x[i + k - 1] * w[k] for k if i + k >= 1 and i + k - 1 < n)
""",
    "every_second": """
rule stride(x[n]) -> y[n]:
    y[i] = x[2 * i]**2 if 2 * i < n else x[n - 1 - i]
""",
    "embedding": """
rule emb(x[v, d], t[b]: int) -> y[b, d]:
    y[i, j] = x[t[i], j]**2
""",
    "cross_product": """
rule cross(a[..., 3], b[..., 3]) -> (x[...], z[...]):
    x = a[0]*b[1] - a[1]*b[0]
    z = a[1]*b[2] - a[2]*b[1]
""",
    "mixed": """
rule mixed(x[..., n], s) -> y[..., n]:
    y[i] = x[i] * s + s * sum(x[j] for j)
""",
    "huber": """
rule hub(x[..., n], t[..., n], d: static = 1) -> y[...]:
    h[i] = (x[i]-t[i])**2 / 2 if abs(x[i]-t[i]) <= d else d * (abs(x[i]-t[i]) - d/2)
    y = mean(h[i] for i)
""",
    "contrastive": """
rule nce(a[n, d], b[n, d], temp: static = 2) -> y[]:
    s[i, j] = sum(a[i, l] * b[j, l] for l) / temp
    y = -mean(s[i, i] - logsumexp(s[i, j] for j) for i)
""",
    "surrogate": """
rule hard(x[..., n]) -> y[..., n]:
    y[i] = 1 if x[i] == max(x[j] for j) else 0
    surrogate y[i] = exp(x[i]) / sum(exp(x[j]) for j)
""",
    "two_outputs": """
rule two(x[n], w[]) -> (y[n], z[]):
    y[i] = x[i] * w
    z = sum(y[i]**2 for i)
""",
    "horner": """
rule poly(x, c[4]) -> y:
    y = c[0] + x * (c[1] + x * (c[2] + x * c[3]))
""",
    "fixed_mean": """
rule m(x[..., 3]) -> y[...]:
    y = mean(x[i]**3 for i)
""",
    "variance_of_sums": """
rule v(x[n, m]) -> y[m]:
    y[j] = (sum(x[i, j] for i) - mean(x[i, l] for i, l))**2
""",
    "causal_attention": """
rule ca(s[..., n, n], v[..., n, d]) -> y[..., n, d]:
    m[i] = max(s[i, j] for j if j <= i)
    e[i, j] = exp(s[i, j] - m[i]) if j <= i else 0
    p[i, j] = e[i, j] / sum(e[i, l] for l)
    y[i, c] = sum(p[i, j] * v[j, c] for j)
""",
    "focal": """
rule focal(x[..., n], t[...]: int, g: static = 2) -> y[...]:
    p[i] = exp(x[i] - logsumexp(x[j] for j))
    y = -(1 - p[t])**g * log(p[t])
""",
    "clipped_norm": """
rule cn(x[..., n], c: static = 1) -> y[..., n]:
    s = sqrt(sum(x[j]**2 for j))
    y[i] = x[i] * c / s if s > c else x[i]
""",
    "soft_argmax": """
rule sam(x[..., n], b[]) -> y[...]:
    e[i] = exp(b * (x[i] - max(x[j] for j)))
    y = sum(e[i] / sum(e[j] for j) * i for i)
""",
    "flip": """
rule flip(x[..., n]) -> y[..., n]:
    y[i] = x[n - 1 - i]**2
""",
    "products_of_rows": """
rule pp(x[..., n, m]) -> y[..., n]:
    y[i] = prod(x[i, j] for j) / sum(prod(x[k, j] for j) for k)
""",
    "batch_norm": """
rule bn(x[b, c], g[c], eps: static = 0.1) -> y[b, c]:
    mu[j] = mean(x[i, j] for i)
    v[j] = mean((x[i, j] - mu[j])**2 for i)
    y[i, j] = (x[i, j] - mu[j]) / sqrt(v[j] + eps) * g[j]
""",
    "label_smoothing": """
rule lsce(x[..., n], t[..., n], a: static = 0.1) -> y[...]:
    l[i] = x[i] - logsumexp(x[j] for j)
    y = -sum(((1 - a) * t[i] + a / n) * l[i] for i)
""",
}
