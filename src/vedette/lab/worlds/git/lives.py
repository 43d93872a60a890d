"""The lives and versions of pages, out of what each step did to files.

A page lives while any of its files does, and shows the first of them. A change whose content cannot be read is no
change (it is counted): the page goes on with what it had, and a page of which nothing can be read is none.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from vedette.lab.worlds.git.paths import page_of
from vedette.lab.worlds.git.walk import Step

__all__ = ["Life", "Lived", "Version", "lived"]


class Version(NamedTuple):
    """What a page showed from a time on: the blob's id, the file, and whether it came in a wave."""

    at_s: float
    blob: bytes
    path: str
    wave: bool


@dataclass(slots=True)
class Life:
    """One life of a page, by the name that ``page_of`` gives it. ``moved_to`` is the number of a life, or -1."""

    page: str
    versions: list[Version]
    died_s: float = float("inf")
    moved_to: int = -1

    @property
    def born_s(self) -> float:
        """When it was first there."""
        return self.versions[0].at_s


class Lived(NamedTuple):
    """All lives in the order of birth, in one step by name; and how many changes could not be read."""

    lives: list[Life]
    missing: int


def lived(steps: Iterable[Step], readable: Mapping[tuple[bytes, str], bool], many: int) -> Lived:
    """The lives of all pages.

    ``readable`` has the files that are pages, with each of their contents: whether that can be read. A step that
    touches more than ``many`` pages is a wave.
    """
    past = _Past(readable)
    for step in steps:
        past.take(step, many)
    return Lived(past.lives, past.missing)


@dataclass(slots=True)
class _Past:
    readable: Mapping[tuple[bytes, str], bool]
    lives: list[Life] = field(default_factory=list)
    missing: int = 0
    # The files of each page by rank, and the life that each page is in.
    files: dict[str, dict[int, tuple[bytes, str]]] = field(default_factory=dict)
    alive: dict[str, int] = field(default_factory=dict)

    def take(self, step: Step, many: int) -> None:
        touched = sorted(dict.fromkeys(self._files(step)))
        changed = [page for page in touched if self._blob(page) != self._showing(page)]
        wave = len(changed) > many
        gone = {page: self.alive.pop(page) for page in changed if self._shown(page) is None}
        came = {page: len(self.lives) + place for place, page in enumerate(self._births(changed))}
        for page in changed:
            shown = self._shown(page)
            if shown is None:
                self.lives[gone[page]].died_s = step.at_s
            elif page in came:
                self.lives.append(Life(page, [Version(step.at_s, *shown, wave)]))
            else:
                self.lives[self.alive[page]].versions.append(Version(step.at_s, *shown, wave))
        self.alive.update(came)
        for old, new in self._moves(step, gone, came):
            self.lives[old].moved_to = new

    def _files(self, step: Step) -> Iterator[str]:
        """Keeps what files hold now; the pages that this may touch."""
        for path, blob in step.files.items():
            page, rank = page_of(path)
            if blob is None:
                if self.files.get(page, {}).pop(rank, None):
                    yield page
            elif (readable := self.readable.get((blob, path))) is not None:
                if readable:
                    self.files.setdefault(page, {})[rank] = (blob, path)
                    yield page
                else:
                    self.missing += 1

    def _shown(self, page: str) -> tuple[bytes, str] | None:
        files = self.files.get(page)
        return files[min(files)] if files else None

    def _blob(self, page: str) -> bytes | None:
        shown = self._shown(page)
        return shown and shown[0]

    def _showing(self, page: str) -> bytes | None:
        return self.lives[self.alive[page]].versions[-1].blob if page in self.alive else None

    def _births(self, changed: Iterable[str]) -> Iterator[str]:
        return (page for page in changed if page not in self.alive and self._shown(page) is not None)

    def _moves(self, step: Step, gone: Mapping[str, int], came: Mapping[str, int]) -> Iterator[tuple[int, int]]:
        """Lives that ended, with those that took their place: the same content first, then what git finds similar."""
        if not gone or not came:
            return
        taken: set[str] = set()
        for old, new in (*self._same(gone, came), *_similar(step)):
            if old in gone and new in came and old not in taken and new not in taken:
                taken |= {old, new}
                yield gone[old], came[new]

    def _same(self, gone: Mapping[str, int], came: Mapping[str, int]) -> Iterator[tuple[str, str]]:
        """Pages that went and came with the same content; if they can, those that are called alike."""
        for name in (_name, _no_name):
            waiting: dict[tuple[bytes, str], list[str]] = {}
            for page, life in reversed([*gone.items()]):
                waiting.setdefault((self.lives[life].versions[-1].blob, name(page)), []).append(page)
            for page, life in came.items():
                if same := waiting.get((self.lives[life].versions[0].blob, name(page))):
                    yield same.pop(), page


def _similar(step: Step) -> Iterator[tuple[str, str]]:
    return ((page_of(old)[0], page_of(new)[0]) for new, old in step.renamed.items())


def _name(page: str) -> str:
    return page.rstrip("/").rpartition("/")[2]


def _no_name(page: str) -> str:
    del page
    return ""
