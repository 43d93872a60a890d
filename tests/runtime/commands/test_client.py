"""Client of commands: it waits for a starting coordinator, and reports a folder that stays locked."""

from pathlib import Path
from threading import Timer

import pytest

from vedette.adapters.crawl_store.data_folder import lock_folder
from vedette.adapters.net.ipc import Request
from vedette.errors import StoreBusy
from vedette.model import Site
from vedette.runtime.commands import client
from vedette.web.commands.commands import AddSite


def test_a_folder_that_is_free_in_a_moment_is_waited_for(tmp_path: Path) -> None:
    """The first line of ``vedette up`` is printed before its coordinator answers; a command then takes longer."""
    lock = lock_folder(tmp_path / "data")
    Timer(0.3, lock.close).start()
    report = client.run_command(tmp_path / "data", AddSite(Site("https://a.test/")), "a test")
    assert not report["running"]
    assert "https://a.test/" in report["done"]


def test_a_folder_that_stays_locked_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command says that it was not carried out, and what to do."""
    monkeypatch.setattr(client, "START_TIMEOUT_S", 0.0)
    with lock_folder(tmp_path / "data"), pytest.raises(StoreBusy, match="not done"):
        client.run_command(tmp_path / "data", AddSite(Site("https://a.test/")), "a test")


def test_a_request_waits_while_a_coordinator_may_be_starting(tmp_path: Path) -> None:
    """``vedette up`` holds the folder before its coordinator answers: until the folder is free, one may still come."""
    lock = lock_folder(tmp_path / "data")
    Timer(0.3, lock.close).start()
    assert client.call_starting_coordinator(tmp_path / "data", Request("stop")) is None
    assert lock.closed
