"""The frame of all runners: a job is read, done and its results written, line by line."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any


def work(setting: Any, features: Any) -> None:
    """Do the job of the command line in the framework of ``setting``, whose functions
    for features are ``features``. Its kind is the name of the module that does it.
    """
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    doer = importlib.import_module(f"gradspec.measure.frameworks.{job['kind']}")
    doer.work(job, setting, features)


def report(line: object) -> None:
    """Add a result to the file that is the second argument of the command line."""
    with Path(sys.argv[2]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
