"""A folder of any old format is upgraded, used, and returned to the version that wrote it."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.data_folders import NOW_S
from tests.runtime.indexing.test_index_builder import SITE, Web, page

from vedette.adapters.crawl_store import data_folder
from vedette.adapters.crawl_store.data_folder import FORMAT
from vedette.adapters.crawl_store.store import SiteRow
from vedette.cli.main import main

GOLDEN = Path(__file__).parents[2] / "golden"


def copy_sample(number: int, tmp_path: Path) -> Path:
    """Copy the kept sample of a format."""
    folder = shutil.copytree(GOLDEN / f"format-{number}", tmp_path / "data")
    folder.chmod(0o700)
    return folder


def dump(path: Path) -> list[str]:
    """Dump a database as SQL."""
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as db:
        return list(db.iterdump())


def fetch_and_find(web: Web, word: str) -> bool:
    """Fetch a page with a word, and search for it."""
    with web.state() as state:  # format 1 did not store sites
        state.store.save_site(SiteRow(SITE, paused=False, added_s=NOW_S))
    web.answers(word, page(f"About a {word}", word))
    return web.found(word) == [word]


@pytest.mark.parametrize("number", range(1, FORMAT))
def test_an_upgraded_folder_is_used_and_goes_back(number: int, tmp_path: Path) -> None:
    """A page is fetched and searchable; after going back to the state kept by the upgrade, so is its old version."""
    folder = copy_sample(number, tmp_path)
    assert fetch_and_find(Web(folder, NOW_S + 1e6), "zeppelin")
    for name in ("state.db-wal", "state.db-shm", "urls", "bands"):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / "index")
    (folder / f"state-format-{number}.db").rename(folder / "state.db")
    (folder / "format").write_text(f"{number}\n")
    assert dump(folder / "state.db") == dump(GOLDEN / f"format-{number}" / "state.db")
    assert fetch_and_find(Web(folder, NOW_S + 2e6), "dirigible")


def test_a_release_of_two_versions_ago_refuses_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It only knows older formats: every command says so in one line, and nothing in the folder changes."""
    folder = copy_sample(FORMAT, tmp_path)
    monkeypatch.setattr(data_folder, "FORMAT", FORMAT - 2)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for command in (["status"], ["search", "x"], ["up", "--listen", ""], ["check"], ["backup", str(tmp_path / "copy")]):
        assert main([*command, "--data", str(folder)]) in {1, 2}
        (line,) = capsys.readouterr().err.splitlines()
        assert f"has format {FORMAT}, but this vedette only knows formats up to {FORMAT - 2}" in line
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
