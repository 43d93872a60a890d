"""The real program over a world of ``tree_worlds``.

Started, observed through /proc, killed, and judged by its results.
"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vedette.adapters.crawl_store.store import CrawlStore
from vedette.lab.judge.access_log import AccessEntry, read_log
from vedette.lab.judge.politeness import Verdict, judge_log
from vedette.lab.worlds.synthetic.server import ServerHandle, start_server

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    # On import the library warns of the old names that it keeps itself.
    from fastwarc.warc import ArchiveIterator, response, revisit

__all__ = ["PATIENCE_S", "PROVE", "Run", "children", "is_whole", "kill_all", "open_run", "patiently", "remains"]

PROVE = os.environ.get("VEDETTE_PROVE") == "1"
# For hangs alone: no test is about how long something takes, and a busy machine may take long.
PATIENCE_S = 900.0
SETTINGS = """\
[crawl]
delay = "{delay}"
address_delay = "250ms"
timeout = "{timeout}"
connect_timeout = "30s"
workers = {workers}
"""


@dataclass(frozen=True, slots=True)
class Run:
    """A served world, and a folder in which crawls of it continue each other."""

    web: ServerHandle
    folder: Path
    speed: float
    delay_s: float

    @property
    def data(self) -> Path:
        """Return the data folder."""
        return self.folder / "data"

    def command(self, *more: str) -> list[str]:
        """Return the ``vedette crawl`` command for every host."""
        sites = [f"http://{name}/" for name in self.web.hosts]
        options = ["--connect-to", f"@{self.folder / 'hosts.txt'}", "--allow-private", "--speed", str(self.speed)]
        options += ["--config", str(self.folder / "vedette.toml"), "--data", str(self.data), "--json"]
        return [sys.executable, "-m", "vedette", "crawl", *sites, *options, *more]

    def start(self, *more: str) -> subprocess.Popen[bytes]:
        """Start the program in a separate session; its log goes to ``messages``."""
        with (
            (self.folder / "messages.txt").open("ab") as messages,
            (self.folder / "summary.json").open("wb") as summary,
        ):
            return subprocess.Popen(self.command(*more), stdout=summary, stderr=messages, start_new_session=True)

    def summary(self) -> dict[str, Any]:
        """Return the final numbers of the last crawl."""
        summary: dict[str, Any] = json.loads((self.folder / "summary.json").read_text())
        return summary

    def messages(self) -> str:
        """Return the messages of all crawls."""
        return (self.folder / "messages.txt").read_text()

    def entries(self) -> list[AccessEntry]:
        """Read the servers' log as far as it is written."""
        return read_log(self.folder / "access.log")[1]

    def verdict(self) -> Verdict:
        """Return the judge's verdict, once the servers have ended."""
        self.web.stop()
        header, entries = read_log(self.folder / "access.log")
        return judge_log(entries, header, delay_s=self.delay_s, address_delay_s=0.25)

    def repeated(self) -> int:
        """Count the requests for pages beyond the first for each."""
        asked = Counter(entry.url for entry in self.entries() if entry.target != "/robots.txt")
        return asked.total() - len(asked)

    def pages(self) -> dict[str, tuple[int, str, int]]:
        """Return the status and archive location of every page in the state."""
        with closing(sqlite3.connect(self.data / "state.db")) as db:
            rows = list(CrawlStore(db).iter_pages())
        return {url: (page.status, page.place.file, page.place.offset) for url, page in rows if page.place}

    def archived(self) -> dict[str, list[tuple[str, int]]]:
        """Return the locations of each page's responses in the archive."""
        places: dict[str, list[tuple[str, int]]] = {}
        for file in self.files():
            with file.open("rb") as stream:
                for record in ArchiveIterator(stream, record_types=response | revisit):
                    url = record.headers["WARC-Target-URI"]
                    if not url.endswith("/robots.txt"):
                        places.setdefault(url, []).append((file.name, record.stream_pos))
        return places

    def files(self) -> list[Path]:
        """List the files of the archive."""
        return sorted((self.data / "warc").glob("*.warc.gz"))


@contextmanager
def open_run(
    world: str,
    hosts: int,
    folder: Path,
    *,
    speed: float,
    delay_s: float = 1.0,
    timeout_s: float = 1.0,
    workers: int = 2,
) -> Iterator[Run]:
    """Serve a world of ``tests.tree_worlds`` for crawls in a folder."""
    log = folder / "access.log"
    with start_server(f"tests.tree_worlds:{world}", hosts, speed=speed, log_path=log) as web:
        (folder / "hosts.txt").write_text("\n".join(web.connect_to_lines()))
        text = SETTINGS.format(delay=f"{delay_s}s", timeout=f"{timeout_s}s", workers=workers)
        (folder / "vedette.toml").write_text(text)
        yield Run(web, folder, speed, delay_s)


def is_whole(pid: int) -> bool:
    """Check whether a tree with two fetchers has all its processes."""
    return {"vedette keeper", "vedette w0", "vedette w1", "vedette indexer"} <= children(pid).keys()


def children(pid: int) -> dict[str, int]:
    """Return the live child processes of a process, by the names they set."""
    named = {}
    with suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            with suppress(OSError):
                if _state(int(child)) not in {"Z", "X"}:
                    named[Path(f"/proc/{child}/comm").read_text().strip()] = int(child)
    return named


def remains(pids: list[int]) -> list[int]:
    """Return the processes that are still running."""
    return [pid for pid in pids if _state(pid) not in {"", "Z", "X"}]


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def patiently(holds: Callable[[], object], seconds: float = PATIENCE_S) -> None:
    """Wait until a condition is true; if the machine is too busy, fail with a clear error.

    The longer it takes, the less often it checks: many checks are searches, which slow down what they wait for.
    """
    since_s = time.monotonic()
    while not holds():
        waited_s = time.monotonic() - since_s
        assert waited_s < seconds, f"not within {seconds} s"
        time.sleep(min(0.02 + waited_s / 10, 0.5))


def kill_all(process: subprocess.Popen[bytes]) -> None:
    """Kill the whole tree at once, as a power failure would."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
