"""Rules in, verdicts, findings with fixes, and code out, as JSON; runs in Pyodide."""

import json
import sys
from importlib.util import find_spec

import click

import gradspec
from gradspec.report.diagnostics import render
from gradspec.report.summary import describe

sys.setrecursionlimit(5000)  # the stack of WebAssembly is smaller


def check(text: str) -> str:
    """Verdicts, derived gradients, and findings with the fixes that mend them."""
    found = gradspec.check_text(text, name="playground.grad")
    rules = [
        {
            "name": rule.name,
            "gradients": [
                {
                    "formula": one.formula,
                    "status": one.verdict.status.value,
                    "words": describe(one.verdict),
                }
                for one in rule.gradients
            ],
        }
        for rule in found.rules
    ]
    findings = [
        {
            "text": click.unstyle(render(one)),
            "fixes": [
                {"title": fix.title, "text": fix.apply_to(text)} for fix in one.fixes
            ],
        }
        for one in found.diagnostics
    ]
    return json.dumps({"rules": rules, "findings": findings, "failed": found.failed})


def emit(text: str, target: str) -> str:
    """The module for a target; a sentence where there is none."""
    if find_spec("numpy") is None:
        return "# Code needs NumPy, which could not be loaded."
    try:
        return gradspec.compile_text(text, target, name="playground.grad")
    except (gradspec.CompileError, ValueError):
        return "# There is no code while a rule has an error."
