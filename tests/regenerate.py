"""Write the expected modules of `tests/cases` anew: ``python tests/regenerate.py``.

Read the differences before you commit them: they are what users will see. A new case is a
folder with an `input.grad` and an empty file in `expected/` for each target to pin.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from gradspec.driver.run import compile_source
from gradspec.options import Options
from gradspec.source import Source
from gradspec.targets import TARGETS

CASES = Path(__file__).parent / "cases"


def cases() -> tuple[str, ...]:
    """The names of the cases, each a folder with an `input.grad`."""
    return tuple(sorted(path.parent.name for path in CASES.glob("*/input.grad")))


def emitted(case: str) -> Mapping[str, str]:
    """The modules of a case as they are now, by target."""
    text = (CASES / case / "input.grad").read_text(encoding="utf-8")
    result, _ = compile_source(
        Source("input.grad", text), "input.grad", Options(TARGETS)
    )
    faults = [d.headline for d in result.diagnostics if d.is_error]
    if faults:
        raise ValueError(f"{case}: {faults}")
    return {module.target: module.text for module in result.modules}


def expected(case: str, target: str) -> Path:
    """The place of an expected module."""
    return CASES / case / "expected" / f"{target}.py"


def pinned() -> tuple[tuple[str, str], ...]:
    """Cases and targets with an expected module: one target of most cases."""
    files = sorted(CASES.glob("*/expected/*.py"))
    return tuple((path.parent.parent.name, path.stem) for path in files)


def main() -> None:
    for case, target in pinned():
        path, text = expected(case, target), emitted(case)[target]
        if path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(CASES.parent.parent))


if __name__ == "__main__":
    main()
