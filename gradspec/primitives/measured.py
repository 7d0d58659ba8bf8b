"""What each target's functions are worth, for the choice of evaluations.

Generated: `python benchmarks/primitives.py --write` measures the spellings of the table
on the frameworks. ``FAULTS`` says where a function of one argument is usually off by more
than 8 ULP; the error is infinite where a normal number comes out as 0, as an infinity or
as NaN.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

Span = tuple[float, float, float]
"""From one number to another, and the error between them."""


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


FAULTS: Mapping[tuple[str, str, str], tuple[Span, ...]] = _gathered()
"""By function, target and format."""
