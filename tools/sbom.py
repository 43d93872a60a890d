"""Write the software bills of materials (CycloneDX) of the wheel and of the container's Python environment to dist/.

The wheel's lists what Vedette needs, from requirements.lock, with hashes. The container's lists what an environment
contains that is built as docs/deploy/Containerfile builds it. Both are reproducible. `make sbom` installs cyclonedx-py.
"""

import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from vedette.version import __version__

ROOT = Path(__file__).parents[1]
TOOL = ROOT / ".venv-tools" / "bin" / "cyclonedx-py"
COMMON = ("--output-reproducible", "--pyproject", "pyproject.toml", "--of", "JSON")


def write(name: str, *arguments: str) -> None:
    """Write one bill of materials."""
    file = ROOT / "dist" / name
    file.parent.mkdir(exist_ok=True)
    subprocess.run([TOOL, *arguments, *COMMON, "-o", file], check=True, cwd=ROOT)
    bill = json.loads(file.read_text(encoding="utf-8"))
    bill["metadata"]["component"]["version"] = __version__  # pyproject.toml has none: hatchling reads it from the code
    file.write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(f"dist/{name}\n")


def main() -> None:
    """Write both bills of materials."""
    write("vedette.wheel.cdx.json", "requirements", "requirements.lock")
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=False)
        python = str(Path(folder, "bin", "python"))
        pip = [sys.executable, "-m", "pip", "--python", python, "--quiet", "install", "--no-deps"]
        quiet = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        subprocess.run([*pip, "--require-hashes", "-r", "requirements.lock"], check=True, cwd=ROOT, env=quiet)
        subprocess.run([*pip, "--no-build-isolation", "."], check=True, cwd=ROOT, env=quiet)
        write("vedette.container.cdx.json", "environment", python)


if __name__ == "__main__":
    main()
