"""An environment of its own for rivals that are no dependency of the project: ``.venv-peers``."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".venv-peers"
PYTHON = PEERS / "bin" / "python"


def install_rivals(packages: Mapping[str, str]) -> list[str]:
    """Install the newest package of each module that is missing; return the modules that can be used.

    One by one, since a package that cannot be installed must not keep the others out.
    """
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", str(PEERS)], check=True)
    return [module for module, package in packages.items() if _can_import(module) or _install(module, package)]


def _install(module: str, package: str) -> bool:
    print(f"Installing {package} into .venv-peers (once)", file=sys.stderr)
    subprocess.run([str(PYTHON), "-m", "pip", "install", "--quiet", package], check=False)
    if not _can_import(module):
        print(f"{package} is left out: it cannot be installed", file=sys.stderr)
        return False
    return True


def _can_import(module: str) -> bool:
    command = [str(PYTHON), "-c", f"import {module}"]
    return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0
