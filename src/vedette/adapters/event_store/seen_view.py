"""What learning from clicks reads of the record: the latest searches, and all that people did since, in one go each."""

from collections import deque
from pathlib import Path

from vedette.adapters.event_store.reader import RecordView
from vedette.adapters.event_store.store import RECORD_FILE
from vedette.learn.events import Event, SlateRecord

__all__ = ["latest_slates", "undoubted_events"]

_EVENTS = (
    "SELECT slate, kind, page, at_s, after_s, visitor, doubt FROM event WHERE at_s >= ? AND doubt = '' ORDER BY at_s"
)


def latest_slates(folder: Path, since_s: float, most: int) -> list[SlateRecord]:
    """The latest searches since then that count, at most so many of them, the oldest first."""
    counting = (slate for slate in RecordView(folder).slates(since_s) if not slate.doubt)
    return list(deque(counting, most))


def undoubted_events(folder: Path, since_s: float) -> list[Event]:
    """All views and clicks since then of which nothing says that they are no person's."""
    with RECORD_FILE.read(folder) as db:
        return [Event(*row) for row in db.execute(_EVENTS, (since_s,))] if db else []
