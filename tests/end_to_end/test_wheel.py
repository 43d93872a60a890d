"""`pipx install .`, or `pip install .` in a virtual environment, installs everything a user needs."""

import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.tree_runs import PROVE
from tools.build import build_twice

ROOT = Path(__file__).parents[2]


def install(folder: Path) -> Path:
    """Install the tree with only its dependencies, and return the program.

    With ``VEDETTE_PROVE=1``, pipx (or pip) installs the dependencies; otherwise, they are links to those of the tests.
    """
    pipx = shutil.which("pipx") if PROVE else None
    places = {"PIPX_HOME": str(folder / "pipx"), "PIPX_BIN_DIR": str(folder / "bin")} if pipx else {}
    pip = [sys.executable, "-m", "pip", "--quiet"]
    into = [*pip, "--python", str(folder / "bin" / "python"), "install", "--no-compile"]
    commands = [[sys.executable, "-m", "venv", "--without-pip", str(folder)]]
    if pipx is not None:
        commands = [[pipx, "install", "--python", sys.executable, "."]]
    elif PROVE:
        commands += [[*into, "."]]
    else:
        commands += [[*pip, "wheel", "--no-deps", "--no-build-isolation", f"--wheel-dir={folder}", "."]]
        commands += [[*into, "--no-index", "--no-deps", f"--find-links={folder}", "vedette"]]
    for command in commands:
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env=os.environ | places)
    if not PROVE:
        (site,) = folder.glob("lib/python*/site-packages")
        link_dependencies(site)
    return folder / "bin" / "vedette"


def link_dependencies(site: Path) -> None:
    """Link the declared dependencies of the package, and theirs, into an environment."""
    ours = Path(sysconfig.get_path("platlib"))
    waiting, seen, tops = ["vedette"], set[str](), set[str]()
    while waiting:
        found = distribution(waiting.pop())
        needed = [Requirement(text) for text in found.requires or ()]
        names = {canonicalize_name(one.name) for one in needed if one.marker is None or one.marker.evaluate()} - seen
        waiting += sorted(names)
        seen |= names
        if found.name != "vedette":
            tops |= {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}
    for top in tops:
        (site / top).symlink_to(ours / top)


def test_the_installed_program_runs_in_an_environment_of_its_own(tmp_path: Path) -> None:
    """It crawls the synthetic web with only the package installed."""
    program = install(tmp_path / "env")
    demo = [str(program), "demo", "--for", "3s", "--world", "made:tiny", "--speed", "600"]
    done = subprocess.run(demo, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "http://docs.localhost:" in done.stdout
    assert "none too soon, none disallowed" in done.stdout


def test_the_same_source_gives_the_same_bytes(tmp_path: Path) -> None:
    """Wheel and source archive do not depend on place, time, order or modes of the files, so anyone can compare."""
    (first, _), (second, _) = build_twice(tmp_path)
    assert first == second
    assert {Path(name).suffix for name in first} == {".whl", ".gz"}
