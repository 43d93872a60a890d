"""Makes a file of front pages out of a clone of the public recording (defgsus/frontpage-archive-2 and its like).

The recording is a git repository to which a program committed about every hour. Each source is a file
``docs/snapshots/HOST/NAME.json`` that holds what it last looked like: a ``timestamp``, the ``response`` with its
``status``, and ``articles``, each with a ``url``. A commit that touches any of them is a snapshot. A file that a
commit leaves as it was has not been scraped then; one without articles, or that cannot be read, is a failed scrape.

What was tried: single files of two of these repositories were read to learn the format, and small repositories of that
layout are imported in tests. A whole clone was not: how long it takes and what oddities a year holds is not known.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vedette.errors import UsageError
from vedette.lab.worlds.frontpage_arrays import Frontpages
from vedette.lab.worlds.frontpage_files import save_frontpages

if TYPE_CHECKING:
    import pygit2

__all__ = ["import_frontpages"]

_FOLDER = "docs/snapshots"
_MOST_BYTES = 16 << 20  # of one page; the largest are a thousandth of that
Progress = Callable[[int, int], None]


def import_frontpages(clone: Path, out: Path, progress: Progress = lambda _done, _all: None) -> None:
    """Read the history of a clone into the file ``out``; ``progress`` is told how many commits of how many are read."""
    repository = _opened(clone)
    commits = _commits(repository)
    tape = _Tape()
    for done, commit in enumerate(commits, 1):
        tape.record(commit.commit_time, _scraped(commit, tape.blobs))
        progress(done, len(commits))
    if not tape.times:
        raise UsageError(f"{clone.name} has no {_FOLDER}/HOST/NAME.json in its history; name a clone of the recording")
    save_frontpages(tape.world(), out)


def _opened(clone: Path) -> "pygit2.Repository":
    try:
        import pygit2
    except ImportError as error:
        raise UsageError('reading git histories needs pygit2: pip install "vedette[lab]"') from error
    try:
        return pygit2.Repository(str(clone))
    except pygit2.GitError as error:
        raise UsageError(f"{clone.name} is no git repository; name a clone of the recording") from error


def _commits(repository: "pygit2.Repository") -> list["pygit2.Commit"]:
    """The main line, oldest first: what was merged in is in the merge."""
    if repository.head_is_unborn:
        return []
    from pygit2.enums import ObjectType

    line = [repository.head.peel(ObjectType.COMMIT)]
    while line[-1].parents:
        line.append(line[-1].parents[0])
    return line[::-1]


def _scraped(commit: "pygit2.Commit", known: dict[str, str]) -> Mapping[str, tuple[str, ...]]:
    """The links of each source whose file is new with this commit; none where the scrape failed."""
    fresh: dict[str, tuple[str, ...]] = {}
    for name, blob in _files(commit):
        if known.get(name) != str(blob.id):
            known[name] = str(blob.id)
            fresh[name] = _links(blob)
    return fresh


def _files(commit: "pygit2.Commit") -> Iterator[tuple[str, "pygit2.Blob"]]:
    """The name of each source, and what it looked like."""
    import pygit2

    if _FOLDER not in commit.tree:
        return
    hosts = commit.tree[_FOLDER]
    for host in hosts if isinstance(hosts, pygit2.Tree) else ():
        for file in host if isinstance(host, pygit2.Tree) else ():
            if isinstance(file, pygit2.Blob) and str(file.name).endswith(".json"):
                yield f"{host.name}/{str(file.name).removesuffix('.json')}", file


def _links(blob: "pygit2.Blob") -> tuple[str, ...]:
    """The addresses of the articles, each once; none of anything that is not as it should be."""
    if blob.size > _MOST_BYTES:
        return ()
    try:
        page = json.loads(blob.data)
    except (ValueError, RecursionError):
        return ()
    articles = page.get("articles") if isinstance(page, dict) else None
    found = [each.get("url") for each in articles if isinstance(each, dict)] if isinstance(articles, list) else []
    return tuple(dict.fromkeys(url for url in found if isinstance(url, str) and url))


@dataclass(slots=True)
class _Tape:
    """What was recorded so far; ``open`` has the links that each source shows now, and since which snapshot."""

    blobs: dict[str, str] = field(default_factory=dict)
    times: list[int] = field(default_factory=list)
    sources: dict[str, int] = field(default_factory=dict)
    targets: dict[str, int] = field(default_factory=dict)
    open: list[dict[int, int]] = field(default_factory=list)
    rows: list[tuple[int, int, int, int]] = field(default_factory=list)
    scrapes: list[tuple[int, int]] = field(default_factory=list)

    def record(self, time_s: int, fresh: Mapping[str, tuple[str, ...]]) -> None:
        """A snapshot. What a source shows holds until a scrape that brings something says otherwise."""
        if not fresh:
            return
        now = len(self.times)
        # Clocks of those who commit go back at times; snapshots do not.
        self.times.append(max(time_s, self.times[-1] + 1) if self.times else time_s)
        for name, links in fresh.items():
            source = self.sources.setdefault(name, len(self.sources))
            self.open += [{} for _ in range(len(self.sources) - len(self.open))]
            if links:
                self.scrapes.append((now, source))
                self._show(source, now, links)

    def _show(self, source: int, now: int, links: tuple[str, ...]) -> None:
        before = self.open[source]
        shown = [self.targets.setdefault(link, len(self.targets)) for link in links]
        after = {target: before.get(target, now) for target in shown}
        self.rows += [(source, target, since, now) for target, since in before.items() if target not in after]
        self.open[source] = after

    def world(self) -> Frontpages:
        """All of it; what is still shown ends with the recording."""
        end = len(self.times)
        still = [(source, *each, end) for source, links in enumerate(self.open) for each in links.items()]
        columns = np.array(self.rows + still, np.int64).reshape(-1, 4).T
        ok = np.zeros((end, len(self.sources)), bool)
        scrapes = np.array(self.scrapes, np.int64).reshape(-1, 2)
        ok[scrapes[:, 0], scrapes[:, 1]] = True
        host_of = [name.partition("/")[0] for name in self.sources]
        hosts = tuple(dict.fromkeys(host_of))
        return Frontpages(
            name="frontpages",
            times=np.array(self.times, np.int64),
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
