"""What the operator is told of a fault: one line, without what the reader asked for."""

import sys
from pathlib import Path
from traceback import extract_tb


def log_error(what: str, error: BaseException) -> None:
    """Writes to the log what failed, where and why. Queries are nobody's business, the operator's neither."""
    frames = extract_tb(error.__traceback__)
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    why = f"{type(error).__name__}: {error}"[:300]
    sys.stderr.write(f"vedette: {what} failed at {where}: {why!r}\n")
