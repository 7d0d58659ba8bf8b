"""Quantisers: the straight-through gradients, from the papers' formulas."""

from mpmath import exp, floor, log, mpf, nint, sign, tanh

from tests.corpus.case import case

X = (-2.3, -1.2, -0.7, -0.1, 0.06, 0.37, 0.87, 1.7)
UNIT = (0.05, 0.12, 0.3, 0.42, 0.58, 0.71, 0.88, 0.97)


def sig(t):
    return 1 / (1 + exp(-t))


def clip(x, lo, hi):
    return min(max(x, lo), hi)


def plus_minus(x, **_):
    return 1 if x >= 0 else -1


def through(x, dy, **_):
    return dy


def approx_sign(x):
    if abs(x) >= 1:
        return sign(x)
    return 2 * x - x * abs(x)


def sign_swish(x, beta=5):
    s = sig(beta * x)
    return 2 * s * (1 + beta * x * (1 - s)) - 1


def dorefa_weight(w, k):
    n = 2**k - 1
    return 2 * nint((tanh(w) / 2 + mpf(1) / 2) * n) / n - 1


def pact(x, alpha, k=4):
    scale = (2**k - 1) / alpha
    return nint(clip(x, 0, alpha) * scale) / scale


def lsq(v, s, qn=8, qp=7):
    return s * nint(clip(v / s, -qn, qp))


def lsq_step(v, s, dq, qn=8, qp=7):
    u = v / s
    return dq * (qp if u >= qp else -qn if u <= -qn else nint(u) - u)


def fake(x, scale=mpf("0.1"), zero_point=0, qmin=-128, qmax=127):
    return (clip(nint(x / scale) + zero_point, qmin, qmax) - zero_point) * scale


def on_grid(x, dy, scale=mpf("0.1"), zero_point=0, qmin=-128, qmax=127):
    return dy if qmin <= nint(x / scale) + zero_point <= qmax else 0


def learnable(x, scale, qmin=-8, qmax=7):
    return clip(nint(x / scale), qmin, qmax) * scale


def learnable_scale(x, scale, dy, qmin=-8, qmax=7):
    u = nint(x / scale)
    return dy * (qmin if u < qmin else qmax if u > qmax else u - x / scale)


def ternary(w, t=mpf("0.05"), wp=1, wn=1):
    return wp if w > t else -wn if w < -t else 0


def ttq_weight(w, wp, wn, dq, t=mpf("0.05")):
    return dq * (wp if w > t else wn if w < -t else 1)


def soft_round(x, alpha=4):
    m = floor(x) + mpf(1) / 2
    return m + tanh(alpha * (x - m)) / (2 * tanh(mpf(alpha) / 2))


CASES = {
    "round_ste": case(lambda x: nint(x), gradients={"x": through}, x=X),
    "floor_ste": case(lambda x: floor(x), gradients={"x": through}, x=X),
    "sign_ste": case(
        plus_minus, gradients={"x": lambda x, dy: dy if abs(x) <= 1 else 0}, x=X
    ),
    "approx_sign": case(lambda x: sign(x), surrogate=approx_sign, x=X),
    "swish_sign": case(
        plus_minus, surrogate=sign_swish, statics=({}, {"beta": 2.0}), x=X
    ),
    "dorefa": case(
        lambda x, k=2: nint(x * (2**k - 1)) / (2**k - 1),
        gradients={"x": through},
        statics=({}, {"k": 4}, {"k": 1}),
        x=UNIT,
    ),
    "dorefa_weight": case(
        dorefa_weight, surrogate=lambda w, k: tanh(w), statics=({"k": 2}, {"k": 5}), w=X
    ),
    "pact": case(
        pact,
        gradients={
            "x": lambda x, alpha, dy, k=4: dy if 0 <= x < alpha else 0,
            "alpha": lambda x, alpha, dy, k=4: dy if x >= alpha else 0,
        },
        statics=({}, {"k": 2}),
        x=X,
        alpha=(1.0, 0.5, 2.0, 1.5, 1.0, 0.25, 0.5, 2.5),
    ),
    "lsq": case(
        lsq,
        gradients={
            "v": lambda v, s, dq, qn=8, qp=7: dq if -qn < v / s < qp else 0,
            "s": lsq_step,
        },
        statics=({}, {"qn": 2, "qp": 1}),
        v=X,
        s=(0.5, 0.1, 0.3, 0.25, 1.0, 0.03, 0.7, 0.2),
    ),
    "fake_quantize": case(
        fake,
        gradients={"x": on_grid},
        statics=({}, {"scale": 0.25, "zero_point": 3, "qmin": 0, "qmax": 7}),
        x=X,
    ),
    "fake_quantize_learnable": case(
        learnable,
        gradients={
            "x": lambda x, scale, dy, qmin=-8, qmax=7: (
                dy if qmin < nint(x / scale) < qmax else 0
            ),
            "scale": learnable_scale,
        },
        statics=({}, {"qmin": -2, "qmax": 2}),
        x=X,
        scale=(0.5, 0.1, 0.23, 0.25, 1.0, 0.03, 0.7, 0.15),
    ),
    "ternary": case(
        ternary, gradients={"w": lambda w, dq, t=0: dq}, statics=({}, {"t": 0.5}), w=X
    ),
    "ttq": case(
        lambda w, wp, wn, t=mpf("0.05"): ternary(w, t, wp, wn),
        gradients={"w": ttq_weight},
        statics=({}, {"t": 0.5}),
        w=X,
        wp=UNIT,
        wn=tuple(reversed(UNIT)),
    ),
    "threshold_mask": case(
        lambda s, cut=mpf("0.005"): 1 if s > cut else 0,
        gradients={"s": lambda s, dm, cut=0: dm},
        statics=({}, {"cut": 0.5}),
        s=X,
    ),
    "bernoulli_ste": case(
        lambda p, u: 1 if u < p else 0,
        gradients={"p": lambda p, u, db: db},
        p=UNIT,
        u=tuple(reversed(UNIT)),
    ),
    "stochastic_round": case(
        lambda x, u: floor(x + u), gradients={"x": through}, x=X, u=UNIT
    ),
    "power_of_two": case(
        lambda x: sign(x) * mpf(2) ** nint(log(abs(x)) / log(2)),
        gradients={"x": through},
        x=X,
    ),
    "tanh_soft_round": case(soft_round, statics=({}, {"alpha": 1.5}), x=X),
    "relu1_ste": case(
        lambda x: 1 if x > 0.5 else 0, surrogate=lambda x: clip(x, 0, 1), x=X
    ),
    "gumbel_sigmoid_hard": case(
        lambda logit, noise, tau=1: 1 if logit + noise > 0 else 0,
        surrogate=lambda logit, noise, tau=1: sig((logit + noise) / tau),
        statics=({}, {"tau": 0.5}),
        logit=X,
        noise=tuple(reversed(X)),
    ),
}
