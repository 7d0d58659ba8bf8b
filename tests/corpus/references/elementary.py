"""Elementary functions."""

from mpmath import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cbrt,
    cos,
    cosh,
    cot,
    exp,
    expm1,
    floor,
    hypot,
    log,
    mpf,
    pi,
    sin,
    sinh,
    sqrt,
    tan,
)

from tests.corpus.case import case

X = (-9.5, -4.25, -1.75, -0.625, 0.375, 1.125, 3.5, 11.0)
P = (0.001, 0.0625, 0.375, 0.9, 1.125, 3.5, 40.0, 1000.0)
Y = (0.5, -1.25, 2.0, 0.875, 1.5, -0.75, 0.25, 3.0)
UNIT = (-0.96875, -0.75, -0.375, -0.0625, 0.001, 0.25, 0.625, 0.9375)
OPEN = (0.001, 0.0625, 0.25, 0.375, 0.5, 0.625, 0.75, 0.96875)
ANGLE = (-1.375, -1.0, -0.5, -0.001, 0.25, 0.75, 1.0, 1.375)
HALF = (0.0625, 0.25, 0.5, 1.0, 1.25, 2.0, 2.5, 3.0)
OVER = (1.0625, 1.25, 1.5, 2.0, 3.5, 10.0, 100.0, 1e6)


def real_cbrt(x):
    return cbrt(x) if x > 0 else -cbrt(-x)


CASES = {
    "cube_root": case(real_cbrt, x=X),
    "inverse": case(lambda x: 1 / x, x=X),
    "base10": case(lambda x: log(x) / log(10), x=P),
    "base2": case(lambda x: log(x) / log(2), x=P),
    "power_of_two": case(lambda x: mpf(2) ** x, x=X),
    "secant": case(lambda x: 1 / cos(x), x=ANGLE),
    "cosecant": case(lambda x: 1 / sin(x), x=HALF),
    "cotangent": case(lambda x: cot(x), x=HALF),
    "tangent": case(lambda x: tan(x), x=ANGLE),
    "sine_degrees": case(lambda x: sin(pi / 180 * x), x=X),
    "arcsine": case(lambda x: asin(x), x=UNIT),
    "arccosine": case(lambda x: acos(x), x=UNIT),
    "arctangent": case(lambda x: atan(x), x=X),
    "arcsecant": case(lambda x: acos(1 / x), x=OVER),
    "hyperbolic_secant": case(lambda x: 1 / cosh(x), x=X),
    "hyperbolic_cosecant": case(lambda x: 1 / sinh(x), x=X),
    "inverse_sinh": case(lambda x: asinh(x), x=X),
    "inverse_cosh": case(lambda x: acosh(x), x=OVER),
    "inverse_tanh": case(lambda x: atanh(x), x=UNIT),
    "inverse_sech": case(lambda x: acosh(1 / x), x=OPEN),
    "divide": case(lambda x, y: x / y, x=X, y=Y),
    "power": case(lambda x, y: x**y, x=P, y=Y),
    "integer_power": case(lambda x, n=3: x**n, statics=({}, {"n": 1}, {"n": 6}), x=X),
    "angle": case(lambda y, x: atan2(y, x), y=Y, x=X),
    "length": case(lambda x, y: hypot(x, y), x=X, y=Y),
    "remainder": case(
        lambda x, y: x - y * floor(x / y),
        x=X,
        y=(0.75, 1.25, 2.0, 0.875, 1.5, 0.7, 0.3, 3.0),
    ),
    "larger": case(lambda x, y: max(x, y), x=X, y=Y),
    "smaller": case(lambda x, y: min(x, y), x=X, y=Y),
    "absolute": case(lambda x: abs(x), x=X),
    "fused_multiply_add": case(lambda a, b, c: a * b + c, a=X, b=Y, c=P),
    "sqrt1pm1": case(
        lambda x: sqrt(1 + x) - 1, x=(-0.9375, -0.5, -0.001, 1e-9, 0.25, 3.0, 50.0, 1e8)
    ),
    "exp_from_output": case(lambda x: exp(x), x=X),
    "expm1_from_output": case(
        lambda x: expm1(x), x=(-5.0, -1.0, -0.125, -1e-8, 1e-8, 0.5, 3.0, 30.0)
    ),
    "sqrt_from_output": case(lambda x: sqrt(x), x=P),
    "rsqrt_from_output": case(lambda x: 1 / sqrt(x), x=P),
    "log_of_squares": case(lambda x, y: log(x**2 + y**2) / 2, x=X, y=Y),
}
