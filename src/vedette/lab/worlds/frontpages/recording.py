"""Import recorded front pages: a file from a clone of a public recording such as defgsus/frontpage-archive-2.

The recording is a git repository to which a program committed about every hour. Each source is a file
``docs/snapshots/HOST/NAME.json`` with its last scrape: a ``timestamp``, the ``response`` with its ``status``, and
``articles``, each with a ``url``. A commit that touches any of them is a snapshot. A file that a commit leaves
unchanged has not been scraped then; one without articles, or that cannot be parsed, is a failed scrape.

Sources are numbered by when they appear, and then by name; targets by when they are first seen.
"""

import json
import sys
from array import array
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import xxhash

from vedette.errors import UsageError
from vedette.lab.worlds.frontpages.arrays import Frontpages
from vedette.lab.worlds.frontpages.files import save_frontpages
from vedette.lab.worlds.git.repository import (
    Progress,
    Tip,
    find_blob,
    open_process_pool,
    open_tip,
    parse_location,
    reopen_repository,
    worker_count,
)
from vedette.lab.worlds.git.walk import repair_commit_times

if TYPE_CHECKING:
    import pygit2

# All time of an import is spent here: a year has more than a million scrapes, at a thousandth of a second each. Only
# the URLs of a scrape are needed. They are never displayed, so each is stored as a 64-bit hash: the probability that
# two among a million collide is three in a hundred million.

LINK_HASH_DTYPE = np.dtype("<u8")  # the hash of a URL
PARALLEL_FROM = 4000  # scrapes; for fewer, other processes are not worth their start
MAX_BYTES = 16 << 20  # of one scrape; the largest are a hundredth of that

BlobBatch = Sequence[bytes]
LinkHashes = list[bytes | None]


def read_scrapes(
    repository: "pygit2.Repository", parts: Sequence[BlobBatch], many: int = PARALLEL_FROM
) -> Generator[LinkHashes]:
    """Read the links of recorded front page scrapes, one batch of git blobs at a time; None for a missing blob.

    Close it if you do not read to the end, so that no process keeps running.
    """
    processes = worker_count()
    if processes == 1 or sum(map(len, parts)) < many:
        yield from (_read_batch(repository, part) for part in parts)
        return
    with open_process_pool(processes) as pool:
        yield from pool.map(_read_batch_in_worker, repeat(repository.path), parts)


def hash_links(body: bytes) -> bytes:
    """Hash the article URLs of a recorded front page scrape, each once; empty for malformed JSON.

    The part after ``#`` is a position on a page (mostly the comments), not another page.

    >>> page = b'{"articles": [{"url": "https://a.example/1"}, {"url": "https://a.example/1#comments"}, {"url": null}]}'
    >>> len(hash_links(page)) // LINK_HASH_DTYPE.itemsize, hash_links(b"{broken")
    (1, b'')
    """
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return b""
    articles = found.get("articles") if isinstance(found, dict) else None
    urls = [each.get("url") for each in articles if isinstance(each, dict)] if isinstance(articles, list) else []
    pages = (url.partition("#")[0] for url in urls if isinstance(url, str))
    # JSON can contain half of a surrogate pair, which UTF-8 cannot.
    marks = (xxhash.xxh3_64_intdigest(page.encode("utf-8", "surrogatepass")) for page in pages if page)
    return np.array(list(dict.fromkeys(marks)), LINK_HASH_DTYPE).tobytes()


def _read_batch(repository: "pygit2.Repository", part: BlobBatch) -> LinkHashes:
    return [_read_scrape(repository, blob) for blob in part]


def _read_scrape(repository: "pygit2.Repository", blob: bytes) -> bytes | None:
    found = find_blob(repository, blob)
    if found is None:
        return None
    return b"" if found.size > MAX_BYTES else hash_links(found.data)


def _read_batch_in_worker(path: str, part: BlobBatch) -> LinkHashes:
    return _read_batch(reopen_repository(path), part)


_FOLDER = "docs/snapshots"


class ImportSummary(NamedTuple):
    """Summary of a front page recording's import: ``rows`` are times that a source showed a target.

    ``failed`` counts failed scrapes, ``missing`` the objects that the repository lacked.
    """

    snapshots: int
    sources: int
    targets: int
    rows: int
    failed: int
    missing: int
    size_bytes: int


class _Snapshot(NamedTuple):
    """A snapshot of the front page recording: the sources that a commit touched, and their new blobs."""

    time_s: int
    sources: tuple[str, ...]
    blobs: tuple[bytes, ...]


def import_frontpages(
    clone: str | Path, out: Path, progress: Progress = lambda _done, _all: None, *, many: int = PARALLEL_FROM
) -> ImportSummary:
    """Import recorded front pages from the git history at ``PATH[#branch]``, bare or not, into the file ``out``.

    ``progress`` gets how many snapshots are read, and of how many. From ``many`` scrapes on, several processes read.
    """
    if not out.parent.is_dir() or out.is_dir():
        raise UsageError(f"{out}: the folder does not exist; choose a file in an existing folder")
    place = parse_location(str(clone))
    tip = open_tip(place)
    snapshots, missing = _list_snapshots(tip)
    if not snapshots:
        raise UsageError(
            f"{place.path} has no {_FOLDER}/HOST/NAME.json in its history; pass the path to a clone of the recording"
        )
    tape = _RecordingBuilder(missing=missing)
    with closing(read_scrapes(tip.repository, [each.blobs for each in snapshots], many)) as scrapes:
        for snapshot, links in zip(snapshots, scrapes, strict=True):
            tape.add_snapshot(dict(zip(snapshot.sources, links, strict=True)))
            progress(len(tape.counts), len(snapshots))
    return _save(tape, tape.build(_force_increasing([each.time_s for each in snapshots])), out)


def _save(tape: "_RecordingBuilder", world: Frontpages, out: Path) -> ImportSummary:
    aside = out.with_name(f"{out.name}.new")
    save_frontpages(world, aside)
    aside.replace(out)
    failed = sum(tape.counts) - int(np.count_nonzero(world.ok))
    size_bytes = out.stat().st_size
    return ImportSummary(
        world.snapshots, world.sources, world.targets, len(world.target), failed, tape.missing, size_bytes
    )


def _list_snapshots(tip: Tip) -> tuple[list[_Snapshot], int]:
    """List the front page recording's snapshots (commits that touch a source), oldest first, and missing objects."""
    commits, missing = tip.list_first_parents()
    stored: dict[str, bytes] = {}
    found = []
    for commit in commits:
        try:
            there = dict(_list_source_files(commit))
        except (KeyError, OSError, ValueError):
            missing += 1
            continue
        fresh = {name: blob for name, blob in there.items() if stored.get(name) != blob}
        stored |= fresh
        if fresh:
            found.append(_Snapshot(commit.commit_time, tuple(fresh), tuple(fresh.values())))
    return found, missing


def _list_source_files(commit: "pygit2.Commit") -> Iterator[tuple[str, bytes]]:
    """List the source files of a front page recording's commit: name and blob id; no blob is read."""
    import pygit2

    if _FOLDER not in commit.tree:
        return
    hosts = commit.tree[_FOLDER]
    for host in hosts if isinstance(hosts, pygit2.Tree) else ():
        for file in host if isinstance(host, pygit2.Tree) else ():
            if file.type_str == "blob" and str(file.name).endswith(".json"):
                # The same few names come with every commit, and are interned.
                yield sys.intern(f"{host.name}/{str(file.name).removesuffix('.json')}"), file.id.raw


def _force_increasing(times: Sequence[int]) -> list[int]:
    """Force the snapshot times of a front page recording to increase, since committers' clocks sometimes go back.

    >>> _force_increasing([100, 200, 200, 9000, 300])
    [100, 200, 201, 202, 300]
    """
    found: list[int] = []
    for time_s in repair_commit_times(times):
        found.append(max(int(time_s), found[-1] + 1) if found else int(time_s))
    return found


@dataclass(slots=True)
class _RecordingBuilder:
    """Builder of recorded front pages; ``visible_since`` has each source's current links and since which snapshot.

    ``last_links`` is the result of each source's last good scrape: most repeat it. ``counts`` has how many sources were
    scraped at each snapshot, ``rows`` four numbers per row: a year has two million.
    """

    missing: int = 0
    counts: list[int] = field(default_factory=list)
    sources: dict[str, int] = field(default_factory=dict)
    targets: dict[int, int] = field(default_factory=dict)
    visible_since: list[dict[int, int]] = field(default_factory=list)
    last_links: list[bytes] = field(default_factory=list)
    rows: "array[int]" = field(default_factory=lambda: array("q"))
    scrapes: "array[int]" = field(default_factory=lambda: array("q"))

    def add_snapshot(self, scraped: Mapping[str, bytes | None]) -> None:
        """Add a snapshot to the front page recording; a source's links stay until a successful scrape replaces them."""
        now = len(self.counts)
        self.counts.append(len(scraped))
        for name, links in scraped.items():
            source = self.sources.setdefault(name, len(self.sources))
            if source == len(self.visible_since):
                self.visible_since.append({})
                self.last_links.append(b"")
            self.missing += links is None
            if links:
                self.scrapes.extend((now, source))
                self._update_visible(source, now, links)

    def _update_visible(self, source: int, now: int, links: bytes) -> None:
        if links == self.last_links[source]:
            return
        self.last_links[source] = links
        before = self.visible_since[source]
        marks = np.frombuffer(links, LINK_HASH_DTYPE).tolist()
        shown = [self.targets.setdefault(mark, len(self.targets)) for mark in marks]
        after = {target: before.get(target, now) for target in shown}
        for target, since in before.items():
            if target not in after:
                self.rows.extend((source, target, since, now))
        self.visible_since[source] = after

    def build(self, times: Sequence[int]) -> Frontpages:
        """Build the recorded front pages; links still shown end with the recording."""
        end = len(times)
        still = [(source, *each, end) for source, links in enumerate(self.visible_since) for each in links.items()]
        ended = np.array(self.rows, np.int64).reshape(-1, 4)
        columns = np.concatenate([ended, np.array(still, np.int64).reshape(-1, 4)]).T
        ok = np.zeros((end, len(self.sources)), bool)
        scrapes = np.array(self.scrapes, np.int64).reshape(-1, 2)
        ok[scrapes[:, 0], scrapes[:, 1]] = True
        host_of = [name.partition("/")[0] for name in self.sources]
        hosts = tuple(dict.fromkeys(host_of))
        return Frontpages(
            name="frontpages",
            times=np.array(times, np.int64),
            source=columns[0],
            target=columns[1],
            start=columns[2],
            stop=columns[3],
            ok=ok,
            host=np.array([hosts.index(each) for each in host_of], np.int64),
            source_names=tuple(self.sources),
            host_names=hosts,
            targets=len(self.targets),
        )
