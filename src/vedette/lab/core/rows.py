"""Rows of experiments: their columns and their order, as Parquet that is the same to the byte for the same rows."""

import math
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from vedette.errors import UsageError
from vedette.lab.core.experiment import Cell, Span

__all__ = ["OF_A_CELL", "Row", "columns_of", "plain", "read_rows", "write_rows"]

# What is known of a row before its numbers.
OF_A_CELL = ("experiment", "world", "policy", "budget", "seed", "from", "to")
_TEXTS = ("experiment", "world", "policy", "from", "to")


class Row(NamedTuple):
    """One row: the cell that it is of, and its numbers by name."""

    cell: Cell
    numbers: Mapping[str, float]


def columns_of(rows: Iterable[Row], metrics: Sequence[str]) -> list[str]:
    """The names of all numbers: what an experiment promises first, in its order, then the rest by name."""
    names = dict.fromkeys(name for row in rows for name in row.numbers)
    promised = [name for name in dict.fromkeys(metrics) if name in names]
    return [*promised, *sorted(name for name in names if name not in promised)]


def plain(row: Row) -> dict[str, str | float | int | None]:
    """A row as it is told to programs: what is no finite number is null, as JSON has it."""
    cell = row.cell
    known = (cell.experiment, cell.world, cell.policy, cell.budget, cell.seed, cell.span.begin, cell.span.end)
    told: dict[str, str | float | int | None] = dict(zip(OF_A_CELL, known, strict=True))
    return told | {name: value if math.isfinite(value) else None for name, value in row.numbers.items()}


def write_rows(rows: Sequence[Row], metrics: Sequence[str], path: Path) -> None:
    """Parquet without a time or a place in it; a number that a row does not have is null."""
    pa, parquet = _arrow()
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
    numbers = columns_of(rows, metrics)
    for name in numbers:
        arrays[name] = pa.array([row.numbers.get(name) for row in rows], pa.float64())
    table = pa.table({name: arrays[name] for name in (*OF_A_CELL, *numbers)})
    parquet.write_table(table, path, compression="zstd", store_schema=False)


def read_rows(path: Path) -> list[Row]:
    """The rows of such a file."""
    _, parquet = _arrow()
    # One thread: a process that starts others, and is interrupted, has none besides its own.
    table = parquet.read_table(path, use_threads=False)
    if missing := [name for name in OF_A_CELL if name not in table.column_names]:
        raise UsageError(f"{path.name} holds no rows of the lab: it has no column {missing[0]}")
    return [_row(values) for values in table.to_pylist()]


def _row(values: Mapping[str, object]) -> Row:
    texts = {name: str(values[name]) for name in _TEXTS}
    cell = Cell(
        texts["experiment"],
        texts["world"],
        texts["policy"],
        _number(values["budget"]),
        int(_number(values["seed"])),
        Span(texts["from"], texts["to"]),
    )
    rest = {name: value for name, value in values.items() if name not in OF_A_CELL and value is not None}
    return Row(cell, {name: _number(value) for name, value in rest.items()})


def _number(value: object) -> float:
    assert isinstance(value, int | float), "a number"
    return float(value)


def _arrow() -> tuple[Any, Any]:
    """The library and its part for Parquet; it has no types to check against."""
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise UsageError('rows are kept with pyarrow, which is not here: pip install "vedette[lab]"') from error
