"""The table of boundaries: ``gradspec check --boundaries``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from gradspec.driver.discover import discover
from gradspec.measure.boundaries import Line, RuleTable, lines, of_file
from gradspec.options import Options
from gradspec.report.summary import boundaries
from tests.checks.written import written

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "rules").glob("*/*.grad"))


def shown(text: str) -> list[str]:
    """Each line in a few words."""
    return [
        f"{line.where}: {line.kind}, {' | '.join(line.forward)}, "
        f"{' | '.join(line.slope)}, {line.emitted or '-'}, {line.verdict}"
        for line in lines(written(text), Options())
    ]


def test_a_kink() -> None:
    relu = "rule f(x) -> y:\n    y = max(x, 0)"
    assert shown(relu) == [
        "x = 0: kink, 0 | 0 | 0, 0 | 0.5 | 1, 0, 0.5, between the slopes"
    ]


def test_a_threshold_is_told_in_the_words_of_the_rule() -> None:
    soft = """
        rule f(x, t: nograd, width: static = 0.3) -> y:
            assume width > 0
            y = max(abs(x - t) - width, 0)
        """
    places = [line.where for line in lines(written(soft), Options())]
    assert places == ["x = -width + t", "x = t", "x = width + t"]


def test_a_slope_that_only_another_static_breaks() -> None:
    elu = """
        rule f(x, alpha: static = 1.0) -> y:
            y = x if x > 0 else alpha * expm1(x)
        """
    found = [(line.given, line.kind) for line in lines(written(elu), Options())]
    assert found == [("alpha = 1", "smooth"), ("alpha = 2", "kink")]


def test_poles_that_are_many() -> None:
    tangent = "rule f(x) -> y:\n    y = tan(x)"
    found = {line.where: line.forward for line in lines(written(tangent), Options())}
    assert found == {
        "x = -1.5708…, …": ("inf", "-", "-inf"),
        "x = 1.5708…, …": ("inf", "-", "-inf"),
        "x = 4.71239…, …": ("inf", "-", "-inf"),
    }


def test_a_hole_and_how_it_is_filled() -> None:
    quotient = "rule f(x) -> y:\n    y = sin(x) / x"
    patched = f"{quotient} if x != 0 else 1"
    entropy = "rule f(x) -> y:\n    assume x >= 0\n    y = x * log(x)"
    assert shown(quotient) == [
        "x = 0: removable, 1 | undefined | 1, 0 | undefined | 0, 1, 0,"
        " filled by the emitted form"
    ]
    assert shown(patched) == [
        "x = 0: removable, 1 | 1 | 1, 0 | 0 | 0, 1, 0, filled with the limit"
    ]
    (line,) = lines(written(entropy), Options())
    assert line.verdict == "filled by the emitted form"
    assert line.emitted.startswith("0, ")


def test_the_ends_of_the_domain() -> None:
    root = "rule f(x) -> y:\n    assume {}\n    y = sqrt(x)"
    assert shown(root.format("x >= 0")) == [
        "x = 0: end of domain, - | 0 | 0, - | undefined | inf, 0, inf, closed end"
    ]
    assert shown(root.format("x > 0")) == [
        "x = 0: end of domain, - | - | 0, - | - | inf, -, open end"
    ]


def test_the_norm_breaks_where_all_inputs_are_0() -> None:
    norm = "rule f(x, z) -> y:\n    y = hypot(x, z)"
    found = [(line.where, line.given) for line in lines(written(norm), Options())]
    assert found == [("x = 0", "z = 0"), ("z = 0", "x = 0")]


def test_a_rule_with_axes_at_two_elements() -> None:
    largest = "rule f(x[..., n]) -> y:\n    y = max(x[i] for i)"
    assert shown(largest) == [
        "x[0] = x[1]: kink, 2 | 2 | 2, 0 | 0.5 | 1, 2, 0.5, between the slopes"
    ]


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ("y = sin(x) / x if x != 0 else 0", "GS430"),
        ("y = x**2 if x < 1 else x + 1", "GS432"),
        ("y = (cosh(x) - 1) / abs(x)", "GS433"),
        ("y = clip(x, 0, 1) - relu(x)", "GS434"),
        ("y = abs(x)\n    dx = dy if x >= 0 else (-dy if x < 0 else dy)", ""),
        ("y = abs(x)\n    dx = dy if x > 0 else (-dy if x < 0 else 2 * dy)", "GS402"),
    ],
)
def test_a_verdict_names_its_code(rule: str, code: str) -> None:
    found = [
        line.code for line in lines(written(f"rule f(x) -> y:\n    {rule}"), Options())
    ]
    assert [one for one in found if one] == [code] * bool(code)


# --- as text, and for machines -----------------------------------------------------------

TABLE = RuleTable(
    "a.grad:1",
    "relu",
    (
        Line(
            *("x = 0", "", "kink", "y", "x"),
            ("0", "0", "0"),
            ("0", "2", "1"),
            *("declared", "0, 2", "outside the slopes", "GS402"),
        ),
    ),
)


def test_plain_text_has_columns_in_line() -> None:
    head, titles, row = click.unstyle(boundaries([TABLE])).splitlines()
    assert head == "a.grad:1 relu"
    assert titles.index("verdict") == row.index("outside the slopes [GS402]")
    assert titles.index("slope") == row.index("0 | 2 | 1")


def test_a_rule_without_boundaries_is_one_line() -> None:
    empty = RuleTable("a.grad:1", "gelu", ())
    assert click.unstyle(boundaries([empty])) == "a.grad:1 gelu: no boundaries"


def test_what_is_wrong_is_red_on_a_terminal() -> None:
    assert "\x1b[31moutside the slopes [GS402]\x1b[0m" in boundaries([TABLE])


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "a.grad").write_text("rule relu(x) -> y:\n    y = max(x, 0)\n")
    command = [sys.executable, "-m", "gradspec", "check", "a.grad", "--boundaries"]
    texts = [
        subprocess.run(
            [*command, *more], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout
        for more in ((), ("--format", "json"))
    ]
    assert "x = 0  kink" in texts[0]
    (table,) = json.loads(texts[1])["boundaries"]
    (row,) = table["boundaries"]
    assert table["rule"] == "relu"
    assert row["slope"] == {"left": "0", "right": "1"}
    assert row["gradient"] == {"at": "0.5", "is": "derived"}
    assert row["verdict"] == "between the slopes"


# --- the shipped rules -----------------------------------------------------------------


@pytest.mark.shared_cache  # the searches are those of compiling
@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_no_shipped_rule_is_wrong_at_a_boundary(path: Path) -> None:
    entries = discover([str(path)]).value
    assert entries
    found = of_file(Options(), entries[0])
    assert not found.diagnostics
    for table in found.value or ():
        for line in table.lines:
            assert not line.code, (table.name, line)
            assert "nan" not in line.emitted, (table.name, line)
            assert line.verdict != "not decided", (table.name, line)


def test_a_table_beyond_the_budget_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.grad").write_text("rule f(x) -> y:\n    y = tan(x) / x\n", "utf-8")
    (entry,) = discover([str(tmp_path / "a.grad")]).value or ()
    found = of_file(Options(budget=1e-4), entry)
    assert found.value == () and [d.code for d in found.diagnostics] == ["GS461"]
    assert "looking at the boundaries of f was stopped" in found.diagnostics[0].headline
