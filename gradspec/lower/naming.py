"""Names that cannot be given."""

from __future__ import annotations

import keyword

from gradspec.lower.findings import Findings
from gradspec.source import Span


def refuse_reserved(name: str, span: Span, findings: Findings) -> None:
    """Python's keywords and names with ``_`` in front are for the generated code."""
    if keyword.iskeyword(name):
        reason, better = "a keyword of Python", f"{name.lower()}_"
    elif name.startswith("_"):
        reason, better = "begins with `_`", name.lstrip("_") or "value"
    else:
        return
    is_ = "is " if reason.startswith("a ") else ""
    findings.error(
        "GS211",
        f"`{name}` cannot be a name: it {is_}{reason}",
        span,
        help=f"rename it, to `{better}` for example: the generated modules are Python,"
        " and keep their private names behind `_`",
    )
