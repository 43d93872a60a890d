"""Damage to any file of a data folder: repaired, or refused with one sentence; never a traceback, never a loop.

Twenty kinds of damage times every file. `make test` tries a sample, `make prove` all of them.
"""

import hashlib
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.data_folders import NOW_S
from tests.runtime.indexing.test_index_builder import SITE, Web, page
from tests.tree_runs import PROVE

from vedette.adapters.clock import start_clock
from vedette.adapters.crawl_store.data_folder import lock_folder, open_state
from vedette.adapters.crawl_store.store import SiteRow
from vedette.adapters.event_store.store import EventStore
from vedette.adapters.index_store.generations import MAX_REPAIRS, Generations
from vedette.cli.main import main
from vedette.config import Config
from vedette.errors import StoreCorrupt, VedetteError
from vedette.runtime.indexing.indexer import catch_up, open_indexer
from vedette.runtime.processes.indexer import IndexerProcess
from vedette.runtime.search.searcher import FolderSearch
from vedette.serve.slate import SearchRequest

SAMPLE = 48
PARTS = 4
REQUEST = SearchRequest("zeppelin", folded=False)
PAGES = 6


def _flip(data: bytes, at: int, count: int = 1) -> bytes:
    at = max(min(at, len(data) - count), 0)
    return data[:at] + bytes(byte ^ 0xA5 for byte in data[at : at + count]) + data[at + count :]


NOISE = hashlib.shake_256(b"noise").digest(4096)
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "first byte only": lambda data: data[:1],
    "first ten bytes": lambda data: data[:10],
    "half": lambda data: data[: len(data) // 2],
    "without the last byte": lambda data: data[:-1],
    "without the last ten bytes": lambda data: data[:-10],
    "without the first byte": lambda data: data[1:],
    "first byte flipped": lambda data: _flip(data, 0),
    "byte at a quarter flipped": lambda data: _flip(data, len(data) // 4),
    "byte in the middle flipped": lambda data: _flip(data, len(data) // 2),
    "last byte flipped": lambda data: _flip(data, len(data)),
    "sixteen bytes flipped": lambda data: _flip(data, len(data) // 3, 16),
    "all zeros": lambda data: bytes(len(data)),
    "zeros at the start": lambda data: bytes(min(100, len(data))) + data[100:],
    "zeros in the middle": lambda data: (
        data[: len(data) // 2] + bytes(min(64, len(data) // 4)) + data[len(data) // 2 + min(64, len(data) // 4) :]
    ),
    "noise": lambda data: NOISE[: max(len(data), 16)],
    "noise behind it": lambda data: data + NOISE[:100],
    "twice": lambda data: data + data,
    "text": lambda _: b"This is not what it was.\n",
}
KINDS = [*DAMAGE, "missing"]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pages, an index, searches and clicks, closed cleanly."""
    folder = tmp_path_factory.mktemp("sound") / "data"
    web = Web(folder)
    with web.state() as state:
        state.store.save_site(SiteRow(SITE, paused=False, added_s=NOW_S))
    links = "".join(f'<a href="/{number}">number {number}</a>' for number in range(PAGES))
    web.all_answer({str(number): page(f"Page {number}", "zeppelin", links=links) for number in range(PAGES)})
    web.index()
    with closing(EventStore(folder)) as store:
        store.ingest_all_logs()
    return folder


def list_files(folder: Path) -> list[Path]:
    """The files that may be damaged: all but locks."""
    return sorted(
        path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and not path.name.endswith("lock")
    )


def damage(path: Path, kind: str) -> None:
    """Damage a file."""
    data = path.read_bytes()
    path.unlink()
    if kind != "missing":
        path.write_bytes(DAMAGE[kind](data))


def use(folder: Path) -> int:
    """Open the folder as a writer does, bring the index up to date, and search; how many pages are found."""
    with lock_folder(folder):
        state = open_state(folder, "test", NOW_S + 1e6)
        state.close(clean=True)
    catch_up(folder, start_clock(NOW_S + 1e6, 1.0))
    search = FolderSearch(folder, start_clock(NOW_S + 1e6, 1.0))
    return len(search.search(REQUEST).results)


def try_damage(sound: Path, folder: Path, file: Path, kind: str) -> str:
    """Damage one file and use the folder twice; how that ended."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(sound, folder)
    damage(folder / file, kind)
    # A reader that comes before any writer: nothing but a sentence, and exit codes of our own.
    assert main(["status", "--data", str(folder)]) in {0, 1, 2}
    assert main(["search", "zeppelin", "--data", str(folder)]) in {0, 1, 2}
    try:
        found = [use(folder), use(folder)]
    except VedetteError as error:
        return f"refused: {error}"
    return "repaired" if found == [PAGES, PAGES] else f"found {found}"


@pytest.mark.parametrize("part", range(PARTS))
def test_a_damaged_file_is_repaired_or_refused(
    sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], part: int
) -> None:
    """All pages are found again, or one sentence says what to do; only state and format cannot be made again."""
    cases = [(file, kind) for file in list_files(sound) for kind in KINDS]
    chosen = cases if PROVE else cases[7 :: len(cases) // SAMPLE]
    outcomes = {}
    for file, kind in chosen[part::PARTS]:
        outcome = try_damage(sound, tmp_path / "data", file, kind)
        outcomes[file, kind] = outcome
        assert outcome == "repaired" or (outcome.startswith("refused") and "\n" not in outcome), (file, kind, outcome)
        assert outcome == "repaired" or file.name in {"state.db", "format"}, (file, kind, outcome)
        assert "Traceback" not in capsys.readouterr().err
    assert len(outcomes) >= SAMPLE // PARTS


def test_an_index_that_is_damaged_while_it_runs_is_replaced(sound: Path, tmp_path: Path) -> None:
    """A reader that comes upon it says so and finds nothing; the indexer then builds another, and all is found."""
    folder = tmp_path / "data"
    shutil.copytree(sound, folder)
    clock = start_clock(NOW_S + 1e6, 1.0)
    search, generations = FolderSearch(folder, clock), Generations(folder)
    assert len(search.search(REQUEST).results) == PAGES
    broken = generations.current()
    assert broken is not None
    settings = SimpleNamespace(folder=folder, clock=clock, config=Config())
    with closing(IndexerProcess(settings, open_indexer(folder, clock))) as process:  # type: ignore[arg-type]  # all it needs
        for path in (broken / "tantivy").glob("*.term"):
            damage(path, "sixteen bytes flipped")
        fresh = FolderSearch(folder, clock)
        fresh._refresh()
        assert fresh._snapshot is not None
        assert fresh._drop_damaged(fresh._snapshot)
        assert fresh.search(REQUEST).results == ()
        assert "damaged" in fresh.get_incomplete_reason()
        while process.step():
            pass
        replaced = generations.current()
        assert replaced is not None
        assert int(replaced.name) > int(broken.name)
    assert len(FolderSearch(folder, clock).search(REQUEST).results) == PAGES
    assert FolderSearch(folder, clock).get_incomplete_reason() == ""
    assert not list((folder / "index").glob("*.damaged"))


def test_repairs_that_do_not_help_come_to_an_end(sound: Path, tmp_path: Path) -> None:
    """Where one replacement after the other is damaged at once, the disk is at fault, and somebody has to know."""
    folder = tmp_path / "data"
    shutil.copytree(sound, folder)
    generations = Generations(folder)
    for _ in range(MAX_REPAIRS):
        generations.put_aside(_current(generations), "cheese")
    with pytest.raises(StoreCorrupt, match="check disk"):
        generations.put_aside(_current(generations), "cheese")


def _current(generations: Generations) -> Path:
    generation = generations.current()
    assert generation is not None
    return generation


@pytest.mark.parametrize(
    ("pattern", "part"), [("index/*/tantivy/*.term", "index"), ("index/*/text", "index"), ("record.db", "searches")]
)
def test_check_finds_and_repairs(
    sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], pattern: str, part: str
) -> None:
    """A sound folder is sound; damage is named with its part, repaired on request, and gone afterwards."""
    folder = tmp_path / "data"
    shutil.copytree(sound, folder)
    assert check(folder) == 0
    assert "damaged" not in capsys.readouterr().out
    damage(next(folder.glob(pattern)), "half")
    assert check(folder) == 1
    assert f"{part:<9} damaged" in capsys.readouterr().out
    assert check(folder, "--repair") == 0
    assert check(folder) == 0
    assert use(folder) == PAGES


@pytest.mark.parametrize("kind", ["half", "byte in the middle flipped", "missing"])
def test_check_reads_the_archive(sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    """What was fetched cannot be made again here: it is named, and repairing does not pretend otherwise."""
    folder = tmp_path / "data"
    shutil.copytree(sound, folder)
    damage(next(folder.glob("warc/*.warc.gz")), kind)
    assert check(folder, "--repair") == 1
    assert "archive   damaged" in capsys.readouterr().out


def check(folder: Path, *options: str) -> int:
    """The exit code of ``vedette check``."""
    return main(["check", "--data", str(folder), *options])
