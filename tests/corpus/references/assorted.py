"""Disguises and styles that the other families do not have."""

from mpmath import (
    acos,
    atan,
    cos,
    cosh,
    coth,
    digamma,
    erfc,
    exp,
    expm1,
    log,
    loggamma,
    mpf,
    ncdf,
    nint,
    pi,
    psi,
    sign,
    sin,
    sinh,
    sqrt,
    tanh,
)

from tests.corpus.case import case

X = (-3.5, -2.25, -1.75, -0.625, 0.375, 1.125, 2.5, 4.0)
FAR = (-30.0, -9.5, -1.75, -0.001, 0.375, 3.5, 12.0, 25.0)
Y = (0.5, -1.25, 2.0, 0.875, 1.5, -0.75, 0.25, 3.0)
W = (1.5, 0.25, -0.5, 2.25, -1.125, 0.75, 3.0, -2.0)
P = (0.01, 0.0625, 0.375, 0.9, 1.125, 3.5, 10.0, 40.0)
S = (0.5, 1.25, 2.0, 0.125, 3.5, 0.75, 6.0, 1.0)
A = (0.75, 2.5, 1.5, 4.0, 0.3, 5.0, 3.25, 1.75)
OPEN = (0.01, 0.0625, 0.25, 0.375, 0.45, 0.625, 0.75, 0.96875)
UNIT = (-0.96875, -0.75, -0.375, -0.0625, 0.001, 0.25, 0.625, 0.9375)
FLAGS = (True, False, True, False, False, True, True, False)


def sig(t):
    return 1 / (1 + exp(-t))


def sp(t):
    return log(1 + exp(t))


def identity(x, **_):
    return x


def sign_sqrt(x, eps=mpf("1e-12")):
    return sign(x) * sqrt(abs(x) + eps)


def rational_tanh(x):
    t = abs(2 * x / 3)
    a = 1 + t + t**2 + mpf("1.41645") * t**4
    return mpf("1.7159") * sign(x) * (1 - 1 / a)


def kl_gamma(a1, b1, a2, b2):
    part = (a1 - a2) * digamma(a1) - loggamma(a1) + loggamma(a2)
    return part + a2 * log(b1 / b2) + a1 * (b2 - b1) / b1


def dirichlet(a, b):
    part = loggamma(a) + loggamma(b) - loggamma(a + b)
    part -= (a - 1) * digamma(a) + (b - 1) * digamma(b)
    return part + (a + b - 2) * digamma(a + b)


def tobit(mu, y, sigma=1):
    return log(ncdf(-mu / sigma)) if y <= 0 else -(((y - mu) / sigma) ** 2) / 2


def logit_normal(x, mu, sigma):
    z = (log(x / (1 - x)) - mu) / sigma
    return -(z**2) / 2 - log(sigma * sqrt(2 * pi)) - log(x * (1 - x))


def softplus_torch(x, beta=1, threshold=20):
    return x if beta * x > threshold else sp(beta * x) / beta


def softplus_gradient(x, dy, beta=1, threshold=20):
    return dy if beta * x > threshold else dy * sig(beta * x)


def step_round(x, n=8):
    return min(max(nint(x * 2**n), -(2**n)), 2**n - 1) / mpf(2) ** n


def hinge_smooth(z, g=0.5):
    return 0 if z >= 1 else (1 - z) ** 2 / 2 / g if z > 1 - g else 1 - z - mpf(g) / 2


def by_mode(x, mode=0):
    return (x, x**2, sin(x), exp(x))[mode]


CASES = {
    "swish_jit": case(
        lambda x, beta=1: x * sig(beta * x), statics=({}, {"beta": 1.5}), x=X
    ),
    "softplus_t": case(
        softplus_torch,
        gradients={"x": softplus_gradient},
        statics=({}, {"beta": 2.0}),
        x=FAR,
    ),
    "rounded": case(
        lambda x: nint(x), gradients={"x": lambda x, dy: dy}, x=(*X[:6], 2.7, 4.2)
    ),
    "erf_gelu_fast": case(lambda x: x * ncdf(x), x=X),
    "sqrt_gelu": case(lambda x: x * ncdf(x), x=X),
    "dist_bernoulli_kl": case(
        lambda l1, l2: sig(l1) * (l1 - l2) - sp(l1) + sp(l2), l1=X, l2=W
    ),
    "max3": case(lambda a, b, c: max(a, b, c), a=X, b=Y, c=W),
    "median3": case(lambda a, b, c: sorted((a, b, c))[1], a=X, b=Y, c=W),
    "logit_normal": case(logit_normal, x=OPEN, mu=X, sigma=S),
    "truncated_linear": case(
        lambda x, lo, hi: min(max(x, lo), hi),
        statics=({"lo": -1.0, "hi": 2.0}, {"lo": 0.0, "hi": 0.5}),
        x=X,
    ),
    "hardlog": case(lambda x: log(x) if x > 1 else x - 1, x=X),
    "entmax15_grad": case(lambda x: x * sqrt(x), x=P),
    "sign_power": case(
        lambda x, p=0.5: sign(x) * abs(x) ** mpf(p), statics=({}, {"p": 0.25}), x=X
    ),
    "signed_sqrt": case(sign_sqrt, statics=({}, {"eps": 0.5}), x=X),
    "cube": case(lambda x: x**3, x=FAR),
    "poly_horner": case(lambda x: 2 * x**3 - 3 * x**2 + 5 * x - 7, x=X),
    "tanh_sinh": case(
        lambda x: tanh(pi / 2 * sinh(x)),
        x=(-2.5, -2.0, -1.5, -0.5, 0.001, 0.25, 1.25, 2.25),
    ),
    "sech2": case(lambda x: 1 / cosh(x) ** 2, x=FAR),
    "sigmoid_tanh_identity": case(lambda x: sig(x), x=X),
    "arctan_norm": case(lambda x, a: 2 / pi * atan(pi / 2 * x / a), x=X, a=S),
    "acos_fast": case(lambda x: acos(x), x=UNIT),
    "rational_tanh": case(rational_tanh, x=X),
    "rectified_tanh": case(lambda x: max(0, tanh(x)), x=X),
    "pau": case(
        lambda x, a0, a1, a2, b1: (a0 + a1 * x + a2 * x**2) / (1 + abs(b1 * x)),
        x=X,
        a0=Y,
        a1=W,
        a2=S,
        b1=UNIT,
    ),
    "kl_gamma": case(kl_gamma, a1=S, b1=A, a2=A, b2=P),
    "dirichlet_pair": case(dirichlet, a=S, b=A),
    "polygamma_n": case(
        lambda x, n=1: psi(n, x), statics=({}, {"n": 2}, {"n": 4}), x=P
    ),
    "ordinal_probit": case(
        lambda x, lo, hi: log(ncdf(hi - x) - ncdf(lo - x)),
        x=Y,
        lo=(0.25, -2.0, 1.0, -0.5, 0.75, -1.75, -1.0, 2.0),
        hi=(1.25, -0.5, 2.5, 1.0, 2.25, 0.25, 2.0, 4.5),
    ),
    "tobit": case(
        tobit,
        statics=({}, {"sigma": 2.5}),
        mu=X,
        y=(0.0, 0.5, 0.0, 2.0, 0.0, 0.25, 1.0, 0.0),
    ),
    "cox_partial": case(
        lambda eta, log_risk, event: eta - log_risk if event else 0,
        eta=X,
        log_risk=Y,
        event=FLAGS,
    ),
    "margin_arcface": case(
        lambda cos_t, m=0.5, s=64: s * cos(acos(cos_t) + m),
        statics=({}, {"m": 0.25, "s": 30.0}),
        cos_t=UNIT,
    ),
    "cosface": case(
        lambda cos_t, is_target, m=mpf("0.35"), s=30: (
            s * (cos_t - m if is_target else cos_t)
        ),
        statics=({}, {"m": 0.25}),
        cos_t=UNIT,
        is_target=FLAGS,
    ),
    "exp_clip": case(
        lambda x, top=10: exp(min(x, top)), statics=({}, {"top": 3.0}), x=FAR
    ),
    "trunc_exp": case(
        lambda x: exp(x),
        gradients={"x": lambda x, dy: dy * exp(min(max(x, -15), 15))},
        x=FAR,
    ),
    "binary_step_round": case(
        step_round,
        surrogate=lambda x, n=8: min(max(x, -1), 1),
        statics=({}, {"n": 3}),
        x=X,
    ),
    "log_softmax2": case(
        lambda a, b: (a - log(exp(a) + exp(b)), b - log(exp(a) + exp(b))), a=X, b=Y
    ),
    "ctc_forward": case(lambda a, b, c: log(exp(a) + exp(b) + exp(c)), a=FAR, b=Y, c=X),
    "normal_sf_log": case(
        lambda x: log(erfc(x / sqrt(2)) / 2),
        x=(-3.0, -2.0, -0.5, 0.001, 1.0, 4.0, 12.0, 30.0),
    ),
    "planck": case(lambda nu, t: nu**3 / expm1(nu / t), nu=P, t=A),
    "bose": case(lambda x: 1 / expm1(x), x=(*P[1:6], 10.0, 20.0, 30.0)),
    "fermi": case(
        lambda e, mu, kt=mpf("0.025"): 1 / (exp((e - mu) / kt) + 1),
        statics=({}, {"kt": 0.5}),
        e=OPEN,
        mu=(0.05, 0.1, 0.25, 0.3, 0.5, 0.6, 0.7, 0.9),
    ),
    "debye_langevin": case(lambda x: coth(x) - 1 / x, x=X),
    "lambert_step": case(lambda w, x: w * exp(w) - x, w=X, x=Y),
    "bump": case(
        lambda x: exp(1 - 1 / (1 - x**2)) if abs(x) < 1 else 0, x=(*UNIT[:7], 1.5)
    ),
    "owen_like": case(lambda h, a: atan(a) / (2 * pi) * exp(-(h**2) / 2), h=X, a=Y),
    "hinge_smooth": case(
        hinge_smooth, statics=({}, {"g": 0.9}), z=(*X[:4], 0.6, 0.8, 0.3, 2.0)
    ),
    "concordance": case(
        lambda x, y, w: w * (x - y) ** 2, x=X, y=Y, w=(0, 1, 2, 3, 0, 5, -1, 7)
    ),
    "exponent_cases": case(
        by_mode, statics=({}, {"mode": 1}, {"mode": 2}, {"mode": 3}), x=X
    ),
    "xsquared_pen": case(
        identity,
        gradients={"x": lambda x, dy, lam=mpf("0.1"): dy + 2 * lam * x},
        statics=({}, {"lam": 0.25}),
        x=X,
    ),
    "grad_noise_sign": case(
        lambda x, n: x, gradients={"x": lambda x, n, dy: dy + n}, x=X, n=Y
    ),
    "dead_zone": case(
        lambda x, w=0.5: max(x - w, 0) + min(x + w, 0), statics=({}, {"w": 1.0}), x=X
    ),
}
