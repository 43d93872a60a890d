"""Damage to any file of a data folder is repaired, or rejected with one sentence: no traceback, no endless loop.

There are twenty kinds of damage for every file. ``make test`` tries a sample, ``make prove`` all of them.
"""

import hashlib
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.data_folders import NOW_S
from tests.hostile.full_folder import PAGES, REQUEST, create_folder, use
from tests.tree_runs import PROVE

from vedette.adapters.clock import start_clock
from vedette.adapters.index_store.generations import MAX_REPAIRS, Generations
from vedette.adapters.sandbox import find_sandbox
from vedette.cli.main import main
from vedette.config import Config
from vedette.errors import StoreCorrupt, VedetteError
from vedette.runtime.indexing.indexer import open_indexer
from vedette.runtime.processes.indexer import IndexerProcess
from vedette.runtime.search.searcher import FolderSearch

SAMPLE = 48
PARTS = 4
# Everything else can be rebuilt, or replaced without a loss that counts.
REFUSED = {"state.db", "format", "ledger.db"}


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
    """A folder with every kind of file, closed cleanly."""
    folder = tmp_path_factory.mktemp("sound") / "data"
    create_folder(folder)
    return folder


def list_files(folder: Path) -> list[Path]:
    """List the files to damage: all except locks."""
    return sorted(
        path.relative_to(folder) for path in folder.rglob("*") if path.is_file() and not path.name.endswith("lock")
    )


def damage(path: Path, kind: str) -> None:
    """Damage a file."""
    data = path.read_bytes()
    path.unlink()
    if kind != "missing":
        path.write_bytes(DAMAGE[kind](data))


def try_damage(sound: Path, folder: Path, file: Path, kind: str) -> str:
    """Damage one file, use the folder twice, and return the outcome."""
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
    """All pages are found again, or one sentence says what to do; only state, format and ledger can't be rebuilt."""
    cases = [(file, kind) for file in list_files(sound) for kind in KINDS]
    chosen = cases if PROVE else cases[7 :: len(cases) // SAMPLE]
    outcomes = {}
    for file, kind in chosen[part::PARTS]:
        outcome = try_damage(sound, tmp_path / "data", file, kind)
        outcomes[file, kind] = outcome
        assert outcome == "repaired" or (outcome.startswith("refused") and "\n" not in outcome), (file, kind, outcome)
        assert outcome == "repaired" or file.name in REFUSED, (file, kind, outcome)
        assert "Traceback" not in capsys.readouterr().err
    assert len(outcomes) >= SAMPLE // PARTS


def test_an_index_that_is_damaged_while_it_runs_is_replaced(sound: Path, tmp_path: Path) -> None:
    """A reader that finds the damage reports it and finds nothing.

    The indexer then rebuilds, and all pages are found.
    """
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


def test_repeated_failing_repairs_end_with_an_error(sound: Path, tmp_path: Path) -> None:
    """If one replacement after another is damaged immediately, an error says that the disk is probably faulty."""
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
    ("pattern", "part"),
    [
        ("index/*/tantivy/*.term", "index"),
        ("index/*/text", "index"),
        ("index/vectors-*.parts", "vectors"),
        ("record.db", "searches"),
    ],
)
def test_check_finds_and_repairs(
    sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], pattern: str, part: str
) -> None:
    """An intact folder passes; damage is reported by part, repaired on request, and gone afterwards."""
    folder = tmp_path / "data"
    shutil.copytree(sound, folder)
    assert check(folder) == 0
    words = capsys.readouterr().out
    assert "damaged" not in words
    assert f"parsers   {find_sandbox()}" in words
    damage(next(folder.glob(pattern)), "half")
    assert check(folder) == 1
    assert f"{part:<9} damaged" in capsys.readouterr().out
    assert check(folder, "--repair") == 0
    assert check(folder) == 0
    assert use(folder) == PAGES


@pytest.mark.parametrize("kind", ["half", "byte in the middle flipped", "missing"])
def test_check_reads_the_archive(sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    """Fetched pages can't be rebuilt: the damage is reported, and repairing does not hide it."""
    folder = tmp_path / "data"
    shutil.copytree(sound, folder)
    damage(next(folder.glob("warc/*.warc.gz")), kind)
    assert check(folder, "--repair") == 1
    assert "archive   damaged" in capsys.readouterr().out


def check(folder: Path, *options: str) -> int:
    """Return the exit code of ``vedette check``."""
    return main(["check", "--data", str(folder), *options])
