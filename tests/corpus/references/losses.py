"""Losses."""

from mpmath import cosh, exp, log, mpf, sqrt

from tests.corpus.case import case

X = (-9.5, -4.25, -1.75, -0.625, 0.375, 1.125, 3.5, 11.0)
Y = (0.5, -1.25, 2.0, 0.875, 1.5, -0.75, 0.25, 3.0)
T = (0.0, 1.0, 0.25, 0.5, 1.0, 0.0, 0.75, 0.125)
INNER = (0.125, 0.9375, 0.25, 0.5, 0.75, 0.0625, 0.8, 0.3)
P = (0.001, 0.0625, 0.375, 0.5, 0.625, 0.75, 0.9375, 0.99)
LABEL = (1.0, -1.0, 1.0, -1.0, -1.0, 1.0, 1.0, -1.0)
COUNT = (0.0, 1.0, 3.0, 2.0, 7.0, 1.5, 10.0, 4.0)


def sig(t):
    return 1 / (1 + exp(-t))


def sp(t):
    return log(1 + exp(t))


def focal(x, t, gamma=2, alpha=0.25):
    p = sig(x)
    pos = -t * alpha * (1 - p) ** gamma * log(p)
    return pos - (1 - t) * (1 - alpha) * p**gamma * log(1 - p)


def huber(pred, target, delta=1):
    e = abs(pred - target)
    return e**2 / 2 if e <= delta else delta * (e - mpf(delta) / 2)


def smooth_l1(x, y, beta=1):
    n = abs(x - y)
    return n**2 / 2 / beta if n < beta else n - mpf(beta) / 2


def tukey(r, c=mpf("4.685")):
    return c**2 / 6 * (1 - (1 - (r / c) ** 2) ** 3) if abs(r) <= c else c**2 / 6


def barron(x, alpha=1, c=1):
    s = (x / c) ** 2
    if alpha == 2:
        return s / 2
    if alpha == 0:
        return log(s / 2 + 1)
    b = max(abs(mpf(alpha) - 2), mpf("0.00001"))
    return b / alpha * ((s / b + 1) ** (mpf(alpha) / 2) - 1)


def wing(x, w=10, epsilon=2):
    edge = w - w * log(1 + mpf(w) / epsilon)
    return w * log(1 + abs(x) / epsilon) if abs(x) < w else abs(x) - edge


def modified_huber(score, label):
    z = score * label
    return 0 if z >= 1 else (1 - z) ** 2 if z >= -1 else -4 * z


def pinball(y, q, tau=0.5):
    return tau * (y - q) if y >= q else (1 - mpf(tau)) * (q - y)


def expectile(y, m, tau=0.5):
    u = y - m
    return (1 - mpf(tau) if u < 0 else mpf(tau)) * u**2


def weighted_bce(x, t, pos_weight=1):
    return -(pos_weight * t * log(sig(x)) + (1 - t) * log(1 - sig(x)))


def asl(x, y, gamma_neg=4, gamma_pos=1):
    p = sig(x)
    return -y * (1 - p) ** gamma_pos * log(p) - (1 - y) * p**gamma_neg * log(1 - p)


def balanced(diff, alpha=0.5, gamma=1.5, beta=1):
    b = exp(mpf(gamma) / alpha) - 1
    a = abs(diff)
    if a >= beta:
        return gamma * a + gamma / b - alpha * beta
    return alpha / b * (b * a + 1) * log(b * a / beta + 1) - alpha * a


CASES = {
    "bce": case(lambda p, t: -(t * log(p) + (1 - t) * log(1 - p)), p=P, t=INNER),
    "bce_with_logits": case(weighted_bce, x=X, t=T),
    "weighted_bce_with_logits": case(
        weighted_bce, statics=({}, {"pos_weight": 2.5}), x=X, t=T
    ),
    "sigmoid_focal": case(focal, statics=({}, {"gamma": 1.5, "alpha": 0.75}), x=X, t=T),
    "binary_focal_label": case(
        lambda x, label, gamma=2, alpha=0.25: focal(x, int(label), gamma, mpf(alpha)),
        statics=({}, {"gamma": 1.0, "alpha": 0.5}),
        x=X,
        label=(True, False, True, False, True, False, False, True),
    ),
    "quality_focal": case(
        lambda x, score, beta=2: abs(score - sig(x)) ** beta * (sp(x) - x * score),
        statics=({}, {"beta": 1.5}),
        x=X,
        score=INNER,
    ),
    "huber": case(huber, statics=({}, {"delta": 2.5}), pred=X, target=Y),
    "smooth_l1": case(smooth_l1, statics=({}, {"beta": 2.5}), x=X, y=Y),
    "pseudo_huber": case(
        lambda r, delta=1: delta**2 * (sqrt(1 + (r / delta) ** 2) - 1),
        statics=({}, {"delta": 2.5}),
        r=X,
    ),
    "charbonnier": case(
        lambda x, y, eps=mpf("0.001"): sqrt((x - y) ** 2 + eps**2),
        statics=({}, {"eps": 0.5}),
        x=X,
        y=Y,
    ),
    "tukey_biweight": case(tukey, statics=({}, {"c": 2.0}), r=X),
    "cauchy_loss": case(
        lambda x, c=1: log((x / c) ** 2 / 2 + 1), statics=({}, {"c": 2.0}), x=X
    ),
    "geman_mcclure": case(
        lambda x, c=1: 2 * (x / c) ** 2 / ((x / c) ** 2 + 4),
        statics=({}, {"c": 2.0}),
        x=X,
    ),
    "welsch": case(
        lambda x, c=1: 1 - exp(-((x / c) ** 2) / 2),
        statics=({}, {"c": 2.0}),
        x=(-3.5, -2.25, -1.75, -0.625, 0.375, 1.125, 2.5, 4.0),
    ),
    "barron_general": case(barron, statics=({}, {"alpha": 0.5, "c": 2.0}), x=X),
    "barron_all": case(
        barron,
        statics=({}, {"alpha": 2.0}, {"alpha": 0.0, "c": 0.5}, {"alpha": -2.0}),
        x=X,
    ),
    "wing": case(wing, statics=({}, {"w": 5.0, "epsilon": 0.5}), x=X),
    "hinge": case(lambda score, label: max(0, 1 - label * score), score=X, label=LABEL),
    "squared_hinge": case(
        lambda score, label: max(0, 1 - label * score) ** 2, score=X, label=LABEL
    ),
    "modified_huber": case(modified_huber, score=X, label=LABEL),
    "pinball": case(pinball, statics=({}, {"tau": 0.875}), y=X, q=Y),
    "expectile": case(expectile, statics=({}, {"tau": 0.875}), y=X, m=Y),
    "log_cosh_loss": case(
        lambda pred, target: log(cosh(pred - target)), pred=X, target=Y
    ),
    "poisson_nll": case(
        lambda log_rate, k: exp(log_rate) - k * log_rate, log_rate=X, k=COUNT
    ),
    "tweedie": case(
        lambda x, y, rho=1.5: (
            -y * exp((1 - mpf(rho)) * x) / (1 - mpf(rho))
            + exp((2 - mpf(rho)) * x) / (2 - mpf(rho))
        ),
        statics=({}, {"rho": 1.25}),
        x=X,
        y=COUNT,
    ),
    "gamma_deviance": case(
        lambda pred, y: pred + y * exp(-pred), pred=X, y=tuple(c + 0.5 for c in COUNT)
    ),
    "gaussian_nll": case(
        lambda mean, var, target: (log(var) + (target - mean) ** 2 / var) / 2,
        mean=X,
        var=P,
        target=Y,
    ),
    "asymmetric_loss": case(
        asl, statics=({}, {"gamma_neg": 2.0, "gamma_pos": 1.5}), x=X, y=INNER
    ),
    "contrastive": case(
        lambda d, same, margin=1: d**2 / 2 if same else max(0, margin - d) ** 2 / 2,
        statics=({}, {"margin": 2.0}),
        d=(0.0625, 0.5, 0.75, 1.5, 0.25, 3.0, 0.5, 0.9),
        same=(True, False, False, False, True, True, False, True),
    ),
    "triplet": case(
        lambda pos, neg, margin=mpf("0.2"): max(pos - neg + margin, 0),
        statics=({}, {"margin": 1.0}),
        pos=X,
        neg=Y,
    ),
    "dice_pair": case(
        lambda a, b, eps=1: 1 - (2 * a * b + eps) / (a**2 + b**2 + eps),
        statics=({}, {"eps": 0.125}),
        a=INNER,
        b=P,
    ),
    "focal_tversky": case(
        lambda ti, gamma=0.75: (1 - ti) ** mpf(gamma),
        statics=({}, {"gamma": 2.0}),
        ti=P,
    ),
    "sigmoid_cross_entropy_smooth": case(
        lambda x, t, eps=mpf("0.1"): sp(x) - x * (t * (1 - eps) + eps / 2),
        statics=({}, {"eps": 0.25}),
        x=X,
        t=T,
    ),
    "balanced_l1": case(balanced, statics=({}, {"alpha": 1.0, "beta": 2.0}), diff=X),
    "kl_gaussian_vae": case(
        lambda mu, logvar: -(1 + logvar - mu**2 - exp(logvar)) / 2, mu=X, logvar=Y
    ),
    "epsilon_insensitive": case(
        lambda pred, y, eps=mpf("0.1"): max(0, abs(pred - y) - eps),
        statics=({}, {"eps": 2.0}),
        pred=X,
        y=Y,
    ),
}
