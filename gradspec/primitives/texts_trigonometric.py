"""Private functions for circular functions of multiples of pi."""

from __future__ import annotations

from gradspec.primitives.row import Helper, Spelling

# x - round(x) is exact, so that sin(pi * x) has no error from the rounding of pi * x
# (which is 1e-10 relative near an integer of size 1000), and integers give exactly 0.
SINPI: dict[str, Spelling] = {
    "numpy": Helper(
        "_sinpi",
        '''\
def _sinpi(x: np.ndarray) -> np.ndarray:
    """sin(pi * x), with the whole turns taken off exactly (IEEE 754-2019, 9.2)."""
    n = np.round(x)
    return (1.0 - 2.0 * (n % 2.0)) * np.sin(np.pi * (x - n))
''',
    ),
    "torch": Helper(
        "_sinpi",
        '''\
def _sinpi(x: torch.Tensor) -> torch.Tensor:
    """sin(pi * x), with the whole turns taken off exactly (IEEE 754-2019, 9.2)."""
    n = torch.round(x)
    return (1.0 - 2.0 * (n % 2.0)) * torch.sin(torch.pi * (x - n))
''',
    ),
    "tf": Helper(
        "_sinpi",
        '''\
def _sinpi(x: tf.Tensor) -> tf.Tensor:
    """sin(pi * x), with the whole turns taken off exactly (IEEE 754-2019, 9.2)."""
    n = tf.round(x)
    return (1.0 - 2.0 * (n % 2.0)) * tf.sin(math.pi * (x - n))
''',
        ("import math",),
    ),
}

# Near a half integer the cosine is the sine of what is left to it.
COSPI: dict[str, Spelling] = {
    "numpy": Helper(
        "_cospi",
        '''\
def _cospi(x: np.ndarray) -> np.ndarray:
    """cos(pi * x), with the whole turns taken off exactly (IEEE 754-2019, 9.2)."""
    n = np.round(x)
    r = np.abs(x - n)
    c = np.where(r < 0.25, np.cos(np.pi * r), np.sin(np.pi * (0.5 - r)))
    return (1.0 - 2.0 * (n % 2.0)) * c
''',
    ),
    "torch": Helper(
        "_cospi",
        '''\
def _cospi(x: torch.Tensor) -> torch.Tensor:
    """cos(pi * x), with the whole turns taken off exactly (IEEE 754-2019, 9.2)."""
    n = torch.round(x)
    r = torch.abs(x - n)
    c = torch.where(r < 0.25, torch.cos(torch.pi * r), torch.sin(torch.pi * (0.5 - r)))
    return (1.0 - 2.0 * (n % 2.0)) * c
''',
    ),
    "tf": Helper(
        "_cospi",
        '''\
def _cospi(x: tf.Tensor) -> tf.Tensor:
    """cos(pi * x), with the whole turns taken off exactly (IEEE 754-2019, 9.2)."""
    n = tf.round(x)
    r = tf.abs(x - n)
    c = tf.where(r < 0.25, tf.cos(math.pi * r), tf.sin(math.pi * (0.5 - r)))
    return (1.0 - 2.0 * (n % 2.0)) * c
''',
        ("import math",),
    ),
}

# Near 0 the series, so that its own derivative (in a backward pass that is differentiated
# again) does not cancel: sin(z) / z = 1 - u/6 (1 - u/20 (1 - u/42 (...))), u = z**2.
SINC: dict[str, Spelling] = {
    "numpy": Helper(
        "_sinc",
        '''\
def _sinc(x: np.ndarray) -> np.ndarray:
    """sin(pi * x) / (pi * x): the quotient, and its Taylor series about 0."""
    small = np.abs(x) < 0.25
    a = np.where(small, 1.0, x)
    n = np.round(a)
    far = (1.0 - 2.0 * (n % 2.0)) * np.sin(np.pi * (a - n)) / (np.pi * a)
    u = np.square(np.pi * np.where(small, x, 0.0))
    near = 1.0
    for d in (210.0, 156.0, 110.0, 72.0, 42.0, 20.0, 6.0):
        near = 1.0 - u / d * near
    return np.where(small, near, far)
''',
    ),
    "torch": Helper(
        "_sinc",
        '''\
def _sinc(x: torch.Tensor) -> torch.Tensor:
    """sin(pi * x) / (pi * x): the quotient, and its Taylor series about 0."""
    small = torch.abs(x) < 0.25
    a = torch.where(small, 1.0, x)
    n = torch.round(a)
    far = (1.0 - 2.0 * (n % 2.0)) * torch.sin(torch.pi * (a - n)) / (torch.pi * a)
    u = torch.square(torch.pi * torch.where(small, x, 0.0))
    near = 1.0
    for d in (210.0, 156.0, 110.0, 72.0, 42.0, 20.0, 6.0):
        near = 1.0 - u / d * near
    return torch.where(small, near, far)
''',
    ),
    "tf": Helper(
        "_sinc",
        '''\
def _sinc(x: tf.Tensor) -> tf.Tensor:
    """sin(pi * x) / (pi * x): the quotient, and its Taylor series about 0."""
    small = tf.abs(x) < 0.25
    a = tf.where(small, tf.ones_like(x), x)
    n = tf.round(a)
    far = (1.0 - 2.0 * (n % 2.0)) * tf.sin(math.pi * (a - n)) / (math.pi * a)
    u = tf.square(math.pi * tf.where(small, x, tf.zeros_like(x)))
    near = 1.0
    for d in (210.0, 156.0, 110.0, 72.0, 42.0, 20.0, 6.0):
        near = 1.0 - u / d * near
    return tf.where(small, near, far)
''',
        ("import math",),
    ),
}
