"""Opens worlds by name. What is slow to read is read once: into a file of the cache folder, and into memory.

The cache folder is the one that VEDETTE_CACHE names, else ~/.cache/vedette. It can be thrown away at any time.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from vedette import __version__
from vedette.errors import UsageError
from vedette.lab.worlds.frontpages import Frontpages
from vedette.lab.worlds.history import History
from vedette.lab.worlds.world_names import Place, WorldMissing, label_of, place_of

if TYPE_CHECKING:
    from vedette.lab.worlds.git import Summary

__all__ = ["WorldMissing", "cache_folder", "fingerprint", "import_into", "label_of", "open_frontpages", "open_history"]

WORLDS_IN_MEMORY = 2
CHUNK = 1 << 20
Progress = Callable[[int, int], None]


def open_history(name: str) -> History:
    """The past of a web, by its name or label: git:, made: or live:."""
    place = place_of(name)
    if place.kind == "frontpages":
        raise UsageError(f"{place.label}: front pages have no whole past; write git:PATH, made:NAME or live:FOLDER")
    return _history(place)


def open_frontpages(name: str) -> Frontpages:
    """Recorded front pages, by their name or label."""
    place = place_of(name)
    if place.kind != "frontpages":
        raise UsageError(f"{place.label} has no front pages; write frontpages:FILE.npz")
    return _frontpages(place)


def fingerprint(name: str) -> str:
    """What a world is made of, as a short text: equal where a run on it must give the same rows."""
    place = place_of(name)
    if place.kind == "git":
        return _digest([place.part.encode(), *_git_identity(place)])
    if place.kind in {"made", "market", "community"}:
        return _digest([place.label.encode(), __version__.encode()])
    files = [place.path] if place.path.is_file() else [place.path / "state.db", place.path / "state.db-wal"]
    return _digest(chunk for file in files if file.is_file() for chunk in _chunks(file))


def cache_folder() -> Path:
    """Where imported histories are kept."""
    return Path(os.environ.get("VEDETTE_CACHE") or Path.home() / ".cache" / "vedette")


@lru_cache(maxsize=WORLDS_IN_MEMORY)
def _history(place: Place) -> History:
    if place.kind == "made":
        from vedette.lab.worlds.synthetic_arrays.history import made_history

        return made_history(place.part, place.seed)
    if place.kind == "live":
        from vedette.lab.worlds.own_crawl import live_history

        return live_history(place.path)
    return _git_history(place)


@lru_cache(maxsize=WORLDS_IN_MEMORY)
def _frontpages(place: Place) -> Frontpages:
    from vedette.lab.worlds.frontpages.files import load_frontpages

    return load_frontpages(place.path, place.label)


def _git_history(place: Place) -> History:
    from vedette.lab.worlds.history_file import load

    if not _is_repository(place.path):
        return load(place.path)
    kept = cache_folder() / "histories" / _digest([place.part.encode(), *_git_identity(place)])
    if not kept.exists():
        import_into(place, kept)
    return load(kept)


def import_into(place: Place, out: Path, progress: Progress = lambda _done, _all: None) -> "Summary":
    """Read a repository into a file of its own; whoever does it at the same time comes to the same."""
    from vedette.lab.worlds.git import import_git

    out.parent.mkdir(parents=True, exist_ok=True)
    return import_git(_written(place), out, progress)


def _git_identity(place: Place) -> Iterator[bytes]:
    """The commit that is read, and by which rules; of an imported history its bytes."""
    from vedette.lab.worlds.git.place import open_tip, read_place
    from vedette.lab.worlds.history_file import FORMAT

    if _is_repository(place.path):
        yield f" {FORMAT} {open_tip(read_place(_written(place))).commit.id} {_rules()}".encode()
    else:
        yield from _chunks(place.path)


def _written(place: Place) -> str:
    return f"{place.path}#{place.part}" if place.part else str(place.path)


@cache
def _rules() -> str:
    """The code by which pages are read out of a repository: where it changes, what was read is read again."""
    here = Path(__file__).parent
    folders = (here / "git", here.parents[1] / "parse")
    return _digest(file.read_bytes() for folder in folders for file in sorted(folder.rglob("*.py")))


def _is_repository(path: Path) -> bool:
    return (path / "objects").is_dir() or (path / ".git").exists()


def _chunks(path: Path) -> Iterator[bytes]:
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    for file in files:
        if file.is_file():
            with file.open("rb") as opened:
                yield from iter(lambda opened=opened: opened.read(CHUNK), b"")  # type: ignore[misc]  # binds the file


def _digest(parts: Iterable[bytes]) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part)
    return whole.hexdigest()[:32]
