"""Folder of a lab run: each finished cell as a small file, and at the end all rows (Parquet) with a manifest.

Files are written atomically, so a run may be killed at any moment. A cell's file is named by everything that its rows
depend on (description, world, code): results under other conditions are not found, and computed again.
"""

import hashlib
import json
import math
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from vedette.errors import UsageError
from vedette.lab.core.experiment import Cell, Measurements, Span
from vedette.lab.core.extras import import_extra
from vedette.lab.core.plan import RunPlan
from vedette.lab.core.registry import find_experiment, is_plugin
from vedette.lab.worlds.catalog import fingerprint_world
from vedette.version import __version__

# Columns of a row before its numbers.
CELL_COLUMNS = ("experiment", "world", "policy", "budget", "seed", "from", "to")
_TEXT_COLUMNS = ("experiment", "world", "policy", "from", "to")


class Row(NamedTuple):
    """One row of results of a lab run: its cell, and its numbers by name."""

    cell: Cell
    numbers: Mapping[str, float]


def list_columns(rows: Iterable[Row], metrics: Sequence[str]) -> list[str]:
    """List the columns of a run's rows: first the experiment's metrics, in its order, then the rest by name."""
    names = dict.fromkeys(name for row in rows for name in row.numbers)
    promised = [name for name in dict.fromkeys(metrics) if name in names]
    return [*promised, *sorted(name for name in names if name not in promised)]


def to_dict(row: Row) -> dict[str, str | float | int | None]:
    """Convert a row of a lab run to JSON values; a number that is not finite becomes null."""
    cell = row.cell
    fields = (cell.experiment, cell.world, cell.policy, cell.budget, cell.seed, cell.span.begin, cell.span.end)
    values: dict[str, str | float | int | None] = dict(zip(CELL_COLUMNS, fields, strict=True))
    return values | {name: value if math.isfinite(value) else None for name, value in row.numbers.items()}


def write_rows(rows: Sequence[Row], metrics: Sequence[str], path: Path) -> None:
    """Write the rows of a lab run as Parquet, without times or paths in it; missing numbers are null."""
    pa, parquet = _import_pyarrow()
    cells = [row.cell for row in rows]
    texts = {
        "experiment": [cell.experiment for cell in cells],
        "world": [cell.world for cell in cells],
        "policy": [cell.policy for cell in cells],
        "from": [cell.span.begin for cell in cells],
        "to": [cell.span.end for cell in cells],
    }
    arrays = {name: pa.array(values, pa.string()) for name, values in texts.items()}
    arrays["budget"] = pa.array([cell.budget for cell in cells], pa.float64())
    arrays["seed"] = pa.array([cell.seed for cell in cells], pa.int64())
    numbers = list_columns(rows, metrics)
    for name in numbers:
        arrays[name] = pa.array([row.numbers.get(name) for row in rows], pa.float64())
    table = pa.table({name: arrays[name] for name in (*CELL_COLUMNS, *numbers)})
    parquet.write_table(table, path, compression="zstd", store_schema=False)


def read_rows(path: Path) -> list[Row]:
    """Read the rows of a lab run from a Parquet file."""
    _, parquet = _import_pyarrow()
    # One thread: a process that starts others, and is interrupted, must have only its own.
    table = parquet.read_table(path, use_threads=False)
    if missing := [name for name in CELL_COLUMNS if name not in table.column_names]:
        raise UsageError(f"{path.name} has no lab rows: column {missing[0]} is missing")
    return [_parse_row(values) for values in table.to_pylist()]


def _parse_row(values: Mapping[str, object]) -> Row:
    texts = {name: str(values[name]) for name in _TEXT_COLUMNS}
    cell = Cell(
        texts["experiment"],
        texts["world"],
        texts["policy"],
        _to_float(values["budget"]),
        int(_to_float(values["seed"])),
        Span(texts["from"], texts["to"]),
    )
    rest = {name: value for name, value in values.items() if name not in CELL_COLUMNS and value is not None}
    return Row(cell, {name: _to_float(value) for name, value in rest.items()})


def _to_float(value: object) -> float:
    assert isinstance(value, int | float), "a number"
    return float(value)


def _import_pyarrow() -> tuple[Any, ...]:
    return import_extra("rows are kept with", "pyarrow", "pyarrow.parquet")


ROWS_FILE, MANIFEST_FILE, CELLS_FOLDER = "rows.parquet", "manifest.json", "cells"
LIBRARIES = ("numpy", "pyarrow")


def default_folder(plan: RunPlan) -> Path:
    """Return the default folder of a lab run; the same command finds it again."""
    name = "-".join(name.rpartition(".")[2].partition(":")[0] for name in plan.experiments)
    return Path("lab-runs") / f"{name}-{_short_hash(plan.command)[:8]}"


class RunFolder:
    """The files of a lab run. Opening it resumes an interrupted run, and refuses the folder of a different one."""

    def __init__(self, path: Path, plan: RunPlan) -> None:
        self.path = path
        self._plan = plan
        self._worlds = {label: fingerprint_world(label) for label in plan.worlds}
        self._code = _hash_code(tuple(dict.fromkeys((*plan.experiments, *plan.policies))))
        self._check_same_run()
        (path / CELLS_FOLDER).mkdir(parents=True, exist_ok=True)
        for aside in (path / CELLS_FOLDER).glob("*.new"):
            aside.unlink()
        write_atomic(path / "command", f"{plan.command}\n".encode())

    def _check_same_run(self) -> None:
        command = self.path / "command"
        if command.is_file() and command.read_text(encoding="utf-8").strip() != self._plan.command:
            raise UsageError(f"{self.path} contains another run; choose another folder with --out")
        if not command.is_file() and self.path.exists() and (self.path.is_file() or any(self.path.iterdir())):
            raise UsageError(f"{self.path} is not a run folder; choose another folder with --out")

    def list_pending(self) -> list[Cell]:
        """Return the cells of the run that are still to be computed, in order."""
        return [cell for cell in self._plan.cells if not self._cell_path(cell).is_file()]

    def store_cell(self, cell: Cell, rows: Sequence[Measurements]) -> None:
        """Store the rows of a cell in the run folder; from then on the cell is finished, even after a crash."""
        # Floats round-trip through their shortest text.
        data = [{name: float(value) for name, value in row.items()} for row in rows]
        write_atomic(self._cell_path(cell), json.dumps(data).encode())

    def load_rows(self) -> list[Row]:
        """Load the rows of all finished cells of the run, in the order of the plan."""
        return [Row(cell, row) for cell in self._plan.cells for row in json.loads(self._cell_path(cell).read_bytes())]

    def finish(self) -> None:
        """Write the run's rows and manifest once all cells are finished, and delete cells of earlier conditions."""
        metrics = [name for each in self._plan.experiments for name in find_experiment(each).metrics]
        aside = self.path / f"{ROWS_FILE}.new"
        write_rows(self.load_rows(), metrics, aside)
        aside.replace(self.path / ROWS_FILE)
        write_atomic(self.path / MANIFEST_FILE, f"{json.dumps(self._build_manifest(), indent=2)}\n".encode())
        wanted = frozenset(self._cell_path(cell).name for cell in self._plan.cells)
        for file in sorted((self.path / CELLS_FOLDER).iterdir()):
            if file.name not in wanted:
                file.unlink()

    def _build_manifest(self) -> Mapping[str, Any]:
        return {
            "command": self._plan.command,
            "versions": collect_versions(),
            "code": self._code,
            "worlds": self._worlds,
            "seeds": list(dict.fromkeys(cell.seed for cell in self._plan.cells)),
            "cells": len(self._plan.cells),
            "rows": {"file": ROWS_FILE, "sha256": hashlib.sha256((self.path / ROWS_FILE).read_bytes()).hexdigest()},
        }

    def _cell_path(self, cell: Cell) -> Path:
        conditions = [list(cell), self._worlds[cell.world], self._code]
        return self.path / CELLS_FOLDER / f"{_short_hash(json.dumps(conditions))}.json"


def collect_versions() -> dict[str, str]:
    """Collect the versions of Python and libraries that a run's numbers may depend on, for its manifest."""
    libraries = {name: metadata.version(name) for name in LIBRARIES if find_spec(name)}
    return {"vedette": __version__, "python": platform.python_version(), **libraries}


def _hash_code(names: tuple[str, ...]) -> str:
    """Hash the code that a lab run executes: this package, and plug-ins."""
    elsewhere = [find_spec(name.partition(":")[0]) for name in names if is_plugin(name)]
    files = [Path(spec.origin) for spec in elsewhere if spec and spec.origin]
    return _short_hash("".join([_hash_package(), *(hashlib.sha256(file.read_bytes()).hexdigest() for file in files)]))


@cache
def _hash_package() -> str:
    whole = hashlib.sha256()
    folder = Path(__file__).parents[2]
    for file in sorted(folder.rglob("*.py")):
        whole.update(f"{file.relative_to(folder).as_posix()} {file.stat().st_size} ".encode() + file.read_bytes())
    return whole.hexdigest()


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def write_atomic(path: Path, content: bytes) -> None:
    """Write a file of the run folder atomically, even across a power failure."""
    aside = path.with_name(f"{path.name}.new")
    with aside.open("wb") as opened:
        opened.write(content)
        opened.flush()
        os.fsync(opened.fileno())
    aside.replace(path)
