"""Do hosts that hang, trickle or refuse slow down those that answer?

One in ten hosts is good; the others hang, trickle, say 429 or 503, or have a robots.txt that does. A crawl of all of
them and a crawl of the good ones alone take turns, each for a fixed time; counted are the pages of good hosts in the
servers' access log. The table has the medians. The last line is one JSON object.

    python bench/slow_hosts.py [--hosts N] [--seconds S] [--rounds R]
"""

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from vedette.lab.judge.access_log import AccessEntry, read_log
from vedette.lab.worlds.synthetic.server import start_server

SETTINGS = '[crawl]\ndelay = "500ms"\naddress_delay = "250ms"\n'
WORLDS = {"alone": "good_part", "among bad": "slow_town"}


def crawl_for(world: str, hosts: int, seconds: float, folder: Path) -> list[AccessEntry]:
    """The servers' records of a crawl of that length."""
    log = folder / "access.log"
    with start_server(f"tests.tree_worlds:{world}", hosts, log_path=log) as web:
        (folder / "hosts.txt").write_text("\n".join(web.connect_to_lines()))
        (folder / "vedette.toml").write_text(SETTINGS)
        options = ["--connect-to", f"@{folder / 'hosts.txt'}", "--allow-private", "--quiet"]
        options += ["--config", str(folder / "vedette.toml"), "--data", str(folder / "data")]
        command = [sys.executable, "-m", "vedette", "crawl", *(f"http://{name}/" for name in web.hosts), *options]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            try:
                process.wait(seconds + 3)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
    return read_log(log)[1]


def rate(entries: Sequence[AccessEntry], seconds: float) -> float:
    """Pages of good hosts a second, from the first request of all on."""
    until_s = entries[0].wall_start_s + seconds
    good = (entry for entry in entries if entry.host.startswith("good") and entry.target != "/robots.txt")
    return sum(entry.whole and entry.status == 200 and entry.wall_end_s <= until_s for entry in good) / seconds


def turn(world: str, hosts: int, seconds: float) -> float:
    """One crawl in a separate folder."""
    with tempfile.TemporaryDirectory() as folder:
        return rate(crawl_for(world, hosts, seconds, Path(folder)), seconds)


def main() -> None:
    """Take turns, print the table and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    turns = [
        {name: turn(world, options.hosts, options.seconds) for name, world in WORLDS.items()}
        for _ in range(options.rounds)
    ]
    rates = {name: median(each[name] for each in turns) for name in WORLDS}
    ratio = median(each["among bad"] / each["alone"] for each in turns)
    print(f"{options.hosts // 10} good hosts{'pages/s':>20}{'least':>10}{'most':>10}")
    for name in WORLDS:
        found = [each[name] for each in turns]
        print(f"{name:16}{rates[name]:16.1f}{min(found):10.1f}{max(found):10.1f}")
    print(f"among {options.hosts - options.hosts // 10} bad ones they run at {ratio:.0%} of their speed")
    figures = {"alone_pages_per_s": round(rates["alone"], 1), "among_bad_pages_per_s": round(rates["among bad"], 1)}
    print(json.dumps({**figures, "ratio": round(ratio, 3)}))


if __name__ == "__main__":
    main()
