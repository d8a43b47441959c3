"""Hook of the build: the client that waits is generated before a wheel is made or the package is installed."""

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class GenerateClient(BuildHookInterface):
    """See ``generate.py``."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Generate ``halfmoon._sync``."""
        runpy.run_path(str(Path(self.root) / "generate.py"), run_name="__main__")
