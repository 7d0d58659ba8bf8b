"""Special functions that NumPy and SciPy lacks or computes less accurately."""

# mypy: disable-error-code="no-any-return"
# NumPy's type stubs give Any for operations on arrays of any type.

from __future__ import annotations

import math

import numpy as np
from scipy import special  # type: ignore[import-untyped, unused-ignore]

from ._gradspec import Array

# Coefficients of quotients of polynomials and of polynomials, highest powers first,
# fitted by `benchmarks/special_coefficients.py`.
# fmt: off
_ERFCX_OVER = (
    -8.54395748417422e-09, 0.00025389912649250026, 0.004761177626038913,
    0.039127405247567054, 0.18347680706968408, 0.5355021187878449, 0.9290546553357675,
    0.8716208329044877,
)
_ERFCX_UNDER = (
    0.0019756533249621747, 0.028436346163049374, 0.18817015938056567,
    0.7339337814837404, 1.8083740875831036, 2.798692901991759, 2.507756706827566, 1.0,
)
_ERFCX_FAR_OVER = (
    -3.6262695269517162, -298.89502227312613, -1060.437489716398, -1127.5906861311564,
    -492.97104571338485, -98.33777308789958, -8.79066190900452, -0.28209479177387425,
)
_ERFCX_FAR_UNDER = (
    771.029749466699, 4650.244662679147, 8315.53447523876, 6233.338744696975,
    2228.941221652502, 393.8414568645429, 32.66208510522167, 1.0,
)
_ERFC_OVER = (
    7.781028611191627e-05, -0.004728159059034512, -0.028343864103186952,
    -0.3761263890318377,
)
_ERFC_UNDER = (
    0.002995565788772588, 0.053749280141448315, 0.37535728661906465, 1.0,
)
_ERFCX_SLOPE_OVER = (
    -0.000709322913067998, -0.008826704820790472, -0.05134487030613962,
    -0.17192567455301216, -0.32988725042604455, -0.2869919084978157,
    0.13058477607028265, 0.25675833419102534,
)
_ERFCX_SLOPE_UNDER = (
    0.0012572780070122156, 0.018158334353215403, 0.12671235365186698,
    0.5451238246390652, 1.5612575067930858, 3.0216945278418352, 3.834826402007204,
    2.9033031279490773, 1.0,
)
_ERFCX_SLOPE_FAR_OVER = (
    -13.816973978043833, -6826.033100661928, -26914.96449916099, -32959.834918435066,
    -17389.22984059644, -4474.924278692863, -581.0331467329731, -36.13709043330334,
    -0.8462843753216329,
)
_ERFCX_SLOPE_FAR_UNDER = (
    12490.404750242864, 63816.91163413392, 107615.45934898838, 82410.51249232788,
    32462.902123905118, 6908.6530354030065, 790.8218341206039, 45.2008833993487, 1.0,
)
_LGAMMA_OVER = (
    1.0263479025748211e-05, 0.003735897981010642, 0.09896873185248797,
    0.7384858655004171, 2.0000425738304792, 1.9775364197344207, 0.46700811768352,
    -0.2743623571206566, -0.11125376587818354,
)
_LGAMMA_UNDER = (
    0.0013276226961657946, 0.07201592470158757, 1.072324397156565, 6.418470510411995,
    17.993886113580086, 25.436195493242092, 18.76761457965571, 6.904646868355755, 1.0,
)
_I1_SMALL = (
    2.162058689049123e-32, 1.3054020655094293e-29, 1.004104675425582e-26,
    6.232331560081902e-24, 3.2920160193701167e-21, 1.4484497764952901e-18,
    5.214426435504652e-16, 1.5017547143926111e-13, 3.363930569686954e-11,
    5.65140335646049e-09, 6.781684027778592e-07, 5.425347222222203e-05,
    0.002604166666666667, 0.0625, 0.5,
)
_I1_LARGE = (
    3.4273576409413992e-09, -2.3724669984853037e-09, -2.6136832701497457e-08,
    1.9905896719398198e-08, 8.983485892549627e-08, -7.774828881763359e-08,
    -1.8276965821677113e-07, 1.8929356790612789e-07, 2.4028566356026135e-07,
    -3.266025804907737e-07, -2.0047080141392874e-07, 4.358152250915408e-07,
    7.22408170049792e-08, -4.916456815166104e-07, 7.429627794612714e-08,
    5.289509914480162e-07, -1.5805353971445365e-07, -6.235136396878846e-07,
    6.139967164512739e-08, 7.949567640848691e-07, 5.255545925186417e-07,
    -4.270378508255893e-07, -1.4382121905196888e-06, -2.927043221774655e-06,
    -8.402420162181836e-06, -4.259680178238693e-05, -0.0004189330009526641,
    -0.01320139138194962, 0.386123659201314,
)
_I1_SLOPE_SMALL = (
    6.3905954169628295e-31, 3.4952824913530023e-28, 2.51343515843294e-25,
    1.4332342040809317e-22, 6.913317623129744e-20, 2.752052182828885e-17,
    8.86452541760525e-15, 2.2526320648983555e-12, 4.373109741245016e-10,
    6.216543692063534e-08, 6.103515625002565e-06, 0.00037977430555554954,
    0.01302083333333334, 0.1875, 0.5,
)
_I1_SLOPE_LARGE = (
    -3.4654968584661827e-09, 2.531090042091736e-09, 2.634506100580224e-08,
    -2.1158206350122782e-08, -9.012523399457537e-08, 8.227646485869626e-08,
    1.819409021688842e-07, -1.9926727508273188e-07, -2.3564631471377195e-07,
    3.4165426385335e-07, 1.8913404031995986e-07, -4.525542883449964e-07,
    -5.2835532945160524e-08, 5.066493945520632e-07, -1.0179662349472021e-07,
    -5.429953170154684e-07, 1.9386725820625399e-07, 6.464451391286265e-07,
    -1.0204983354401344e-07, -8.536072983312911e-07, -5.263232060306378e-07,
    5.175959188080225e-07, 1.6505878652196408e-06, 3.5041345443301573e-06,
    1.1192962771082722e-05, 7.055498108054168e-05, 0.0013989899975928512,
    -0.02646976514393934, 0.37113528934975504,
)
_I0E_SMALL = (
    6.606801285867742e-31, 3.625822697903945e-28, 2.613845625975498e-25,
    1.4955575196817508e-22, 7.242519225066756e-20, 2.896897160478414e-17,
    9.385968061155716e-15, 2.4028075363376167e-12, 4.709502798213712e-10,
    6.781684027709584e-08, 6.781684027780424e-06, 0.0004340277777777716,
    0.015625000000000007, 0.25, 1.0,
)
_I0E_LARGE = (
    -3.377589304928175e-09, 2.2260103084952677e-09, 2.5825816340627302e-08,
    -1.874290291427172e-08, -8.911801981892016e-08, 7.350848119792563e-08,
    1.8248456130966392e-07, -1.7984044004620142e-07, -2.42839391124648e-07,
    3.1205648699875154e-07, 2.0874607562642752e-07, -4.190915596558142e-07,
    -8.778593832112978e-08, 4.7578923010527546e-07, -5.152601771187494e-08,
    -5.13311868699365e-07, 1.287366599227258e-07, 5.998676542017637e-07,
    -3.06867972331804e-08, -7.436030905859594e-07, -5.181134775562167e-07,
    3.6216190675394274e-07, 1.2868165808617789e-06, 2.560012415963149e-06,
    6.943027609035325e-06, 3.209416419027389e-05, 0.0002639629656843277,
    0.004607090507674329, 0.40331226094986455,
)
_I0E_SLOPE_SMALL = (
    4.15772446300164e-15, -8.412818706447215e-14, 1.0123725482108565e-12,
    -6.945895511028854e-12, 4.0490976138784856e-11, -1.210043133088729e-10,
    6.652618470728787e-10, 8.459988569459091e-10, 1.6457871102182027e-08,
    1.0324850840829533e-07, 7.223134897082491e-07, 4.5171045796755e-06,
    2.6170793035496702e-05, 0.00013853895567111582, 0.0006649930436989635,
    0.0028645831848546376, 0.01093750003219202, 0.03645833332867128,
    0.10416666666708015, 0.24999999999998057, 0.5000000000000003, 1.0,
)
_I0E_SLOPE_MIDDLE = (
    4.8064100525986634e-11, 6.755705415996018e-11, -7.53331781062182e-10,
    8.92981079176905e-10, 1.2799842287317115e-09, -5.154089996372874e-09,
    1.0478683249843373e-08, -1.5136197085811684e-08, -2.76865882932127e-09,
    9.299880392938996e-08, -2.8252095707603004e-07, 3.8582307699147524e-07,
    3.3091958860309856e-07, -2.986377553614573e-06, 6.317215839979612e-06,
    1.9700870081696837e-07, -3.498209466326228e-05, 6.822311898836968e-05,
    9.128325534392778e-05, -0.000492447615390996, -0.00048599014886284295,
    0.002635550835384937, 0.015289650032892354, 0.22284994443720102,
)
_I0E_SLOPE_LARGE = (
    -1.255243503255032e-10, -8.535042628191337e-10, 1.2716202472014245e-09,
    6.89298168028857e-09, -6.015727900559404e-09, -2.590441859493444e-08,
    1.7795510113256893e-08, 6.105470688333858e-08, -3.7221221184189466e-08,
    -1.0407344637570013e-07, 5.87125999022617e-08, 1.4365988616873083e-07,
    -7.037992053727915e-08, -1.7972405032713574e-07, 5.2419298903340697e-08,
    2.180787231838887e-07, 3.2126781504106616e-08, -2.2234770224814384e-07,
    -2.1881956962428337e-07, 4.87879433322602e-09, 2.5124098526086147e-07,
    4.67266367764699e-07, 8.519659499903689e-07, 2.1678163673508135e-06,
    8.164113831229328e-06, 4.49360084196137e-05, 0.00037396928734260396,
    0.00531326012428658, 0.20444880670617194,
)
_I1E_SLOPE_SMALL = (
    3.1521100144924163e-16, -6.2391461314911525e-15, 7.569599845872159e-14,
    -5.076580367618911e-13, 3.071395744317792e-12, -8.049241207824124e-12,
    5.814130526604682e-11, 1.5059101756358176e-10, 2.010198508673487e-09,
    1.4337423143124372e-08, 1.060065571039964e-07, 7.163649239473164e-07,
    4.497398075062175e-06, 2.598050194443032e-05, 0.00013712143054856715,
    0.0006551983672079323, 0.00280272945909523, 0.010580573680035333,
    0.03457749946544649, 0.09509330360390233, 0.2094312554509522, 0.3235979414728655,
)
_I1E_SLOPE_MIDDLE = (
    -5.719537216551331e-11, -5.0499187396403764e-11, 7.921997190373127e-10,
    -1.0234071497165364e-09, -1.1515553313949654e-09, 5.1230967927774585e-09,
    -1.0867248977913691e-08, 1.7077228412395376e-08, -1.919766247100657e-09,
    -8.845135858329838e-08, 2.940256196173868e-07, -4.479700961100666e-07,
    -2.062270538201701e-07, 2.9830896352249877e-06, -7.051894378134888e-06,
    1.7162762391590326e-06, 3.5183365978984455e-05, -8.119088235071754e-05,
    -7.35296503866266e-05, 0.0005773498899436437, 0.0003815302019643484,
    -0.00393296095928931, -0.0344517410083176, 0.13853674414532993,
)
_I1E_SLOPE_LARGE = (
    1.5682292630833858e-10, 8.686238397768001e-10, -1.5325108533101297e-09,
    -7.010602475409247e-09, 7.035148120094887e-09, 2.6326374708979862e-08,
    -2.0312310519377154e-08, -6.200023072653625e-08, 4.172935777683818e-08,
    1.056424674853806e-07, -6.517092928267448e-08, -1.4600890779403513e-07,
    7.837673692425057e-08, 1.8370231180544337e-07, -6.111804804515099e-08,
    -2.2595330643802698e-07, -2.5892201330422956e-08, 2.3644869308232813e-07,
    2.2549746624075182e-07, -1.3319253267587948e-08, -2.7460695320746114e-07,
    -5.103940389634854e-07, -9.519795037866018e-07, -2.516202044268147e-06,
    -9.999023934407138e-06, -5.9974555617032694e-05, -0.0005932050511770056,
    -0.015062837317522346, 0.1849496523197004,
)
# fmt: on


def exp_neg_square(x: Array) -> Array:
    """exp(-x**2), the square split: its rounding error would be magnified by x**2."""
    if x.itemsize < 8:
        return np.exp(-np.square(x, dtype=np.float64)).astype(np.float32)
    dtype, x = x.dtype, x.astype(np.float64, copy=False)
    c = np.where(np.abs(x) > 64.0, 64.0 * np.sign(x), x)
    h = np.sign(c) * np.floor(256.0 * np.abs(c)) / 256.0
    e = np.exp(-h * h)
    y = e * (1.0 + np.expm1((h - c) * (h + c)))
    return y.astype(dtype)


def exp_neg_half_square(x: Array) -> Array:
    """exp(-x**2 / 2), the square split: its rounding error would be magnified."""
    if x.itemsize < 8:
        return np.exp(-0.5 * np.square(x, dtype=np.float64)).astype(np.float32)
    dtype, x = x.dtype, x.astype(np.float64, copy=False)
    c = np.where(np.abs(x) > 64.0, 64.0 * np.sign(x), x)
    h = np.sign(c) * np.floor(256.0 * np.abs(c)) / 256.0
    e = np.exp(-0.5 * h * h)
    y = e * (1.0 + np.expm1(0.5 * (h - c) * (h + c)))
    return y.astype(dtype)


def sigmoid(x: Array) -> Array:
    """exp(x) / (1 + exp(x)); where exp(x) could overflow the quotient is 1."""
    t = np.exp(np.minimum(x, 88.0))
    return t / (1.0 + t)


def softplus(x: Array) -> Array:
    """log(1 + exp(x)); where exp(x) could overflow it is x."""
    return np.maximum(np.log1p(np.exp(np.minimum(x, 88.0))), x)


@np.errstate(invalid="ignore")
def logaddexp(x: Array, y: Array) -> Array:
    """log(exp(x) + exp(y)), from the larger; equal infinities, whose difference is NaN,
    count as equal. `np.logaddexp` takes forty times as long.
    """
    top = np.maximum(x, y)
    return top + np.log1p(np.exp(np.fmin(-np.abs(x - y), 0.0)))


def logit(x: Array) -> Array:
    """log(x / (1 - x)); near 1/2, its zero, through log1p, as 2 * x - 1 is exact."""
    near = np.abs(x - 0.5) < 0.25
    inner = np.where(near, x, 0.5)
    outer = np.where(near, 0.25, x)
    middle = np.log1p((2.0 * inner - 1.0) / (1.0 - inner))
    return np.where(near, middle, np.log(outer / (1.0 - outer)))


def xlogy(x: Array, y: Array) -> Array:
    """x * log(y), and 0 where x is 0 (also at y = 0)."""
    return x * np.log(np.where((x == 0) & (y >= 0), 1.0, y))


def xlog1py(x: Array, y: Array) -> Array:
    """x * log(1 + y), and 0 where x is 0 (also at y = -1)."""
    return x * np.log1p(np.where((x == 0) & (y >= -1), 0.0, y))


def power_less_one(x: Array, y: Array) -> Array:
    """x**(y - 1), corrected for the rounding error of y - 1."""
    s = y - 1.0
    b = s - y
    e = (y - (s - b)) - (1.0 + b)
    zero = (e == 0.0) | (x == 0.0)
    t = e * np.log(np.where(zero, np.ones_like(x), x))
    return x**s * (1.0 + np.where(np.abs(t) < 0.01, t, np.zeros_like(t)))


def sinpi(x: Array) -> Array:
    """sin(pi * x), reduced exactly by whole periods (IEEE 754-2019, 9.2)."""
    n = np.round(x)
    return (1.0 - 2.0 * (n % 2.0)) * np.sin(np.pi * (x - n))


def cospi(x: Array) -> Array:
    """cos(pi * x), reduced exactly by whole periods (IEEE 754-2019, 9.2)."""
    n = np.round(x)
    r = np.abs(x - n)
    c = np.where(r < 0.25, np.cos(np.pi * r), np.sin(np.pi * (0.5 - r)))
    return (1.0 - 2.0 * (n % 2.0)) * c


def sinc(x: Array) -> Array:
    """sin(pi * x) / (pi * x): the quotient, and its Taylor series about 0."""
    small = np.abs(x) < 0.25
    a = np.where(small, np.ones_like(x), x)
    b = np.where(a - a == 0.0, a, np.ones_like(x))  # finite
    n = np.round(b)
    far = (1.0 - 2.0 * (n % 2.0)) * np.sin(np.pi * (b - n)) / (np.pi * a)
    u = np.square(np.pi * np.where(small, x, np.zeros_like(x)))
    near = np.ones_like(x)
    for d in (210.0, 156.0, 110.0, 72.0, 42.0, 20.0, 6.0):
        near = 1.0 - u / d * near
    return np.where(small, near, far)


def sinc_slope(x: Array) -> Array:
    """The derivative of sinc: (cos(pi * x) - sinc(x)) / x, and its series about 0."""
    small = np.abs(x) < 0.25
    a = np.where(small, np.ones_like(x), x)
    b = np.where(a - a == 0.0, a, np.ones_like(x))  # finite
    n = np.round(b)
    r = np.pi * (b - n)
    far = (1.0 - 2.0 * (n % 2.0)) * (np.cos(r) - np.sin(r) / (np.pi * b)) / a
    c = np.where(small, x, np.zeros_like(x))
    near = np.ones_like(x)
    for d in (238.0, 180.0, 130.0, 88.0, 54.0, 28.0, 10.0):
        near = 1.0 - np.square(np.pi * c) / d * near
    return np.where(small, -np.pi * np.pi / 3.0 * c * near, far)


def _quotient(x: Array, over: tuple[float, ...], under: tuple[float, ...]) -> Array:
    """A quotient of polynomials in x, their highest powers first."""
    p, q = over[0] * x, under[0] * x
    for c in over[1:-1]:
        p += c
        p *= x
    for c in under[1:-1]:
        q += c
        q *= x
    p += over[-1]
    q += under[-1]
    p /= q
    return p


def _exp_square(x: Array) -> Array:
    """exp(x**2), the square split: its rounding error would be magnified by x**2."""
    c = np.where(np.abs(x) > 64.0, 64.0 * np.sign(x), x)
    h = np.sign(c) * np.floor(256.0 * np.abs(c)) / 256.0
    return np.exp(h * h) * (1.0 + np.expm1((c - h) * (c + h)))


def erfcx(x: Array) -> Array:
    """exp(x**2) * erfc(x), from 2 on as 1 / (sqrt(pi) * x) times a correction."""
    dtype, x = x.dtype, x.astype(np.float64, copy=False)
    a = np.where(x < 0.0, -x, x)
    far = a > 2.0
    edge = 2.0 * np.ones_like(x)
    b = np.where(far, edge, a)
    q = b * _quotient(b, _ERFCX_OVER, _ERFCX_UNDER)
    r = 1.0 / np.where(far, a, edge)
    p = r * r * _quotient(r * r, _ERFCX_FAR_OVER, _ERFCX_FAR_UNDER)
    near = (1.0 + q) / (1.0 + 2.0 * b)
    right = np.where(far, r * (0.5641895835477563 + p), near)
    n = np.where(x < 0.0, x, np.zeros_like(x))
    y = np.where(x < 0.0, 2.0 * _exp_square(n) - right, right)
    return y.astype(dtype)


def erfc(x: Array) -> Array:
    """1 - erf(x)."""
    return special.erfc(x)  # type: ignore[no-any-return, unused-ignore]


def erfcx_slope(x: Array) -> Array:
    """The derivative of erfcx, that is 2 * x * erfcx(x) - 2 / sqrt(pi)."""
    dtype, x = x.dtype, x.astype(np.float64, copy=False)
    a = np.where(x < 0.0, -x, x)
    far = a > 2.0
    edge = 2.0 * np.ones_like(x)
    b = np.where(far, edge, a)
    q = b * _quotient(b, _ERFCX_SLOPE_OVER, _ERFCX_SLOPE_UNDER)
    r = 1.0 / np.where(far, a, edge)
    p = r * r * _quotient(r * r, _ERFCX_SLOPE_FAR_OVER, _ERFCX_SLOPE_FAR_UNDER)
    near = -(1.1283791670955126 + q) / np.square(1.0 + b)
    right = np.where(far, -r * (r * (0.5641895835477563 + p)), near)
    n = np.where(x < 0.0, x, np.zeros_like(x))
    y = np.where(x < 0.0, 4.0 * n * _exp_square(n) + right, right)
    return y.astype(dtype)


def ndtr(x: Array) -> Array:
    """The normal distribution function."""
    return special.ndtr(x)  # type: ignore[no-any-return, unused-ignore]


def log_ndtr(x: Array) -> Array:
    """log(ndtr(x))."""
    return special.log_ndtr(x)  # type: ignore[no-any-return, unused-ignore]


def inverse_mills(x: Array) -> Array:
    """The normal density over its distribution function; sqrt(2 / pi) / erfcx on the
    left, where both underflow, and far out -x."""
    dtype, x = x.dtype, x.astype(np.float64, copy=False)
    scaled = erfcx(0.7071067811865476 * np.abs(x))
    bell = exp_neg_half_square(x)
    small = np.abs(x) <= 0.5
    b = 0.7071067811865476 * np.where(small, x, 0.5 * np.ones_like(x))
    u = b * b
    near = 0.5 + 0.5 * b * (
        1.1283791670955126 + u * _quotient(u, _ERFC_OVER, _ERFC_UNDER)
    )
    right = np.where(small, near, 1.0 - 0.5 * bell * scaled)
    right = 0.3989422804014327 * bell / right
    far = x < -1e9
    left = 0.7978845608028654 / np.where(far, np.ones_like(x), scaled)
    y = np.where(x >= 0.0, right, np.where(far, -x, left))
    return y.astype(dtype)


def erfinv_slope(x: Array) -> Array:
    """sqrt(pi) / 2 * exp(y**2) at y = erfinv(x).

    Beyond 1/2 exp(y**2) is erfcx(y) / erfc(y), and erfc(y) is what was inverted.
    """
    dtype, x = x.dtype, x.astype(np.float64, copy=False)
    y = np.abs(special.erfinv(x))
    small = y <= 0.5
    b = np.where(small, y, np.zeros_like(x))
    c = np.where(y > 40.0, 40.0 * np.ones_like(x), y)
    q = 1.0 - np.abs(x)
    square = np.where(small, np.exp(b * b), erfcx(c) / q)
    y = 0.886226925452758 * square
    return y.astype(dtype)


def erfcinv_slope(x: Array) -> Array:
    """-sqrt(pi) / 2 * exp(y**2) at y = erfcinv(x).

    Beyond 1/2 exp(y**2) is erfcx(y) / erfc(y), and erfc(y) is what was inverted.
    """
    dtype, x = x.dtype, x.astype(np.float64, copy=False)
    y = np.abs(special.erfcinv(x))
    small = y <= 0.5
    b = np.where(small, y, np.zeros_like(x))
    c = np.where(y > 40.0, 40.0 * np.ones_like(x), y)
    q = np.where(x < 1.0, x, 2.0 - x)
    square = np.where(small, np.exp(b * b), erfcx(c) / q)
    y = -0.886226925452758 * square
    return y.astype(dtype)


def ndtri_slope(x: Array) -> Array:
    """sqrt(2 * pi) * exp(y**2 / 2) at y = ndtri(x).

    Beyond 1/2 exp(y**2) is erfcx(y) / erfc(y), and erfc(y) is what was inverted.
    """
    dtype, x = x.dtype, x.astype(np.float64, copy=False)
    y = np.abs(special.erfcinv(2.0 * x))
    small = y <= 0.5
    b = np.where(small, y, np.zeros_like(x))
    c = np.where(y > 40.0, 40.0 * np.ones_like(x), y)
    q = 2.0 * np.where(x < 0.5, x, 1.0 - x)
    square = np.where(small, np.exp(b * b), erfcx(c) / q)
    y = 2.5066282746310007 * square
    return y.astype(dtype)


def lgamma(x: Array) -> Array:
    """log(abs(gamma(x))), between 1/2 and 5/2 with the zeros 1 and 2 as factors."""
    dtype, x = x.dtype, x.astype(np.float64, copy=False)
    near = np.abs(x - 1.5) < 1.0
    b = np.where(near, x, 1.5 * np.ones_like(x))
    u = b - 0.5
    rest = 1.1447298858494002 + u * _quotient(u, _LGAMMA_OVER, _LGAMMA_UNDER)
    middle = (b - 1.0) * (b - 2.0) * rest / (b + 1.0)
    y = np.where(near, middle, special.gammaln(np.where(near, 3.0, x)))
    return y.astype(dtype)


def gamma(x: Array) -> Array:
    """The gamma function."""
    return special.gamma(x)  # type: ignore[no-any-return, unused-ignore]


def polygamma(n: int, x: Array) -> Array:
    """The n-th derivative of digamma, for x > 0: (-1)**(n + 1) n! zeta(n + 1, x)."""
    if n == 0:
        return special.digamma(x)
    return (-1.0) ** (n + 1) * math.factorial(n) * special.zeta(n + 1.0, x)


def _polynomial(x: Array, coefficients: tuple[float, ...]) -> Array:
    """A polynomial in x, its highest power first."""
    p = np.zeros_like(x)
    for c in coefficients:
        p = p * x + c
    return p


def i0(x: Array) -> Array:
    """The modified Bessel function of order 0."""
    return special.i0(np.clip(x, -800.0, 800.0))


def i1(x: Array) -> Array:
    """The modified Bessel function of order 1."""
    dtype, x = x.dtype, x.astype(np.float64, copy=False)
    a = np.abs(x)
    far = a > 6.0
    edge = 6.0 * np.ones_like(x)
    near = _polynomial(np.square(np.where(far, edge, a)), _I1_SMALL)
    b = np.where(far, np.where(a > 800.0, 800.0 * np.ones_like(x), a), edge)
    tail = _polynomial(12.0 / b - 1.0, _I1_LARGE) / np.sqrt(b)
    huge = b > 64.0  # exp(b) leaves the range before the product does
    e = tail * np.exp(np.where(huge, b - 64.0, b))
    tail = np.where(huge, 6.235149080811617e27 * e, e)
    y = np.where(far, np.sign(x) * tail, x * near)
    return y.astype(dtype)


def i1_slope(x: Array) -> Array:
    """The derivative of I1, (I0(x) + I2(x)) / 2 (DLMF 10.29.1)."""
    dtype, x = x.dtype, x.astype(np.float64, copy=False)
    a = np.abs(x)
    far = a > 6.0
    edge = 6.0 * np.ones_like(x)
    near = _polynomial(np.square(np.where(far, edge, a)), _I1_SLOPE_SMALL)
    b = np.where(far, np.where(a > 800.0, 800.0 * np.ones_like(x), a), edge)
    tail = _polynomial(12.0 / b - 1.0, _I1_SLOPE_LARGE) / np.sqrt(b)
    huge = b > 64.0  # exp(b) leaves the range before the product does
    e = tail * np.exp(np.where(huge, b - 64.0, b))
    tail = np.where(huge, 6.235149080811617e27 * e, e)
    y = np.where(far, tail, near)
    return y.astype(dtype)


def i0e(x: Array) -> Array:
    """exp(-abs(x)) * I0(x)."""
    dtype, x = x.dtype, x.astype(np.float64, copy=False)
    a = np.abs(x)
    far = a > 6.0
    edge = 6.0 * np.ones_like(x)
    b = np.where(far, edge, a)
    near = _polynomial(np.square(b), _I0E_SMALL) * np.exp(-b)
    c = np.where(far, a, edge)
    tail = _polynomial(12.0 / c - 1.0, _I0E_LARGE) / np.sqrt(c)
    y = np.where(far, tail, near)
    return y.astype(dtype)


def i1e(x: Array) -> Array:
    """exp(-abs(x)) * I1(x)."""
    dtype, x = x.dtype, x.astype(np.float64, copy=False)
    a = np.abs(x)
    far = a > 6.0
    edge = 6.0 * np.ones_like(x)
    b = np.where(far, edge, a)
    near = _polynomial(np.square(b), _I1_SMALL) * np.exp(-b)
    c = np.where(far, a, edge)
    tail = _polynomial(12.0 / c - 1.0, _I1_LARGE) / np.sqrt(c)
    y = np.where(far, np.sign(x) * tail, x * near)
    return y.astype(dtype)


def i0e_slope(x: Array) -> Array:
    """The derivative of i0e: i1e - i0e for x > 0, which would cancel."""
    dtype, x = x.dtype, x.astype(np.float64, copy=False)
    a = np.abs(x)
    edge = 3.0 * np.ones_like(x)
    b = np.where(a > 3.0, edge, a)
    p = _polynomial(b, _I0E_SLOPE_SMALL) * np.exp(-2.0 * b)
    r = 1.0 / np.where(a > 3.0, a, edge)
    w = (r + r - 11.0 / 24.0) / (5.0 / 24.0)  # 1 / x from 1 / 8 to 1 / 3
    inner = _polynomial(np.where(a > 8.0, -np.ones_like(x), w), _I0E_SLOPE_MIDDLE)
    w = np.where(a > 8.0, 16.0 * r - 1.0, np.ones_like(x))
    outer = _polynomial(w, _I0E_SLOPE_LARGE)
    tail = r * (np.sqrt(r) * np.where(a > 8.0, outer, inner))
    near = p
    y = -np.sign(x) * np.where(a > 3.0, tail, near)
    return y.astype(dtype)


def i1e_slope(x: Array) -> Array:
    """The derivative of i1e: i0e - (1 + 1/x) i1e for x > 0; its zero is a factor."""
    dtype, x = x.dtype, x.astype(np.float64, copy=False)
    a = np.abs(x)
    edge = 3.0 * np.ones_like(x)
    b = np.where(a > 3.0, edge, a)
    p = _polynomial(b, _I1E_SLOPE_SMALL) * np.exp(-2.0 * b)
    r = 1.0 / np.where(a > 3.0, a, edge)
    w = (r + r - 11.0 / 24.0) / (5.0 / 24.0)  # 1 / x from 1 / 8 to 1 / 3
    inner = _polynomial(np.where(a > 8.0, -np.ones_like(x), w), _I1E_SLOPE_MIDDLE)
    w = np.where(a > 8.0, 16.0 * r - 1.0, np.ones_like(x))
    outer = _polynomial(w, _I1E_SLOPE_LARGE)
    tail = r * (np.sqrt(r) * np.where(a > 8.0, outer, inner))
    zero = (b - 1.545127272605896) + 1.461335330992981e-08
    near = p * (zero - 6.079624433015007e-25)
    y = -np.where(a > 3.0, tail, near)
    return y.astype(dtype)


def series(u: Array, *coefficients: float) -> Array:
    """c0 + c1 * u + c2 * u**2 + …, by Horner's rule."""
    *others, last, total = coefficients
    y: Array = total * u + last
    for coefficient in reversed(others):
        y = y * u + coefficient
    return y


def vanishing(x: Array, y: Array) -> Array:
    """x * y; where y has underflowed to 0, an infinite x counts as 0."""
    return np.where(np.isinf(x) & (y == 0.0), 0.0, x) * y


def erf(x: Array) -> Array:
    """The error function."""
    return special.erf(x)


def erfinv(x: Array) -> Array:
    """The inverse of the error function."""
    return special.erfinv(x)


def erfcinv(x: Array) -> Array:
    """The inverse of 1 - erf(x)."""
    return special.erfcinv(x)


def ndtri(x: Array) -> Array:
    """The inverse of the normal distribution function."""
    return special.ndtri(x)


def digamma(x: Array) -> Array:
    """The derivative of the logarithm of gamma."""
    return special.digamma(x)
