"""Build the wheel and the source archive into dist/, twice, and compare: the same source gives the same bytes.

Times in the archives are those of the last commit (SOURCE_DATE_EPOCH), unless that variable is set. The build uses the
pinned hatchling of .venv and no network. SHA256SUMS is what a release signs.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = "import hatchling.build as b; print(b.build_wheel({0!r})); print(b.build_sdist({0!r}))"


def build(source: Path, folder: Path) -> dict[str, str]:
    """Build both archives from a source tree; return their digests by name."""
    environment = {"PATH": os.environ["PATH"], "SOURCE_DATE_EPOCH": find_time(), "LC_ALL": "C.UTF-8"}
    command = [sys.executable, "-P", "-c", BUILD.format(str(folder))]
    subprocess.run(command, check=True, cwd=source, env=environment, capture_output=True)
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())}


def find_time() -> str:
    """Return the time of the last commit in seconds; that of the environment comes first."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return given
    git = [shutil.which("git") or "git", "log", "-1", "--format=%ct"]
    return subprocess.run(git, check=True, cwd=ROOT, capture_output=True, text=True).stdout.strip()


def copy_source(folder: Path) -> Path:
    """Copy the files under version control to another place, with other times and modes."""
    git = [shutil.which("git") or "git", "ls-files", "-z"]
    names = subprocess.run(git, check=True, cwd=ROOT, capture_output=True, text=True).stdout.split("\0")
    for name in reversed([name for name in names if name and (ROOT / name).is_file()]):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes((ROOT / name).read_bytes())
        (folder / name).chmod(0o600)
    return folder


def build_twice(place: Path) -> list[tuple[dict[str, str], Path]]:
    """Build from two copies in different places; return the digests and the folder of each."""
    results = []
    for name in ("one", "another/place"):
        out = place / "out" / name
        out.mkdir(parents=True)
        results.append((build(copy_source(place / name), out), out))
    return results


def main() -> int:
    """Build twice, compare, and keep one build with its digests."""
    with tempfile.TemporaryDirectory() as place:
        (first, kept), (second, _) = build_twice(Path(place))
        if first != second:
            sys.stderr.write(f"The builds differ: {first} {second}\n")
            return 1
        shutil.rmtree(ROOT / "dist", ignore_errors=True)
        shutil.copytree(kept, ROOT / "dist")
    sums = "".join(f"{digest}  {name}\n" for name, digest in first.items())
    (ROOT / "dist" / "SHA256SUMS").write_text(sums, encoding="ascii")
    sys.stdout.write(f"Built twice with the same bytes:\n{sums}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
