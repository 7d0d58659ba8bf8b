"""The command line, run as a user runs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

GOOD = """
rule softplus(x) -> y:
    "" "Softplus." ""
    y = log(1 + exp(x))
    dx = dy / (1 + exp(-x))
    example x = 0: y = 0.69314718

rule spike(v, k: static = 25.0) -> s:
    s = 1 if v > 0 else 0
    surrogate s = v / (1 + k * abs(v))
""".replace('"" "', '"""').replace('" ""', '"""')
WRONG = "rule f(x) -> y:\n    y = sin(x)\n    dx = dy * sin(x)\n"


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    folder = tmp_path / "rules"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "good.grad").write_text(GOOD)
    return folder


def run(*arguments: object, cwd: Path, code: int = 0, **environment: str) -> str:
    """stdout and stderr of a run that must end with ``code``."""
    child = subprocess.run(
        [sys.executable, "-m", "gradspec", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == code, child.stdout + child.stderr
    assert "Traceback" not in child.stderr
    return child.stdout + child.stderr


def _tree(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_compile_writes_importable_packages(rules: Path, tmp_path: Path) -> None:
    told = run("compile", "rules", "--target", "all", cwd=tmp_path)
    assert "2 rules" in told
    runtime = {
        "_arguments.py",
        "_gradspec.py",
        "_special.py",
        "_formulas.py",
        "_coefficients.py",
        "_axes.py",
    }
    written = _tree(tmp_path / "generated")
    assert {path for path in written if Path(path).name not in runtime} == {
        "__init__.py",
        "py.typed",
        *(
            f"{target}/{name}"
            for target in ("jax", "numpy", "tf", "torch")
            for name in ("__init__.py", "deep/__init__.py", "deep/good.py")
        ),
    }
    assert all(f"{t}/_gradspec.py" in written for t in ("jax", "numpy", "tf", "torch"))
    program = "from generated.numpy.deep.good import softplus; print(softplus(1000.0))"
    child = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert child.stdout == "1000.0\n"


def test_an_unchanged_compile_touches_nothing(rules: Path, tmp_path: Path) -> None:
    run("compile", "rules", "--target", "numpy", cwd=tmp_path)
    path = tmp_path / "generated" / "numpy" / "deep" / "good.py"
    os.utime(path, (1, 1))
    assert "nothing to write" in run(
        "compile", "rules", "--target", "numpy", cwd=tmp_path
    )
    assert path.stat().st_mtime == 1


def test_check_mode_fails_on_stale_output_and_writes_nothing(
    rules: Path, tmp_path: Path
) -> None:
    command = ("compile", "rules", "--target", "numpy", "--check")
    told = run(*command, cwd=tmp_path, code=1)
    assert told.count("GS610") == 1 and "none of the" in told
    assert not (tmp_path / "generated").exists()
    run(*command[:-1], cwd=tmp_path)
    run(*command, cwd=tmp_path)
    path = tmp_path / "generated" / "numpy" / "deep" / "good.py"
    path.write_text(path.read_text() + "# edited\n")
    assert "deep/good.py" in run(*command, cwd=tmp_path, code=1)
    assert path.read_text().endswith("# edited\n")


def test_a_wrong_rule_writes_nothing_at_all(rules: Path, tmp_path: Path) -> None:
    (rules / "wrong.grad").write_text(WRONG)
    (rules / "3d.grad").write_text(GOOD)
    told = run("compile", "rules", "--target", "numpy", cwd=tmp_path, code=1)
    assert "GS604" in told and "rules/wrong.grad:3:" in told
    assert "^" in told
    assert "help:" in told
    assert not (tmp_path / "generated").exists()


@pytest.mark.parametrize("seed", ["0", "1", "77"])
def test_bytes_do_not_depend_on_hash_seed_workers_or_order(
    rules: Path, tmp_path: Path, seed: str
) -> None:
    (rules / "other.grad").write_text(GOOD.replace("softplus", "soft"))
    run(
        "compile",
        "rules",
        "--target",
        "all",
        "--out",
        "one",
        cwd=tmp_path,
        GRADSPEC_CACHE_DIR="",
    )
    run(
        *("compile", "rules/other.grad", "rules/deep"),
        *("--target", "tf,torch", "--target", "numpy"),
        *("--out", "two", "-j", "2"),
        cwd=tmp_path,
        PYTHONHASHSEED=seed,
        GRADSPEC_CACHE_DIR="",
    )
    one, two = _tree(tmp_path / "one"), _tree(tmp_path / "two")
    for name, text in two.items():
        deep = text.replace("good.grad", "deep/good.grad")
        deep = deep.replace('(package="good")', '(package="deep.good")')
        deep = deep.replace("from ._", "from .._")
        is_deep = name.endswith("/good.py")
        first = name.replace("/good.py", "/deep/good.py")
        assert one[first] == (deep if is_deep else text)


def test_json_is_one_document(rules: Path, tmp_path: Path) -> None:
    (rules / "wrong.grad").write_text(WRONG)
    data = json.loads(run("check", "rules", "--format", "json", cwd=tmp_path, code=1))
    (finding,) = data["diagnostics"]
    assert finding["severity"] == "error"
    assert finding["places"][0]["line"] == 3
    verdicts = {
        rule["name"]: [c["verdict"] for c in rule["cotangents"]]
        for file in data["files"]
        for rule in file["rules"]
    }
    assert verdicts["softplus"] == ["proved"]


def test_github_commands(rules: Path, tmp_path: Path) -> None:
    (rules / "wrong.grad").write_text(WRONG)
    told = run("check", "rules", "--format", "github", cwd=tmp_path, code=1)
    assert re.search(r"^::error file=rules/wrong.grad,line=3,", told, re.MULTILINE)


def test_check_tells_each_verdict(rules: Path, tmp_path: Path) -> None:
    told = run("check", "rules", cwd=tmp_path)
    assert re.search(r"good.grad:2 +softplus +dx proved", told)
    assert re.search(r"spike +dv derived from the surrogate", told)


def test_pipes_get_no_colours(rules: Path, tmp_path: Path) -> None:
    (rules / "wrong.grad").write_text(WRONG)
    assert "\x1b" not in run("check", "rules", cwd=tmp_path, code=1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["compile", "rules"], "--target"),
        (["compile", "rules", "--target", "caffe"], "caffe"),
        (["compile", "--target", "tf"], "PATH"),
        (["explain", "GS999"], "GS999"),
        (["nonsense"], "nonsense"),
        (["check", "rules", "--budget", "-1"], "budget"),
    ],
)
def test_wrong_usage_exits_2(
    rules: Path, tmp_path: Path, arguments: list[str], words: str
) -> None:
    assert words in run(*arguments, cwd=tmp_path, code=2)


def test_explain(tmp_path: Path) -> None:
    assert run("explain", "gs401", cwd=tmp_path).startswith("# GS401: ")
    assert "GS401: " in run("explain", cwd=tmp_path)


def test_version_and_completion(tmp_path: Path) -> None:
    from importlib.metadata import version

    from gradspec import __version__

    numpy = version("numpy")
    assert run("--version", cwd=tmp_path) == f"gradspec {__version__}\n"
    for both in (("--version", "--verbose"), ("--verbose", "--version")):
        lines = run(*both, cwd=tmp_path).splitlines()
        assert lines[0] == f"gradspec {__version__}" and "numpy " + numpy in lines
    assert "with --version" in run("--verbose", "explain", cwd=tmp_path, code=2)
    assert "_GRADSPEC_COMPLETE" in run("completion", "bash", cwd=tmp_path)


HEAVY = ("sympy", "flint", "numpy", "rich", "lark", "torch", "tensorflow")


def _imported(arguments: list[str], cwd: Path) -> set[str]:
    program = (
        "import sys, atexit, gradspec.cli\n"
        f"atexit.register(lambda: print('MODULES', *[m for m in {HEAVY!r}"
        " if m in sys.modules], file=sys.stderr))\n"
        f"sys.argv = ['gradspec', *{arguments!r}]\n"
        "gradspec.cli.main()\n"
    )
    child = subprocess.run(
        [sys.executable, "-c", program],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
    )
    (line,) = [x for x in child.stderr.splitlines() if x.startswith("MODULES")]
    return set(line.split()[1:])


def test_help_and_unchanged_runs_import_nothing_heavy(
    rules: Path, tmp_path: Path
) -> None:
    assert _imported(["--help"], tmp_path) == set()
    command = ["compile", "rules", "--target", "torch"]
    run(*command, cwd=tmp_path)
    assert _imported(command, tmp_path) == set()


def test_importing_gradspec_is_light(tmp_path: Path) -> None:
    program = f"import gradspec, sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    child = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert child.stdout == "[]\n"


def test_trials_of_emitted_modules(rules: Path, tmp_path: Path) -> None:
    told = run("test", "rules", "--target", "numpy", cwd=tmp_path)
    assert re.search(r"numpy: 2 rules, \d{2,} checks$", told, re.MULTILINE)
    (rules / "one.grad").write_text("rule f(x) -> y:\n    y = 2 * x\n")
    told = run("test", "rules/one.grad", "--target", "numpy", cwd=tmp_path)
    assert "numpy: 1 rule, " in told


def test_a_missing_framework_is_a_message(rules: Path, tmp_path: Path) -> None:
    blocker = "import sys, importlib.util as u\nreal = u.find_spec\nu.find_spec = lambda n, *a: None if n == 'torch' else real(n, *a)\n"
    program = f"{blocker}sys.argv = ['gradspec', 'test', 'rules', '--target', 'torch']\nimport gradspec.cli\ngradspec.cli.main()\n"
    child = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 2
    assert "GS611" in child.stdout
    assert "Traceback" not in child.stderr
