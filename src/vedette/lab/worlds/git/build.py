"""Build a history from git: walk the branch, parse its blobs, and combine lives, versions and links."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vedette.errors import UsageError
from vedette.lab.worlds.git.blobs import BlobTask, Content, detect_listing_kind, read_blob, read_contents
from vedette.lab.worlds.git.links import NO_PAGE, LinkIndex, detect_own_host
from vedette.lab.worlds.git.paths import HTML, SOURCE, XML, classify_path, page_for_path, page_url, site_for_page
from vedette.lab.worlds.git.repository import GitLocation, Progress, Tip, open_tip, parse_location
from vedette.lab.worlds.git.walk import Step, walk_commits
from vedette.lab.worlds.history import PAGE, History
from vedette.lab.worlds.history_file import PackedTexts, TextPacker, save_history
from vedette.policy import Ints

# A page lives while any of its files does, and shows the first of them. A change whose content cannot be read is
# ignored (but counted): the page keeps its content, and a page without any readable content does not exist.


class Version(NamedTuple):
    """A version of a git page from a time on: the blob's id, the file, and whether it came in a rebuild wave."""

    at_s: float
    blob: bytes
    path: str
    wave: bool


@dataclass(slots=True)
class Life:
    """One life of a git page, by its ``page_for_path`` name. ``moved_to`` is the number of another life, or -1."""

    page: str
    versions: list[Version]
    died_s: float = float("inf")
    moved_to: int = -1

    @property
    def born_s(self) -> float:
        """Return when this life of a git page began."""
        return self.versions[0].at_s


class PageLives(NamedTuple):
    """All lives of git pages by birth, then by name; and how many changes could not be read."""

    lives: list[Life]
    missing: int


def collect_lives(steps: Iterable[Step], readable: Mapping[tuple[bytes, str], bool], many: int) -> PageLives:
    """Collect the lives of all git pages from the steps of a branch.

    ``readable`` has the files that are pages, and for each of their contents whether it can be read. A step that
    touches more than ``many`` pages is a wave.
    """
    past = _LifeTracker(readable)
    for step in steps:
        past.apply_step(step, many)
    return PageLives(past.lives, past.missing)


@dataclass(slots=True)
class _LifeTracker:
    readable: Mapping[tuple[bytes, str], bool]
    lives: list[Life] = field(default_factory=list)
    missing: int = 0
    # The files of each page by rank, and the current life of each page.
    files: dict[str, dict[int, tuple[bytes, str]]] = field(default_factory=dict)
    alive: dict[str, int] = field(default_factory=dict)

    def apply_step(self, step: Step, many: int) -> None:
        touched = sorted(dict.fromkeys(self._update_files(step)))
        changed = [page for page in touched if self._current_blob(page) != self._last_blob(page)]
        wave = len(changed) > many
        gone = {page: self.alive.pop(page) for page in changed if self._current_file(page) is None}
        births = [page for page in changed if page not in self.alive and self._current_file(page) is not None]
        born = {page: len(self.lives) + place for place, page in enumerate(births)}
        for page in changed:
            shown = self._current_file(page)
            if shown is None:
                self.lives[gone[page]].died_s = step.at_s
            elif page in born:
                self.lives.append(Life(page, [Version(step.at_s, *shown, wave)]))
            else:
                self.lives[self.alive[page]].versions.append(Version(step.at_s, *shown, wave))
        self.alive.update(born)
        for old, new in self._match_moves(step, gone, born):
            self.lives[old].moved_to = new

    def _update_files(self, step: Step) -> Iterator[str]:
        """Update the current content of files by one git step; yield the pages that this may change."""
        for path, blob in step.files.items():
            page, rank = page_for_path(path)
            if blob is None:
                if self.files.get(page, {}).pop(rank, None):
                    yield page
            elif (readable := self.readable.get((blob, path))) is not None:
                if readable:
                    self.files.setdefault(page, {})[rank] = (blob, path)
                    yield page
                else:
                    self.missing += 1

    def _current_file(self, page: str) -> tuple[bytes, str] | None:
        files = self.files.get(page)
        return files[min(files)] if files else None

    def _current_blob(self, page: str) -> bytes | None:
        shown = self._current_file(page)
        return shown and shown[0]

    def _last_blob(self, page: str) -> bytes | None:
        return self.lives[self.alive[page]].versions[-1].blob if page in self.alive else None

    def _match_moves(self, step: Step, gone: Mapping[str, int], born: Mapping[str, int]) -> Iterator[tuple[int, int]]:
        """Match ended lives of git pages with those that replace them: same content first, then similar by git."""
        if not gone or not born:
            return
        matched: set[str] = set()
        renamed = ((page_for_path(old)[0], page_for_path(new)[0]) for new, old in step.renamed.items())
        for old, new in (*self._match_same_content(gone, born), *renamed):
            if old in gone and new in born and old not in matched and new not in matched:
                matched |= {old, new}
                yield gone[old], born[new]

    def _match_same_content(self, gone: Mapping[str, int], born: Mapping[str, int]) -> Iterator[tuple[str, str]]:
        """Match vanished and new git pages of the same content, those with the same file name first."""
        for by_name in (True, False):
            waiting: dict[tuple[bytes, str], list[str]] = {}
            for page, life in reversed([*gone.items()]):
                waiting.setdefault((self.lives[life].versions[-1].blob, _name(page) if by_name else ""), []).append(
                    page
                )
            for page, life in born.items():
                if same := waiting.get((self.lives[life].versions[0].blob, _name(page) if by_name else "")):
                    yield same.pop(), page


def _name(page: str) -> str:
    return page.rstrip("/").rpartition("/")[2]


WAVE_THRESHOLD = 20  # pages that change at once make a wave
REPORT_EVERY = 256


def read_git(written: str, *, many: int = WAVE_THRESHOLD, progress: Progress = lambda _done, _all: None) -> History:
    """Read the history from git at ``[git:]PATH[#branch[:folder]]``; a step over more than ``many`` pages is a wave.

    ``progress`` gets how many are done, and of how many, twice from zero: steps first, then blobs.
    """
    place = parse_location(written)
    tip = open_tip(place)
    walked = walk_commits(tip, place, progress)
    kinds = _classify_files(tip, walked.steps, place)
    read = _read_all(tip, _list_tasks(walked.steps, kinds), progress)
    readable = {
        (blob, path): read.numbers.get((blob, _parser_name(path))) is not None
        for path, blob in _list_file_versions(walked.steps)
        if path in kinds
    }
    found = collect_lives(walked.steps, readable, many)
    if not found.lives:
        raise UsageError(f"{place.path}: no pages found (.html, .md, .rst); use git:PATH#branch:folder")
    span = (walked.steps[0].at_s, walked.end_s)
    return _build_history(place, span, found.lives, kinds, read, walked.missing + found.missing)


class _ContentTable(NamedTuple):
    """All contents of git blobs by number: texts, word counts, and links as numbers of URLs as written."""

    numbers: dict[tuple[bytes, str], int | None]
    words: list[int]
    links: list[Ints]
    hrefs: list[str]
    packer: TextPacker


def _list_file_versions(steps: Iterable[Step]) -> Iterator[tuple[str, bytes]]:
    """List every content that the files of a git branch had, in order of time."""
    return ((path, blob) for step in steps for path, blob in step.files.items() if blob is not None)


def _parser_name(path: str) -> str:
    """Return the name of the parser for a git file: the same bytes mean different things in different formats."""
    return path.rpartition(".")[2].lower()


def _classify_files(tip: Tip, steps: Sequence[Step], place: GitLocation) -> dict[str, int]:
    """Classify which files of a git branch are pages, with their kind; see ``paths`` for the rule."""
    groups: dict[str, list[str]] = {HTML: [], SOURCE: [], XML: []}
    firsts: dict[str, list[bytes]] = {}
    for path, blob in _list_file_versions(steps):
        if path not in firsts:
            groups[classify_path(path, place.folder)].append(path)
        firsts.setdefault(path, []).append(blob)
    pages = groups[SOURCE] if len(groups[SOURCE]) > len(groups[HTML]) else groups[HTML]
    kinds = dict.fromkeys(pages, PAGE)
    for path in groups[XML]:
        body = next((body for blob in firsts[path] if (body := read_blob(tip.repository, blob)) is not None), b"")
        if (kind := detect_listing_kind(body)) is not None:
            kinds[path] = kind
    return kinds


def _list_tasks(steps: Iterable[Step], kinds: Mapping[str, int]) -> list[BlobTask]:
    """List every blob content of a git branch to parse once, page by page."""
    by_path: dict[str, list[bytes]] = {}
    for path, blob in _list_file_versions(steps):
        if path in kinds:
            by_path.setdefault(path, []).append(blob)
    found = {(blob, _parser_name(path)): BlobTask(blob, path) for path in sorted(by_path) for blob in by_path[path]}
    return list(found.values())


def _read_all(tip: Tip, tasks: Sequence[BlobTask], progress: Progress) -> _ContentTable:
    read = _ContentTable({}, [], [], [], TextPacker())
    seen: dict[str, int] = {}
    for done, (task, content) in enumerate(zip(tasks, read_contents(tip.repository, tasks), strict=True)):
        if done % REPORT_EVERY == 0:
            progress(done, len(tasks))
        key = (task.blob, _parser_name(task.path))
        read.numbers[key] = None if content is None else len(read.words)
        if content is not None:
            _add_content(read, content, seen)
    progress(len(tasks), len(tasks))
    read.hrefs.extend(seen)
    return read


def _add_content(read: _ContentTable, content: Content, seen: dict[str, int]) -> None:
    read.words.append(content.words)
    read.packer.add(content.text)
    numbers = [seen.setdefault(link, len(seen)) for link in content.links]
    read.links.append(np.array(numbers, np.int64))


def _build_history(
    place: GitLocation,
    span: tuple[float, float],
    lives: Sequence[Life],
    kinds: Mapping[str, int],
    read: _ContentTable,
    missing: int,
) -> History:
    versions = [version for life in lives for version in life.versions]
    content = np.array([_content_number(read, version) for version in versions], np.int64)
    pages = list(dict.fromkeys(life.page for life in lives))
    host = detect_own_host(read.hrefs, pages)
    sites = {site: number for number, site in enumerate(dict.fromkeys(site_for_page(life.page) for life in lives))}
    start, to = _build_link_graph(lives, content, read, LinkIndex(pages, host), pages)
    texts: PackedTexts = read.packer.finish(content)
    return History(
        name=_world_name(place),
        begin_s=span[0],
        end_s=span[1],
        urls=[page_url(life.page, host or f"{place.label}.invalid") for life in lives],
        site=np.array([sites[site_for_page(life.page)] for life in lives], np.int64),
        kind=np.array([kinds[life.versions[0].path] for life in lives], np.uint8),
        born_s=np.array([life.born_s for life in lives]),
        died_s=np.array([life.died_s for life in lives]),
        moved_to=np.array([life.moved_to for life in lives], np.int64),
        version_page=np.repeat(np.arange(len(lives)), [len(life.versions) for life in lives]),
        version_at_s=np.array([version.at_s for version in versions]),
        # 0 is the digest that no page has.
        digest=np.array([int.from_bytes(version.blob[:8], "big") or 1 for version in versions], np.uint64),
        words=np.array(read.words, np.int64)[content],
        wave=np.array([version.wave for version in versions], np.bool_),
        link_start=start,
        link_to=to,
        site_names=list(sites),
        missing=missing,
        texts=texts,
    )


def _world_name(place: GitLocation) -> str:
    """Return the name of the git world, without any path."""
    inside = f"#{place.branch}" + (f":{place.folder}" if place.folder else "")
    return f"git:{place.label}{inside if place.branch or place.folder else ''}"


def _content_number(read: _ContentTable, version: Version) -> int:
    number = read.numbers[version.blob, _parser_name(version.path)]
    assert number is not None, "a version that cannot be read"
    return number


def _build_link_graph(
    lives: Sequence[Life], content: Ints, read: _ContentTable, links: LinkIndex, pages: Sequence[str]
) -> tuple[Ints, Ints]:
    """Build the link graph of a git history: where each version's links start, and the lives they point to."""
    meant = _LifeResolver(lives, pages)
    tables: dict[str, dict[int, int]] = {}
    found: list[Ints] = []
    row = 0
    for life in lives:
        ends = (*(version.at_s for version in life.versions[1:]), life.died_s)
        # URLs mean the same on all pages of a folder.
        table = tables.setdefault(life.page.rpartition("/")[0], {})
        for version, end_s in zip(life.versions, ends, strict=True):
            numbers = _resolve_links(read, int(content[row]), life.page, links, table)
            found.append(meant.resolve(numbers, life.page, version.at_s, end_s))
            row += 1
    start = np.zeros(len(found) + 1, np.int64)
    np.cumsum([len(one) for one in found], out=start[1:])
    return start, np.concatenate(found)


def _resolve_links(read: _ContentTable, content: int, page: str, links: LinkIndex, table: dict[int, int]) -> list[int]:
    written = read.links[content].tolist()
    for one in written:
        if one not in table:
            table[one] = links.resolve(read.hrefs[one], page)
    return list(dict.fromkeys(map(table.__getitem__, written)))


class _LifeResolver:
    """Resolver of links between git pages to the lives that they point to.

    The last page that existed when the link was written, and those born while it was there; if there are none, the
    first one born at all. So what a link shows at a time follows from the past only.
    """

    def __init__(self, lives: Sequence[Life], pages: Sequence[str]) -> None:
        self._numbers = {page: number for number, page in enumerate(pages)}
        self._lives: list[list[int]] = [[] for _ in pages]
        for number, life in enumerate(lives):
            self._lives[self._numbers[life.page]].append(number)
        self._born_s = [life.born_s for life in lives]
        self._first = np.array([mine[0] for mine in self._lives], np.int64)
        self._reborn = np.array([len(mine) > 1 for mine in self._lives], np.bool_)

    def resolve(self, pages: Sequence[int], page: str, at_s: float, end_s: float) -> Ints:
        own = self._numbers[page]
        numbers = np.array([number for number in pages if number not in (NO_PAGE, own)], np.int64)
        if not self._reborn[numbers].any():
            return self._first[numbers]
        chosen = (self._select_lives(number, at_s, end_s) for number in numbers.tolist())
        return np.fromiter(chain.from_iterable(chosen), np.int64)

    def _select_lives(self, page: int, at_s: float, end_s: float) -> list[int]:
        mine = self._lives[page]
        then = [one for one, after in pairwise([*mine, -1]) if self._is_current(one, after, at_s, end_s)]
        return then or mine[:1]

    def _is_current(self, one: int, after: int, at_s: float, end_s: float) -> bool:
        superseded = after >= 0 and self._born_s[after] <= at_s
        return self._born_s[one] < end_s and not superseded


class ImportSummary(NamedTuple):
    """Summary of a git history's import, in numbers.

    ``contents`` are the distinct ones, ``in_waves`` counts the versions that came with many others, and ``missing``
    what the repository lacked.
    """

    name: str
    pages: int
    versions: int
    contents: int
    links: int
    sites: int
    moves: int
    in_waves: int
    missing: int
    size_bytes: int


def import_git(
    repo: str, out: str | Path, progress: Progress = lambda _done, _all: None, *, many: int = WAVE_THRESHOLD
) -> ImportSummary:
    """Import a git history from ``[git:]PATH[#branch[:folder]]`` into a history file; see ``read_git``."""
    target = Path(out)
    if not target.parent.is_dir() or target.is_dir():
        raise UsageError(f"{out}: the folder does not exist; choose a file in an existing folder")
    history = read_git(repo, many=many, progress=progress)
    return ImportSummary(
        name=history.name,
        pages=history.pages,
        versions=len(history.version_page),
        contents=len(np.unique(history.digest)),
        links=len(history.link_to),
        sites=len(history.site_names),
        moves=int(np.count_nonzero(history.moved_to >= 0)),
        in_waves=int(np.count_nonzero(history.wave)),
        missing=history.missing,
        size_bytes=save_history(history, target),
    )
