"""Activations."""

from mpmath import cosh, erf, exp, log, mpf, ncdf, pi, sin, sqrt, tanh

from tests.corpus.case import case

X = (-9.5, -4.25, -1.75, -0.625, 0.375, 1.125, 3.5, 11.0)
NEAR = (-2.75, -1.5, -0.625, -0.25, 0.375, 0.875, 1.625, 2.5)
B = (0.5, -1.25, 2.0, 0.875, 1.5, -0.75, 0.25, 1.0)


def sig(t):
    return 1 / (1 + exp(-t))


def sp(t):
    return log(1 + exp(t))


def relu(t):
    return max(t, 0)


def gelu_tanh(x, c=None):
    c = sqrt(2 / pi) if c is None else mpf(c)
    return x / 2 * (1 + tanh(c * (x + mpf("0.044715") * x**3)))


def srelu(x, tl, al, tr, ar):
    if x >= tr:
        return tr + ar * (x - tr)
    return tl + al * (x - tl) if x <= tl else x


SELU = mpf("1.0507009873554805"), mpf("1.6732632423543772")

CASES = {
    "swish": case(lambda i: i * sig(i), i=X),
    "swish_from_result": case(lambda i: i * sig(i), i=X),
    "swish_beta": case(lambda x, beta: x * sig(beta * x), x=X, beta=B),
    "mish": case(lambda x: x * tanh(sp(x)), x=X),
    "mish_omega_delta": case(lambda x: x * tanh(sp(x)), x=X),
    "hard_swish": case(lambda x: x * min(max(x + 3, 0), 6) / 6, x=X),
    "hard_sigmoid": case(lambda x: min(max(x + 3, 0), 6) / 6, x=X),
    "hard_mish": case(lambda x: x / 2 * min(max(x + 2, 0), 2), x=X),
    "gelu": case(lambda x: x * ncdf(x), x=(-5.5, *NEAR[1:-1], 5.5)),
    "gelu_tanh": case(gelu_tanh, x=(-4.5, *NEAR[1:-1], 4.5)),
    "bias_gelu": case(
        lambda bias, y: gelu_tanh(bias + y, "0.79788456"),
        bias=NEAR,
        y=tuple(b / 4 for b in B),
    ),
    "quick_gelu": case(lambda x: x * sig(mpf("1.702") * x), x=X),
    "relu_squared": case(lambda x: relu(x) ** 2, x=X),
    "leaky": case(
        lambda x, slope=mpf("0.01"): x if x > 0 else slope * x,
        statics=({}, {"slope": 0.25}),
        x=X,
    ),
    "prelu": case(lambda x, a: x if x > 0 else a * x, x=X, a=B),
    "inplace_abn_leaky": case(
        lambda x, slope=mpf("0.01"): x if x >= 0 else slope * x,
        statics=({}, {"slope": 0.25}),
        x=X,
    ),
    "elu": case(
        lambda x, alpha=1: x if x > 0 else alpha * (exp(x) - 1),
        statics=({}, {"alpha": 1.5}),
        x=X,
    ),
    "inplace_abn_elu": case(lambda x: x if x >= 0 else exp(x) - 1, x=X),
    "selu": case(lambda x: SELU[0] * (x if x > 0 else SELU[1] * (exp(x) - 1)), x=X),
    "celu": case(
        lambda x, alpha=1: x if x > 0 else alpha * (exp(x / alpha) - 1),
        statics=({}, {"alpha": 1.5}),
        x=X,
    ),
    "softplus_beta": case(
        lambda x, beta=1: sp(beta * x) / beta, statics=({}, {"beta": 2.5}), x=X
    ),
    "sigmoid": case(lambda x: sig(x), x=X),
    "tanh_from_output": case(lambda x: tanh(x), x=NEAR),
    "lecun_tanh": case(lambda x: mpf("1.7159") * tanh(2 * x / 3), x=NEAR),
    "hard_tanh": case(
        lambda x, lo=-1, hi=1: min(max(x, lo), hi),
        statics=({}, {"lo": -2.0, "hi": 3.0}),
        x=X,
    ),
    "softsign": case(lambda x: x / (1 + abs(x)), x=X),
    "isru": case(
        lambda x, alpha=1: x / sqrt(1 + alpha * x**2), statics=({}, {"alpha": 3.0}), x=X
    ),
    "isrlu": case(
        lambda x, alpha=3: x if x >= 0 else x / sqrt(1 + alpha * x**2),
        statics=({}, {"alpha": 0.5}),
        x=X,
    ),
    "squareplus": case(
        lambda x, b=4: (x + sqrt(x**2 + b)) / 2, statics=({}, {"b": 0.5}), x=X
    ),
    "serf": case(lambda x: x * erf(sp(x)), x=X),
    "logish": case(lambda x: x * log(1 + sig(x)), x=X),
    "phish": case(lambda x: x * tanh(x * ncdf(x)), x=NEAR),
    "snake": case(
        lambda x, alpha=1: x + sin(alpha * x) ** 2 / alpha,
        statics=({}, {"alpha": 0.5}),
        x=X,
    ),
    "snake_beta": case(
        lambda x, alpha, beta: x + sin(alpha * x) ** 2 / beta,
        x=X,
        alpha=B,
        beta=tuple(abs(b) for b in B),
    ),
    "tanhshrink": case(lambda x: x - tanh(x), x=X),
    "softshrink": case(
        lambda x, lambd=0.5: x - lambd if x > lambd else x + lambd if x < -lambd else 0,
        statics=({}, {"lambd": 1.0}),
        x=X,
    ),
    "hardshrink": case(
        lambda x, lambd=0.5: x if abs(x) > lambd else 0,
        statics=({}, {"lambd": 1.0}),
        x=X,
    ),
    "glu": case(lambda a, b: a * sig(b), a=X, b=B),
    "swiglu": case(lambda gate, up: gate * sig(gate) * up, gate=X, up=B),
    "geglu": case(lambda a, b: gelu_tanh(a, "0.7978845608028654") * b, a=NEAR, b=B),
    "star_relu": case(lambda x, s, b: s * relu(x) ** 2 + b, x=X, s=B, b=NEAR),
    "smelu": case(
        lambda x, beta=2: (
            0 if x <= -beta else x if x >= beta else (x + beta) ** 2 / (4 * beta)
        ),
        statics=({}, {"beta": 0.5}),
        x=X,
    ),
    "bent_identity": case(lambda x: (sqrt(x**2 + 1) - 1) / 2 + x, x=X),
    "gaussian": case(
        lambda x, sigma_=1: exp(-(x**2) / (2 * sigma_**2)),
        statics=({}, {"sigma_": 2.5}),
        x=NEAR,
    ),
    "log_cosh": case(lambda x: log(cosh(x)), x=X),
    "tanhexp": case(lambda x: x * tanh(exp(x)), x=NEAR),
    "eswish": case(
        lambda x, beta=1.25: mpf(beta) * x * sig(x), statics=({}, {"beta": 1.75}), x=X
    ),
    "srelu": case(
        srelu,
        x=X,
        tl=(-1.0, -2.0, -0.5, -1.0, -1.0, -0.25, -1.0, -2.0),
        al=B,
        tr=(1.0, 2.0, 0.5, 0.25, 2.0, 1.0, 1.0, 2.0),
        ar=NEAR,
    ),
    "aria2": case(
        lambda x, alpha=1.5, beta=2: x * (1 + exp(-beta * x)) ** (-mpf(alpha)),
        statics=({}, {"alpha": 0.5, "beta": 1.0}),
        x=X,
    ),
    "relu6": case(lambda x: min(max(x, 0), 6), x=X),
    "shifted_softplus": case(lambda x: log(exp(x) / 2 + mpf(1) / 2), x=X),
    "dswish_second": case(lambda x: sig(x) * (1 + x * (1 - sig(x))), x=X),
}
