"""Stabilised rules from text, for the tests of this folder."""

from __future__ import annotations

import numpy as np
import pytest

from gradspec.ir.expr import Expr, show
from gradspec.ir.rule import Chosen, Judged, Rule
from gradspec.stabilise.stabilise import stabilise
from gradspec.symbolic.arithmetic_model import Machine
from gradspec.symbolic.truth import nearest
from tests.derive.rules import completed


def stable(text: str) -> Chosen:
    """The last rule of a text, complete and stabilised."""
    return stabilise(Judged(completed(text), ()))


def texts(rule: Rule) -> dict[str, str]:
    """Locals, outputs and cotangents as text."""
    return {d.name: show(d.value) for d in (*rule.forward, *rule.backward)}


def unary(forward: str, *more: str) -> str:
    """A rule of one input ``x`` and one output ``y``."""
    lines = "".join(f"    {line}\n" for line in more)
    return f"rule f(x) -> y:\n{lines}    y = {forward}\n"


def is_right(form: Expr, meaning: Expr, **given: float) -> bool:
    """Whether ``form``, in float64, is what ``meaning`` is, as far as float32 tells."""
    (true,) = nearest(meaning, [given], "float64")
    columns = {name: np.array([number]) for name, number in given.items()}
    found = float(Machine(columns, np.float64).run(form)[0])
    return found == pytest.approx(true, rel=2.0**-24, abs=0)
