"""`pip install` of the built wheel is all that a user needs."""

import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_built_wheel_runs_in_an_environment_of_its_own(tmp_path: Path) -> None:
    """A wheel built from the tree, installed with its dependencies and nothing else, crawls the made web."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, timeout=300, capture_output=True)
    (wheel,) = tmp_path.glob("vedette-*.whl")
    venv.create(tmp_path / "env", with_pip=True)
    python = str(tmp_path / "env" / "bin" / "python")
    install = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", str(wheel)]
    subprocess.run(install, check=True, timeout=300, capture_output=True)
    demo = [str(tmp_path / "env" / "bin" / "vedette"), "demo", "--for", "3s", "--world", "made:tiny", "--speed", "600"]
    done = subprocess.run(demo, capture_output=True, text=True, timeout=300, check=True, cwd=tmp_path)
    assert "http://docs.localhost:" in done.stdout
    assert "none too soon, none disallowed" in done.stdout
