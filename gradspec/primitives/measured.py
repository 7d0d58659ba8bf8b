"""What each target's functions are worth, for the choice of evaluations.

Generated: `python benchmarks/primitives.py --write` measures the spellings of the table
on the frameworks. ``CORE`` has the largest error in the core (2**-12 <= |x| <= 128), in
ULP, in float32 and float64 of NumPy, PyTorch, TensorFlow and JAX in turn. ``FAULTS`` says
where a function of one argument is usually off by more than 8 ULP; the error is
infinite where a normal number comes out as 0, as an infinity or as NaN.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

Span = tuple[float, float, float]
"""From one number to another, and the error between them."""


_CORE = """
pow 0.93 0.647 0.54 0.575 1.15 14.6 0.5 0.501
exp 1.89 0.65 0.532 0.508 1.12 1.25 0.774 1.25
exp_neg_square 0.5 1.84 1.31 1.84 1.87 1.84 1.47 1.84
exp_neg_half_square 0.499 1.39 1.37 1.37 1.69 1.54 1.37 1.54
expm1 1.71 0.501 0.706 0.813 2.6 2.55 1.85 1.88
exp2 0.965 0.651 0.666 0.732 1.16 1.29 0.5 0.5
log 2.22 0.5 0.754 0.5 1.82 1.46 0.953 0.5
log1p 1.27 0.588 0.516 0.719 2.99 2.38 1.48 0.972
log2 1.28 0.499 0.5 0.499 2.86 1.52 1.72 1.24
log10 2.03 0.508 0.5 0.499 2.49 2.76 1.77 1.53
sigmoid 1.71 1.63 1.94 1.95 1.61 1.7 1.94 1.95
logsigmoid 2.07 1.38 1.07 1.17 3.2 1.66 2.09 2.15
softplus 2.08 1.16 1.13 1.08 1.97 1.58 1.99 2.36
logaddexp inf inf inf inf inf inf inf inf
logit 2.21 1.67 2.21 1.67 3.68 1.93 2.21 1.7
xlogy 2.57 1.45 1.38 1.45 2.4 2.03 1.4 1.45
xlog1py 1.9 1.28 1.2 1.28 3.07 2.3 2.34 1.58
exp_sum 2.52 1.53 1.54 1.53 1.91 1.78 1.77 1.78
exp_product 2.36 1.57 1.47 1.57 1.68 1.74 1.5 1.74
expm1_sum 2.4 1.53 1.83 1.53 3.5 3.45 3.72 2.89
expm1_product 2.47 1.64 1.91 1.64 2.88 3.44 3.93 3.95
sigmoid_sum 2.52 1.96 1.96 1.81 2.24 2.13 1.96 1.76
sigmoid_product 2.36 1.94 2.08 1.84 1.9 1.97 2.08 1.89
softplus_sum 1.52 1.46 1.52 1.46 2.36 1.83 1.79 2.46
softplus_product 1.33 1.57 1.29 1.57 2.69 1.88 2.39 2.52
sqrt 0.5 0.5 0.747 0.524 0.5 0.5 0.5 0.5
rsqrt 1.32 1.38 1.32 1.38 1.47 1.38 1.2 0.861
cbrt 1.72 0.512 0.717 0.671 0.717 0.671 0.779 2.67
hypot 0.5 0.532 0.5 0.5 1.58 1.64 1.58 1.64
sin 1.07 0.506 0.59 0.499 1.2 0.506 0.532 0.506
cos 1.26 0.501 0.595 0.5 1.33 0.501 0.535 0.501
tan 2.26 0.513 0.903 0.5 0.757 0.506 0.757 0.506
sinpi 1.49 1.27 1.49 1.27 1.49 1.27 1.49 1.27
cospi 1.52 1.18 1.88 1.18 1.52 1.18 1.88 1.18
sinc 2.66 1.89 2.66 1.89 2.66 1.89 2.66 1.89
sinc_slope 9.51e+07 6.48e+15 9.69e+07 6.48e+15 9.51e+07 6.48e+15 9.69e+07 6.48e+15
asin 2.17 0.737 0.751 0.737 3.09 0.502 1.81 1.27
acos 1.38 0.8 0.74 0.8 3.13 0.502 1.58 1.09
atan 1.41 0.531 0.687 0.63 3.08 2.54 0.699 0.503
atan2 2 0.711 0.774 0.75 3.1 3.1 1.33 0.504
sinh 1.22 0.699 0.61 0.5 1.4 1.31 2.16 2
cosh 1.66 0.748 0.5 0.5 0.952 0.932 2.09 2.04
tanh 1.27 1.08 0.501 0.695 1.3 1.48 1.3 1.48
asinh 0.673 0.664 1.19 1.29 1.19 1.29 2.37 1.99
acosh 0.91 0.603 1.3 1.26 1.3 1.26 2.83 2.87
atanh 1.16 0.541 0.501 0.503 1.22 1.86 1.88 1.75
erf 0.5 2.08 0.657 0.728 1.99 1.39 3.57 0.807
erfc 0.5 2.29 0.751 0.749 4.37 2.29 2.79 2.29
erfcx 0.5 3.51 3.3 3.51 3.59 3.51 3.33 3.51
erfcx_slope 0.499 3.25 3.54 3.25 3.54 3.25 3.54 3.25
erfinv 2.18 2.33 0.53 0.507 2.12 2.3 2.12 2.17
erfcinv 0.5 5.03 2.37 2.18 2.32 2.24 2.37 2.18
ndtr 0.5 3.3 3.65 3.3 3.7 3.3 3.65 3.3
ndtri 0.5 3.31 3.1 3.21 2.76 3 2.76 3
log_ndtr 0.499 3.81 3.68 3.81 3.68 inf 3.68 inf
inverse_mills 0.5 2.79 3.18 3.29 3.12 2.79 3 2.79
erfinv_slope 0.5 2.59 3.45 3.25 3.45 3.25 3.45 3.25
erfcinv_slope 0.5 3.88 4.38 3.83 4.38 3.52 4.38 3.83
ndtri_slope 0.499 3.34 3.34 3.34 3.34 3.66 3.34 3.67
lgamma 0.5 5.91e+15 9.55e+04 8.31e+13 3.24 3.14 inf 2.21e+17
gamma 0.5 263 inf 263 inf 263 inf 263
digamma 0.5 4.08e+14 1.84e+06 1.24e+15 6.94e+05 6.76e+14 6.94e+05 6.76e+14
polygamma 0.5 4.19 2.42 2.36 2.42 2.36 2.42 2.36
i0 0.5 4.07 2.52 3.25 2.54 3.25 2.52 3.25
i1 0.5 2.62 2.98 2.57 3.72 2.57 2.98 2.57
i1_slope 0.5 2.8 2.41 2.8 2.41 2.54 2.41 2.54
i0e 0.5 2.94 2.54 2.94 2.54 2.94 2.54 2.94
i1e 0.5 2.08 2.82 2.08 2.82 2.15 2.82 2.15
i0e_slope 0.5 2.82 2.93 2.82 2.93 2.82 2.93 2.82
i1e_slope 0.5 3.19 2.82 3.19 2.82 3.19 2.82 3.19
"""

_FAULTS = """
sinc_slope numpy float32 -32 -16 158
sinc_slope numpy float32 -1.6777e+07 -65536 1.05e+06
sinc_slope numpy float32 256 512 2.89e+03
sinc_slope numpy float64 65536 1.6777e+07 8.05
lgamma numpy float64 -4 -2 3.02e+10
digamma numpy float64 -128 -8 22.3
digamma numpy float64 -65536 -1024 204
sinc_slope torch float32 -32 -16 158
sinc_slope torch float32 -1.6777e+07 -65536 1.05e+06
sinc_slope torch float32 256 512 2.89e+03
sinc_slope torch float64 65536 1.6777e+07 8.05
lgamma torch float64 -4 -2 9.89e+07
gamma torch float32 -64 -32 inf
digamma torch float32 -128 -64 12
digamma torch float32 -1024 -512 8.78
digamma torch float64 -65536 -1024 52.2
sinc_slope tf float32 -32 -16 158
sinc_slope tf float32 -1.6777e+07 -65536 1.05e+06
sinc_slope tf float32 256 512 2.89e+03
sinc_slope tf float64 65536 1.6777e+07 8.05
log_ndtr tf float64 32 64 inf
gamma tf float32 -64 -32 inf
gamma tf float64 -128 -64 10.5
digamma tf float32 -128 -64 12
digamma tf float32 -1024 -512 23.2
digamma tf float64 -64 -32 10.8
digamma tf float64 -65536 -1024 11.8
sinc_slope jax float32 -32 -16 158
sinc_slope jax float32 -1.6777e+07 -65536 1.05e+06
sinc_slope jax float32 256 512 2.89e+03
sinc_slope jax float64 65536 1.6777e+07 8.05
log_ndtr jax float64 32 64 inf
lgamma jax float32 -2 -1 10.5
lgamma jax float32 -4 -2 1.78e+03
lgamma jax float64 -4 -2 9.87e+10
gamma jax float32 -64 -32 inf
digamma jax float32 -128 -64 12
digamma jax float32 -1024 -512 23.2
digamma jax float64 -64 -32 10.3
digamma jax float64 -65536 -1024 11.8
"""


def _spans() -> Iterator[tuple[tuple[str, str, str], Span]]:
    for line in _FAULTS.strip().splitlines():
        name, target, dtype, low, high, ulp = line.split()
        yield (name, target, dtype), (float(low), float(high), float(ulp))


def _gathered() -> Mapping[tuple[str, str, str], tuple[Span, ...]]:
    found: dict[tuple[str, str, str], tuple[Span, ...]] = {}
    for key, span in _spans():
        found[key] = (*found.get(key, ()), span)
    return found


CORE: Mapping[str, tuple[float, ...]] = {
    name: tuple(map(float, errors))
    for name, *errors in map(str.split, _CORE.strip().splitlines())
}

FAULTS: Mapping[tuple[str, str, str], tuple[Span, ...]] = _gathered()
"""By function, target and format."""
