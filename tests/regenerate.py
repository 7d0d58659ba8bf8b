"""Write the expected modules of `tests/cases` anew: ``python tests/regenerate.py``.

Read the differences before you commit them: they are what users will see.
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
    """Where the expected module stands."""
    return CASES / case / "expected" / f"{target}.py"


def main() -> None:
    for case in cases():
        for target, text in emitted(case).items():
            path = expected(case, target)
            path.parent.mkdir(exist_ok=True)
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")
                print(path.relative_to(CASES.parent.parent))


if __name__ == "__main__":
    main()
