"""Kernels of rules: what is emitted for them, and how wrong ones are found. Functions in
plain PyTorch and NumPy stand in for them.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradspec

HERE = Path(__file__).parent
ATTENTION = HERE / "attention.grad"
PAGE = (HERE.parents[1] / "docs" / "kernels.md").read_text("utf-8")
(KERNELS,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

PLANTED = {
    " - (do * o).sum(-1, keepdim=True)": ("", "dq", "sum(do[i, p] * o[i, p] for p)`"),
    "ds @ k,": ("-ds @ k,", "dq", "its sign is wrong everywhere"),
    "ds.mT @ q": ("2 * ds.mT @ q", "dk", "it is 2 times what it should be"),
    "p.mT @ do": ("(p * p).mT @ do", "dv", "gives "),
    "return ds @ k": (
        "ds[..., 16:, :] = 0\n    return ds @ k",
        "dq",
        "from position 16",
    ),
    "p.mT @ do\n": ("p @ do\n", "flash_backward fails", "RuntimeError"),
    ", p.mT @ do\n": ("\n", "flash_backward fails", "argument 2 is shorter"),
    "-1) @ v": ("-1) @ v + 1e-2", "o of attention by my_kernels.flash", "formula is"),
}
"""By the text that is changed: what stands in its place, what is wrong, what is said."""


def _tested(folder: Path, *more: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "gradspec", *more]
    child = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False
    )
    return child.returncode, child.stdout + child.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pytest.importorskip("torch")
    (tmp_path / "a.grad").write_text(ATTENTION.read_text("utf-8"), "utf-8")
    (tmp_path / "my_kernels.py").write_text(KERNELS, "utf-8")
    return tmp_path


@pytest.mark.timeout(300)
def test_a_right_kernel_passes_on_its_target(folder: Path) -> None:
    code, told = _tested(folder, "test", "a.grad", "--target", "torch,numpy")
    assert code == 0, told
    assert re.search(r"torch: 1 rule, [1-9]\d+ checks$", told, re.MULTILINE)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("right", PLANTED)
def test_an_error_in_a_kernel_is_found_and_named(right: str, folder: Path) -> None:
    wrong, what, said = PLANTED[right]
    assert right in KERNELS
    (folder / "my_kernels.py").write_text(KERNELS.replace(right, wrong), "utf-8")
    code, told = _tested(folder, "test", "a.grad", "--target", "torch")
    assert code == 1
    assert f"error[GS619]: {what}" in told or f"error[GS619]: my_kernels.{what}" in told
    assert said in told
    assert "my_kernels.flash" in told


RUNNING = """\
rule running(x[n], a) -> y[n]:
    y[t] = x[t] + (a * y[t - 1] if t > 0 else 0)
    extern (dx, da) = "own_kernels.backward(a, dy)" for numpy
"""


@pytest.mark.timeout(300)
def test_an_error_in_a_kernel_of_a_recurrence_is_found(tmp_path: Path) -> None:
    """Its derivative has an adjoint state, and that of a scalar no place."""
    (tmp_path / "a.grad").write_text(RUNNING, "utf-8")
    (tmp_path / "own_kernels.py").write_text(
        "def backward(a, dy):\n    return dy * dy, a + 7\n", "utf-8"
    )
    code, told = _tested(tmp_path, "test", "a.grad", "--target", "numpy")
    assert code == 1, told
    for name in ("dx", "da"):
        assert f"error[GS619]: {name} of running by own_kernels.backward" in told


@pytest.mark.timeout(300)
def test_an_audit_refuses_a_wrong_kernel(folder: Path) -> None:
    wrong = KERNELS.replace("ds @ k,", "-ds @ k,")
    (folder / "my_kernels.py").write_text(wrong, "utf-8")
    code, told = _tested(folder, "audit", "a.grad", "--target", "torch")
    assert code == 1
    assert "its sign is wrong everywhere" in told


# --- emitted modules ---------------------------------------------------------------------


@pytest.fixture
def rules(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "my_kernels", raising=False)
    return gradspec.load(ATTENTION, "torch")


def _plain(q: Any, k: Any, v: Any) -> Any:
    import torch

    return torch.softmax(q @ k.mT, -1) @ v


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of forward mode
def test_torch_calls_them_under_every_transformation(rules: Any) -> None:
    import my_kernels  # type: ignore[import-not-found, unused-ignore]
    import torch

    sizes = ((2, 3, 4), (2, 5, 4), (2, 5, 6))
    inputs = [torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in sizes]
    upstream = torch.randn(2, 3, 6, dtype=torch.float64)

    def slopes(function: Any) -> Any:
        first = torch.autograd.grad(
            function(*inputs), inputs, upstream, create_graph=True
        )
        second = torch.autograd.grad(sum((g * g).sum() for g in first), inputs)
        return (*first, *second)

    wanted = slopes(_plain)
    for found, true in zip(slopes(rules.attention), wanted, strict=True):
        torch.testing.assert_close(found, true)
    compiled = torch.compile(rules.attention, fullgraph=True, backend="aot_eager")
    got = torch.autograd.grad(compiled(*inputs), inputs, upstream)
    torch.testing.assert_close(got, wanted[:3])
    bare = [x.detach() for x in inputs]
    true = _plain(*bare)
    torch.testing.assert_close(torch.vmap(rules.attention)(*bare), true)
    total = lambda *x: (rules.attention(*x) * upstream).sum()  # noqa: E731
    torch.testing.assert_close(torch.func.grad(total, (0, 1, 2))(*bare), wanted[:3])
    pushed = torch.func.jvp(rules.attention, tuple(bare), tuple(bare))[1]
    torch.testing.assert_close(
        pushed, torch.func.jvp(_plain, tuple(bare), tuple(bare))[1]
    )
    half = [x.half().requires_grad_() for x in bare]
    y = rules.attention(*half)
    y.sum().backward()
    assert y.dtype == half[0].grad.dtype == torch.float16
    assert my_kernels.flash(*bare).shape == true.shape


@pytest.mark.torch
def test_the_named_function_is_what_is_called(rules: Any) -> None:
    import torch

    code = rules._Attention.value.__wrapped__.__code__
    assert code.co_varnames[:3] == ("q", "k", "v")
    program = torch.export.export(
        type(
            "M", (torch.nn.Module,), {"forward": lambda self, *x: rules.attention(*x)}
        )(),
        (torch.randn(2, 3), torch.randn(4, 3), torch.randn(4, 5)),
    )
    assert "gradspec_foreign.my_kernels_flash" in str(program.graph)


TWO = """\
rule two(x, a: static = 2.0) -> (y, z):
    y = a * x
    z = sin(x)
    extern (z, y) = "own_kernels.values(x, a)" for numpy
    extern dx = "own_kernels.slope(x, a, dy, dz, 1)" for numpy
"""


def test_numpy_calls_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "import numpy as np\n\ncalls = []\n\n\ndef values(x, a):\n"
        "    calls.append('values')\n    return np.sin(x), a * x\n\n\n"
        "def slope(x, a, dy, dz, one):\n    calls.append(one)\n"
        "    return a * dy + dz * np.cos(x)\n"
    )
    (tmp_path / "own_kernels.py").write_text(text, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    rules = gradspec.load(TWO, "numpy")
    x = np.array([0.5, 1.0])
    (y, z), pullback = rules.two_vjp(x, a=3.0)
    np.testing.assert_allclose(y, 3 * x)
    np.testing.assert_allclose(z, np.sin(x))
    np.testing.assert_allclose(pullback(np.ones(2), np.ones(2))[0], 3 + np.cos(x))
    assert sys.modules["own_kernels"].calls == ["values", 1.0]


def test_other_targets_have_the_formula() -> None:
    assert "my_kernels" not in _without_quotation(gradspec.compile_text(TWO, "torch"))
    text = ATTENTION.read_text("utf-8")
    assert "my_kernels" not in _without_quotation(gradspec.compile_text(text, "jax"))


def _without_quotation(text: str) -> str:
    return re.sub(r'""".*?"""', "", text, flags=re.DOTALL)
