"""Spikes: what stands in for the step is differentiated here."""

from mpmath import atan, exp, log, mpf, ncdf, pi, sqrt

from tests.corpus.case import case

X = (-2.5, -1.25, -0.75, -0.125, 0.0625, 0.375, 0.875, 1.75)


def sig(t):
    return 1 / (1 + exp(-t))


def step(x, **_):
    return 1 if x > 0 else 0


def spike(smooth, statics=({},), name="x"):
    """A step forward, `smooth` backward."""

    def forward(**values):
        return step(values[name])

    return case(forward, surrogate=smooth, statics=statics, **{name: X})


def density(x, center, width):
    return exp(-((x - center) ** 2) / (2 * width**2)) / (sqrt(2 * pi) * width)


def multi_gaussian(x, dz, h=mpf("0.15"), s=6, sigma=0.5, scale=0.5):
    sides = density(x, sigma, s * sigma) + density(x, -sigma, s * sigma)
    return dz * scale * ((1 + h) * density(x, 0, sigma) - h * sides)


def hat(v, gamma=mpf("0.3")):
    inner = mpf(1) / 2 + v - v * abs(v) / 2
    return gamma * (0 if v < -1 else 1 if v > 1 else inner)


def quadratic(x, alpha=1):
    if abs(x) > mpf(1) / alpha:
        return 1 if x > 0 else 0
    return -(alpha**2) * abs(x) * x / 2 + alpha * x + mpf(1) / 2


def q_pseudo(x, alpha=2):
    tail = (1 + 2 / (mpf(alpha) - 1) * abs(x)) ** (1 - alpha) / 2
    return tail if x < 0 else 1 - tail


def s2nn(x, alpha=4, beta=1):
    return sig(alpha * x) if x < 0 else beta * log(x + 1) + mpf(1) / 2


def log_tailed(x, alpha=0):
    return alpha * x if x <= 0 else x if x <= 1 else log(x)


def lif(smooth):
    def run(v, i, tau=2, v_th=1):
        h = v + (i - v) / tau
        fired = 1 if h >= v_th else 0
        return atan(pi * (h - v_th)) / pi if smooth else fired, h * (1 - fired)

    return run


A = ({}, {"alpha": 1.5})

CASES = {
    "fast_sigmoid": spike(
        lambda u, slope=25: u / (1 + slope * abs(u)), ({}, {"slope": 10.0}), "u"
    ),
    "super_spike": spike(lambda x, alpha=100: x / (alpha * abs(x) + 1), A),
    "arctan_spike": spike(lambda u, alpha=2: atan(pi / 2 * u * alpha) / pi, A, "u"),
    "sigmoid_spike": spike(lambda x, alpha=4: sig(alpha * x), A),
    "triangular": spike(
        lambda u, threshold=1: threshold * u * abs(u) / 2, ({}, {"threshold": 0.5}), "u"
    ),
    "esser_triangle": spike(hat, ({}, {"gamma": 1.0}), "v"),
    "piecewise_quadratic": spike(quadratic, A),
    "piecewise_exp": spike(
        lambda x, alpha=1: exp(alpha * x) / 2 if x < 0 else 1 - exp(-alpha * x) / 2, A
    ),
    "soft_sign_spike": spike(
        lambda x, alpha=2: (x / (1 / mpf(alpha) + abs(x)) + 1) / 2, A
    ),
    "erf_spike": spike(lambda x, alpha=2: ncdf(alpha * x * sqrt(2)), A),
    "nonzero_sign_log": spike(
        lambda x, alpha=1: log(abs(alpha * x) + 1) * (1 if x >= 0 else -1), A
    ),
    "leaky_k_relu": spike(
        lambda x, leak=0, k=1: k * x if x >= 0 else leak * x,
        ({}, {"leak": 0.25, "k": 2.0}),
    ),
    "s2nn": spike(s2nn, ({}, {"alpha": 2.0, "beta": 0.5})),
    "q_pseudo_spike": spike(q_pseudo, A),
    "log_tailed_relu": spike(log_tailed, ({}, {"alpha": 0.25})),
    "slayer": case(
        lambda v, alpha=1, c=1: step(v),
        gradients={
            "v": lambda v, ds, alpha=1, c=1: ds * c * alpha / (2 * exp(abs(v) * alpha))
        },
        statics=({}, {"alpha": 2.0, "c": 0.5}),
        v=X,
    ),
    "gaussian_spike": spike(
        lambda v, sigma=0.5: ncdf(v / sigma), ({}, {"sigma": 1.5}), "v"
    ),
    "multi_gaussian": case(
        lambda x, h=0, s=0, sigma=0, scale=0: step(x),
        gradients={"x": multi_gaussian},
        statics=({}, {"h": 0.25, "s": 3.0, "sigma": 1.0, "scale": 1.0}),
        x=X,
    ),
    "relu_grad": case(
        lambda x, alpha=0, width=0: step(x),
        gradients={
            "x": lambda x, ds, alpha=mpf("0.3"), width=1: (
                ds * max(alpha * width - abs(x) * alpha, 0)
            )
        },
        statics=({}, {"alpha": 1.0, "width": 0.5}),
        x=X,
    ),
    "straight_through_spike": case(step, gradients={"x": lambda x, ds: ds}, x=X),
    "spike_rate_escape": case(
        lambda v, beta=5: step(v - 1),
        gradients={"v": lambda v, ds, beta=5: ds * beta * exp(-beta * abs(v - 1))},
        statics=({}, {"beta": 1.5}),
        v=X,
    ),
    "lif_step": case(
        lif(smooth=False),
        surrogate=lif(smooth=True),
        statics=({}, {"tau": 4.0, "v_th": 0.25}),
        v=X,
        i=(0.5, 3.0, -1.0, 4.0, 0.25, 1.25, 2.0, -0.5),
    ),
}
