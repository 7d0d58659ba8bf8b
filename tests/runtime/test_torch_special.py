"""Special functions where the spellings' tests do not look: compiled, orders, steps."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
mpmath = pytest.importorskip("mpmath")

from gradspec.runtime.torch import _special  # noqa: E402

pytestmark = pytest.mark.torch
POINTS = (-5.3, -1.2, -0.3, 1e-9, 0.1, 0.7, 2.6, 7.1)
REFERENCES = {
    "expm1": mpmath.expm1,
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "sinpi": mpmath.sinpi,
    "sinc": mpmath.sincpi,
    "erfcx": lambda x: mpmath.exp(x * x) * mpmath.erfc(x),
    "ndtr": mpmath.ncdf,
    "gamma": mpmath.gamma,
    "i0e": lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", REFERENCES)
def test_compiled(name: str, dtype: torch.dtype) -> None:
    x = torch.tensor(POINTS, dtype=dtype)
    compiled = torch.compile(
        getattr(_special, name), backend="aot_eager", fullgraph=True
    )
    with mpmath.workdps(40):
        true = [float(REFERENCES[name](mpmath.mpf(v))) for v in x.tolist()]
    wanted = torch.tensor(true, dtype=torch.float64).to(dtype)
    room = 64 * torch.finfo(dtype).eps  # rounding -5.3 changes ndtr by 30
    torch.testing.assert_close(compiled(x), wanted, rtol=room, atol=0.0)


def test_orders_of_polygamma() -> None:
    x = torch.tensor([0.3, 2.0, 25.0], dtype=torch.float64)
    for n in (1, 2, 5):
        wanted = torch.tensor([float(mpmath.polygamma(n, v)) for v in x.tolist()])
        torch.testing.assert_close(_special.polygamma(n, x).float(), wanted.float())


def test_a_step_at_0_and_at_nan() -> None:
    x = torch.tensor([-float("inf"), -0.0, 2.0, float("nan")])
    step = _special.heaviside(x, torch.tensor(0.5))
    assert step[:3].tolist() == [0.0, 0.5, 1.0] and step[3].isnan()
