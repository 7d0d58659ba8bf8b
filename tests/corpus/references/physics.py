"""Graphics, audio, physics, chemistry, biology."""

from mpmath import atan2, cos, exp, hypot, log, mpf, pi, sign, sin, sqrt

from tests.corpus.case import case

X = (-3.5, -2.25, -1.75, -0.625, 0.375, 1.125, 2.5, 4.0)
Y = (0.5, -1.25, 2.0, 0.875, 1.5, -0.75, 0.25, 3.0)
W = (1.5, 0.25, -0.5, 2.25, -1.125, 0.75, 3.0, -2.0)
V = (-0.25, 1.75, 1.125, -3.0, 0.5, 2.0, -0.75, 0.625)
P = (0.01, 0.0625, 0.375, 0.9, 1.125, 3.5, 10.0, 40.0)
S = (0.5, 1.25, 2.0, 0.125, 3.5, 0.75, 6.0, 1.0)
A = (0.75, 2.5, 1.5, 4.0, 0.3, 5.0, 3.25, 1.75)
UNIT = (0.001, 0.002, 0.03, 0.0625, 0.25, 0.5, 0.8, 0.99)
SIGNED = (-0.9, -0.5, -0.1, -0.004, 0.002, 0.03, 0.4, 1.0)


def d(text):
    return mpf(text)


def to_linear(c):
    if c <= d("0.04045"):
        return c / d("12.92")
    return ((c + d("0.055")) / d("1.055")) ** d("2.4")


def to_srgb(l):  # noqa: E741
    if l <= d("0.0031308"):
        return d("12.92") * l
    return d("1.055") * l ** (1 / d("2.4")) - d("0.055")


def ggx(n_dot_h, alpha):
    q = n_dot_h**2 * (alpha**2 - 1) + 1
    return alpha**2 / (pi * q**2)


def smoothstep(x, lo=0, hi=1):
    t = min(max((x - lo) / (hi - lo), 0), 1)
    return t**2 * (3 - 2 * t)


def smootherstep(x):
    t = min(max(x, 0), 1)
    return 6 * t**5 - 15 * t**4 + 10 * t**3


def aces(x):
    up = x * (d("2.51") * x + d("0.03"))
    return up / (x * (d("2.43") * x + d("0.59")) + d("0.14"))


def a_law(x, a=mpf("87.6")):
    inner = a * abs(x) if abs(x) < 1 / a else 1 + log(a * abs(x))
    return sign(x) * inner / (1 + log(a))


def to_db(s, amin=mpf("1e-10"), ref=1):
    return 10 * (log(max(amin, s)) - log(max(amin, mpf(ref)))) / log(10)


def haversine(lat1, lon1, lat2, lon2):
    chord = sin((lon2 - lon1) / 2) ** 2
    return sin((lat2 - lat1) / 2) ** 2 + cos(lat1) * cos(lat2) * chord


def lennard_jones(r, epsilon=1, sigma=1):
    return 4 * epsilon * ((sigma / r) ** 12 - (sigma / r) ** 6)


def alpha_n(v):
    u = 10 - v
    return d("0.01") * u / (exp(u / 10) - 1)


def retention(h, alpha=0.5, n=2):
    if h >= 0:
        return 1
    return (1 + (alpha * abs(h)) ** n) ** (-(1 - 1 / mpf(n)))


def divide(a, b, c, d):
    n = c**2 + d**2
    return (a * c + b * d) / n, (b * c - a * d) / n


def ycbcr(r, g, b):
    luma = mpf("0.299") * r + mpf("0.587") * g + mpf("0.114") * b
    return luma, mpf("0.564") * (b - luma), mpf("0.713") * (r - luma)


def smooth_min(a, b, k=0.5):
    h = min(max(mpf(1) / 2 + (b - a) / k / 2, 0), 1)
    return b + h * (a - b) - k * h * (1 - h)


def soft_clip(x, p=10):
    return (log(1 + exp(p * x)) - log(1 + exp(p * (x - 1)))) / p


def leapfrog(q, p, dt=mpf("0.1")):
    half = p - dt * q / 2
    q1 = q + dt * half
    return q1, half - dt * q1 / 2


CASES = {
    "srgb_to_linear": case(to_linear, c=UNIT),
    "linear_to_srgb": case(to_srgb, l=UNIT),
    "schlick": case(
        lambda cos_theta, f0: f0 + (1 - f0) * (1 - cos_theta) ** 5,
        cos_theta=UNIT,
        f0=tuple(reversed(UNIT)),
    ),
    "ggx": case(ggx, n_dot_h=UNIT, alpha=tuple(reversed(UNIT))),
    "smoothstep": case(
        smoothstep,
        statics=({}, {"lo": -1.0, "hi": 3.0}),
        x=(-3.5, -0.25, 0.125, 0.3, 0.625, 0.9, 2.5, 4.0),
    ),
    "smootherstep": case(smootherstep, x=(-1.0, -0.25, 0.1, 0.3, 0.6, 0.9, 1.5, 4.0)),
    "reinhard": case(
        lambda x, white=4: x * (1 + x / white**2) / (1 + x),
        statics=({}, {"white": 2.0}),
        x=P,
    ),
    "aces": case(aces, x=P),
    "gamma_correct": case(
        lambda x, g=mpf("2.2"): x ** (1 / g), statics=({}, {"g": 0.5}), x=P
    ),
    "mu_law": case(
        lambda x, mu=255: sign(x) * log(1 + mu * abs(x)) / log(1 + mpf(mu)),
        statics=({}, {"mu": 15.0}),
        x=SIGNED,
    ),
    "mu_law_expand": case(
        lambda y, mu=255: sign(y) / mu * ((1 + mpf(mu)) ** abs(y) - 1),
        statics=({}, {"mu": 15.0}),
        y=SIGNED,
    ),
    "a_law": case(a_law, statics=({}, {"a": 10.0}), x=SIGNED),
    "power_to_db": case(to_db, statics=({}, {"amin": 0.125, "ref": 30.0}), s=P),
    "db_to_amplitude": case(lambda db: mpf(10) ** (db / 20), db=(-60.0, *X[1:7], 40.0)),
    "hz_to_mel": case(
        lambda f: 2595 * log(1 + f / 700) / log(10),
        f=(0.5, 20.0, 100.0, 440.0, 1000.0, 4000.0, 8000.0, 22050.0),
    ),
    "haversine": case(
        haversine,
        lat1=(0.25, -0.5, 1.0, 1.25, -1.0, 0.75, 0.125, -0.75),
        lon1=X,
        lat2=(0.5, 0.25, -1.25, 1.0, 0.5, 0.875, -0.5, 0.375),
        lon2=Y,
    ),
    "lennard_jones": case(
        lennard_jones,
        statics=({}, {"epsilon": 0.5, "sigma": 1.5}),
        r=(0.6, 0.875, 1.06, 1.25, 1.4, 1.9, 2.5, 4.0),
    ),
    "morse": case(
        lambda r, depth, a=1, r_e=1.5: depth * (1 - exp(-a * (r - r_e))) ** 2,
        statics=({}, {"a": 0.5, "r_e": 1.0}),
        r=(0.25, 0.75, 1.25, 1.75, 2.0, 3.0, 5.0, 8.0),
        depth=S,
    ),
    "soft_coulomb": case(
        lambda x, y, z, eps=mpf("0.1"): 1 / sqrt(x**2 + y**2 + z**2 + eps**2),
        statics=({}, {"eps": 0.5}),
        x=X,
        y=Y,
        z=W,
    ),
    "michaelis_menten": case(
        lambda s, v_max, k_m: v_max * s / (k_m + s), s=P, v_max=Y, k_m=S
    ),
    "hill": case(
        lambda x, k, n: x**n / (k**n + x**n),
        x=(0.1, 0.25, 0.375, 0.9, 1.125, 3.5, 5.0, 2.0),
        k=S,
        n=A,
    ),
    "arrhenius": case(
        lambda temp, ea=50000: exp(-ea / (mpf("8.314") * temp)),
        statics=({}, {"ea": 8000.0}),
        temp=(200.0, 250.0, 273.15, 298.0, 310.0, 400.0, 800.0, 2000.0),
    ),
    "gompertz": case(
        lambda t, a, b, c: a * exp(-b * exp(-c * t)), t=Y, a=W, b=S, c=UNIT
    ),
    "hodgkin_huxley_alpha_n": case(
        alpha_n, v=(-80.0, -65.0, -40.0, -10.0, 0.5, 12.5, 30.0, 60.0)
    ),
    "van_genuchten": case(
        retention,
        statics=({}, {"alpha": 1.5, "n": 1.5}),
        h=(-1000.0, -50.0, -3.5, -1.0, -0.25, -0.01, 0.5, 2.0),
    ),
    "polar_to_cartesian": case(
        lambda r, theta: (r * cos(theta), r * sin(theta)), r=S, theta=X
    ),
    "cartesian_to_polar": case(lambda x, y: (hypot(x, y), atan2(y, x)), x=X, y=Y),
    "complex_multiply": case(
        lambda a, b, c, d: (a * c - b * d, a * d + b * c), a=X, b=Y, c=W, d=V
    ),
    "complex_divide": case(divide, a=X, b=Y, c=W, d=V),
    "rgb_to_ycbcr": case(ycbcr, r=X, g=Y, b=W),
    "smooth_min": case(smooth_min, statics=({}, {"k": 2.0}), a=X, b=Y),
    "lorentz_factor": case(
        lambda v, c=1: 1 / sqrt(1 - (v / c) ** 2),
        statics=({}, {"c": 3.0}),
        v=(-0.99, -0.5, -0.1, -0.001, 0.002, 0.25, 0.625, 0.9),
    ),
    "soft_clip": case(
        soft_clip,
        statics=({}, {"p": 3.0}),
        x=(-1.5, -0.5, -0.1, 0.1, 0.4, 0.7, 1.1, 2.0),
    ),
    "safe_norm": case(
        lambda x, y, eps=0: sqrt(x**2 + y**2) if x**2 + y**2 > eps else 0,
        statics=({}, {"eps": 4.0}),
        x=X,
        y=Y,
    ),
    "safe_divide": case(
        lambda x, y, fill=0: x / y if y else fill,
        statics=({}, {"fill": 1.0}),
        gradients={
            "x": lambda x, y, dz, fill=0: dz / y if y else 0,
            "y": lambda x, y, dz, fill=0: -dz * x / y**2 if y else 0,
        },
        x=X,
        y=(0.5, 0.0, 2.0, -0.875, 0.0, 0.75, 1e-3, 3.0),
    ),
    "safe_log": case(
        lambda x, floor_=mpf("1e-30"): log(max(x, floor_)),
        statics=({}, {"floor_": 0.125}),
        x=(-1.0, 0.0, 1e-9, 0.01, 0.25, 2.0, 10.0, 1e9),
    ),
    "leapfrog": case(leapfrog, statics=({}, {"dt": 0.5}), q=X, p=Y),
}
