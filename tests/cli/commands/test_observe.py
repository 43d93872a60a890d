"""``vedette observe`` runs with the few packages that its page says are enough."""

import re
import subprocess
import sys
from pathlib import Path

from vedette.runtime.observers.keys import ObserverKey, format_key

PAGE = Path(__file__).parents[3] / "docs" / "observers.md"
PROGRAM = """
import sys
from importlib.abc import MetaPathFinder

class Refuse(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        known = top in sys.stdlib_module_names or top in ALLOWED or top.startswith("_") or top.endswith("__mypyc")
        if not known:
            raise ModuleNotFoundError(f"{name} is not installed on the machine of an observer", name=name)

sys.meta_path.insert(0, Refuse())
from vedette.cli.main import main
sys.exit(main())
"""


def test_an_observer_needs_only_the_packages_named_in_the_docs(tmp_path: Path) -> None:
    """With all others missing it starts, finds that home is away, and ends on SIGTERM."""
    found = re.search(r"pip install --no-deps vedette\npip install (.+)\n", PAGE.read_text())
    assert found is not None
    allowed = {"vedette", "cffi", *(name.replace("-", "_") for name in found[1].split())}  # ada-url brings cffi
    (tmp_path / "key").write_text(format_key(ObserverKey("lima", bytes(32))))
    line = [sys.executable, "-c", f"ALLOWED = {allowed!r}\n{PROGRAM}", "observe", "--home", "http://127.0.0.1:9/"]
    line += ["--key", str(tmp_path / "key"), "--data", str(tmp_path / "data")]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        process.terminate()
        rest = process.stderr.read()
    assert "home does not answer" in said, said + rest
    assert process.returncode == 0
