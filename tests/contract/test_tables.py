"""What is not as pinned is seen, and told so that one can act on it."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from tests.contract.call import Arrays, Call, call, faults, row
from tests.contract.names import names
from tests.contract.tables import Row, differences, read
from tests.contract.verdicts import alike

CALL = Call(
    {"n": 2, "eps": 1e-05},
    {"x": np.array([[1.5, -0.1]]), "k": np.array(3), "on": np.array([True, False])},
    {"y": np.array([[1.0, 2.0]])},
    {"y": np.array([[1 / 3, 1e-300]])},
    {"x": np.array([[0.0, -1e20]])},
)


def test_a_call_is_read_as_it_was_written() -> None:
    again = call(row("a.grad", "f", 0, CALL))
    assert (again.statics, list(again.inputs)) == (CALL.statics, ["x", "k", "on"])
    for name, array in CALL.inputs.items():
        np.testing.assert_array_equal(again.inputs[name], array)
        assert again.inputs[name].dtype == array.dtype
    assert faults(again, (CALL.outputs["y"],), CALL.gradients) == []
    assert faults(CALL, (again.outputs["y"],), again.gradients) == []


def test_every_row_of_values_is_a_call() -> None:
    for one in read("values"):
        spec = call(one)
        assert row(one["file"], one["rule"], int(one["call"]), spec) == one


def test_a_wrong_number_is_seen() -> None:
    value = CALL.outputs["y"] * (1 + 1e-8)
    assert faults(CALL, (value,), CALL.gradients) == [
        f"outputs: y: was {CALL.outputs['y'].tolist()}, is {value.tolist()}"
    ]
    wrong: tuple[Arrays, ...] = (
        {"x": CALL.gradients["x"].T},
        {},
        CALL.gradients | {"k": np.array(0.0)},
    )
    for gradients in wrong:
        (told,) = faults(CALL, (CALL.outputs["y"],), gradients)
        assert told.startswith("gradients: ")


def test_differences_name_row_and_column() -> None:
    def rows(**verdicts: str) -> list[Row]:
        return [
            {"file": "a.grad", "rule": rule, "verdicts": told, "codes": ""}
            for rule, told in verdicts.items()
        ]

    was, now = rows(f="dx=proved", g="dx=derived"), rows(f="dx=agrees", h="dx=proved")
    assert differences("rules", was, now) == [
        "a.grad f: verdicts: was 'dx=proved', is 'dx=agrees'",
        "a.grad g: is pinned and is no more",
        "a.grad h: is not pinned",
    ]


def test_a_slow_proof_may_end_as_agreement() -> None:
    def rows(told: str) -> list[Row]:
        return [{"file": "a.grad", "rule": "f", "verdicts": told, "codes": ""}]

    was = rows("dx=holds dz=proved")
    for told, count in (
        ("dx=proved dz=proved", 0),
        ("dx=agrees dz=holds", 0),
        ("dx=agrees dz=agrees", 1),
        ("dx=derived dz=proved", 1),
    ):
        found = differences("rules", *alike(was, rows(told)))
        assert len(found) == count, told


def test_only_own_public_names_are_told() -> None:
    module = ModuleType("emitted")
    text = (
        "import math\nfrom pathlib import Path\n"
        "def f(x, *, k=2.0): ...\n"
        "def _private(x): ...\n"
        "class Layer:\n    def __init__(self, size): ...\n"
    )
    exec(text, vars(module))
    assert names(module) == {"f": "x, *, k=2.0", "Layer": "size"}
