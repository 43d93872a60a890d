"""Catalog of worlds: open them by name. Slow ones are parsed once, into a file of the cache folder and into memory.

The cache folder is the one named by VEDETTE_CACHE, else ~/.cache/vedette. It can be deleted at any time.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from vedette.errors import UsageError
from vedette.lab.core.registry import suggest_name
from vedette.lab.worlds.frontpages import Frontpages
from vedette.lab.worlds.history import History
from vedette.version import __version__

if TYPE_CHECKING:
    from vedette.lab.worlds.git import ImportSummary
    from vedette.lab.worlds.git.repository import Progress

# git:PATH[#BRANCH[:FOLDER]]   the history of a web site in git, or one that was imported
# joined:GIT,GIT,...           the tips of several such, each written as after git:, as one web
# frontpages:FILE.npz          recorded front pages
# made:NAME[:SEED]             a synthetic web
# live:FOLDER                  your own crawl
# market:NAME                  a synthetic market of ads
# machines:NAME                a kind of machine of a cluster
# community:NAME               a simulated community that searches, votes and forgets
# jester:FILE                  recorded votes on jokes
# clicks:FILE.tsv[+MODEL]      visitors that were fitted to a recorded log of searches and clicks
# A path that exists wins. Else ``git:owner/name`` is looked for in the folder that VEDETTE_HISTORIES names, as
# owner+name/repo, and a file of front pages in the folder discovery of the one that VEDETTE_DATA names.


WORLD_KINDS = (
    "git",
    "joined",
    "frontpages",
    "made",
    "live",
    "market",
    "machines",
    "regions",
    "community",
    "jester",
    "clicks",
)
HISTORIES_VARIABLE, DATA_VARIABLE = "VEDETTE_HISTORIES", "VEDETTE_DATA"
DEFAULT_SEED = 1
_SYNTHETIC_NAME = re.compile(r"([a-z0-9+-]+)(?::(\d{1,9}))?")
_INNER_FOLDERS = ("repo", ".git")
# The typed name by label: a cell knows its world only by the label.
_names_by_label: dict[str, str] = {}


class WorldMissing(UsageError):
    """Error: a world of the catalog is not on this machine; the message says how to get it. Other worlds can be run."""


class WorldLocation(NamedTuple):
    """Location of a world in the catalog: its kind, label, path (none if synthetic), and which part of it."""

    kind: str
    label: str
    path: Path
    part: str = ""
    seed: int = DEFAULT_SEED


def split_worlds(text: str) -> list[str]:
    """Split a list of world names at its commas; those within a joined world are part of its name.

    >>> split_worlds("made:tiny, joined:a/b#main:docs,c/d,made:small")
    ['made:tiny', 'joined:a/b#main:docs,c/d', 'made:small']
    """
    names: list[str] = []
    for part in filter(None, map(str.strip, text.split(","))):
        is_name = part.partition(":")[0] in WORLD_KINDS
        if not is_name and names and names[-1].startswith("joined:"):
            names[-1] += f",{part}"
        elif part not in names:
            names.append(part)
    return names


def locate_world(name: str) -> WorldLocation:
    """Locate a world by name or label. ``WorldMissing`` if it is not on this machine, ``UsageError`` if invalid."""
    typed = _names_by_label.get(name, name)
    kind, sign, rest = typed.partition(":")
    if kind not in WORLD_KINDS or not sign or not rest:
        ways = "git:PATH, frontpages:FILE, made:NAME, live:FOLDER, market:NAME, community:NAME"
        raise UsageError(
            f'unknown world "{name}": use {ways}, jester:FILE or clicks:FILE; available: {", ".join(list_worlds())}'
        )
    return _LOCATORS[kind](rest)


def get_label(name: str) -> str:
    """Return the catalog label of a world, as rows, manifests and documents write it.

    >>> get_label("made:tiny:7"), get_label("made:tiny:1")
    ('made:tiny:7', 'made:tiny')
    """
    return locate_world(name).label


def register_world(name: str) -> str:
    """Register a typed world name in the catalog; return the label that opens it from now on.

    Two worlds with the same label are refused.
    """
    label = get_label(name)
    if locate_world(_names_by_label.get(label, name)) != locate_world(name):
        raise UsageError(f"two worlds are named {label}; rename a folder, or run them separately")
    _names_by_label[label] = name
    return label


def registered_worlds() -> Mapping[str, str]:
    """Return the typed name of each world label registered in the catalog, so that it can be passed to a process."""
    return dict(_names_by_label)


def list_worlds() -> list[str]:
    """List the names of recorded worlds on this machine and of the synthetic ones."""
    from vedette.lab.worlds.ads_market import AD_MARKETS
    from vedette.lab.worlds.community import COMMUNITIES
    from vedette.lab.worlds.machines import MACHINES
    from vedette.lab.worlds.regions import REGION_WEBS
    from vedette.lab.worlds.synthetic.history import ARRAY_SIZES

    synthetic = {
        "made": ARRAY_SIZES,
        "market": AD_MARKETS,
        "machines": MACHINES,
        "regions": REGION_WEBS,
        "community": COMMUNITIES,
    }
    return [
        *_iter_git_worlds(),
        *_iter_frontpage_worlds(),
        *(f"{kind}:{name}" for kind, names in synthetic.items() for name in names),
    ]


def _locate_git(rest: str) -> WorldLocation:
    typed, _, part = rest.partition("#")
    path = _expand_path(typed)
    if _exists(path):
        return WorldLocation("git", f"git:{_folder_label(path)}{_format_fragment(part)}", path, part)
    histories = _get_folder(HISTORIES_VARIABLE)
    flat = typed.strip("/").removesuffix(".git").replace("/", "+")
    found = (
        [histories / flat / "repo", histories / flat, histories / typed]
        if histories and _is_relative_name(typed)
        else []
    )
    for path in found:
        if _exists(path):
            return WorldLocation("git", f"git:{typed.strip('/')}{_format_fragment(part)}", path, part)
    where = f"{HISTORIES_VARIABLE}/{flat}/repo" if _is_relative_name(typed) else "a folder of yours"
    raise WorldMissing(
        f"git:{rest} not found: clone the repository to {where} "
        f"({_describe_variable(HISTORIES_VARIABLE)}), or use git:PATH"
    )


def _locate_joined(rest: str) -> WorldLocation:
    sites = [_locate_git(each) for each in rest.split(",")]
    label = ",".join(site.label.removeprefix("git:") for site in sites)
    return WorldLocation("joined", f"joined:{label}", Path(), ",".join(f"{site.path}#{site.part}" for site in sites))


def _locate_frontpages(rest: str) -> WorldLocation:
    data = _get_folder(DATA_VARIABLE)
    for path in (_expand_path(rest), *([data / "discovery" / rest] if data and _is_relative_name(rest) else [])):
        if _exists(path):
            return WorldLocation("frontpages", f"frontpages:{path.name}", path)
    raise WorldMissing(
        f"frontpages:{rest} not found: put the file into {DATA_VARIABLE}/discovery "
        f"({_describe_variable(DATA_VARIABLE)}), or create one with vedette lab import-frontpages CLONE OUT"
    )


def _locate_synthetic(rest: str) -> WorldLocation:
    from vedette.lab.worlds.synthetic.history import ARRAY_SIZES

    read = _SYNTHETIC_NAME.fullmatch(rest)
    if read is None or read[1].partition("+")[0] not in ARRAY_SIZES:
        raise UsageError(f'there is no world "made:{rest}"; {suggest_name(rest.partition(":")[0], ARRAY_SIZES)}')
    seed = int(read[2] or DEFAULT_SEED)
    return WorldLocation("made", f"made:{read[1]}{'' if seed == DEFAULT_SEED else f':{seed}'}", Path(), read[1], seed)


def _locate_live(rest: str) -> WorldLocation:
    path = _expand_path(rest)
    if not _exists(path / "state.db"):
        raise WorldMissing(f"live:{rest} not found: choose a data folder that vedette crawl or vedette up has filled")
    return WorldLocation("live", f"live:{_folder_label(path)}", path)


def _locate_market(rest: str) -> WorldLocation:
    from vedette.lab.worlds.ads_market import check_ad_market

    check_ad_market(rest)
    return WorldLocation("market", f"market:{rest}", Path(), rest)


def _locate_machines(rest: str) -> WorldLocation:
    from vedette.lab.worlds.machines import check_machine

    check_machine(rest)
    return WorldLocation("machines", f"machines:{rest}", Path(), rest)


def _locate_regions(rest: str) -> WorldLocation:
    from vedette.lab.worlds.regions import check_region_web

    check_region_web(rest)
    return WorldLocation("regions", f"regions:{rest}", Path(), rest)


def _locate_community(rest: str) -> WorldLocation:
    from vedette.lab.worlds.community import parse_community

    parse_community(rest)
    return WorldLocation("community", f"community:{rest}", Path(), rest)


def _locate_jester(rest: str) -> WorldLocation:
    from vedette.lab.worlds.jester import find_ratings

    path = find_ratings(rest)
    return WorldLocation("jester", f"jester:{path.name}", path)


def _locate_clicks(rest: str) -> WorldLocation:
    from vedette.lab.experiments.off_policy import find_log

    path, model = find_log(rest)
    return WorldLocation("clicks", f"clicks:{path.name}+{model}", path, model)


def _expand_path(typed: str) -> Path:
    return Path(typed).expanduser() if typed.startswith("~/") else Path(typed)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        # Too long for a file name, or with an invalid byte.
        return False


def _folder_label(path: Path) -> str:
    """Return the catalog label of a repository or folder: its name without the parent path."""
    whole = path.resolve()
    folder = whole.parent if whole.name in _INNER_FOLDERS else whole
    return folder.name.removesuffix(".git").replace("+", "/") or "root"


def _format_fragment(part: str) -> str:
    return f"#{part}" if part else ""


def _is_relative_name(typed: str) -> bool:
    """Check whether a typed world is a plain name, and not a path that leads out of the data folder."""
    return not Path(typed).is_absolute() and ".." not in Path(typed).parts and not typed.startswith("~")


def _get_folder(variable: str) -> Path | None:
    return Path(os.environ[variable]) if os.environ.get(variable) else None


def _describe_variable(variable: str) -> str:
    return f"{variable} is set" if os.environ.get(variable) else f"set {variable} to a folder first"


def _iter_git_worlds() -> Iterator[str]:
    histories = _get_folder(HISTORIES_VARIABLE)
    for folder in sorted(histories.iterdir()) if histories and histories.is_dir() else []:
        if "+" in folder.name and any((folder / inner).is_dir() for inner in ("repo", ".git", "objects")):
            yield f"git:{folder.name.replace('+', '/')}"


def _iter_frontpage_worlds() -> Iterator[str]:
    data = _get_folder(DATA_VARIABLE)
    yield from (f"frontpages:{file.name}" for file in sorted((data / "discovery").glob("*.npz"))) if data else ()


_LOCATORS: Mapping[str, Callable[[str], WorldLocation]] = {
    "git": _locate_git,
    "joined": _locate_joined,
    "frontpages": _locate_frontpages,
    "made": _locate_synthetic,
    "live": _locate_live,
    "market": _locate_market,
    "machines": _locate_machines,
    "regions": _locate_regions,
    "community": _locate_community,
    "jester": _locate_jester,
    "clicks": _locate_clicks,
}


WORLDS_IN_MEMORY = 2
CHUNK_BYTES = 1 << 20


def open_history(name: str) -> History:
    """Open the history of a web by its world name or label: git:, made: or live:."""
    place = locate_world(name)
    if place.kind in ("frontpages", "joined"):
        raise UsageError(
            f"{place.label}: a world of this kind has no full history; use git:PATH, made:NAME or live:FOLDER"
        )
    return _load_history(place)


def open_frontpages(name: str) -> Frontpages:
    """Open the world of recorded front pages by name or label."""
    place = locate_world(name)
    if place.kind != "frontpages":
        raise UsageError(f"{place.label} has no front pages; use frontpages:FILE.npz")
    return _load_frontpages(place)


def fingerprint_world(name: str) -> str:
    """Fingerprint a world of the catalog as a short text: equal if a run on it must give the same rows."""
    place = locate_world(name)
    if place.kind == "git":
        return _digest([place.part.encode(), *_iter_git_identity(place)])
    if place.kind in {"made", "market", "machines", "regions", "community"}:
        return _digest([place.label.encode(), __version__.encode()])
    files = [place.path] if place.path.is_file() else [place.path / "state.db", place.path / "state.db-wal"]
    return _digest(chunk for file in files if file.is_file() for chunk in _iter_chunks(file))


def get_cache_folder() -> Path:
    """Return the cache folder where the catalog stores imported histories."""
    return Path(os.environ.get("VEDETTE_CACHE") or Path.home() / ".cache" / "vedette")


@lru_cache(maxsize=WORLDS_IN_MEMORY)
def _load_history(place: WorldLocation) -> History:
    if place.kind == "made":
        from vedette.lab.worlds.synthetic.history import build_synthetic_history

        return build_synthetic_history(place.part, place.seed)
    if place.kind == "live":
        from vedette.lab.worlds.own_crawl import load_crawl_history

        return load_crawl_history(place.path)
    return _load_git_history(place)


@lru_cache(maxsize=WORLDS_IN_MEMORY)
def _load_frontpages(place: WorldLocation) -> Frontpages:
    from vedette.lab.worlds.frontpages.files import load_frontpages

    return load_frontpages(place.path, place.label)


def _load_git_history(place: WorldLocation) -> History:
    from vedette.lab.worlds.history_file import load_history

    if not _is_repository(place.path):
        return load_history(place.path)
    cached = get_cache_folder() / "histories" / _digest([place.part.encode(), *_iter_git_identity(place)])
    if not cached.exists():
        import_repository(place, cached)
    return load_history(cached)


def import_repository(
    place: WorldLocation, out: Path, progress: "Progress" = lambda _done, _all: None
) -> "ImportSummary":
    """Import a git repository as a world into a history file; processes that do so concurrently write the same file."""
    from vedette.lab.worlds.git import import_git

    out.parent.mkdir(parents=True, exist_ok=True)
    return import_git(_format_location(place), out, progress)


def _iter_git_identity(place: WorldLocation) -> Iterator[bytes]:
    """Yield what identifies a git world: its commit and the parser code, or the bytes of an imported history."""
    from vedette.lab.worlds.git.repository import open_tip, parse_location
    from vedette.lab.worlds.history_file import FORMAT

    if _is_repository(place.path):
        yield f" {FORMAT} {open_tip(parse_location(_format_location(place))).commit.id} {_hash_parser_code()}".encode()
    else:
        yield from _iter_chunks(place.path)


def _format_location(place: WorldLocation) -> str:
    return f"{place.path}#{place.part}" if place.part else str(place.path)


@cache
def _hash_parser_code() -> str:
    """Hash the code that parses pages from git repositories, so that cached histories are rebuilt when it changes."""
    here = Path(__file__).parent
    folders = (here / "git", here.parents[1] / "parse")
    return _digest(file.read_bytes() for folder in folders for file in sorted(folder.rglob("*.py")))


def _is_repository(path: Path) -> bool:
    return (path / "objects").is_dir() or (path / ".git").exists()


def _iter_chunks(path: Path) -> Iterator[bytes]:
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    for file in files:
        if file.is_file():
            with file.open("rb") as opened:
                yield from iter(lambda opened=opened: opened.read(CHUNK_BYTES), b"")  # type: ignore[misc]  # binds the file


def _digest(parts: Iterable[bytes]) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part)
    return whole.hexdigest()[:32]
