"""What does it cost to start a command, in CPU time of a fresh process, beside another version of Vedette?

Commands take turns; modules are compiled before the first. The data folder is empty but for one site. With
``--folder``, ``vedette up`` serves that data folder until it answers a search, which must have results. Then the table
has seconds since its start, and the CPU seconds of all its processes and of the server alone. The last line is one JSON
object.

    python bench/start.py [--old TREE] [--rounds R] [--folder FOLDER --query WORDS]
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from tempfile import TemporaryDirectory
from urllib.parse import urlencode
from urllib.request import urlopen

ROOT = Path(__file__).resolve().parent.parent
# The goal of each, in CPU seconds.
COMMANDS = {"--help": 0.15, "status": 0.4, "sites list": 0.4}
ANSWER_GOAL_S = 2.0
LONGEST_S = 300.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cost_s(tree: Path, command: str, folder: str) -> float:
    """CPU seconds of one fresh process."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    words = [*command.split(), *(["--data", folder] if command != "--help" else [])]
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "vedette", *words], env=environment, stdout=subprocess.DEVNULL, check=True)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure_up(tree: Path, folder: Path, query: str) -> dict[str, float]:
    """Start ``vedette up`` and search until there are results: seconds, and CPU seconds of all and of the server."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "vedette", "up", "--data", str(folder), "--port", str(port), "--quiet"]
    address = f"http://127.0.0.1:{port}/api/v1/search?{urlencode({'q': query})}"
    started_s = time.monotonic()
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        while not is_answered(address):
            if process.poll() is not None or time.monotonic() - started_s > LONGEST_S:
                sys.exit("vedette up did not answer the search with any result")
            time.sleep(0.02)  # nothing signals when a server is ready
        return {"seconds": time.monotonic() - started_s, **sum_cpu_s(process.pid)}
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def is_answered(address: str) -> bool:
    """Check whether a search has results."""
    with suppress(OSError, ValueError), urlopen(address, timeout=LONGEST_S) as answer:  # noqa: S310 - our own server
        return bool(json.load(answer)["results"])
    return False


def sum_cpu_s(session: int) -> dict[str, float]:
    """Sum the CPU seconds of the processes of a session so far, and of the server among them."""
    spent = {"all": 0.0, "server": 0.0}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, _, rest = stat.read_text(encoding="utf-8").partition("(")[2].rpartition(")")
            fields = rest.split()
            if int(fields[3]) == session:
                used_s = sum(map(int, fields[11:13])) / TICKS_PER_S
                spent["all"] += used_s
                spent["server"] += used_s if name == "vedette server" else 0.0
    return spent


def print_up(trees: dict[str, Path], folder: Path, query: str, rounds: int) -> dict[str, dict[str, float]]:
    """Measure ``vedette up`` in turns; print and return the medians."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in trees}
    for _ in range(rounds):
        for name, tree in trees.items():
            found[name].append(measure_up(tree, folder, query))
    medians = {
        name: {key: round(median(each[key] for each in runs), 2) for key in runs[0]} for name, runs in found.items()
    }
    print(f"{'vedette up':14}{'seconds':>9}{'CPU s':>8}{'server':>8}{'goal':>8}")
    for name, costs in medians.items():
        print(f"{name:14}{costs['seconds']:9.2f}{costs['all']:8.2f}{costs['server']:8.2f}{ANSWER_GOAL_S:8.2f}")
    return medians


def main() -> int:
    """Start every command in turns; print a table and a JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=Path, help="the source tree of another version")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="a data folder with an index, to be served by vedette up")
    parser.add_argument("--query", default="release", help="what to search for there")
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
    medians: dict[str, object] = {
        command: {name: round(median(each), 3) for name, each in costs.items()} for command, costs in spent.items()
    }
    if options.folder:
        medians["up"] = print_up(trees, options.folder.resolve(), options.query, options.rounds)
    print(json.dumps(medians))
    return 0


if __name__ == "__main__":
    sys.exit(main())
