"""Opens worlds by name. What is slow to read is read once: into a file of the cache folder, and into memory.

The cache folder is the one that VEDETTE_CACHE names, else ~/.cache/vedette. It can be thrown away at any time.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from vedette import __version__
from vedette.errors import UsageError
from vedette.lab.core.registry import near
from vedette.lab.worlds.frontpages import Frontpages
from vedette.lab.worlds.history import History

__all__ = [
    "KINDS",
    "Place",
    "WorldMissing",
    "cache_folder",
    "fingerprint",
    "import_into",
    "label_of",
    "open_frontpages",
    "open_history",
    "place_of",
    "places_known",
    "remember",
    "worlds_there",
]

# git:PATH[#BRANCH[:FOLDER]]   the history of a web site in git, or one that was imported
# frontpages:FILE.npz          recorded front pages
# made:NAME[:SEED]             a made web
# live:FOLDER                  one's own crawl
# market:NAME                  a made market of sponsored results
# community:NAME               a made community that searches, votes and forgets
# jester:FILE                  recorded votes on jokes
# clicks:FILE.tsv[+MODEL]      visitors that were fitted to a recorded log of searches and clicks
# A path that exists wins. Else ``git:owner/name`` is looked for in the folder that VEDETTE_HISTORIES names, as
# owner+name/repo, and a file of front pages in the folder discovery of the one that VEDETTE_DATA names.


KINDS = ("git", "frontpages", "made", "live", "market", "community", "jester", "clicks")
HISTORIES, DATA = "VEDETTE_HISTORIES", "VEDETTE_DATA"
SEED = 1
_MADE = re.compile(r"([a-z0-9+-]+)(?::(\d{1,9}))?")
_INNER = ("repo", ".git")
# What was typed, by the label that stands for it: a cell knows its world by the label only.
_typed: dict[str, str] = {}


class WorldMissing(UsageError):
    """A world that is not on this machine; the message says how to get it. Other worlds can be run without it."""


class Place(NamedTuple):
    """A world that is here: its kind, its label, its path (none if it is made), and what is meant of it."""

    kind: str
    label: str
    path: Path
    part: str = ""
    seed: int = SEED


def place_of(name: str) -> Place:
    """Where the world of a name or label is. ``WorldMissing`` if it is not here, ``UsageError`` if it cannot be."""
    typed = _typed.get(name, name)
    kind, sign, rest = typed.partition(":")
    if kind not in KINDS or not sign or not rest:
        ways = "git:PATH, frontpages:FILE, made:NAME, live:FOLDER, market:NAME, community:NAME"
        raise UsageError(f'world "{name}": write {ways}, jester:FILE or clicks:FILE; {_are_there()}')
    return _PLACES[kind](rest)


def label_of(name: str) -> str:
    """How a world is written in rows, manifests and documents.

    >>> label_of("made:tiny:7"), label_of("made:tiny:1")
    ('made:tiny:7', 'made:tiny')
    """
    return place_of(name).label


def remember(name: str) -> str:
    """The label of what was typed, which opens it from now on. Two worlds of one label are refused."""
    label = label_of(name)
    if place_of(_typed.get(label, name)) != place_of(name):
        raise UsageError(f"two worlds would both be called {label}; rename a folder, or run them apart")
    _typed[label] = name
    return label


def places_known() -> Mapping[str, str]:
    """What was typed for each label, so that another process can be told."""
    return dict(_typed)


def worlds_there() -> list[str]:
    """The names of recorded worlds that are here, and of the made ones."""
    from vedette.lab.worlds.ads_market import MARKETS
    from vedette.lab.worlds.community import COMMUNITIES
    from vedette.lab.worlds.synthetic_arrays.history import ARRAY_SIZES

    made = {"made": ARRAY_SIZES, "market": MARKETS, "community": COMMUNITIES}
    return [*_gits_there(), *_files_there(), *(f"{kind}:{name}" for kind, names in made.items() for name in names)]


def _are_there() -> str:
    return f"there are: {', '.join(worlds_there())}"


def _git(rest: str) -> Place:
    typed, _, part = rest.partition("#")
    path = _path(typed)
    if _exists(path):
        return Place("git", f"git:{_called(path)}{_after(part)}", path, part)
    kept = _folder(HISTORIES)
    flat = typed.strip("/").removesuffix(".git").replace("/", "+")
    found = [kept / flat / "repo", kept / flat, kept / typed] if kept and _is_plain(typed) else []
    for path in found:
        if _exists(path):
            return Place("git", f"git:{typed.strip('/')}{_after(part)}", path, part)
    where = f"{HISTORIES}/{flat}/repo" if _is_plain(typed) else "a folder of yours"
    raise WorldMissing(
        f"git:{rest} is not here: clone the repository to {where} ({_set(HISTORIES)}), or write git:PATH"
    )


def _frontpages(rest: str) -> Place:
    kept = _folder(DATA)
    for path in (_path(rest), *([kept / "discovery" / rest] if kept and _is_plain(rest) else [])):
        if _exists(path):
            return Place("frontpages", f"frontpages:{path.name}", path)
    raise WorldMissing(
        f"frontpages:{rest} is not here: put the file into {DATA}/discovery ({_set(DATA)}), or make one: "
        "vedette lab import-frontpages CLONE OUT"
    )


def _made(rest: str) -> Place:
    from vedette.lab.worlds.synthetic_arrays.history import ARRAY_SIZES

    read = _MADE.fullmatch(rest)
    if read is None or read[1].partition("+")[0] not in ARRAY_SIZES:
        raise UsageError(f'there is no world "made:{rest}"; {near(rest.partition(":")[0], ARRAY_SIZES)}')
    seed = int(read[2] or SEED)
    return Place("made", f"made:{read[1]}{'' if seed == SEED else f':{seed}'}", Path(), read[1], seed)


def _live(rest: str) -> Place:
    path = _path(rest)
    if not _exists(path / "state.db"):
        raise WorldMissing(f"live:{rest} is not here: name a data folder that vedette crawl or vedette up has filled")
    return Place("live", f"live:{_called(path)}", path)


def _market(rest: str) -> Place:
    from vedette.lab.worlds.ads_market import check_market

    check_market(rest)
    return Place("market", f"market:{rest}", Path(), rest)


def _community(rest: str) -> Place:
    from vedette.lab.worlds.community import community_named

    community_named(rest)
    return Place("community", f"community:{rest}", Path(), rest)


def _jester(rest: str) -> Place:
    from vedette.lab.worlds.jester import jokes_path

    path = jokes_path(rest)
    return Place("jester", f"jester:{path.name}", path)


def _clicks(rest: str) -> Place:
    from vedette.lab.runs.ranking.off_policy import log_path

    path, model = log_path(rest)
    return Place("clicks", f"clicks:{path.name}+{model}", path, model)


def _path(typed: str) -> Path:
    return Path(typed).expanduser() if typed.startswith("~/") else Path(typed)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        # Too long for a name, or with a byte that no name has.
        return False


def _called(path: Path) -> str:
    """The name of a repository or folder without the way to it."""
    whole = path.resolve()
    folder = whole.parent if whole.name in _INNER else whole
    return folder.name.removesuffix(".git").replace("+", "/") or "root"


def _after(part: str) -> str:
    return f"#{part}" if part else ""


def _is_plain(typed: str) -> bool:
    """Whether it is a name, and not a way to somewhere else."""
    return not Path(typed).is_absolute() and ".." not in Path(typed).parts and not typed.startswith("~")


def _folder(variable: str) -> Path | None:
    return Path(os.environ[variable]) if os.environ.get(variable) else None


def _set(variable: str) -> str:
    return f"{variable} is set" if os.environ.get(variable) else f"set {variable} to a folder first"


def _gits_there() -> Iterator[str]:
    kept = _folder(HISTORIES)
    for folder in sorted(kept.iterdir()) if kept and kept.is_dir() else []:
        if "+" in folder.name and any((folder / inner).is_dir() for inner in ("repo", ".git", "objects")):
            yield f"git:{folder.name.replace('+', '/')}"


def _files_there() -> Iterator[str]:
    kept = _folder(DATA)
    yield from (f"frontpages:{file.name}" for file in sorted((kept / "discovery").glob("*.npz"))) if kept else ()


_PLACES: Mapping[str, Callable[[str], Place]] = {
    "git": _git,
    "frontpages": _frontpages,
    "made": _made,
    "live": _live,
    "market": _market,
    "community": _community,
    "jester": _jester,
    "clicks": _clicks,
}


if TYPE_CHECKING:
    from vedette.lab.worlds.git import Summary


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
    return _frontpages_catalog(place)


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
def _frontpages_catalog(place: Place) -> Frontpages:
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
