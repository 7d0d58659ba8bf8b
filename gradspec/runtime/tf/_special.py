"""Special functions that TensorFlow lacks or computes less accurately."""

from __future__ import annotations

import math
from types import SimpleNamespace

import tensorflow as tf

from .._formulas import Formulas

_formulas = Formulas(
    SimpleNamespace(
        abs=tf.abs,
        cos=tf.cos,
        erfc=tf.math.erfc,
        exp=tf.exp,
        expm1=tf.math.expm1,
        floor=tf.floor,
        isfinite=tf.math.is_finite,
        isinf=tf.math.is_inf,
        log=tf.math.log,
        log1p=tf.math.log1p,
        minimum=tf.minimum,
        ones_like=tf.ones_like,
        round=tf.round,
        sign=tf.sign,
        sin=tf.sin,
        sqrt=tf.sqrt,
        square=tf.square,
        tan=tf.tan,
        where=tf.where,
        zeros_like=tf.zeros_like,
    )
)

exp_neg_square = _formulas.exp_neg_square
exp_neg_half_square = _formulas.exp_neg_half_square
logit = _formulas.logit
power_less_one = _formulas.power_less_one
cbrt = _formulas.cbrt
heaviside = _formulas.heaviside
sinpi = _formulas.sinpi
cospi = _formulas.cospi
sinc = _formulas.sinc
sinc_slope = _formulas.sinc_slope
reciprocal = _formulas.reciprocal
erfcx = _formulas.erfcx
erf = _formulas.erf
erfcx_slope = _formulas.erfcx_slope
erfinv = _formulas.erfinv
erfcinv = _formulas.erfcinv
ndtr = _formulas.ndtr
ndtri = _formulas.ndtri
log_ndtr = _formulas.log_ndtr
inverse_mills = _formulas.inverse_mills
erfinv_slope = _formulas.erfinv_slope
erfcinv_slope = _formulas.erfcinv_slope
ndtri_slope = _formulas.ndtri_slope
gamma = _formulas.gamma
digamma = _formulas.digamma
polygamma = _formulas.polygamma
i0 = _formulas.i0
i1 = _formulas.i1
i1_slope = _formulas.i1_slope
i0e = _formulas.i0e
i1e = _formulas.i1e
i0e_slope = _formulas.i0e_slope
i1e_slope = _formulas.i1e_slope
series = _formulas.series
vanishing = _formulas.vanishing


def logaddexp(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """log(exp(x) + exp(y)), from the larger, which is chosen, so that both have half of
    the derivative where they are equal.
    """
    s = x - y
    left = s < 0.0
    return tf.where(left, y, x) + tf.math.softplus(tf.where(left, s, -s))


def hypot(x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """sqrt(x**2 + y**2), scaled by the larger so that no square leaves the range."""
    s = tf.stop_gradient(tf.maximum(tf.abs(x), tf.abs(y)))
    s = tf.where((s > 0.0) & (s < math.inf), s, tf.ones_like(s))
    q = tf.square(x / s) + tf.square(y / s)
    zero = tf.equal(q, 0.0)
    r = s * tf.sqrt(tf.where(zero, tf.ones_like(q), q))
    return tf.where(zero, q, r)


def trunc(x: tf.Tensor) -> tf.Tensor:
    """The integer part, towards zero."""
    return tf.where(x < 0.0, tf.math.ceil(x), tf.floor(x))
