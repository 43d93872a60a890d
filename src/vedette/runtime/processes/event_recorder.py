"""The recorder process: folds what servers logged into the record, notes numbers over time, lets old searches go.

It is never in the way of a search, and searches do not wait for it: while it is away, log files wait for it.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from vedette.adapters.event_store.search_log import drop_salts
from vedette.adapters.event_store.store import RECORD_FILE
from vedette.adapters.event_store.time_series import crawl_in_full, search_numbers, sizes
from vedette.adapters.event_store.writer import RecordBook
from vedette.adapters.net.ipc import Gone
from vedette.errors import StoreCorrupt, StoreError
from vedette.runtime.commands.rpc import Call
from vedette.runtime.monitoring.refresh import current_share
from vedette.runtime.processes.settings import LiveSettings
from vedette.runtime.processes.supervisor import ask_keeper
from vedette.runtime.processes.throttle import Sparing

__all__ = ["run_recorder"]

FOLD_EVERY_S = 0.5
SAMPLE_EVERY_S = 5.0
TIDY_EVERY_S = 60.0
KEEPER_PATIENCE_S = 2.0
NICENESS = 5
TOLD = {"known": "urls_known", "waiting": "urls_waiting"}
REFRESHING = {
    "price": "price",
    "refreshes": "refreshes",
    "wasted_share": "wasted_share",
    "change_expected": "expected_share",
    "change_found": "found_share",
}
LOOKING = {"looks": "looks", "looks_wasted_share": "wasted_share"}


class Sampler:
    """Numbers of the moment, each as often as it is cheap."""

    def __init__(self, settings: LiveSettings) -> None:
        self._folder, self._clock = settings.folder, settings.clock
        self._in_full = Sparing()  # what looks at every page
        self._requests: tuple[float, float] | None = None
        self._spent: tuple[float, float] | None = None

    def sample(self) -> dict[str, float]:
        """What there is to say now."""
        now_s = self._clock.now()
        return search_numbers(self._folder, now_s) | self._by_state(now_s) | self._by_keeper()

    def _by_state(self, now_s: float) -> dict[str, float]:
        """What folder and state say; of a state that cannot be read the keeper tells."""
        try:
            found = sizes(self._folder)
            started_s = time.monotonic()
            if started_s >= self._in_full.next_s:
                found |= crawl_in_full(self._folder, now_s) | current_share(self._folder, now_s)
                self._in_full.did(started_s, time.monotonic())
        except (StoreError, OSError):
            return {}
        return found

    def _by_keeper(self) -> dict[str, float]:
        """What only the keeper knows; nothing where it is away."""
        try:
            told = ask_keeper(self._folder, Call("status"), KEEPER_PATIENCE_S)
        except (OSError, Gone):
            return {}
        numbers = _numbers_of(told)
        refreshing, looking = (_numbers_of(told.get(part)) for part in ("refresh", "discovery"))
        found = {name: numbers[key] for name, key in TOLD.items() if key in numbers}
        found |= {name: refreshing[key] for name, key in REFRESHING.items() if key in refreshing}
        found |= {name: looking[key] for name, key in LOOKING.items() if key in looking}
        return found | self._pace(numbers.get("requests", 0.0)) | self._budget(told)

    def _budget(self, told: Mapping[str, object]) -> dict[str, float]:
        """What was spent since the last time, by the clock of the web that is crawled, and what may be."""
        numbers, now_s, before = _numbers_of(told.get("budget")), _numbers_of(told).get("now_s"), self._spent
        if now_s is None or "fetches" not in numbers:
            return {}
        found = (
            {"budget_per_s": numbers["per_s"], "budget_held_back": numbers["held_back"]} if "per_s" in numbers else {}
        )
        self._spent = now_s, numbers["fetches"]
        if before is not None and before[0] < now_s and before[1] <= numbers["fetches"]:
            found["budget_spent_per_s"] = (numbers["fetches"] - before[1]) / (now_s - before[0])
        return found

    def _pace(self, requests: float) -> dict[str, float]:
        """Requests a second since the last time; a keeper that began anew counts from nought."""
        wall_s, before = time.monotonic(), self._requests
        self._requests = (wall_s, requests)
        if before is None or before[1] > requests or before[0] >= wall_s:
            return {}
        return {"fetches_per_s": (requests - before[1]) / (wall_s - before[0])}


def _numbers_of(told: object) -> dict[str, float]:
    """What is a number in an answer, by name."""
    found = told if isinstance(told, dict) else {}
    return {name: float(value) for name, value in found.items() if isinstance(value, int | float)}


class Recorder:
    """The record of a data folder, kept up to date step by step; whatever happens to it, the process goes on."""

    def __init__(self, settings: LiveSettings) -> None:
        self._folder, self._clock = settings.folder, settings.clock
        self._keep_days = settings.config.serve.keep_slates_days
        self._sampler = Sampler(settings)
        self._book: RecordBook | None = None
        self._sample_s = self._tidy_s = 0.0
        self._told = ""

    def step(self) -> bool:
        """Do what is due; whether there is more to fold at once."""
        return self._guarded(self._step)

    def finish(self) -> None:
        """Take in what was logged until now, and let go."""
        self._guarded(self._fold)
        self.close()

    def close(self) -> None:
        """Let go."""
        if self._book is not None:
            self._book.close()
        self._book = None

    def _opened(self) -> RecordBook:
        if self._book is None:
            self._book = RecordBook(self._folder)
        return self._book

    def _guarded(self, work: Callable[[RecordBook], bool]) -> bool:
        try:
            more = work(self._opened())
        except StoreCorrupt as error:
            self.close()
            _say(f"{error}; it is kept as {RECORD_FILE.move_aside(self._folder).name}")
            return False
        except (StoreError, OSError) as error:
            self._tell(str(error))
            return False
        self._tell("")
        return more

    def _step(self, book: RecordBook) -> bool:
        more = self._fold(book)
        wall_s = time.monotonic()
        if wall_s >= self._sample_s:
            self._sample_s = wall_s + SAMPLE_EVERY_S
            book.note(self._clock.now(), self._sampler.sample())
        if wall_s >= self._tidy_s:
            self._tidy_s = wall_s + TIDY_EVERY_S
            self._tidy(book)
        return more

    def _fold(self, book: RecordBook) -> bool:
        folded = book.fold()
        if not self._keep_days and (folded.slates or folded.events):
            book.tidy(self._clock.now(), 0)
        return bool(folded.left_bytes and folded.size_bytes)

    def _tidy(self, book: RecordBook) -> None:
        now_s = self._clock.now()
        book.tidy(now_s, self._keep_days)
        drop_salts(self._folder, time.strftime("%Y-%m-%d", time.gmtime()))  # marks are good for a day of the wall's

    def _tell(self, trouble: str) -> None:
        """The same trouble is said once, until it is over."""
        if trouble and trouble != self._told:
            _say(f"searches are not recorded for now: {trouble}")
        elif self._told and not trouble:
            _say("searches are recorded again")
        self._told = trouble


def run_recorder(settings: LiveSettings) -> int:
    """The life of the recorder process; it ends when it is told to, with everything folded that was logged."""
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopping.append(number))
    os.nice(NICENESS)
    _await(settings.folder, stopping)
    recorder = Recorder(settings)
    try:
        while not stopping:
            if not recorder.step():
                time.sleep(FOLD_EVERY_S)
        recorder.finish()
    finally:
        recorder.close()
    return 0


def _await(folder: Path, stopping: list[int]) -> None:
    """The keeper is about to make the folder."""
    while not (folder / "format").exists() and not stopping:
        time.sleep(FOLD_EVERY_S)


def _say(words: str) -> None:
    sys.stderr.write(f"vedette: {words}\n")
    sys.stderr.flush()
