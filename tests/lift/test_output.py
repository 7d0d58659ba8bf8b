"""What `gradspec lift` prints and writes, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradspec.cli import cli
from gradspec.lift.lifting import lift

FOLDER = Path(__file__).parent / "cases"
WRONG, RIGHT, BROKEN = "t02_bump_missing_factor", "t01_gate_proved", "t14_count"
KEYS = "file line name framework verdict paths assumptions reason rule".split()


def _run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["lift", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.output


def _case(name: str) -> str:
    return f"{FOLDER / name}.py"


def test_exit_codes() -> None:
    codes = {WRONG: 1, BROKEN: 1, RIGHT: 0, "t08_spike": 0, "t20_kernel": 0, "none": 2}
    for name, code in codes.items():
        assert _run(_case(name))[0] == code, name


def test_text() -> None:
    _, text = _run(_case(WRONG), _case(RIGHT), _case(BROKEN))
    for part in (
        "t02_bump_missing_factor.py:5  Bump   REFUTED  dx gives 1.116703167 at x = 1",
        "the factor `sigmoid(x)` is missing in `x * (1 - t * t)`",
        "(t02_bump_missing_factor.py:15)",
        "wrong at 20 of 22 points",
        "BROKEN   backward returns 1 gradient for 2 inputs  (t14_count.py:13)",
        "3 sites: 1 proved, 1 refuted, 1 broken",
    ):
        assert part in text
    assert "Nothing could be lifted" in _run(_case("t20_kernel"))[1]


def test_json() -> None:
    _, text = _run(_case(WRONG), _case("t16_softmax_axis"), "--format", "json")
    wrong, right = json.loads(text)
    assert [*wrong] == KEYS
    assert (wrong["verdict"], wrong["line"], wrong["name"]) == ("refuted", 5, "Bump")
    assert "    # declared: dx = dy * (t + x * (1 - t * t))" in wrong["rule"]
    assert "    dx = dy * (t + x * (1 - t * t) * sigmoid(x))" in wrong["rule"]
    assert "`dim` is the last axis" in right["assumptions"]
    assert right["rule"].startswith("rule soft(x[..., n]) -> y[..., n]:")


def test_github_and_sarif() -> None:
    given = (_case(WRONG), _case(RIGHT), _case(BROKEN), _case("t11_guarded_quotient"))
    _, text = _run(*given, "--format", "github")
    assert [line.split(" ")[0] for line in text.splitlines()] == [
        *("::error", "::error", "::notice")
    ]
    _, text = _run(*given, "--format", "sarif")
    results = json.loads(text)["runs"][0]["results"]
    places = [one["locations"][0]["physicalLocation"]["region"] for one in results]
    found = {
        one["ruleId"]: place["startLine"]
        for one, place in zip(results, places, strict=True)
    }
    assert found == {"GS401": 15, "GS760": 13}
    assert (
        "a hand-written gradient cannot run"
        in CliRunner().invoke(cli, ["explain", "GS760"]).output
    )


def test_written_rules_compile(tmp_path: Path) -> None:
    """All but those that hold only for inputs that the language cannot describe."""
    names = (
        WRONG,
        RIGHT,
        "t35_level_ste",
        "t08_spike",
        "t16_softmax_axis",
        "f01_softplus",
    )
    _run(*map(_case, names), "--out", f"{tmp_path}")
    assert len([*tmp_path.rglob("*.grad")]) == len(names)
    result = CliRunner().invoke(cli, ["check", f"{tmp_path}"])
    assert result.exit_code == 0, result.output


PURPOSE = "class Bump(torch.autograd.Function):  # gradspec: on purpose, because of art"


@pytest.mark.parametrize(
    ("line", "verdict"),
    [("class Bump(torch.autograd.Function):", "refuted"), (PURPOSE, "surrogate")],
)
def test_baseline_comment(line: str, verdict: str, tmp_path: Path) -> None:
    text = Path(_case(WRONG)).read_text("utf-8")
    path = tmp_path / "a.py"
    path.write_text(text.replace("class Bump(torch.autograd.Function):", line))
    (found,) = lift([f"{path}"]).findings
    assert found.verdict == verdict


def test_tests_are_left_out_unless_asked(tmp_path: Path) -> None:
    text = Path(_case(WRONG)).read_text("utf-8")
    for name in ("tests/a.py", "docs/a.py", "conftest.py", "test_a.py", "a_test.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert lift([f"{tmp_path}"]).findings == ()
    assert len(lift([f"{tmp_path}"], with_tests=True).findings) == 5
    assert len(lift([f"{tmp_path / 'tests' / 'a.py'}"]).findings) == 1
