"""The folder of a run: each finished cell as a small file, and at the end all rows with a manifest.

A file is there whole or not at all, so a run may be killed at any moment. A cell's file is named by all that its rows
follow from (description, world, code): what was worked out under other conditions is not found, and done anew.
"""

import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import vedette
from vedette.errors import UsageError
from vedette.lab.core.experiment import Cell, Measured
from vedette.lab.core.plan import Plan
from vedette.lab.core.registry import experiment_named, is_from_elsewhere
from vedette.lab.core.rows import Row, write_rows
from vedette.lab.worlds.catalog import fingerprint

__all__ = ["MANIFEST", "ROWS", "RunFolder", "default_folder"]

ROWS, MANIFEST, CELLS = "rows.parquet", "manifest.json", "cells"
LIBRARIES = ("numpy", "pyarrow")


def default_folder(plan: Plan) -> Path:
    """Where a run goes if nobody says: the same command finds it again."""
    name = "-".join(name.rpartition(".")[2].partition(":")[0] for name in plan.experiments)
    return Path("lab-runs") / f"{name}-{_short(plan.command)[:8]}"


class RunFolder:
    """A run's files. Opening it takes what is there of the same run, and refuses the folder of another."""

    def __init__(self, path: Path, plan: Plan) -> None:
        self.path = path
        self._plan = plan
        self._worlds = {label: fingerprint(label) for label in plan.worlds}
        self._code = _code(tuple(dict.fromkeys((*plan.experiments, *plan.policies))))
        self._refuse_another()
        (path / CELLS).mkdir(parents=True, exist_ok=True)
        for aside in (path / CELLS).glob("*.new"):
            aside.unlink()
        _put(path / "command", f"{plan.command}\n".encode())

    def _refuse_another(self) -> None:
        command = self.path / "command"
        if command.is_file() and command.read_text(encoding="utf-8").strip() != self._plan.command:
            raise UsageError(f"{self.path} holds another run; name another folder with --out")
        if not command.is_file() and self.path.exists() and (self.path.is_file() or any(self.path.iterdir())):
            raise UsageError(f"{self.path} holds something else than a run; name another folder with --out")

    def undone(self) -> list[Cell]:
        """The cells that are still to be worked out, in their order."""
        return [cell for cell in self._plan.cells if not self._file(cell).is_file()]

    def keep(self, cell: Cell, rows: Sequence[Measured]) -> None:
        """Write down a cell's rows; from then on it is finished, whatever happens."""
        # Floats come back from their shortest text as they were.
        told = [{name: float(value) for name, value in row.items()} for row in rows]
        _put(self._file(cell), json.dumps(told).encode())

    def rows(self) -> list[Row]:
        """The rows of all cells, in the order of the plan, however they were worked out."""
        return [Row(cell, row) for cell in self._plan.cells for row in json.loads(self._file(cell).read_bytes())]

    def close(self) -> None:
        """All cells are there: write rows and manifest. What belongs to earlier conditions goes."""
        metrics = [name for each in self._plan.experiments for name in experiment_named(each).metrics]
        aside = self.path / f"{ROWS}.new"
        write_rows(self.rows(), metrics, aside)
        aside.replace(self.path / ROWS)
        _put(self.path / MANIFEST, f"{json.dumps(self._manifest(), indent=2)}\n".encode())
        wanted = frozenset(self._file(cell).name for cell in self._plan.cells)
        for file in sorted((self.path / CELLS).iterdir()):
            if file.name not in wanted:
                file.unlink()

    def _manifest(self) -> Mapping[str, Any]:
        return {
            "command": self._plan.command,
            "versions": versions(),
            "code": self._code,
            "worlds": self._worlds,
            "seeds": list(dict.fromkeys(cell.seed for cell in self._plan.cells)),
            "cells": len(self._plan.cells),
            "rows": {"file": ROWS, "sha256": hashlib.sha256((self.path / ROWS).read_bytes()).hexdigest()},
        }

    def _file(self, cell: Cell) -> Path:
        conditions = [list(cell), self._worlds[cell.world], self._code]
        return self.path / CELLS / f"{_short(json.dumps(conditions))}.json"


def versions() -> dict[str, str]:
    """Of what the numbers may depend on."""
    libraries = {name: metadata.version(name) for name in LIBRARIES if find_spec(name)}
    return {"vedette": vedette.__version__, "python": platform.python_version(), **libraries}


def _code(names: tuple[str, ...]) -> str:
    """The code that was run, as a short text: this package, and what was loaded from elsewhere."""
    elsewhere = [find_spec(name.partition(":")[0]) for name in names if is_from_elsewhere(name)]
    files = [Path(spec.origin) for spec in elsewhere if spec and spec.origin]
    return _short("".join([_package(), *(hashlib.sha256(file.read_bytes()).hexdigest() for file in files)]))


@cache
def _package() -> str:
    whole = hashlib.sha256()
    folder = Path(vedette.__file__).parent
    for file in sorted(folder.rglob("*.py")):
        whole.update(f"{file.relative_to(folder).as_posix()} {file.stat().st_size} ".encode() + file.read_bytes())
    return whole.hexdigest()


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _put(path: Path, content: bytes) -> None:
    """A file, whole or not at all, also when the power goes."""
    aside = path.with_name(f"{path.name}.new")
    with aside.open("wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    aside.replace(path)
