"""``vedette sites offered``: linked hosts that no site covers, and the commands that add them."""

import json
from pathlib import Path

import pytest

from vedette.adapters.crawl_store.data_folder import open_for_write
from vedette.adapters.crawl_store.search_store import RuleRow
from vedette.adapters.crawl_store.store import SiteRow
from vedette.cli.main import main
from vedette.engine.ports import UnlistedLink
from vedette.model import Site

PAGE = "https://example.org/links"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder whose pages link to five hosts."""
    folder = tmp_path / "data"
    hosts = ("a.test", "a.test", "b.test", "site.test", "www.blocked.test", "dull.test")
    with open_for_write(folder, 0.0) as state:
        state.store.add_unlisted_links([UnlistedLink(host, PAGE, 5.0) for host in hosts])
        state.store.save_site(SiteRow(Site("https://site.test/docs/", scope="prefix"), paused=True, added_s=0.0))
        state.store.add_search_rule(RuleRow("block", "", "blocked.test", 0.0))
        state.store.dismiss_unlisted_host("dull.test")
    return folder


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the command's output."""
    assert main(["sites", "offered", *arguments]) == 0
    return capsys.readouterr().out


def test_unlisted_hosts_are_shown_with_commands_to_add_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The most linked host comes first; covered, blocked and dismissed hosts are left out."""
    text = run(capsys, "--data", str(folder))
    assert text.index("a.test   linked from 2 pages of 1 domain, such as " + PAGE) < text.index("b.test")
    assert f"vedette sites add https://a.test/ --data {folder}" in text
    assert not any(host in text for host in ("site.test", "blocked.test", "dull.test"))


def test_json_has_the_same_hosts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One JSON object with as many hosts as requested."""
    (row,) = json.loads(run(capsys, "--data", str(folder), "--json", "--limit", "1"))["offered"]
    assert row["add"].startswith("vedette sites add https://a.test/")
    del row["add"]
    assert row == {"host": "a.test", "pages": 2, "domains": 1, "first_s": 5.0, "last_s": 5.0, "example": PAGE}


def test_a_folder_without_unlisted_hosts_is_no_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty list is not a failure."""
    with open_for_write(tmp_path / "data", 0.0):
        pass
    assert run(capsys, "--data", str(tmp_path / "data")).startswith("No fetched pages link")


@pytest.mark.parametrize("limit", ["0", "-1", "1001", "x", "9" * 5000])
def test_a_limit_is_a_number(limit: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Anything else is a usage error in one line."""
    assert main(["sites", "offered", "--data", str(folder), f"--limit={limit}"]) == 2
    assert "from 1 to 1000" in capsys.readouterr().err
