"""What hatchling does besides, for a wheel: it builds the library for processors and puts it in.

With it the wheel is for one platform and any Python 3; where there is no C compiler, or no use
for the library, it is for all platforms and without it.
"""

import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))

import cpu_library


class CpuLibraryHook(BuildHookInterface):  # pyright: ignore[reportMissingTypeArgument]
    """Found by hatchling, as the only hook in this file."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before the wheel is packed. An editable one finds the library where packaging/dev builds it."""
        compiler = cpu_library.find_compiler()
        if version == "editable" or compiler is None:
            return
        try:
            cpu_library.build(compiler=compiler)
        except cpu_library.BuildError as error:
            print(f"{error}\n{cpu_library.NOT_BUILT}", file=sys.stderr)
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
        build_data["artifacts"].append(str(cpu_library.LIBRARY.relative_to(cpu_library.ROOT)))
