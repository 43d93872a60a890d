"""Samples of a process tree over time, and how fast they grow: memory, descriptors, files, write-ahead logs."""

import os
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

DERIVED = ("index", "warc", "log")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(slots=True)
class Samples:
    """Numbers by name, each with the seconds since the start; ``pid`` changes start a new life of a process."""

    began_s: float = field(default_factory=time.monotonic)
    values: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))

    def take(self, roles: dict[str, int], folder: Path) -> None:
        """Take one sample of all processes and of the folder."""
        at_s = time.monotonic() - self.began_s
        for role, pid in roles.items():
            with suppress(OSError, IndexError):
                resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES
                self.values[f"memory of {role}, MB"].append((at_s, resident / 1e6))
                self.values[f"descriptors of {role}"].append((at_s, len(list(Path(f"/proc/{pid}/fd").iterdir()))))
        sizes = dict(_list_sizes(folder))
        wal = sum(size for name, size in sizes.items() if name.endswith("-wal"))
        self.values["write-ahead logs, MB"].append((at_s, wal / 1e6))
        self.values["files in index/"].append((at_s, sum(name.startswith("index/") for name in sizes)))
        self.values["other files"].append((at_s, sum(not name.startswith(DERIVED) for name in sizes)))

    def measure(self, since_s: float, day_wall_s: float) -> dict[str, tuple[float, float, float]]:
        """Measure first and last values and slopes per day of world time, from the samples since a time."""
        found = {}
        for name, values in self.values.items():
            rows = np.array([row for row in values if row[0] >= since_s])
            if len(rows) >= 8:
                slope = float(np.polyfit(rows[:, 0], rows[:, 1], 1)[0]) * day_wall_s
                found[name] = (float(np.median(rows[:4, 1])), float(np.median(rows[-4:, 1])), slope)
        return found


def _list_sizes(folder: Path) -> list[tuple[str, int]]:
    sizes = []
    for path in folder.rglob("*"):
        with suppress(OSError):
            if path.is_file():
                sizes.append((str(path.relative_to(folder)), path.stat().st_size))
    return sizes
