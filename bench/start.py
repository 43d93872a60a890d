"""What does it cost to start a command, in CPU time of a fresh process, beside another version of Vedette?

Commands take turns; modules are compiled before the first. The data folder is empty but for one site. The last line is
one JSON object.

    python bench/start.py [--old TREE] [--rounds R]
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
# The goal of each, in CPU seconds.
COMMANDS = {"--help": 0.15, "status": 0.4, "sites list": 0.4}


def cost_s(tree: Path, command: str, folder: str) -> float:
    """CPU seconds of one fresh process."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    words = [*command.split(), *(["--data", folder] if command != "--help" else [])]
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "vedette", *words], env=environment, stdout=subprocess.DEVNULL, check=True)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Start every command in turns; print a table and a JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=Path, help="the source tree of another version")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    trees = {"old": options.old.resolve(), "new": ROOT} if options.old else {"new": ROOT}
    with TemporaryDirectory() as folder:
        cost_s(ROOT, "sites add http://localhost/ --allow-private", folder)
        spent: dict[str, dict[str, list[float]]] = {command: {name: [] for name in trees} for command in COMMANDS}
        for turn in range(options.rounds + 1):
            for command, costs in spent.items():
                for name, tree in trees.items():
                    taken_s = cost_s(tree, command, folder)
                    if turn:  # the first compiles modules
                        costs[name].append(taken_s)
    print(f"{'CPU seconds':14}" + "".join(f"{name:>8}" for name in trees) + f"{'goal':>8}")
    for command, costs in spent.items():
        print(
            f"{command:14}" + "".join(f"{median(each):8.2f}" for each in costs.values()) + f"{COMMANDS[command]:8.2f}"
        )
    print(
        json.dumps(
            {
                command: {name: round(median(each), 3) for name, each in costs.items()}
                for command, costs in spent.items()
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
