"""The two figures of `gradspec lift`: false refutations, and wrong gradients that are found.

    python -m benchmarks.lift [--mutants N] [PATH ...]

The sites are those of `tests/lift`: small cases and a project in the manner of real ones,
with the verdicts that are expected. A mutant is a file whose gradients are all proved, with
one change in the Python text of a backward pass. One that is not refuted is missed, also if
the change makes no difference. Other PATHs are only lifted, and their closing lines shown.
"""

from __future__ import annotations

import argparse
import ast
import copy
import csv
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from gradspec.lift.lifting import Finding, lift
from gradspec.report.lifted import text
from tests.lift.project import expected, unpack

CASES = Path(__file__).parents[1] / "tests" / "lift" / "cases"
MUTANTS = 8
"""Mutants of one file with proved sites, evenly spread over all there are."""

_EXCHANGED = {
    "sigmoid": "tanh",
    "tanh": "sigmoid",
    "exp": "square",
    "cos": "sin",
    "log": "sqrt",
    "sqrt": "square",
    "sum": "mean",
    "mean": "sum",
}
_OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Div: ast.Mult}
_ORDERS = {ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE, ast.GtE: ast.LtE}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    options.add_argument("--mutants", type=int, default=MUTANTS)
    options.add_argument("paths", nargs="*")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "project")
        unpack(root)
        wanted = {(f"{root / name}", site): v for (name, site), v in expected().items()}
        wanted |= _of_cases()
        begun = time.process_time()
        report = lift([f"{root}", f"{CASES}"])
        seconds = time.process_time() - begun
        print(text(report, False, False, seconds).split("\n\n")[-1])
        lifted = sum(f.verdict != "not lifted" for f in report.findings)
        print(
            f"{lifted} of {len(report.findings)} sites lifted in {seconds:.1f} s of CPU"
        )
        wrong = [
            f"{f.file}: {f.name} is {f.verdict}, not {wanted[f.file, f.name]}"
            for f in report.findings
            if f.verdict != wanted[f.file, f.name]
        ]
        print(*wrong, sep="\n", end="\n" if wrong else "")
        right = {"refuted", "broken"}
        false = [
            f
            for f in report.findings
            if f.is_finding and wanted[f.file, f.name] not in right
        ]
        print(f"false refutations: {len(false)} of {len(report.findings)} sites")
        _measure_recall(report.findings, Path(folder, "mutant.py"), given.mutants)
    for path in given.paths:
        begun = time.process_time()
        report = lift([path])
        seconds = time.process_time() - begun
        print(
            f"--- {path}: {report.files} files",
            text(report, False, True, seconds),
            sep="\n",
        )


def _of_cases() -> dict[tuple[str, str], str]:
    with (CASES / "verdicts.tsv").open() as table:
        rows = tuple(csv.DictReader(table, delimiter="\t"))
    return {(f"{CASES / row['file']}", row["site"]): row["verdict"] for row in rows}


def _measure_recall(found: tuple[Finding, ...], path: Path, most: int) -> None:
    counts: Counter[str] = Counter()
    others = {f.file for f in found if f.verdict != "proved"}
    for file in sorted({f.file for f in found} - others):  # what is changed was proved
        source = Path(file).read_text("utf-8")
        every = list(mutants(ast.parse(source)))
        for told, tree in every[:: max(1, len(every) // most)]:
            path.write_text(ast.unparse(tree), "utf-8")
            verdict = _worst(lift([f"{path}"]).findings)
            counts[verdict] += 1
            if verdict not in ("refuted", "broken"):
                print(f"missed ({verdict}): {Path(file).name}: {told}")
    total, caught = sum(counts.values()), counts["refuted"] + counts["broken"]
    share = f" ({100 * caught / total:.1f} %)" if total else ""
    print(f"mutants: {caught} of {total} found{share}; {dict(counts)}")


def _worst(found: Sequence[Finding]) -> str:
    order = ("broken", "refuted", "needs", "surrogate", "not lifted", "guard", "agrees")
    return next((v for v in order if any(f.verdict == v for f in found)), "proved")


# --- mutants ---------------------------------------------------------------------------


def mutants(tree: ast.Module) -> Iterator[tuple[str, ast.Module]]:
    """Every change of one place of a backward pass, and what it is."""
    places = [
        k for k, node in enumerate(ast.walk(tree)) if isinstance(node, ast.FunctionDef)
    ]
    for place in places:
        function = _node(tree, place)
        if not _is_backward(function):
            continue
        inner = range(len([*ast.walk(function)]))
        for k in inner:
            for number in range(3):
                changed = copy.deepcopy(tree)
                node = _node(_node(changed, place), k)
                told = _change(node, number)
                if told:
                    yield f"line {getattr(node, 'lineno', 0)}: {told}", changed


def _node(tree: ast.AST, place: int) -> ast.AST:
    return [*ast.walk(tree)][place]


def _is_backward(node: ast.AST) -> bool:
    name = getattr(node, "name", "")
    return name in ("backward", "grad", "_") or name.endswith(("_bwd", "_jvp"))


def _change(node: ast.AST, number: int) -> str:
    """Change a node in one of a few ways; what was changed, or nothing."""
    match node:
        case ast.BinOp(op=op) if type(op) in _OPERATORS and number == 0:
            node.op = _OPERATORS[type(op)]()
            return f"{type(op).__name__} exchanged"
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            node.left = ast.Constant(1) if number == 1 else left
            node.right = ast.Constant((2, 1)[number // 2]) if number != 1 else right
            if number == 0:
                node.left = ast.BinOp(left, ast.Mult(), right)
            return "a factor 2" if number == 0 else "a factor dropped"
        case ast.BinOp(op=ast.Add() | ast.Sub()) if number == 1:
            node.right = ast.copy_location(ast.Constant(0), node)
            return "a term dropped"
        case ast.BinOp(op=ast.Pow(), right=ast.Constant(value=int())) if number == 0:
            node.right = ast.Constant(node.right.value + 1)
            return "a power"
        case ast.Constant(value=float() as value) if number == 0:
            node.value = value * 2
            return "a constant doubled"
        case ast.UnaryOp(op=ast.USub()) if number == 0:
            node.op = ast.UAdd()
            return "a sign"
        case ast.Compare(ops=[op]) if type(op) in _ORDERS and number == 0:
            node.ops = [_ORDERS[type(op)]()]
            return "a comparison turned"
        case ast.Call(func=ast.Attribute(attr="where"), args=[_, a, b]) if number == 0:
            node.args[1:] = [b, a]
            return "branches exchanged"
        case ast.Call(func=ast.Attribute(attr=name)) if (
            number == 0 and name in _EXCHANGED
        ):
            assert isinstance(node.func, ast.Attribute)
            node.func.attr = _EXCHANGED[name]
            return f"{name} exchanged"
        case _:
            return ""


if __name__ == "__main__":
    main()
