"""The search log: acknowledged events are on disk, and disk errors do not break searches."""

import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from vedette.adapters.event_store.search_log import EventLog, delete_old_salts, get_day_salt
from vedette.errors import StoreError
from vedette.learn.events import ClickEvent, LoggedEvent, SearchEvent, ShownResult, decode_event

DAY = "2027-01-15"
ROOT = Path(__file__).parents[3]
SALT = "import sys; from pathlib import Path; from vedette.adapters.event_store.search_log import get_day_salt; \
sys.stdin.read(1); print(get_day_salt(Path(sys.argv[1]), sys.argv[2]).hex())"


def slate(number: int) -> SearchEvent:
    """Return one of many searches."""
    shown = (ShownResult(7, 1, 0.5, features=(("body", 1.25),)),)
    return SearchEvent(f"{number:032x}", 1e9 + number, "A b", "a b", 1, "mark", results=shown)


def click(number: int) -> ClickEvent:
    """Return a click on its result."""
    return ClickEvent(f"{number:032x}", "click", 7, 1e9 + number, 3.0, "mark")


def logged(folder: Path) -> list[LoggedEvent | None]:
    """Return all lines of all files, by file name."""
    lines = (line for path in sorted((folder / "log").glob("*.jsonl")) for line in path.read_bytes().splitlines())
    return [decode_event(line) for line in lines]


@contextmanager
def no_file_larger_than(size_bytes: int) -> Iterator[None]:
    """Limit the file size of this process, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_what_is_appended_is_in_the_file_at_once(tmp_path: Path) -> None:
    """Without flush or close, the lines are in a file that only its owner can read."""
    log = EventLog(tmp_path, "server")
    records: list[LoggedEvent] = [slate(1), click(1), slate(2)]
    for number, record in enumerate(records, 1):
        log.append(record)
        assert logged(tmp_path) == records[:number]
    (path,) = (tmp_path / "log").iterdir()
    assert path.name.startswith("server-")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    log.close()


def test_a_large_file_is_followed_by_another(tmp_path: Path) -> None:
    """Files do not grow without limit, and nothing is lost."""
    log = EventLog(tmp_path, "server", largest_bytes=1000)
    records = [slate(number) for number in range(50)]
    for record in records:
        log.append(record)
    log.close()
    sizes = [path.stat().st_size for path in (tmp_path / "log").iterdir()]
    assert len(sizes) > 2
    assert max(sizes) < 1500
    assert logged(tmp_path) == records


def test_a_full_disk_thanks_nobody(tmp_path: Path) -> None:
    """A search and an event raise an error, so that neither gets a token; later, no partial line is left."""
    log = EventLog(tmp_path, "server")
    log.append(slate(1))
    (path,) = (tmp_path / "log").iterdir()
    with no_file_larger_than(path.stat().st_size + 20):
        for event in (slate(2), click(1)):
            with pytest.raises(StoreError, match="Free up disk space"):
                log.append(event)
    log.append(click(1))
    log.close()
    assert logged(tmp_path) == [slate(1), click(1)]


def test_a_folder_that_vanishes_comes_back(tmp_path: Path) -> None:
    """Lines are never written to a deleted file; without a data folder, nothing is acknowledged."""
    folder = tmp_path / "data"
    folder.mkdir()
    log = EventLog(folder, "server")
    log.append(slate(1))
    shutil.rmtree(folder / "log")
    log.append(click(1))
    assert logged(folder) == [click(1)]
    shutil.rmtree(folder)
    for event in (slate(2), click(2)):
        with pytest.raises(StoreError):
            log.append(event)
    log.close()


def test_servers_that_race_agree_on_a_salt(tmp_path: Path) -> None:
    """Several processes ask at the same moment and get the same bytes."""
    command = [sys.executable, "-c", SALT, str(tmp_path), DAY]
    racers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(4)
    ]
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("x")
        racer.stdin.flush()
    salts = {racer.communicate()[0].strip() for racer in racers}
    assert salts == {get_day_salt(tmp_path, DAY).hex()}
    assert [path.name for path in (tmp_path / "log").iterdir()] == [f"salt-{DAY}"]


def test_a_salt_is_good_for_its_day(tmp_path: Path) -> None:
    """The next day has another one, and yesterday's is deleted; one that was created early stays."""
    first = get_day_salt(tmp_path, "2027-02-28")
    assert first == get_day_salt(tmp_path, "2027-02-28")
    assert len(first) >= 32
    path = tmp_path / "log" / "salt-2027-02-28"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    second = get_day_salt(tmp_path, "2027-03-01")
    assert second != first
    assert not path.exists()
    again = get_day_salt(tmp_path, "2027-02-28")
    assert again != first
    assert get_day_salt(tmp_path, "2027-03-01") == second
    delete_old_salts(tmp_path, "2027-03-02")
    assert os.listdir(tmp_path / "log") == []  # noqa: PTH208 - only names are needed


def test_a_damaged_salt_is_replaced(tmp_path: Path) -> None:
    """Hashes are never computed with a shorter salt."""
    get_day_salt(tmp_path, DAY)
    (tmp_path / "log" / f"salt-{DAY}").write_bytes(b"short")
    assert len(get_day_salt(tmp_path, DAY)) >= 32


def test_without_a_folder_there_is_no_salt(tmp_path: Path) -> None:
    """The error says so."""
    with pytest.raises(StoreError):
        get_day_salt(tmp_path / "missing", DAY)
