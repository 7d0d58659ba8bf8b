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
exp_neg_square 2.82 1.84 1.43 1.84 1.65 1.84 1.43 1.84
exp_neg_half_square 3.21 1.39 1.66 1.37 2.69 1.99 1.32 1.99
expm1 1.71 0.501 0.706 0.813 2.6 2.55 4.05 2.92
exp2 0.965 0.651 0.666 0.732 1.16 1.29 56.7 75.4
log 2.22 0.5 0.754 0.5 1.82 1.46 0.953 0.5
log1p 1.27 0.588 0.516 0.719 2.99 2.38 1.93 71.9
log2 1.28 0.499 0.5 0.499 2.86 1.52 1.72 1.24
log10 2.03 0.508 0.5 0.499 2.49 2.76 1.77 1.53
sigmoid 1.71 1.63 1.94 1.95 4.96 1.7 1.94 1.95
logsigmoid 1.31 1.32 1.07 1.17 3.2 2.18 2.09 2.15
softplus 1.27 1.2 1.13 1.08 3 2.24 1.99 2.36
logaddexp inf inf inf inf inf inf inf inf
logit 2.21 1.67 2.21 1.67 3.68 1.93 2.37 104
xlogy 2.57 1.45 1.38 1.45 2.4 2.03 1.4 1.45
xlog1py 1.9 1.28 1.2 1.28 3.07 2.3 2.48 101
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
sinh 1.22 0.699 0.61 0.5 1.4 1.31 23.4 16.9
cosh 1.66 0.748 0.5 0.5 0.952 0.932 23.4 16.9
tanh 1.27 1.08 0.501 0.695 3.9 6.52 3.72 6.85
asinh 0.673 0.664 1.19 1.29 1.19 1.29 2.37 1.99
acosh 0.91 0.603 1.3 1.26 1.3 1.26 2.83 2.87
atanh 1.16 0.541 0.501 0.503 1.22 1.86 2.02 121
erf 0.5 2.08 0.657 0.728 3.83 2.21 3.57 0.807
erfc 0.5 341 0.751 0.749 32.4 4.32 34.2 341
erfcx 0.5 365 43.8 365 43.8 365 43.8 365
erfcx_slope 48.6 282 47.6 282 47.6 282 47.6 282
erfinv 2.18 2.15 0.5 0.5 4.62 4.68 34.1 6.12e+04
erfcinv 0.5 4.63 3.83 4.97 4.21 4.19 4.07 4.78
ndtr 0.5 1.65e+03 111 1.37e+03 111 1.65e+03 154 1.65e+03
ndtri 0.5 2.99 2.57 3.09 2.96 2.99 3.65 4.09
log_ndtr 0.499 1.25e+03 126 924 139 1.26e+03 139 1.25e+03
lgamma 0.5 1.66e+16 9.55e+04 8.31e+13 3.24 3.14 inf inf
gamma 0.5 5.32 53.3 204 166 590 195 1.35e+03
digamma 0.5 4.08e+14 6.45e+05 6.76e+14 2.35e+06 1.8e+15 1.84e+06 4.79e+14
polygamma 0.5 4.19 0.987 4.19 6.37 4.19 2.91 3.25
i0 0.5 4.07 inf 3.2 inf 3.84 inf 3.2
i1 0.5 6.85 inf 7.38 inf 8.39 inf 6.85
i0e 0.5 6.45 4.8 5.61 5.49 5.99 4.66 5.61
i1e 0.5 6.02 8.19 5.62 8.1 7.21 8.19 5.62
i0e_slope 27.5 88.3 113 88.8 144 101 129 88.8
i1e_slope inf inf inf inf inf 1.51e+17 inf inf
"""

_FAULTS = """
sinc_slope numpy float32 -32 -16 158
sinc_slope numpy float32 -1.6777e+07 -65536 1.05e+06
sinc_slope numpy float32 256 512 2.89e+03
sinc_slope numpy float64 65536 1.6777e+07 8.05
erfc numpy float64 4 32 204
erfcx numpy float64 -32 -4 208
erfcx_slope numpy float32 -16 -4 31.7
erfcx_slope numpy float64 -32 -4 175
ndtr numpy float64 -64 -2 1.65e+03
log_ndtr numpy float64 2 64 1.25e+03
lgamma numpy float64 -4 -2 3.02e+10
digamma numpy float64 -128 -4 22.3
digamma numpy float64 -65536 -1024 204
i0e_slope numpy float32 -16 -4 11.1
i0e_slope numpy float64 -32 -2 36.6
i0e_slope numpy float64 2 16 25.4
i1e_slope numpy float32 -32 -1 26.5
i1e_slope numpy float32 1 16 30.3
i1e_slope numpy float64 -0.015625 -5.421e-20 8.12
i1e_slope numpy float64 -16 -0.25 61.8
i1e_slope numpy float64 0.25 16 55.3
sinc_slope torch float32 -32 -16 158
sinc_slope torch float32 -1.6777e+07 -65536 1.05e+06
sinc_slope torch float32 256 512 2.89e+03
sinc_slope torch float64 65536 1.6777e+07 8.05
erfcx torch float32 -16 -4 31.1
erfcx torch float64 -32 -4 208
erfcx_slope torch float32 -16 -4 31.7
erfcx_slope torch float64 -32 -4 175
ndtr torch float32 -16 -4 48
ndtr torch float64 -64 -2 1.17e+03
log_ndtr torch float32 4 16 33.2
log_ndtr torch float64 2 64 924
lgamma torch float64 -4 -2 9.89e+07
gamma torch float32 -0.00024414 -1.1755e-38 18
gamma torch float32 -64 -8 29.8
gamma torch float32 1.1755e-38 5.9605e-08 23.9
gamma torch float32 8 32 15.7
gamma torch float64 -5.421e-20 -4.9407e-324 142
gamma torch float64 -5.9605e-08 -5.421e-20 8.72
gamma torch float64 -128 -8 84.1
gamma torch float64 4.9407e-324 5.421e-20 205
gamma torch float64 5.421e-20 5.9605e-08 9.93
gamma torch float64 8 128 107
digamma torch float32 -128 -64 10.2
digamma torch float32 -1024 -512 8.78
digamma torch float32 1 2 12.5
digamma torch float64 -128 -4 22.3
digamma torch float64 -65536 -1024 204
digamma torch float64 1 2 15.9
polygamma torch float64 1.3408e+154 inf inf
i0e_slope torch float32 -32 -2 47.3
i0e_slope torch float32 2 16 50.4
i0e_slope torch float64 -32 -2 22.7
i0e_slope torch float64 2 16 16.9
i1e_slope torch float32 -32 -0.25 75
i1e_slope torch float32 1 16 77.3
i1e_slope torch float64 -16 -1 88.5
i1e_slope torch float64 0.5 16 39.4
sinc_slope tf float32 -32 -16 158
sinc_slope tf float32 -1.6777e+07 -65536 1.05e+06
sinc_slope tf float32 256 512 2.89e+03
sinc_slope tf float64 65536 1.6777e+07 8.05
erfc tf float32 8 16 28.6
erfcx tf float32 -16 -4 31.1
erfcx tf float64 -32 -4 208
erfcx_slope tf float32 -16 -4 31.7
erfcx_slope tf float64 -32 -4 175
ndtr tf float32 -16 -4 37.4
ndtr tf float64 -64 -2 1.4e+03
log_ndtr tf float32 4 16 50.1
log_ndtr tf float64 2 64 1.26e+03
gamma tf float32 -0.015625 -1.1755e-38 18
gamma tf float32 -64 -8 92.6
gamma tf float32 1.1755e-38 5.9605e-08 24.2
gamma tf float32 8 32 27.2
gamma tf float64 -5.9605e-08 -4.9407e-324 142
gamma tf float64 -0.00097656 -5.9605e-08 8.09
gamma tf float64 -128 -8 201
gamma tf float64 4.9407e-324 5.421e-20 205
gamma tf float64 5.421e-20 5.9605e-08 12.7
gamma tf float64 8 128 232
digamma tf float32 -128 -64 12
digamma tf float32 -1024 -512 23.2
digamma tf float32 1 2 14.4
digamma tf float64 -64 -32 10.3
digamma tf float64 -65536 -1024 11.8
digamma tf float64 1 2 21.5
polygamma tf float32 1.8447e+19 1.7014e+38 inf
polygamma tf float64 1.3408e+154 inf inf
i0e_slope tf float32 -32 -2 55.9
i0e_slope tf float32 1 16 43.3
i0e_slope tf float64 -32 -1 31.7
i0e_slope tf float64 2 16 19.8
i1e_slope tf float32 -32 -0.25 119
i1e_slope tf float32 1 16 125
i1e_slope tf float64 -0.0039062 -5.421e-20 8.32
i1e_slope tf float64 -32 -0.25 98.3
i1e_slope tf float64 0.03125 16 108
exp2 jax float32 -128 -16 18.5
exp2 jax float32 16 128 27.8
exp2 jax float64 -128 -16 37.9
exp2 jax float64 16 256 56.6
exp2 jax float64 512 1024 31.2
log1p jax float64 -0.5 -0.25 8.44
sinc_slope jax float32 -32 -16 158
sinc_slope jax float32 -1.6777e+07 -65536 1.05e+06
sinc_slope jax float32 256 512 2.89e+03
sinc_slope jax float64 65536 1.6777e+07 8.05
sinh jax float32 -128 -8 19.3
sinh jax float32 8 128 18.8
sinh jax float64 -128 -16 14
sinh jax float64 16 256 14.6
sinh jax float64 512 1024 353
cosh jax float32 -128 -8 19.3
cosh jax float32 8 128 18.8
cosh jax float64 -128 -16 14
cosh jax float64 16 256 14.6
cosh jax float64 512 1024 353
erfc jax float32 4 16 30.9
erfc jax float64 4 32 205
erfcx jax float32 -16 -4 31.1
erfcx jax float64 -32 -4 208
erfcx_slope jax float32 -16 -4 31.7
erfcx_slope jax float64 -32 -4 175
ndtr jax float32 -16 -4 41.5
ndtr jax float64 -64 -2 1.65e+03
log_ndtr jax float32 4 16 38.1
log_ndtr jax float64 0.125 0.5 56.1
log_ndtr jax float64 2 64 1.25e+03
lgamma jax float32 -2 -0.5 10.5
lgamma jax float32 -4 -2 1.78e+03
lgamma jax float32 0.25 4 118
lgamma jax float64 -4 -2 9.87e+10
lgamma jax float64 0.25 4 124
gamma jax float32 -64 -1.1755e-38 92.6
gamma jax float32 1.1755e-38 0.25 23.9
gamma jax float32 1 32 83.5
gamma jax float64 -5.9605e-08 -4.9407e-324 152
gamma jax float64 -128 -0.25 632
gamma jax float64 4.9407e-324 5.421e-20 221
gamma jax float64 5.421e-20 0.015625 12.7
gamma jax float64 0.25 128 614
digamma jax float32 -128 -64 13.3
digamma jax float32 -1024 -512 23.2
digamma jax float32 1 4 28.9
digamma jax float64 -64 -32 26.8
digamma jax float64 -65536 -1024 11.8
digamma jax float64 0.5 2 20.6
polygamma jax float32 1.8447e+19 1.7014e+38 inf
polygamma jax float64 1.3408e+154 inf inf
i0e_slope jax float32 -32 -2 47.8
i0e_slope jax float32 2 16 50.4
i0e_slope jax float64 -32 -2 22.7
i0e_slope jax float64 2 16 14.8
i1e_slope jax float32 -32 -0.25 75
i1e_slope jax float32 0.5 16 77.3
i1e_slope jax float64 -16 -1 88.5
i1e_slope jax float64 0.5 16 39.4
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
