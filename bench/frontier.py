"""What does it cost to know a URL, and to lease one, when ten million are known?

A store as in the coordinator is filled to each size. Then, in windows of 200 000 links, it gets batches of 1 000, four
fifths of them already known, leases batches of 200, and acknowledges them, each with its own commit, in turns, as in a
crawl where a page has 40 links. Host lookups, URL hashing and row writes are within the measured time: CPU seconds of
this process, medians over the windows. Links are drawn uniformly from all known URLs, which is the worst case for every
cache. All sizes take turns, and so do two peers at the smallest: SQLite with a unique index on (partition,
fingerprint), and a Python set, which persists nothing. The memory is that of all of them together. The last line is one
JSON object.

    python bench/frontier.py [--sizes 1000000,3000000,10000000] [--windows N] [--folder DIR]
"""

import argparse
import json
import resource
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np

from vedette.adapters.url_store.rows import create_url_tables
from vedette.adapters.url_store.store import UrlStore
from vedette.engine.ports import LinkBatch, UrlState
from vedette.model import fingerprint, partition_of
from vedette.policy import rng_for

HOSTS = 100_000
BATCH = 1_000
NEW_OF_BATCH = BATCH // 5
LEASES = 200
LINKS_OF_PAGE = 40
BATCHES_OF_WINDOW = 200
FILL = 10_000
SPREAD = 48_271  # prime to the number of hosts: neighbors in number live on different hosts
SEED = 1
WORKER = 1


@dataclass(frozen=True, slots=True)
class Links:
    """A batch of links as a worker sends it: URLs, and the names of their hosts."""

    urls: list[str]
    hosts: list[str]
    priorities: list[int]


@dataclass(slots=True)
class Cost:
    """CPU seconds spent on a number of operations."""

    operations: int = 0
    cpu_s: float = 0.0

    @contextmanager
    def of(self, operations: int) -> Iterator[None]:
        """Count the time spent inside."""
        start = process_time()
        yield
        self.cpu_s += process_time() - start
        self.operations += operations

    @property
    def rate(self) -> float:
        """Operations for each CPU second."""
        return self.operations / self.cpu_s


@dataclass(frozen=True, slots=True)
class Window:
    """What one stretch of crawling cost."""

    told: Cost = field(default_factory=Cost)
    leased: Cost = field(default_factory=Cost)
    acknowledged: Cost = field(default_factory=Cost)


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the table: medians over the windows at one size."""

    who: str
    known: int
    told_per_s: float
    leases_per_s: float | None = None
    acknowledged_per_s: float | None = None
    bytes_per_url: float | None = None

    def __str__(self) -> str:
        rates = (self.told_per_s, self.leases_per_s, self.acknowledged_per_s)
        cells = "".join(f"{'' if rate is None else f'{rate:,.0f}':>14}" for rate in rates)
        size = "" if self.bytes_per_url is None else f"{self.bytes_per_url:.2f}"
        return f"{self.who:<26}{self.known:>12,}{cells}{size:>12}"


HEAD = f"{'':<26}{'known':>12}{'links/s':>14}{'leases/s':>14}{'acks/s':>14}{'bytes/URL':>12}"


def links(numbers: Sequence[int]) -> Links:
    """URLs that are a function of their number, about 70 characters long."""
    hosts = [f"www.site-{number * SPREAD % HOSTS}.example" for number in numbers]
    urls = [
        f"https://{host}/section-{number % 97}/{number % 7919:04}/an-article-about-{number}.html"
        for host, number in zip(hosts, numbers, strict=True)
    ]
    return Links(urls, hosts, [number * 31 % 8 for number in numbers])


def mixed(known: int, rng: np.random.Generator) -> Links:
    """A batch with a fifth of new links, in random order."""
    numbers = np.concatenate([rng.integers(0, known, BATCH - NEW_OF_BATCH), np.arange(known, known + NEW_OF_BATCH)])
    return links(rng.permutation(numbers).tolist())


def open_state(path: Path) -> sqlite3.Connection:
    """A database as the coordinator opens it."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


class Crawl:
    """The store under test, used as in a crawl."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.connection = open_state(folder / "state.db")
        create_url_tables(self.connection)
        self.store = UrlStore(self.connection, epoch=1)
        self.rng = rng_for(SEED, "bench/frontier")
        self.out: list[int] = []

    def tell(self, batch: Links) -> None:
        """Links arrive and are committed."""
        hosts = self.store.intern_hosts(batch.hosts)
        self.store.add(LinkBatch(batch.urls, hosts, [1] * len(hosts), batch.priorities), found_s=0.0)
        self.connection.commit()

    def lease(self, hosts: list[int]) -> None:
        """URLs leave for a worker, durably."""
        self.out = [one.id for one in self.store.lease(hosts, WORKER, until_s=60.0, rng=self.rng)]
        self.connection.commit()

    def acknowledge(self) -> None:
        """What left has been fetched."""
        self.store.acknowledge(self.out, UrlState.FETCHED, WORKER)
        self.connection.commit()

    def fill(self, known: int) -> None:
        """Make this many URLs known, and have a share of them fetched."""
        while len(self.store) < known:
            start = len(self.store)
            self.tell(links(range(start, min(start + FILL, known))))
            self.lease(self.some_hosts())
            self.acknowledge()

    def some_hosts(self) -> list[int]:
        """Hosts whose turn it is."""
        chosen = self.rng.choice(self.store.hosts_with_work(), LEASES, replace=False)
        return [int(host) for host in chosen]

    def window(self) -> Window:
        """One stretch of crawling."""
        window = Window()
        for number in range(BATCHES_OF_WINDOW):
            batch = mixed(len(self.store), self.rng)
            with window.told.of(BATCH):
                self.tell(batch)
            if number % (LEASES * LINKS_OF_PAGE // BATCH) == 0:
                self._pages(window)
        return window

    def _pages(self, window: Window) -> None:
        hosts = self.some_hosts()
        with window.leased.of(LEASES):
            self.lease(hosts)
        with window.acknowledged.of(LEASES):
            self.acknowledge()


class IndexedRows:
    """The peer: one table, whose unique index finds known URLs."""

    def __init__(self, folder: Path) -> None:
        self.known = 0
        self.connection = open_state(folder / "peer.db")
        self.connection.execute(
            "CREATE TABLE url (id INTEGER PRIMARY KEY, partition INTEGER, fingerprint INTEGER, "
            "url TEXT, depth INTEGER, UNIQUE (partition, fingerprint))"
        )

    def tell(self, batch: Links) -> None:
        """Insert missing URLs, and commit."""
        self.connection.execute("BEGIN")
        rows = (
            (partition_of(host), fingerprint(url), url, 1) for host, url in zip(batch.hosts, batch.urls, strict=True)
        )
        sql = "INSERT OR IGNORE INTO url (partition, fingerprint, url, depth) VALUES (?, ?, ?, ?)"
        self.known += self.connection.executemany(sql, rows).rowcount
        self.connection.commit()


class FingerprintSet:
    """The ceiling: only a set is kept."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    @property
    def known(self) -> int:
        """How many are in it."""
        return len(self._seen)

    def tell(self, batch: Links) -> None:
        """Put all into it."""
        self._seen.update(map(fingerprint, batch.urls))


def fill_peer(peer: IndexedRows | FingerprintSet, known: int) -> None:
    """Make this many URLs known to a peer."""
    for start in range(0, known, FILL):
        peer.tell(links(range(start, min(start + FILL, known))))


def peer_window(peer: IndexedRows | FingerprintSet, rng: np.random.Generator) -> Cost:
    """The same links as in a window of the store."""
    cost = Cost()
    for _ in range(BATCHES_OF_WINDOW):
        batch = mixed(peer.known, rng)
        with cost.of(BATCH):
            peer.tell(batch)
    return cost


def line_of(crawl: Crawl, windows: list[Window]) -> Line:
    """Medians of the store at a size."""
    return Line(
        "Vedette",
        len(crawl.store),
        median(window.told.rate for window in windows),
        median(window.leased.rate for window in windows),
        median(window.acknowledged.rate for window in windows),
        crawl.store.nbytes / len(crawl.store),
    )


def filled(folder: Path, size: int, windows: int) -> Crawl:
    """A crawl that will know this many URLs in the middle of its windows."""
    print(f"filling to {size:,}", file=sys.stderr)
    folder.mkdir()
    crawl = Crawl(folder)
    crawl.fill(size - windows * BATCHES_OF_WINDOW * NEW_OF_BATCH // 2)
    return crawl


def peers_of(crawl: Crawl) -> tuple[IndexedRows, FingerprintSet]:
    """Peers that know as much as a crawl does."""
    rows, bare = IndexedRows(crawl.folder), FingerprintSet()
    fill_peer(rows, len(crawl.store))
    fill_peer(bare, len(crawl.store))
    return rows, bare


def measure(crawls: list[Crawl], windows: int) -> list[Line]:
    """All sizes and peers, taking turns: a line for each size, then one for each peer."""
    rows, bare = peers_of(crawls[0])
    ours: list[list[Window]] = [[] for _ in crawls]
    theirs: list[tuple[Cost, Cost]] = []
    for _ in range(windows):
        for crawl, seen in zip(crawls, ours, strict=True):
            seen.append(crawl.window())
        theirs.append((peer_window(rows, crawls[0].rng), peer_window(bare, crawls[0].rng)))
    return [
        *map(line_of, crawls, ours),
        Line("SQLite, unique index", rows.known, median(cost.rate for cost, _ in theirs)),
        Line("Python set, not durable", bare.known, median(cost.rate for _, cost in theirs)),
    ]


def timed(action: Callable[[], object]) -> float:
    """CPU seconds of one action."""
    cost = Cost()
    with cost.of(1):
        action()
    return cost.cpu_s


def restart(crawl: Crawl) -> dict[str, float]:
    """The cost of a start after a crash, and after a clean exit."""
    image = crawl.folder / "urls"
    return {
        "save_s": timed(lambda: crawl.store.save_snapshot(image)),
        "start_after_crash_s": timed(lambda: UrlStore(crawl.connection, epoch=1)),
        "start_after_clean_end_s": timed(lambda: UrlStore(crawl.connection, epoch=1, image=image)),
    }


def verdict(lines: list[Line], rss_mb: float) -> dict[str, float]:
    """The content of the last line: the largest size, and its cost relative to the smallest."""
    small, large = lines[0], lines[-1]
    assert small.leases_per_s is not None
    assert large.leases_per_s is not None
    growth = max(small.told_per_s / large.told_per_s, small.leases_per_s / large.leases_per_s)
    return {
        "inserts_per_s": round(large.told_per_s),
        "leases_per_s": round(large.leases_per_s),
        "rss_mb": round(rss_mb),
        "growth": round(growth, 2),
    }


def run(folder: Path, sizes: list[int], windows: int) -> None:
    """All sizes, the table, the verdict."""
    crawls = [filled(folder / str(size), size, windows) for size in sizes]
    lines = measure(crawls, windows)
    rss_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    again = restart(crawls[-1])
    print(HEAD, *lines, sep="\n")
    print("  ".join(f"{name} {value:.1f}" for name, value in {"peak_rss_mb": rss_mb, **again}.items()))
    print(json.dumps(verdict(lines[: len(sizes)], rss_mb) | {name: round(value, 1) for name, value in again.items()}))


def main() -> None:
    """Read the arguments and run in a folder that is gone afterwards."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--sizes", default="1000000,3000000,10000000")
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where to make the databases (default: the system's temporary one)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        run(Path(folder), sorted(int(size) for size in arguments.sizes.split(",")), arguments.windows)


if __name__ == "__main__":
    main()
