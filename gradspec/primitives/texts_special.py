"""Private functions for special functions that a target lacks or does badly."""

from __future__ import annotations

from gradspec.primitives.row import Helper
from gradspec.primitives.spelling import everywhere

# The polynomial was fitted here (Chebyshev interpolation in 50 digits): 3.2e-16
# relative for the function, 8e-16 for its derivative.
_ERFCX = everywhere(
    "_erfcx",
    '''\
def _erfcx(x: Array) -> Array:
    """exp(x**2) * erfc(x).

    For a = abs(x), (1 + 2 * a) * erfcx(a) is a polynomial in (a - 3.75) / (a + 3.75):
    Shepherd and Laframboise, Mathematics of Computation 36 (1981), 249-253.
    """
    coefficients = (
        4.2514714447963895e-10,
        3.1114333809799254e-10,
        -5.1739902140113095e-09,
        -3.744210080962018e-09,
        3.8675334242222354e-08,
        2.3263508708859124e-08,
        -2.5866850716155884e-07,
        -5.7218230603224086e-08,
        1.751637648849062e-06,
        -9.73559896736775e-07,
        -1.1444146237700524e-05,
        2.238423915508223e-05,
        5.164909889268241e-05,
        -0.0002901540805408417,
        0.0002937136655913448,
        0.0017556258528952954,
        -0.009746579558029276,
        0.028362277418956406,
        -0.05869339858963677,
        0.09230432116037748,
        -0.10880393014174886,
        0.0822767384901452,
        0.0035854154854644293,
        -0.14024059858554697,
        1.2375126308378275,
    )
    a = xp.where(x < 0.0, -x, x)
    t = 1.0 - 7.5 / (a + 3.75)
    p = xp.zeros_like(x)
    for c in coefficients:
        p = p * t + c
    right = p / (1.0 + 2.0 * a)
    left = 2.0 * xp.exp(xp.square(xp.minimum(x, 0.0))) - right
    return xp.where(x < 0.0, left, right)
''',
)

TF_ERFCX, JAX_ERFCX = _ERFCX["tf"], _ERFCX["jax"]

# tf.math.erfinv goes through (x + 1) / 2 and so loses small arguments and those near 1
# (7e-9 relative at 1e-8 in float64); erfcinv has neither fault.
TF_ERFINV = Helper(
    "_erfinv",
    '''\
def _erfinv(x: tf.Tensor) -> tf.Tensor:
    """The inverse of erf.

    About 0 by a quotient of polynomials in (0.85**2 - x**2) / 4 (Wichura, Algorithm
    AS 241, Applied Statistics 37 (1988)), else through the complement, 1 - abs(x).
    """
    over = (
        2509.0809287301227,
        33430.57558358813,
        67265.7709270087,
        45921.95393154987,
        13731.69376550946,
        1971.5909503065513,
        133.14166789178438,
        3.3871328727963665,
    )
    under = (
        5226.495278852854,
        28729.085735721943,
        39307.89580009271,
        21213.794301586597,
        5394.196021424751,
        687.1870074920579,
        42.31333070160091,
        1.0,
    )
    small = tf.abs(x) <= 0.85
    inner = tf.where(small, x, tf.zeros_like(x))
    r = 0.180625 - tf.square(0.5 * inner)
    p = tf.zeros_like(x)
    q = tf.zeros_like(x)
    for c, d in zip(over, under, strict=True):
        p = p * r + c
        q = q * r + d
    centre = 0.3535533905932738 * inner * p / q
    tail = tf.math.erfcinv(1.0 - tf.abs(tf.where(small, tf.ones_like(x) * 0.9, x)))
    return tf.where(small, centre, tf.sign(x) * tail)
''',
)

TORCH_GAMMA = Helper(
    "_gamma",
    '''\
def _gamma(x: torch.Tensor) -> torch.Tensor:
    """exp(log(abs(gamma(x)))), with the sign that gamma has between its poles."""
    odd = torch.floor(x) % 2.0
    sign = torch.where(x < 0.0, 1.0 - 2.0 * odd, 1.0)
    return sign * torch.exp(torch.lgamma(x))
''',
)

TF_GAMMA = Helper(
    "_gamma",
    '''\
def _gamma(x: tf.Tensor) -> tf.Tensor:
    """exp(log(abs(gamma(x)))), with the sign that gamma has between its poles."""
    odd = tf.floor(x) % 2.0
    sign = tf.where(x < 0.0, 1.0 - 2.0 * odd, tf.ones_like(x))
    return sign * tf.exp(tf.math.lgamma(x))
''',
)

# special.polygamma gives float64 whatever it is given.
NUMPY_POLYGAMMA = Helper(
    "_polygamma",
    '''\
def _polygamma(n: int, x: np.ndarray) -> np.ndarray:
    """The n-th derivative of digamma, for x > 0: (-1)**(n + 1) n! zeta(n + 1, x)."""
    if n == 0:
        return special.digamma(x)
    return (-1.0) ** (n + 1) * math.factorial(n) * special.zeta(n + 1.0, x)
''',
    ("import math", "from scipy import special"),
)

# torch.polygamma(1, x) is 5e-10 off in float64 (its asymptotic series is short).
TORCH_POLYGAMMA = Helper(
    "_polygamma",
    '''\
def _polygamma(n: int, x: torch.Tensor) -> torch.Tensor:
    """The n-th derivative of digamma, for x > 0: (-1)**(n + 1) n! zeta(n + 1, x)."""
    if n == 0:
        return torch.digamma(x)
    zeta = torch.where(x == torch.inf, 0.0, torch.special.zeta(n + 1.0, x))
    return (-1.0) ** (n + 1) * math.factorial(n) * zeta
''',
    ("import math",),
)

# JAX differentiates digamma by a function that is defined on the right half only.
JAX_DIGAMMA = Helper(
    "_digamma",
    '''\
def _digamma(x: jax.Array) -> jax.Array:
    """The derivative of log(abs(gamma(x))), for x < 0 by reflection: DLMF 5.5.4."""
    left = x < 0.0
    right = special.digamma(jnp.where(left, 1.0 - x, x))
    t = jnp.where(left, x - jnp.round(x), 0.25)
    return jnp.where(left, right - jnp.pi / jnp.tan(jnp.pi * t), right)
''',
    ("from jax.scipy import special",),
)

JAX_POLYGAMMA = Helper(
    "_polygamma",
    '''\
def _polygamma(n: int, x: jax.Array) -> jax.Array:
    """The n-th derivative of digamma, for x > 0: (-1)**(n + 1) n! zeta(n + 1, x)."""
    if n == 0:
        return special.digamma(x)
    zeta = jnp.where(x == jnp.inf, 0.0, special.zeta(n + 1.0, x))
    return (-1.0) ** (n + 1) * math.factorial(n) * zeta
''',
    ("import math", "from jax.scipy import special"),
)

TF_POLYGAMMA = Helper(
    "_polygamma",
    '''\
def _polygamma(n: int, x: tf.Tensor) -> tf.Tensor:
    """The n-th derivative of digamma, for x > 0."""
    if n == 0:
        return tf.math.digamma(x)
    return tf.math.polygamma(tf.cast(n, x.dtype), x)
''',
)

# 2 * x * erfcx(x) - 2 / sqrt(pi) cancels for large x: 2 * x**2 times the rounding error.
# Fitted as the polynomial of erfcx above; 8e-16 relative.
ERFCX_SLOPE = everywhere(
    "_erfcx_slope",
    '''\
def _erfcx_slope(x: Array) -> Array:
    """The derivative of erfcx, that is 2 * x * erfcx(x) - 2 / sqrt(pi).

    For a = abs(x), -(1 + 2 * a)**2 times it is a polynomial in (a - 3.75) / (a + 3.75),
    after Shepherd and Laframboise, Mathematics of Computation 36 (1981), 249-253.
    """
    coefficients = (
        9.980464489888066e-09,
        -5.2416892076503226e-08,
        -1.18198824991991e-07,
        6.189416555589071e-07,
        7.59060659918512e-07,
        -4.505696714724181e-06,
        -3.107809428209681e-06,
        2.8946300750807498e-05,
        -5.722556913438916e-07,
        -0.00017629269676481909,
        0.0002031302150199379,
        0.000841021197575957,
        -0.002827353464692681,
        0.00041168774349727237,
        0.01868179928421822,
        -0.0631802908822073,
        0.11387123719624886,
        -0.10716921138387993,
        -0.03631824409106048,
        0.32960922307719764,
        -0.6428036856021216,
        0.7298340712578429,
        -0.39219971041079826,
        -0.32600563189430565,
        2.633964606739275,
    )
    a = xp.where(x < 0.0, -x, x)
    t = 1.0 - 7.5 / (a + 3.75)
    p = xp.zeros_like(x)
    for c in coefficients:
        p = p * t + c
    right = -p / xp.square(1.0 + 2.0 * a)
    n = xp.where(x < 0.0, x, xp.zeros_like(x))
    return right + 4.0 * n * xp.exp(xp.square(n))
''',
)

_I0E = {
    "numpy": "special.i0e",
    "torch": "torch.special.i0e",
    "tf": "tf.math.bessel_i0e",
    "jax": "special.i0e",
}
_I1E = {
    "numpy": "special.i1e",
    "torch": "torch.special.i1e",
    "tf": "tf.math.bessel_i1e",
    "jax": "special.i1e",
}

# Hankel's expansion, differentiated term by term; 26 terms are 1e-15 at 20.
I0E_SLOPE = everywhere(
    "_i0e_slope",
    '''\
def _i0e_slope(x: Array) -> Array:
    """The derivative of i0e: i1e - i0e for x > 0, for large x by DLMF 10.40.1."""
    far = xp.abs(x) > 20.0
    a = xp.where(far, xp.zeros_like(x), xp.abs(x))
    b = xp.where(far, xp.abs(x), 20.0 * xp.ones_like(x))
    s = xp.ones_like(x)
    for k in range(26, 0, -1):
        s = 1.0 + (4.0 * k * k - 1.0) / (8.0 * k) * s / b
    tail = -0.5 * s / b / xp.sqrt(2.0 * PI * b)
    near = I1E(a) - I0E(a)
    return xp.sign(x) * xp.where(far, tail, near)
''',
    I0E=_I0E,
    I1E=_I1E,
)

I1E_SLOPE = everywhere(
    "_i1e_slope",
    '''\
def _i1e_slope(x: Array) -> Array:
    """The derivative of i1e: i0e - (1 + 1/x) i1e for x > 0; far out by DLMF 10.40.1."""
    far = xp.abs(x) > 20.0
    a = xp.where(far | (x == 0.0), xp.ones_like(x), xp.abs(x))
    b = xp.where(far, xp.abs(x), 20.0 * xp.ones_like(x))
    s = xp.ones_like(x)
    for k in range(26, 0, -1):
        ratio = (2.0 * k - 3.0) * (2.0 * k + 1.0) ** 2 / (8.0 * k * (2.0 * k - 1.0))
        s = 1.0 + ratio * s / b
    tail = -0.5 * s / b / xp.sqrt(2.0 * PI * b)
    near = I0E(a) - I1E(a) * (1.0 + 1.0 / a)
    return xp.where(far, tail, xp.where(x == 0.0, 0.5 + x, near))
''',
    I0E=_I0E,
    I1E=_I1E,
)

TF_I1 = Helper(
    "_i1",
    '''\
def _i1(x: tf.Tensor) -> tf.Tensor:
    """I1(x); the gradient of TensorFlow's own is 1 at 0, where the slope is 1/2."""
    zero = x == 0.0
    away = tf.math.bessel_i1(tf.where(zero, tf.ones_like(x), x))
    return tf.where(zero, 0.5 * x, away)
''',
)
