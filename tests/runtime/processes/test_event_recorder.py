"""The event recorder as a real process: it ingests, samples and prunes data, and survives a damaged file."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.data_folders import BODIES, write_sample
from tests.tree_runs import PATIENCE_S, patiently

from vedette.adapters.event_store.reader import EventReader, Totals
from vedette.adapters.event_store.search_log import EventLog, get_day_salt
from vedette.learn.events import ClickEvent, SearchEvent, ShownResult

RECORD = """
import sys
from pathlib import Path
from vedette.config import Config, Serve
from vedette.adapters.clock import real_clock
from vedette.runtime.processes.event_recorder import run_event_recorder
from vedette.runtime.processes.settings import RuntimeSettings

config = Config(serve=Serve(keep_slates_days=int(sys.argv[2])))
sys.exit(run_event_recorder(RuntimeSettings(config, real_clock(), Path(sys.argv[1]), "test")))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with the sample."""
    write_sample(tmp_path / "data")
    return tmp_path / "data"


@contextmanager
def recorder_of(folder: Path, keep_days: int = 30) -> Iterator[Path]:
    """Run a recorder that must exit successfully; its output goes to the returned file."""
    command = [sys.executable, "-c", RECORD, str(folder), str(keep_days)]
    text = folder.with_name("messages.txt")
    with (
        text.open("wb") as stderr,
        subprocess.Popen(command, stderr=stderr, cwd=Path(__file__).parents[3]) as process,
    ):
        try:
            yield text
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()


def searched(number: int) -> SearchEvent:
    """Return a search made just now."""
    shown = (ShownResult(7, 1, 0.5),)
    return SearchEvent(f"{number:032x}", time.time(), "Fox", "fox", 1, "mark", results=shown)


def test_what_servers_log_is_folded_and_sampled(folder: Path) -> None:
    """Searches, clicks and crawl numbers arrive within moments, including the last line before shutdown."""
    view = EventReader(folder)
    yesterday = datetime.now(UTC) - timedelta(1)
    get_day_salt(folder, str(yesterday.date()))
    with closing(EventLog(folder, "server")) as log:
        with recorder_of(folder):
            slate = searched(1)
            log.append(slate)
            log.append(ClickEvent(slate.id, "click", 7, slate.at_s + 1, 1.0, "mark"))
            patiently(lambda: view.read_totals(0.0).clicks == 1)
            patiently(lambda: {"pages", "coverage", "checked_in_time", "archive_bytes"} <= view.read_latest().keys())
            patiently(lambda: not list((folder / "log").glob("salt-*")))
            log.append(searched(2))
        assert view.read_totals(0.0).searches == 2
    latest = view.read_latest()
    assert latest["pages"] == len(BODIES)
    assert 0.0 < latest["coverage"] <= 1.0
    assert latest["state_bytes"] > 0 < latest["disk_free_bytes"]


def test_a_damaged_record_is_moved_aside_and_reported(folder: Path) -> None:
    """A new one is created, with the content of the logs."""
    (folder / "record.db").write_bytes(b"no database" * 1000)
    with closing(EventLog(folder, "server")) as log:
        log.append(searched(1))
        with recorder_of(folder) as text:
            patiently((folder / "record-damaged-1.db").exists)
            patiently(lambda: EventReader(folder).read_totals(0.0).searches == 1)
        assert "record-damaged-1.db" in text.read_text()


def test_zero_days_delete_all_records(folder: Path) -> None:
    """With zero days, even earlier logs are deleted at once."""
    with closing(EventLog(folder, "server")) as log:
        log.append(searched(1))
    with recorder_of(folder, keep_days=0):
        patiently(EventReader(folder).read_latest)
        with closing(EventLog(folder, "server")) as log:
            log.append(searched(2))
    assert list((folder / "log").iterdir()) == []
    assert EventReader(folder).read_totals(0.0) == Totals()
    assert list(EventReader(folder).iter_searches(0.0)) == []
