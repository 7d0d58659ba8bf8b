"""What other files import."""

from mpmath import exp, log

from tests.corpus.case import case

X = (-9.5, -4.25, -1.75, -0.625, 0.375, 0.875, 3.5, 11.0)

CASES = {
    "heaviside_ste": case(
        lambda v: 1 if v > 0 else 0,
        gradients={"v": lambda v, ds: ds * max(0, 1 - abs(v))},
        v=X,
    ),
    "softplus_pair": case(lambda x: (log(1 + exp(x)), log(1 + exp(-x))), x=X),
}
