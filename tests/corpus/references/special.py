"""Special functions."""

from mpmath import (
    atan,
    besseli,
    beta,
    digamma,
    erf,
    erfc,
    erfinv,
    exp,
    expm1,
    gamma,
    log,
    loggamma,
    mpf,
    ncdf,
    pi,
    psi,
    sin,
    sqrt,
    tanh,
)

from tests.corpus.case import case

X = (-3.5, -2.25, -1.75, -0.625, 0.375, 1.125, 2.5, 4.0)
FAR = (-30.0, -9.5, -1.75, -0.001, 0.375, 3.5, 12.0, 25.0)
P = (0.001, 0.0625, 0.375, 0.9, 1.125, 3.5, 40.0, 1000.0)
Q = (0.5, 30.0, 2.25, 0.01, 1.5, 0.75, 5.0, 3.0)
UNIT = (-0.96875, -0.75, -0.375, -0.0625, 0.001, 0.25, 0.625, 0.9375)
OPEN = (0.001, 0.0625, 0.25, 0.375, 0.45, 0.625, 0.75, 0.96875)
CDF = (-10.0, -4.0, -1.75, -0.001, 0.375, 1.5, 2.5, 5.0)


def inverse_cdf(p):
    """Where a half is exact; all sample points are exact."""
    return sqrt(2) * erfinv(2 * p - 1)


def erfcx(x):
    return exp(x**2) * erfc(x)


def lbeta(a, b):
    return log(beta(a, b))


def log_ndtr(x):
    return log(erfc(-x / sqrt(2)) / 2)


def sinc(x):
    return sin(pi * x) / (pi * x) if x else mpf(1)


def sp(t):
    return log(1 + exp(t))


def boxcox(x, lmbda=0.5):
    return log(x) if lmbda == 0 else (x**lmbda - 1) / lmbda


def yeo_johnson(x, lmbda=0.5):
    lmbda = mpf(lmbda)
    if x >= 0:
        return ((x + 1) ** lmbda - 1) / lmbda
    return -((1 - x) ** (2 - lmbda) - 1) / (2 - lmbda)


def logit_eps(p, eps=mpf("0.01")):
    z = min(max(p, eps), 1 - eps)
    return log(z / (1 - z))


CASES = {
    "error_function": case(lambda x: erf(x), x=X),
    "complement": case(lambda x: erfc(x), x=X),
    "inverse_erf": case(lambda x: erfinv(x), x=UNIT),
    "inverse_erfc": case(
        lambda x: erfinv(1 - x), x=(0.001, 0.0625, 0.25, 0.75, 1.25, 1.5, 1.75, 1.9375)
    ),
    "scaled_erfc": case(erfcx, x=(-2.5, -1.0, -0.25, 0.001, 0.5, 2.0, 10.0, 100.0)),
    "gamma_function": case(
        lambda x: gamma(x), x=(0.001, 0.0625, 0.375, 0.9, 1.125, 3.5, 10.0, 40.0)
    ),
    "log_gamma": case(lambda x: loggamma(x), x=P),
    "psi": case(lambda x: digamma(x), x=P),
    "trigamma": case(lambda x: psi(1, x), x=P),
    "betaln": case(lbeta, a=P, b=Q),
    "beta_function": case(
        lambda a, b: beta(a, b), a=(0.5, 1.25, 2.0, 0.1, 3.5, 0.75, 6.0, 10.0), b=Q
    ),
    "log_binomial": case(
        lambda n, k: loggamma(n + 1) - loggamma(k + 1) - loggamma(n - k + 1),
        n=(4.0, 10.0, 5.5, 3.0, 7.25, 20.0, 50.0, 2.0),
        k=(2.0, 3.0, 1.25, 2.75, 4.0, 9.0, 20.0, 0.5),
    ),
    "normal_cdf": case(lambda x: ncdf(x), x=CDF),
    "ndtr_rule": case(lambda x: ncdf(x), x=CDF),
    "log_ndtr_rule": case(log_ndtr, x=(-30.0, *CDF[1:])),
    "ndtri_rule": case(inverse_cdf, p=OPEN),
    "bessel_i0": case(lambda x: besseli(0, x), x=FAR),
    "bessel_i0e": case(lambda x: besseli(0, x) * exp(-abs(x)), x=FAR),
    "bessel_i1": case(lambda x: besseli(1, x), x=(0.1, *P[2:6], 10.0, 25.0)),
    "bessel_i1e": case(lambda x: besseli(1, x) * exp(-abs(x)), x=X),
    "log_i0": case(
        lambda kappa: log(besseli(0, kappa)),
        kappa=(0.1, 0.375, 0.9, 1.125, 3.5, 10.0, 40.0, 200.0),
    ),
    "normalised_sinc": case(sinc, x=(-3.4, -1.75, -0.6, -0.3, 0.125, 0.5, 1.2, 7.7)),
    "x_log_y": case(lambda x, y: x * log(y), x=P, y=Q),
    "x_log1p_y": case(
        lambda x, y: x * log(1 + y),
        x=FAR,
        y=(-0.875, -0.5, 1e-9, 0.25, 1.0, 3.0, 100.0, -1e-6),
    ),
    "entropy": case(lambda p: -p * log(p), p=P),
    "kl_div": case(lambda x, y: x * log(x / y) - x + y, x=P, y=Q),
    "rel_entr": case(lambda x, y: x * log(x / y), x=P, y=Q),
    "binary_entropy": case(lambda p: -p * log(p) - (1 - p) * log(1 - p), p=OPEN),
    "logit": case(lambda p: log(p / (1 - p)), p=OPEN),
    "logit_eps": case(logit_eps, statics=({}, {"eps": 0.125}), p=OPEN),
    "log1mexp": case(
        lambda x: log(1 - exp(-x)), x=(1e-6, 0.01, 0.25, 0.6, 0.75, 2.0, 10.0, 40.0)
    ),
    "softplus_inverse": case(
        lambda y: log(expm1(y)), y=(1e-6, 0.01, 0.25, 0.6, 0.75, 2.0, 10.0, 40.0)
    ),
    "log_sub_exp": case(
        lambda x, y: log(exp(x) - exp(y)),
        x=(1.0, 2.5, -1.0, 0.5, 30.0, 3.0, 1.5, 10.0),
        y=(0.5, -3.0, -1.5, 0.25, 28.0, -20.0, 1.25, 9.0),
    ),
    "log_add_exp": case(lambda x, y: log(exp(x) + exp(y)), x=FAR, y=tuple(reversed(X))),
    "log_add_exp2": case(
        lambda x, y: log(mpf(2) ** x + mpf(2) ** y) / log(2),
        x=FAR,
        y=tuple(reversed(X)),
    ),
    "exprel": case(
        lambda x: expm1(x) / x, x=(-20.0, -5.0, -1.75, -0.625, 0.375, 1.125, 4.0, 20.0)
    ),
    "boxcox": case(boxcox, statics=({}, {"lmbda": 0.0}, {"lmbda": -1.5}), x=P),
    "inverse_boxcox": case(
        lambda y, lmbda=0.5: (1 + lmbda * y) ** (1 / mpf(lmbda)),
        statics=({}, {"lmbda": 2.0}),
        y=P,
    ),
    "yeo_johnson": case(yeo_johnson, statics=({}, {"lmbda": 1.5}), x=FAR),
    "log_gamma_difference": case(lambda x, y: loggamma(y) - loggamma(x + y), x=P, y=Q),
    "log1psquare": case(lambda x: log(1 + x**2), x=FAR),
    "log_cumulative_logistic": case(lambda x: -sp(-x), x=CDF),
    "cloglog_inverse": case(
        lambda eta: -expm1(-exp(eta)),
        eta=(-5.0, -2.0, -0.625, 0.25, 0.375, 0.75, 1.125, 1.5),
    ),
    "cloglog": case(
        lambda p: log(-log(1 - p)),
        p=(0.0625, 0.125, 0.25, 0.375, 0.45, 0.7, 0.75, 0.96875),
    ),
    "cauchit": case(lambda eta: mpf(1) / 2 + atan(eta) / pi, eta=X),
    "gudermannian": case(lambda x: 2 * atan(tanh(x / 2)), x=X),
    "mills_ratio": case(
        lambda x: sqrt(pi / 2) * erfcx(x / sqrt(2)),
        x=(-3.5, -1.0, -0.25, 0.001, 0.5, 2.0, 4.0, 6.0),
    ),
}
