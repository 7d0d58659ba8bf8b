"""The text of PyTorch modules: formatted, minimal, the same every time."""

from __future__ import annotations

import ast
import inspect

import pytest

from tests.targets.emission import (
    torch_module,
    torch_text,
)

pytestmark = pytest.mark.torch


def _class(text: str) -> str:
    return text[text.index("@rule") : text.index("@torch.fx.wrap")].rstrip()


def test_a_simple_rule_has_nothing_that_it_does_not_need() -> None:
    text = torch_text("rule double(x) -> y:\n    y = 2 * x\n")
    assert "from ._gradspec import Rule, rule\n" in text
    absent = (
        "residuals",
        "needs",
        "kinds",
        "sum_to",
        "_special",
        "_axes",
        "import math",
    )
    assert [name for name in absent if name in text] == []
    assert len(text.splitlines()) <= 45


def test_a_class_reads_as_written_by_hand() -> None:
    text = torch_text("rule product(x, y) -> z:\n    z = sin(x) * y\n")
    assert _class(text) == inspect.cleandoc("""
        @rule("product")
        class _Product(Rule):
            @staticmethod
            def value(x: Tensor, y: Tensor) -> Tensor:
                return torch.sin(x) * y

            @staticmethod
            def pullback(needs, x, y, dz):
                dx = dy = None
                if needs[0]:
                    dx = dz * y * torch.cos(x)
                if needs[1]:
                    dy = dz * torch.sin(x)
                return dx, dy

            @staticmethod
            def pushforward(x, y, x_dot, y_dot):
                return x_dot * y * torch.cos(x) + y_dot * torch.sin(x)
        """)


def test_what_is_kept_is_told() -> None:
    text = torch_text(
        "rule power(x) -> y:\n    y = exp2(x)\n    dx = dy * y * log(2)\n"
    )
    assert "def residuals(_x, y):\n        return (y,)\n" in text
    assert "def pullback(_, y, dy):" in text


def test_the_decorator_tells_what_torch_must_know() -> None:
    text = torch_text(
        "rule rows(x[..., n], t: int, k: static = 2.0) -> (y[..., n], at: int):\n"
        "    y[i] = k * x[i]**2 if t > 0 else 0\n    at = t + 1\n"
        '    override dx[i] = dy[i] because "a marker"\n'
    )
    wanted = """
        @rule(
            "rows",
            kinds={"t": "integer", "k": "number"},
            axes={"x": "... n"},
            constant=(1,),
            is_exact=False,
            outputs=2,
        )
        class _Rows(Rule):"""
    assert " ".join(wanted.split()) in " ".join(text.split())


def test_names_that_would_clash_get_others() -> None:
    rules = "rule ab(x) -> y:\n    y = exp(x)\n\nrule Ab(rule) -> y:\n    y = rule\n"
    text = torch_text(rules)
    assert "class _Ab(" in text and "class _Ab2(" in text
    import torch

    x = torch.tensor([0.5])
    assert torch.equal(torch_module(rules).Ab(x), x)
    assert torch.equal(torch_module(rules).ab(x), torch.exp(x))


def test_a_rule_of_many_inputs_is_python() -> None:
    names = [f"x{k}" for k in range(20)]
    text = torch_text(
        f"rule wide({', '.join(names)}) -> y:\n    y = {' + '.join(names)}\n"
    )
    ast.parse(text)
    assert "dx0 = dx1 = dx2 = dx3 = dx4 = dx5 = dx6 = dx7 = None\n" in text
