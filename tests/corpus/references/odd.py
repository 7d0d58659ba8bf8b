"""Odd layouts, calls, traps."""

from mpmath import atan2, exp, floor, hypot, log, mpf, sin, sqrt

from tests.corpus.case import case

X = (-3.5, -2.25, -1.75, -0.625, 0.375, 1.125, 2.5, 4.0)
Y = (0.5, -1.25, 2.0, 0.875, 1.5, -0.75, 0.25, 3.0)
W = (1.5, 0.25, -0.5, 2.25, -1.125, 0.75, 3.0, -2.0)
P = (0.01, 0.0625, 0.375, 0.9, 1.125, 3.5, 10.0, 40.0)


def sp(t):
    return log(1 + exp(t))


def hat(t):
    return max(0, 1 - abs(t))


def trap_nested(x):
    if x > 1:
        return sqrt(x)
    return x * sqrt(1 - x) if x > 0 else -log(1 - x)


def masked(x, keep, count, scale, p=0.5, n=2):
    return (x**n * scale / p + count if keep else 0, count if keep else 0)


def precedence(x, y):
    weight = 1 if not (x < y < 2 * x) else 2
    return -(x**2) + mpf(2) ** (-x) * y - x ** (y**2) / 3 + weight * x


CASES = {
    "continued": case(lambda x, y, w=2: x * y + w, statics=({}, {"w": 3.0}), x=X, y=Y),
    "keyword_names": case(
        lambda value, needs, ctx, tensor, input, self: (
            value * log(needs) + sin(ctx) * tensor + input**2 - self
        ),
        value=X,
        needs=P,
        ctx=Y,
        tensor=W,
        input=Y,
        self=X,
    ),
    "soft_words": case(
        lambda save, example, assume_, because, static=1: (
            save * example + assume_ * because * static
        ),
        statics=({}, {"static": 0.5}),
        save=X,
        example=Y,
        assume_=W,
        because=P,
    ),
    "local_names": case(
        lambda x, ctx, grad_output: (x**2 * sin(ctx) + grad_output) ** 2,
        x=X,
        ctx=Y,
        grad_output=W,
    ),
    "imported_def": case(lambda x: 4 * x**2 + 2 * x, x=X),
    "six_terms": case(lambda x: sum(x**k for k in range(1, 7)), x=X),
    "calls_a_spike": case(
        lambda x, w: 1 if w * x > 1 else 0,
        gradients={
            "x": lambda x, w, dy: dy * w * hat(w * x - 1),
            "w": lambda x, w, dy: dy * x * hat(w * x - 1),
        },
        x=X,
        w=(0.5, -0.25, 2.0, -2.25, 1.5, 0.75, 0.25, 0.3),
    ),
    "calls_one_of_two": case(lambda x: sp(2 * x) + 3 * sp(-x), x=X),
    "all_derived": case(
        lambda x, y, k=2: (
            x * exp(-k * y**2) + max(x, y),
            atan2(x, 1 + y**2) * hypot(x, 3),
        ),
        statics=({}, {"k": 0.5}),
        x=X,
        y=Y,
    ),
    "one_declared": case(lambda x, y: sin(x * y) + x / (1 + y**2), x=X, y=Y),
    "trap": case(
        lambda x: sqrt(x) if x > 0 else 0,
        gradients={"x": lambda x, dy: dy / (2 * sqrt(x)) if x > 0 else 0},
        x=(-1.0, 0.0, -0.001, 0.001, 0.375, 1.125, 2.5, 4.0),
    ),
    "trap_declared": case(
        lambda x: log(x) if x > 0 else 0,
        gradients={"x": lambda x, dy: dy / x if x > 0 else 0},
        x=(-1.0, 0.0, -0.001, 0.001, 0.375, 1.125, 2.5, 4.0),
    ),
    "trap_nested": case(trap_nested, x=(-50.0, -1.0, -0.1, 0.1, 0.5, 0.9, 1.1, 4.0)),
    "kept": case(lambda x, y: exp(-(x**2)) * sin(y), x=X, y=Y),
    "masked": case(
        masked,
        statics=({}, {"p": 0.25, "n": 3}),
        x=X,
        keep=(True, False, True, True, False, True, True, False),
        count=(0, 1, 2, 3, 4, 5, 6, 7),
        scale=Y,
    ),
    "numbers": case(
        lambda x: 1000 * x + x**2 / 2 + 2 * x**3 - x**4 / mpf(1000) + 150 - 300, x=X
    ),
    "precedence": case(
        precedence,
        x=(0.01, 0.0625, 0.375, 0.9, 1.125, 3.5, 2.0, 4.0),
        y=(0.015, -1.25, 0.5, 0.875, 1.5, -0.75, 0.25, 1.0),
    ),
    "modulo": case(
        lambda x, y=3: (x - y * floor(x / y)) * x, statics=({}, {"y": 2.3}), x=X
    ),
}
