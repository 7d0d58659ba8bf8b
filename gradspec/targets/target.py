"""What a target is: one module that turns a plan into text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EmittedModule:
    """The text of one generated module.

    ``path`` is relative to the target's folder, ``/`` as separator:
    ``activations.py``, ``losses/robust.py``.
    """

    target: str
    path: str
    text: str
