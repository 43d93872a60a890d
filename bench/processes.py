"""How many pages a second does the whole tree fetch, parse, archive and keep, and what does each process cost?

A crawl of the medium synthetic web without its faults and without any delays, so that only the program is measured;
with one fetcher and with two in turn. CPU time is read from /proc just before the end. The servers run on the same
machine and are not counted, but take their share of it: trust the cost more than the rate. The last line is one JSON
object.

    python bench/processes.py [--pages N] [--rounds R]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from statistics import median

from vedette.lab.worlds.synthetic.server import start_server

SETTINGS = '[crawl]\ndelay = "0s"\naddress_delay = "0s"\nworkers = {}\n'
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> dict[str, float]:
    """CPU seconds of the children of a process so far, by kind."""
    spent: dict[str, float] = {}
    with suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split():
            stat = Path(f"/proc/{child}/stat").read_text(encoding="utf-8")
            name, _, rest = stat.partition("(")[2].rpartition(")")
            ticks = sum(map(int, rest.split()[11:13]))
            kind = "keeper" if "keeper" in name else "workers"
            spent[kind] = spent.get(kind, 0.0) + ticks / TICKS_PER_S
    return spent


def crawl(workers: int, pages: int, folder: Path) -> dict[str, float]:
    """Pages a second, and CPU seconds per 1 000 pages by kind of process."""
    with start_server("made:medium:1:calm") as web:
        (folder / "hosts.txt").write_text("\n".join(web.connect_to_lines()))
        (folder / "vedette.toml").write_text(SETTINGS.format(workers))
        sites = [f"http://{name}/" for name in web.hosts if not name.startswith("*.")]
        options = ["--connect-to", f"@{folder / 'hosts.txt'}", "--allow-private", "--json", "--pages", str(pages)]
        options += ["--config", str(folder / "vedette.toml"), "--data", str(folder / "data")]
        command = [sys.executable, "-m", "vedette", "crawl", *sites, *options]
        spent: dict[str, float] = {}
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            while process.poll() is None:
                spent.update({kind: max(used, spent.get(kind, 0.0)) for kind, used in cpu_s(process.pid).items()})
                time.sleep(0.02)
            told = json.loads(process.stdout.read() if process.stdout else b"")
    cost = {f"{kind}_cpu_s": 1000 * used / told["pages"] for kind, used in spent.items()}
    return {"pages_per_s": told["pages"] / told["seconds"], **cost}


def turn(workers: int, pages: int) -> dict[str, float]:
    """One crawl in a separate folder."""
    with tempfile.TemporaryDirectory() as folder:
        return crawl(workers, pages, Path(folder))


def main() -> None:
    """Take turns, print the table and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=8000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    turns = [{workers: turn(workers, options.pages) for workers in (1, 2)} for _ in range(options.rounds)]
    print(f"{'':10}{'pages/s':>10}{'keeper':>10}{'workers':>10}   CPU s per 1 000 pages")
    figures = {}
    for workers in (1, 2):
        found = {key: median(each[workers][key] for each in turns) for key in turns[0][workers]}
        figures.update({f"{key}_{workers}": round(value, 3) for key, value in found.items()})
        costs = f"{found['keeper_cpu_s']:10.2f}{found['workers_cpu_s']:10.2f}"
        print(f"{workers} worker{'s' if workers > 1 else ' '} {found['pages_per_s']:10.0f}{costs}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
