"""The log of decisions, for those who want to make them again: a line for each batch.

It is written where the variable VEDETTE_DECISIONS names a file. It grows with every batch and nobody clears it away: it
is for looking closely at a run, not for every day.
"""

import os
from contextlib import suppress
from pathlib import Path

from vedette.engine.decision_record import Decision, DecisionRecorder, format_decision
from vedette.errors import UsageError

DECISIONS_ENV = "VEDETTE_DECISIONS"


def open_decision_log() -> DecisionRecorder | None:
    """Who writes decisions down, if the environment asks for it."""
    name = os.environ.get(DECISIONS_ENV)
    return _build_writer(Path(name)) if name else None


def _build_writer(path: Path) -> DecisionRecorder:
    try:
        path.open("a").close()
    except OSError as error:
        raise UsageError(f"{DECISIONS_ENV}: {path} cannot be written: {error.strerror}; name another file") from error

    def write(decision: Decision) -> None:
        # A full disk ends the log, not the crawl.
        with suppress(OSError), path.open("a", encoding="utf-8") as file:
            file.write(format_decision(decision) + "\n")

    return write
