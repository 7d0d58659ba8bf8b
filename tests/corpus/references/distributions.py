"""Log-densities, all partials by differentiation."""

from mpmath import besseli, beta, cos, exp, log, loggamma, mpf, ncdf, pi, sqrt

from tests.corpus.case import case

X = (-4.5, -2.25, -1.75, -0.625, 0.375, 1.125, 2.5, 4.0)
M = (0.5, -1.25, 2.0, 0.875, 1.5, -0.75, 0.25, 3.0)
S = (0.5, 1.25, 2.0, 0.125, 3.5, 0.75, 6.0, 1.0)
A = (0.75, 2.5, 1.5, 4.0, 0.3, 10.0, 3.25, 1.75)
P = (0.01, 0.0625, 0.375, 0.9, 1.125, 3.5, 10.0, 40.0)
OPEN = (0.01, 0.0625, 0.25, 0.375, 0.45, 0.625, 0.75, 0.96875)
K = (0.0, 1.0, 3.0, 2.0, 7.0, 1.0, 12.0, 4.0)


def sp(t):
    return log(1 + exp(t))


def sig(t):
    return 1 / (1 + exp(-t))


def normal(z, scale):
    return -(z**2) / 2 - log(scale) - log(2 * pi) / 2


def student(x, nu):
    norm = loggamma((nu + 1) / 2) - loggamma(nu / 2) - log(nu * pi) / 2
    return norm - (nu + 1) / 2 * log(1 + x**2 / nu)


def logistic(x, mu, s):
    z = (x - mu) / s
    return -z - log(s) - 2 * log(1 + exp(-z))


def gumbel(x, mu, beta):
    z = (x - mu) / beta
    return -(z + exp(-z)) - log(beta)


def weibull(x, k, lam):
    return log(k / lam) + (k - 1) * log(x / lam) - (x / lam) ** k


def gamma(x, alpha, beta):
    return alpha * log(beta) - loggamma(alpha) + (alpha - 1) * log(x) - beta * x


def poisson(k, rate):
    return k * log(rate) - rate - loggamma(mpf(k) + 1)


def negative_binomial(k, r, p):
    count = loggamma(k + r) - loggamma(k + 1) - loggamma(r)
    return count + r * log(1 - p) + k * log(p)


def kumaraswamy(x, a, b):
    return log(a * b) + (a - 1) * log(x) + (b - 1) * log(1 - x**a)


def generalised(x, alpha, beta):
    return log(beta / (2 * alpha)) - loggamma(1 / beta) - (x / alpha) ** beta


def improvement(mu, sigma, best=0):
    u = (mu - best) / sigma
    return sigma * (exp(-(u**2) / 2) / sqrt(2 * pi) + u * ncdf(u))


def call(s, k, vol, t):
    sd = vol * sqrt(t)
    d1 = log(s / k) / sd + sd / 2
    return s * ncdf(d1) - k * ncdf(d1 - sd)


CASES = {
    "normal_logpdf": case(
        lambda x, mu, sigma: normal((x - mu) / sigma, sigma), x=X, mu=M, sigma=S
    ),
    "lognormal_logpdf": case(
        lambda x, mu, sigma: normal((log(x) - mu) / sigma, sigma) - log(x),
        x=P,
        mu=M,
        sigma=S,
    ),
    "laplace_logpdf": case(
        lambda x, mu, b: -abs(x - mu) / b - log(2 * b), x=X, mu=M, b=S
    ),
    "cauchy_logpdf": case(
        lambda x, x0, gamma_: -log(pi * gamma_ * (1 + ((x - x0) / gamma_) ** 2)),
        x=X,
        x0=M,
        gamma_=S,
    ),
    "student_t_logpdf": case(student, x=X, nu=A),
    "logistic_logpdf": case(logistic, x=X, mu=M, s=S),
    "gumbel_logpdf": case(
        gumbel, x=X, mu=M, beta=(0.5, 1.25, 2.0, 0.75, 3.5, 0.75, 6.0, 1.0)
    ),
    "weibull_logpdf": case(
        weibull, x=(0.01, 0.0625, 0.375, 0.9, 1.125, 0.5, 2.0, 3.0), k=A, lam=S
    ),
    "gamma_logpdf": case(gamma, x=P, alpha=A, beta=S),
    "inverse_gamma_logpdf": case(
        lambda x, a, b: a * log(b) - loggamma(a) - (a + 1) * log(x) - b / x,
        x=P,
        a=A,
        b=S,
    ),
    "beta_logpdf": case(
        lambda x, a, b: (a - 1) * log(x) + (b - 1) * log(1 - x) - log(beta(a, b)),
        x=OPEN,
        a=A,
        b=S,
    ),
    "poisson_logpmf": case(poisson, k=K, rate=P),
    "poisson_count": case(poisson, k=tuple(int(k) for k in K), rate=P),
    "negative_binomial": case(
        negative_binomial, k=(1.0, 1.0, 3.0, 2.0, 7.0, 1.0, 10.0, 4.0), r=A, p=OPEN
    ),
    "von_mises_logpdf": case(
        lambda x, mu, kappa: kappa * cos(x - mu) - log(2 * pi * besseli(0, kappa)),
        x=X,
        mu=M,
        kappa=A,
    ),
    "exponential_logpdf": case(lambda x, rate: log(rate) - rate * x, x=P, rate=S),
    "pareto_logpdf": case(
        lambda x, alpha, scale=1: (
            log(alpha) + alpha * log(mpf(scale)) - (alpha + 1) * log(x)
        ),
        statics=({}, {"scale": 0.5}),
        x=(1.0625, 1.25, 1.5, 2.0, 3.5, 10.0, 100.0, 1e6),
        alpha=A,
    ),
    "kumaraswamy_logpdf": case(kumaraswamy, x=OPEN, a=A, b=S),
    "skew_normal_logpdf": case(
        lambda x, alpha: log(2) + normal(x, 1) + log(ncdf(alpha * x)), x=X, alpha=M
    ),
    "exgaussian_tail": case(
        lambda x, lam: log(lam) + lam / 2 * (lam - 2 * x) + log(ncdf(x - lam)),
        x=X,
        lam=S,
    ),
    "rayleigh_logpdf": case(
        lambda x, sigma: log(x) - 2 * log(sigma) - x**2 / (2 * sigma**2), x=P, sigma=S
    ),
    "bernoulli_logits": case(
        lambda logit, t: t * log(sig(logit)) + (1 - t) * log(sig(-logit)),
        logit=X,
        t=OPEN,
    ),
    "binomial_logits": case(
        lambda logit, k, n: k * logit - n * sp(logit),
        logit=X,
        k=K,
        n=tuple(k + 2 for k in K),
    ),
    "generalised_normal": case(
        generalised, x=(0.01, 0.0625, 0.375, 0.9, 1.125, 0.7, 2.0, 3.0), alpha=S, beta=A
    ),
    "kl_normal_normal": case(
        lambda m1, s1, m2, s2: (
            log(s2 / s1) + (s1**2 + (m1 - m2) ** 2) / (2 * s2**2) - mpf(1) / 2
        ),
        m1=X,
        s1=S,
        m2=M,
        s2=A,
    ),
    "kl_bernoulli": case(
        lambda p, q: p * log(p / q) + (1 - p) * log((1 - p) / (1 - q)),
        p=OPEN,
        q=tuple(reversed(OPEN)),
    ),
    "expected_improvement": case(
        improvement,
        statics=({}, {"best": 0.25}),
        mu=(-1.5, -0.75, -0.25, 0.125, 0.375, 1.125, 2.5, 4.0),
        sigma=(*S[:3], 0.5, *S[4:]),
    ),
    "black_scholes": case(
        call,
        s=(100.0, 90.0, 110.0, 50.0, 1.0, 20.0, 75.0, 10.0),
        k=(100.0, 100.0, 100.0, 55.0, 1.25, 18.0, 80.0, 9.0),
        vol=(0.25, 0.5, 0.125, 0.375, 0.75, 0.2, 0.3, 1.0),
        t=(1.0, 0.5, 2.0, 0.25, 1.5, 3.0, 0.75, 0.1),
    ),
}
