"""Gradients that are not the derivative: what the rule says, said again."""

from mpmath import exp, mpf, sign, sqrt

from tests.corpus.case import case

X = (-9.5, -1.75, -0.625, 0.25, 0.375, 0.75, 1.125, 11.0)


def identity(x, **_):
    return x


def sig(t):
    return 1 / (1 + exp(-t))


def over(forward, gradient, statics=({},)):
    return case(forward, gradients={"x": gradient}, statics=statics, x=X)


def clip(x, lo, hi):
    return min(max(x, lo), hi)


BOUND = mpf("0.000001")
WEIGHT = mpf("0.001")
LEAK = mpf("0.1")
LIMIT = mpf("0.01")

CASES = {
    "reverse_gradient": over(
        identity, lambda x, dy, lambda_=1: -lambda_ * dy, ({}, {"lambda_": 0.25})
    ),
    "scale_gradient": over(
        identity, lambda x, dy, scale: scale * dy, ({"scale": 0.25}, {"scale": -3.0})
    ),
    "clip_gradient": over(
        identity,
        lambda x, dy, lo=-1, hi=1: clip(dy, lo, hi),
        ({}, {"lo": -0.5, "hi": 0.25}),
    ),
    "drop_large_gradient": over(
        identity,
        lambda x, dy, limit=LIMIT: 0 if abs(dy) > limit else dy,
        ({}, {"limit": 1.0}),
    ),
    "sign_gradient": over(identity, lambda x, dy: sign(dy)),
    "square_root_gradient": over(identity, lambda x, dy: sign(dy) * sqrt(abs(dy))),
    "stop_gradient": over(identity, lambda x, dy: 0),
    "l1_penalty": over(
        identity,
        lambda x, dy, weight=WEIGHT: dy + weight * sign(x),
        ({}, {"weight": 0.5}),
    ),
    "cross_entropy_head": case(
        lambda logit, t: sig(logit),
        gradients={"logit": lambda logit, t, dp: sig(logit) - t},
        logit=X,
        t=(0.0, 1.0, 0.25, 0.5, 1.0, 0.0, 0.75, 0.125),
    ),
    "identity_ones": over(lambda x: x**2, lambda x, dy: 1),
    "reverse_and_clip": over(
        identity,
        lambda x, dy, lambda_=1, c=0.5: -lambda_ * clip(dy, -c, c),
        ({}, {"lambda_": 0.25, "c": 1.0}),
    ),
    "guided_relu": over(
        lambda x: max(x, 0), lambda x, dy: dy if x > 0 and dy > 0 else 0
    ),
    "deconvnet_relu": over(lambda x: max(x, 0), lambda x, dy: max(dy, 0)),
    "clip_preserve_gradient": over(
        lambda x, lo=0, hi=1: clip(x, lo, hi),
        lambda x, dy, lo=0, hi=1: dy,
        ({}, {"lo": -2.0, "hi": 0.5}),
    ),
    "lower_bound": over(
        lambda x, bound=BOUND: max(x, bound),
        lambda x, dy, bound=BOUND: dy if x >= bound or dy < 0 else 0,
        ({}, {"bound": 0.5}),
    ),
    "leaky_clamp": over(
        lambda x, leak=LEAK: clip(x, 0, 1),
        lambda x, dy, leak=LEAK: dy if 0 <= x <= 1 else leak * dy,
        ({}, {"leak": 0.5}),
    ),
}
