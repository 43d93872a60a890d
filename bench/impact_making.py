"""What does an impact pass cost, with a million unseen URLs and a hundred thousand queries?

A folder is created as by an import: pages whose links name all unseen URLs, with words. People have searched for a
number of queries. Then the impact pass is run as by the indexer, in a separate process, twice: the second finds
sketches of the first. Reported are CPU seconds from start to end, URLs per second, and the peak of its memory. Queries
are of two words and frequencies by Zipf's law. The last line is one JSON object.

    python bench/impact_making.py [--urls N] [--queries N] [--pages N] [--folder DIR]
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from vedette.adapters.archive.replay import ImportedResponse
from vedette.adapters.clock import start_clock
from vedette.adapters.crawl_store.data_folder import State, lock_folder, open_state
from vedette.adapters.crawl_store.store import SiteRow
from vedette.adapters.event_store.store import EventStore
from vedette.adapters.index_store.impact_store import read_info
from vedette.model import Site
from vedette.policy import Ints, rng_for
from vedette.runtime.commands.importer import Importer
from vedette.runtime.indexing.indexer import catch_up

SITE = Site("http://www.example.org/")
HTML = (("content-type", "text/html; charset=utf-8"),)
VOCABULARY, COMMON = 20_000, 100
TEXT_WORDS, NAME_WORDS, QUERY_WORDS = 80, 3, 2
BATCH = 50
SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "wa")


class Words:
    """Words that are as unequal as those of people."""

    def __init__(self) -> None:
        self._rng = rng_for(1, "bench/impact_making")
        chance = 1.0 / np.arange(1, VOCABULARY + 1)
        self._reach = np.cumsum(chance / chance.sum())

    def some(self, count: int, rarest_of: int = 0) -> str:
        """This many; without the commonest, if these are left out."""
        least = self._reach[rarest_of - 1] if rarest_of else 0.0
        drawn: Ints = np.searchsorted(self._reach, least + (1 - least) * self._rng.random(count))
        return " ".join(map(_word, np.minimum(drawn, VOCABULARY - 1).tolist()))


def _word(number: int) -> str:
    return "".join(SYLLABLES[number >> shift & 15] for shift in (0, 4, 8, 12))


def made(folder: Path, urls: int, queries: int, pages: int) -> None:
    """Pages, the URLs they link to, and queries."""
    words, each, now_s = Words(), -(-urls // pages), time.time()
    with opened(folder, now_s) as state:
        state.db.execute("BEGIN IMMEDIATE")
        state.store.save_site(SiteRow(SITE, paused=False, added_s=now_s))
        state.commit()
        with closing(Importer(state, "bench", now_s, 1 << 24)) as importer:
            for begin in range(0, pages, BATCH):
                some = range(begin, min(begin + BATCH, pages))
                importer._save_pages([_page(words, page, each, now_s) for page in some])  # noqa: SLF001 - as from a file
                state.commit()
    catch_up(folder, start_clock(now_s, 1.0))
    asked = {words.some(QUERY_WORDS, COMMON): 1 + queries // (1 + place) for place in range(queries)}
    while len(asked) < queries:
        asked.setdefault(words.some(QUERY_WORDS, COMMON), 1)
    with closing(EventStore(folder)) as book:
        book.import_queries((query, now_s, times) for query, times in asked.items())


def _page(words: Words, page: int, links: int, now_s: float) -> ImportedResponse:
    named = words.some(NAME_WORDS * links).split(" ")
    anchors = "".join(
        f'<a href="/{page % 100}/{page}/{n}.html">{" ".join(named[NAME_WORDS * n : NAME_WORDS * (n + 1)])}</a> '
        for n in range(links)
    )
    title = words.some(NAME_WORDS)
    text = f"<title>{title}</title><main><h1>{title}</h1><p>{words.some(TEXT_WORDS)}</p></main><div>{anchors}</div>"
    return ImportedResponse(f"{SITE.start}list/{page}", now_s - 60.0, 200, HTML, text.encode(), "bench")


@contextmanager
def opened(folder: Path, now_s: float) -> Iterator[State]:
    """The state, held and closed cleanly."""
    with lock_folder(folder):
        state = open_state(folder, "bench", now_s)
        yield state
        state.close(clean=True)


def making(folder: Path) -> dict[str, float]:
    """One of them, as a process."""
    clock = start_clock(time.time(), 1.0)
    words = [sys.executable, "-m", "vedette.runtime.indexing.impact", str(folder), str(clock)]
    pid = os.posix_spawn(sys.executable, words, dict(os.environ))
    _, status, used = os.wait4(pid, 0)
    if status:
        raise SystemExit("the making failed")
    told, cpu_s = read_info(folder / "index") or {}, used.ru_utime + used.ru_stime
    return {
        "cpu_s": cpu_s,
        "weighed": float(told["weighed"]),
        "queries": float(told.get("queries", 0)),
        "learned": float(told.get("learned", 0)),
        "urls_a_s": told["weighed"] / cpu_s,
        "peak_mb": used.ru_maxrss / 1024,
    }


def main() -> None:
    """Make the folder, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--pages", type=int, default=2_000)
    parser.add_argument("--folder", type=Path, help="where it is made, or was made before")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = options.folder or Path(place) / "data"
        if not folder.exists():
            made(folder, options.urls, options.queries, options.pages)
        rows = {name: making(folder) for name in ("first", "second")}
    for name, row in rows.items():
        print(
            f"{name:8} {row['cpu_s']:8.1f} s of CPU, {row['weighed']:9.0f} URLs, {row['urls_a_s']:7.0f} a second, "
            f"{row['queries']:7.0f} queries, {row['learned']:6.0f} pages learned from, peak {row['peak_mb']:6.0f} MiB"
        )
    print(json.dumps({name: {key: round(value, 1) for key, value in row.items()} for name, row in rows.items()}))


if __name__ == "__main__":
    main()
