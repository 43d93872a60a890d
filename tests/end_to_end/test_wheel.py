"""`pipx install .`, or `pip install .` in a virtual environment, is all that a user needs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def install(folder: Path) -> Path:
    """Install the tree with its dependencies and nothing else, with pipx if there is one; return the program."""
    pipx = shutil.which("pipx")
    if pipx is not None:
        places = {"PIPX_HOME": str(folder / "pipx"), "PIPX_BIN_DIR": str(folder / "bin")}
        commands = [[pipx, "install", "--python", sys.executable, "."]]
    else:
        places = {}
        pip = [sys.executable, "-m", "pip", "--quiet", "--python", str(folder / "bin" / "python")]
        commands = [
            [sys.executable, "-m", "venv", "--without-pip", str(folder)],
            [*pip, "install", "--no-compile", "."],
        ]
    for command in commands:
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env=os.environ | places)
    return folder / "bin" / "vedette"


def test_the_installed_program_runs_in_an_environment_of_its_own(tmp_path: Path) -> None:
    """It crawls the synthetic web, and has what it needs from the package alone."""
    program = install(tmp_path / "env")
    demo = [str(program), "demo", "--for", "3s", "--world", "made:tiny", "--speed", "600"]
    done = subprocess.run(demo, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "http://docs.localhost:" in done.stdout
    assert "none too soon, none disallowed" in done.stdout
