"""A data folder with tens of thousands of real pages that can be searched: built once, then reused.

Versions of pages are archived as responses of their sites, the archive is imported as usual, and all of it is indexed.
An older version has its own URL. The sites are paused: nothing is ever requested from them.

    python -m bench.peers.search_folder HISTORIES FOLDER PAGES
"""

import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import xxhash
from bench.peers.git_pages import SITES, Version, bodies_of, versions

from vedette.adapters.archive.warc_record import Exchange
from vedette.adapters.archive.warc_writer import WarcWriter
from vedette.adapters.clock import start_clock
from vedette.adapters.crawl_store.data_folder import FORMAT, open_for_write
from vedette.adapters.crawl_store.store import SiteRow
from vedette.model import Site
from vedette.runtime.commands.importer import Importer
from vedette.runtime.indexing.indexer import catch_up

NOW_S = 1_750_000_000.0
DAY_S = 86_400.0
MOST_BYTES = 4 << 20
AT_ONCE = 2000
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
ASK = b"GET / HTTP/1.1\r\n\r\n"


def chosen(histories: Path, pages: int) -> list[Version]:
    """The versions that are taken, and some more in case that a few are missing."""
    return versions(histories)[: pages + AT_ONCE]


def url_of(version: Version) -> str:
    """A name in the same folder, so that relative links still work; a parameter would soon be learned as a copy."""
    return f"{version.url}~{version.blob[:12]}" if version.age else version.url


def name_of(some: Sequence[Version], pages: int) -> str:
    """The same for the same pages in the same format of data folders."""
    told = "\n".join([f"{FORMAT} {pages}", *(f"{url_of(version)} {version.blob}" for version in some)])
    return f"search-{xxhash.xxh64_hexdigest(told.encode())}"


def make(histories: Path, folder: Path, some: Sequence[Version], pages: int) -> int:
    """Import and index; how many pages can be found."""
    with open_for_write(folder, NOW_S) as state:
        state.db.execute("BEGIN IMMEDIATE")
        for _, _, host in SITES:
            state.store.save_site(SiteRow(Site(f"http://{host}/"), paused=True, added_s=NOW_S))
        state.commit()
        importer = Importer(state, "bench", NOW_S, MOST_BYTES)
        for number, archive in enumerate(archives(histories, some, pages), 1):
            importer.import_warc(archive)
            print(f"  {min(number * AT_ONCE, pages)} of {pages} imported", file=sys.stderr, flush=True)
        importer.close()
        print(f"  passed over: {dict(importer.summary.skipped)}", file=sys.stderr, flush=True)
    return catch_up(folder, start_clock(NOW_S, 1.0))


def archives(histories: Path, some: Sequence[Version], pages: int) -> Iterator[Path]:
    """The pages as WARC files, one at a time."""
    bodies = islice(bodies_of(histories, some), pages)
    while piece := list(islice(bodies, AT_ONCE)):
        with TemporaryDirectory(prefix="vedette-bench-") as name:
            writer = WarcWriter(Path(name), "bench", "bench")
            for version, body in piece:
                writer.append(
                    Exchange(url_of(version), NOW_S - (1 + version.age) * DAY_S, ASK, HEAD, body, "127.0.0.1")
                )
            writer.close()
            yield from Path(name).iterdir()


def main() -> None:
    """Build missing parts; the path is the last line."""
    histories, parent, pages = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    some = chosen(histories, pages)
    folder = parent / name_of(some, pages)
    if not folder.exists():
        parent.mkdir(exist_ok=True)
        with TemporaryDirectory(dir=parent, prefix="search-draft-") as draft:
            found = make(histories, Path(draft) / "data", some, pages)
            print(f"  {found} of {pages} pages can be found", file=sys.stderr, flush=True)
            (Path(draft) / "data").rename(folder)
    print(folder)


if __name__ == "__main__":
    main()
