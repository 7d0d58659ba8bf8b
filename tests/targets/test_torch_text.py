"""The text of PyTorch modules: formatted, minimal, the same every time."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable

import black
import pytest

from gradspec.plan.plan import ModulePlan
from gradspec.targets import torch as target
from tests.targets.emission import APART, RULES, planned, planned_apart, torch_text

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("write", [target.module, target.traced_module])
def test_black_would_change_nothing(write: Callable[[ModulePlan], str]) -> None:
    text = write(planned(RULES))
    assert black.format_str(text, mode=black.Mode()) == text


@pytest.mark.xdist_group(APART)
def test_the_same_text_every_time() -> None:
    assert target.module(planned_apart(RULES)) == target.module(planned(RULES))


def test_a_simple_rule_has_nothing_that_it_does_not_need() -> None:
    text = torch_text("rule double(x) -> y:\n    y = 2 * x\n")
    unused = ("_promote", "_reduced", "_where", "_narrow", "_plus")
    assert [n for n in unused if n in text] == []
    assert "save_for_backward" not in text
    assert "needs_input_grad" not in text


def test_the_class_reads_as_written_by_hand() -> None:
    text = torch_text("rule double(x) -> y:\n    y = 2 * sin(x)\n")
    start = text.index("class _Double")
    assert text[start : text.index("@torch.fx.wrap")].rstrip() == inspect.cleandoc("""
        class _Double(torch.autograd.Function):
            generate_vmap_rule = True

            @staticmethod
            def forward(x):
                dtype = x.dtype
                if dtype in _HALF:
                    (x,) = _widen(x)
                y = 2.0 * torch.sin(x)
                return _rounded(y, dtype)

            @staticmethod
            def setup_context(ctx, inputs, output):
                (x,) = inputs
                ctx.save_for_backward(x)
                ctx.save_for_forward(x)
                ctx.set_materialize_grads(False)

            @staticmethod
            def backward(ctx, dy):
                if dy is None:
                    return None
                (x,) = ctx.saved_tensors
                dtype = x.dtype
                if dtype in _HALF:
                    x, dy = _widen(x, dy)
                dx = 2.0 * dy * torch.cos(x)
                return _rounded(dx, dtype)

            @staticmethod
            def jvp(ctx, x_dot):
                with _forward_mode():
                    (x,) = _primals(ctx)
                    dtype = x_dot.dtype
                    if dtype in _HALF:
                        x, x_dot = _widen(x, x_dot)
                    y_dot = 2.0 * x_dot * torch.cos(x)
                    return _rounded(y_dot, dtype)


        @torch.compiler.allow_in_graph
        def _double_in_graph(x):
            return _Double.apply(x)


        _apply_double = _applied(
            _Double, _double_in_graph, _Double.forward, _in_blocks(_Double)
        )
        """)


def test_what_is_imported_is_used() -> None:
    tree = ast.parse(torch_text(RULES))
    imports = [n for n in tree.body if isinstance(n, ast.Import)]
    names = [alias.name for node in imports for alias in node.names]
    own = ["contextlib", "ctypes", "itertools", "math", "mmap"]
    modules = [*own, "operator", "os", "types", "torch"]
    assert names == modules


def test_public_names_are_the_rules_in_order() -> None:
    tree = ast.parse(torch_text(RULES))
    functions = [n.name for n in tree.body if isinstance(n, ast.FunctionDef)]
    public = [name for name in functions if not name.startswith("_")]
    assert f"__all__ = {public}".replace("'", '"') in " ".join(
        torch_text(RULES).split()
    ).replace("[ ", "[").replace(", ]", "]")


def test_names_that_would_clash_get_others() -> None:
    text = torch_text(
        "rule ab(dtype) -> y:\n    y = exp(dtype)\n\nrule Ab(x) -> y:\n    y = exp(x)\n"
    )
    assert "dtype2 = dtype.dtype" in text and "def ab(dtype:" in text
    assert "class _Ab(" in text and "class _Ab2(" in text


def test_a_rule_of_many_inputs_is_python() -> None:
    names = [f"x{k}" for k in range(20)]
    text = torch_text(
        f"rule wide({', '.join(names)}) -> y:\n    y = {' + '.join(names)}\n"
    )
    ast.parse(text)
    assert "dx0 = dx1 = dx2 = dx3 = dx4 = dx5 = dx6 = dx7 = None\n" in text
