"""What each primitive costs on each target: what a choice among forms may rest on.

Generated: `python benchmarks/costs.py --write` times the spellings of the table on
NumPy, PyTorch, TensorFlow and JAX in turn (float32, 65,536 numbers, one thread of a CPU
with vector units), in multiplications of that target, to half an octave. ``select`` is a
choice by a condition that varies, ``lt`` a comparison.
"""

from __future__ import annotations

from collections.abc import Mapping

TARGETS = ("numpy", "torch", "tf", "jax")

_COSTS = """
add 1 1 1 1.4
sub 1 1 1 1
mul 1 1 1 1
div 1 1 1 1
mod 64 8 32 64
pow 5.7 16 23 23
neg 0.71 0.5 0.71 0.71
exp 4 5.7 1.4 2
exp_neg_square 180 45 32 8
exp_neg_half_square 180 45 23 8
expm1 2.8 8 4 5.7
exp2 1.4 2 23 8
log 2.8 8 2 2
log1p 2.8 5.7 2.8 2
log2 2 5.7 2.8 2
log10 1.4 8 2.8 2
sigmoid 8 2.8 8 1.4
logsigmoid 16 11 11 11
softplus 11 11 11 11
logaddexp 16 11 32 11
logit 23 64 16 8
xlogy 8 23 2.8 2.8
xlog1py 11 64 4 2.8
exp_sum 16 23 11 2.8
exp_product 180 64 32 2.8
expm1_sum 16 32 16 4
expm1_product 180 64 32 5.7
sigmoid_sum 130 16 23 4
sigmoid_product 180 64 45 5.7
softplus_sum 180 32 32 11
softplus_product 260 91 64 11
power_less_one 130 64 45 23
square 0.71 0.5 1 0.71
reciprocal 0.71 0.71 1 0.71
sqrt 2.8 2.8 1 0.71
rsqrt 4 2 0.71 8
cbrt 2 45 45 45
hypot 32 8 16 1.4
abs 0.71 0.5 0.71 0.71
max 1 1 1 1
min 1 1 1 0.71
clip 2 1.4 1.4 2
relu 2.8 0.5 0.71 0.71
sign 8 11 2 0.71
heaviside 32 32 8 0.35
floor 0.71 0.71 0.71 0.71
ceil 0.71 0.5 0.71 0.71
round 0.71 0.5 0.71 0.5
trunc 0.71 11 4 0.71
sin 4 8 2.8 32
cos 4 8 2.8 32
tan 2.8 11 23 45
sinpi 180 32 32 32
cospi 180 64 45 45
sinc 360 91 64 32
sinc_slope 360 130 91 45
asin 2.8 11 1.4 45
acos 2.8 11 1.4 64
atan 2.8 16 1.4 32
atan2 4 8 2.8 91
sinh 2.8 8 32 4
cosh 2.8 8 16 5.7
tanh 2.8 16 23 4
asinh 5.7 64 32 8
acosh 4 32 11 5.7
atanh 4 8 2.8 4
erf 130 8 130 0.71
erfc 1400 11 130 11
erfcx 720 180 64 5.7
erfcx_slope 1000 180 91 8
erfinv 130 11 45 16
erfcinv 91 64 16 16
ndtr 1000 32 91 11
ndtri 64 45 11 16
log_ndtr 2000 360 260 32
inverse_mills 1000 360 91 11
erfinv_slope 1000 260 130 32
erfcinv_slope 1000 360 130 23
ndtri_slope 1000 360 91 23
lgamma 510 32 32 64
gamma 720 180 91 32
digamma 180 130 91 32
polygamma 1400 130 64 5.7
i0 360 130 91 11
i1 510 180 64 11
i1_slope 510 180 91 11
i0e 510 130 64 8
i1e 360 130 91 8
i0e_slope 720 260 130 11
i1e_slope 720 260 130 11
lt 0.71 2.8 0.35 1
select 23 16 1 1
"""


COSTS: Mapping[str, tuple[float, ...]] = {
    name: tuple(map(float, costs))
    for name, *costs in map(str.split, _COSTS.strip().splitlines())
}
"""By primitive, of each of the targets in turn."""
