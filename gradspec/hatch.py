"""A build hook of hatchling: packages are built with the modules that their rules compile to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.plugin import hookimpl

from gradspec.arguments import defaults


class RulesHook(BuildHookInterface[Any]):
    """``[tool.hatch.build.hooks.gradspec]``: runs ``gradspec compile`` in the folder of the
    project before a package is built, or installed to be edited, by the settings of
    ``[tool.gradspec]``. A build ends where the command fails. The modules are part of
    the package though git ignores them.
    """

    PLUGIN_NAME = "gradspec"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and name the modules to the build of ``version`` (standard, editable)."""
        command = [sys.executable, "-P", "-m", "gradspec", "compile", "--quiet"]
        done = subprocess.run(
            command, cwd=self.root, capture_output=True, text=True, check=False
        )
        if done.returncode:
            self.app.abort(f"gradspec compile:\n{done.stderr}{done.stdout}")
        self.app.display_info(done.stderr)
        out = defaults(Path(self.root))["compile"].get("out", "generated")
        build_data["artifacts"] += [f"/{out}/**/*.py", f"/{out}/py.typed"]


@hookimpl
def hatch_register_build_hook() -> type[BuildHookInterface[Any]]:
    """The hook, for hatchling, which asks for it by the entry point ``hatch``."""
    return RulesHook
