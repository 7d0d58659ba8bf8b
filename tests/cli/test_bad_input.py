"""Bad input through the command line, the most of it in this process.

Every fault is told with a code, the line, a caret and a cure; the exit code is 1 and
nothing is written.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from contextlib import chdir
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradspec.cli import cli

RULE = "rule f(x) -> y:\n"
SQUARE = "rule square(x) -> y:\n    y = x**2\n    dx = 2 * x * dy\n"

FAULTS = {
    "missing colon": (RULE.replace(":", "") + "    y = x\n", "GS102"),
    "unclosed bracket": (RULE + "    y = sin(x\n    dx = dy * cos(x)\n", "GS103"),
    "bracket closed twice": (RULE + "    y = sin(x))\n", "GS104"),
    "tab": (RULE + "\ty = x\n", "GS105"),
    "bad indent": (RULE + "    y = x\n      dx = dy\n", "GS106"),
    "bad dedent": (RULE + "      y = x\n    dx = dy\n", "GS106"),
    "no indent": (RULE + "y = x\n", "GS106"),
    "unknown name": ("rule f(x, alpha) -> y:\n    y = x + alhpa\n", "GS201"),
    "unknown function": (RULE + "    y = sigmoyd(x)\n", "GS202"),
    "wrong arity": (RULE + "    y = sin(x, x)\n", "GS203"),
    "wrong arity of a rule": (SQUARE + RULE + "    y = square(x, x)\n", "GS203"),
    "too few arguments": ("def g(a, b) = a\n" + RULE + "    y = g(x)\n", "GS203"),
    "duplicate rule": (SQUARE + SQUARE, "GS204"),
    "assignment to an input": (RULE + "    x = 2\n    y = x\n", "GS206"),
    "assigned twice": (RULE + "    y = x\n    y = x + 1\n", "GS207"),
    "used before assignment": (RULE + "    y = z\n    z = x\n", "GS208"),
    "missing output": (RULE + "    z = x\n", "GS209"),
    "cotangent collision": ("rule f(t, dt) -> y:\n    y = t * dt\n", "GS210"),
    "collision with an output's": ("rule f(x, dy) -> y:\n    y = x\n", "GS210"),
    "index on the wrong axis": (
        "rule f(x[n, m]) -> y[n]:\n    y[i] = sum(x[j, i] for j)\n",
        "GS230",
    ),
    "index without an axis": (RULE + "    y = x[i]\n", "GS232"),
    "Python keyword as an input": ("rule f(lambda) -> y:\n    y = lambda\n", "GS115"),
    "Python keyword as a rule": ("rule class(x) -> y:\n    y = x\n", "GS115"),
    "a rule of our own kind of name": ("rule _f(x) -> y:\n    y = x\n", "GS116"),
    "a rule called import": ("rule __import__('os')(x) -> y:\n    y = x\n", "GS116"),
    "a call of import": (RULE + "    y = __import__('os').system('true')\n", "GS116"),
    "an attribute": (RULE + "    y = x.__class__\n", "GS116"),
    "empty": ("", "GS117"),
    "comments only": ("# nothing\n", "GS117"),
    "no body": (RULE, "GS111"),
    "condition for a number": ("rule f(x, m: bool) -> y:\n    y = x * m\n", "GS240"),
    "caret for a power": (RULE + "    y = x ^ 2\n", "GS109"),
    "no else": (RULE + "    y = x if x > 0\n", "GS118"),
    "a def that calls itself": ("def g(t) = g(t)\n" + SQUARE, "GS225"),
    "unknown file": ('from "nope.grad" import a\n' + SQUARE, "GS609"),
    "docstring never closed": (RULE + '    """open\n    y = x\n', "GS113"),
    "wrong gradient": (RULE + "    y = sin(x)\n    dx = dy * sin(x)\n", "GS401"),
    "wrong example": (RULE + "    y = x\n    example x = 1: y = 2\n", "GS409"),
    "impossible assumptions": (RULE + "    assume x > 1, x < 0\n    y = x\n", "GS410"),
    "nested 10,000 deep": (
        f"{RULE}    y = {'(' * 10_000}x{')' * 10_000}\n",
        "GS120",
    ),
    "calls 10,000 deep": (f"{RULE}    y = {'sin(' * 10_000}x{')' * 10_000}\n", "GS120"),
    "10,000 minuses": (f"{RULE}    y = {'-' * 10_000}x\n", "GS120"),
    "a number beyond all": (RULE + "    y = x * 1e999999999\n", "GS121"),
}


def compile_(folder: Path, *paths: str) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own."""
    command = [sys.executable, "-m", "gradspec", *_arguments(paths)]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )


def _arguments(paths: tuple[str, ...]) -> list[str]:
    return ["compile", *paths, "--target", "all", "--out", "out"]


def told(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def told_here(folder: Path, *paths: str) -> str:
    """What the command says in this process, which has imported all that it needs."""
    with chdir(folder):
        done = CliRunner().invoke(cli, _arguments(paths))
    assert isinstance(done.exception, SystemExit), done.exc_info
    assert done.exit_code == 1, done.output
    return done.output


def codes(text: str) -> list[str]:
    return re.findall(r"^error\[(GS\d{3})\]: \S", text, re.MULTILINE)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_with_line_caret_and_cure(name: str, tmp_path: Path) -> None:
    text, code = FAULTS[name]
    (tmp_path / "a.grad").write_text(text, encoding="utf-8")
    shown = told_here(tmp_path, "a.grad")
    assert code in codes(shown), shown
    assert re.search(r"--> a\.grad:\d+:\d+$", shown, re.MULTILINE)
    assert re.search(r"^ +\| +\^", shown, re.MULTILINE), "a caret under the line"
    assert shown.count("= help: ") >= len(codes(shown)), "a cure for each"
    assert not (tmp_path / "out").exists()


def test_several_faults_in_one_file_are_all_told(tmp_path: Path) -> None:
    rules = (
        "rule a(x -> y:\n    y = x\n",
        "rule b(x) -> y:\n    y = sin(x, x) + q\n    x = 1\n",
        "rule c(x) -> y:\n    y = x**2\n    dx = dy\n",
        "rule d(x) -> z:\n    y = x\n",
        "rule e(x) -> y:\n    y = x ^ 2\n",
    )
    (tmp_path / "a.grad").write_text("\n".join(rules), encoding="utf-8")
    found = codes(told_here(tmp_path, "a.grad"))
    wanted = ["GS103", "GS203", "GS201", "GS206", "GS401", "GS209", "GS109"]
    assert sorted(found) == sorted(wanted)


def test_a_bad_file_keeps_a_good_one_from_being_written(tmp_path: Path) -> None:
    (tmp_path / "good.grad").write_text(SQUARE, encoding="utf-8")
    (tmp_path / "bad.grad").write_text(RULE + "    y = q\n", encoding="utf-8")
    assert codes(told(compile_(tmp_path, "."))) == ["GS201"]
    assert not (tmp_path / "out").exists()


def test_an_import_cycle_is_printed(tmp_path: Path) -> None:
    (tmp_path / "a.grad").write_text('from "b.grad" import g\n' + SQUARE, "utf-8")
    other = 'from "a.grad" import square\nrule g(x) -> y:\n    y = x\n'
    (tmp_path / "b.grad").write_text(other, encoding="utf-8")
    shown = told(compile_(tmp_path, "a.grad"))
    assert (
        "a.grad -> b.grad -> a.grad" in shown or "b.grad -> a.grad -> b.grad" in shown
    )
    assert "= help: " in shown
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_not_utf_8(tmp_path: Path) -> None:
    (tmp_path / "a.grad").write_bytes(SQUARE.encode() + b"# caf\xe9\n")
    shown = told(compile_(tmp_path, "a.grad"))
    assert codes(shown) and "UTF-8" in shown and "= help: " in shown
    assert not (tmp_path / "out").exists()


def test_a_folder_without_rules(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    shown = told(compile_(tmp_path, "empty"))
    assert codes(shown) and "empty" in shown and "= help: " in shown
    assert not (tmp_path / "out").exists()


def test_a_file_of_10_megabytes(tmp_path: Path) -> None:
    """Refused, and soon."""
    text = SQUARE * (10_000_000 // len(SQUARE))
    (tmp_path / "a.grad").write_text(text, encoding="utf-8")
    start = time.monotonic()
    shown = told(compile_(tmp_path, "a.grad"))
    assert time.monotonic() - start < 30
    assert codes(shown) and "= help: " in shown
    assert not (tmp_path / "out").exists()


def test_docstrings_with_quotes_and_backslashes_are_no_faults(tmp_path: Path) -> None:
    doc = r'''    """it's "quoted", \"\"\" thrice, \\ twice, \N{BULLET} \x41 {brace} %s \
    """
'''
    (tmp_path / "a.grad").write_text(RULE + doc + "    y = x * x\n", encoding="utf-8")
    done = compile_(tmp_path, "a.grad")
    assert done.returncode == 0, done.stdout + done.stderr
    for target in ("numpy", "torch", "tf"):
        module = tmp_path / "out" / target / "a.py"
        compile(module.read_text(encoding="utf-8"), str(module), "exec")


HEARING = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from gradspec.cli import main
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT is another thing there")
def test_an_interrupt_leaves_no_partial_file(tmp_path: Path) -> None:
    rules = [
        f"rule f{n}(x) -> y:\n    y = sin(x)**{n} * exp(-x**2)\n" for n in range(2, 120)
    ]
    (tmp_path / "a.grad").write_text("\n".join(rules), encoding="utf-8")
    # Where the tests are a job in the background, SIGINT is ignored: not so here.
    command = [sys.executable, "-c", HEARING, "compile", "a.grad", "--target", "all"]
    child = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    time.sleep(1.5)
    child.send_signal(signal.SIGINT)
    shown, _ = child.communicate(timeout=60)
    assert child.returncode != 0
    assert b"Traceback" not in shown
    assert not list(tmp_path.rglob("*.py")) and not list(tmp_path.rglob("*.tmp"))


def test_an_import_by_an_absolute_path_is_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("do not show\n")
    (tmp_path / "a.grad").write_text(
        f'from "{secret}" import g\nrule f(x) -> y:\n    y = g(x)\n'
    )
    shown = told(compile_(tmp_path, "a.grad"))
    assert codes(shown)[0] == "GS609"
    assert "the path is absolute" in shown
    assert "do not show" not in shown
