"""What a run of the lab found, in a few lines for a terminal: each policy with its first numbers and their intervals.

All numbers, comparisons and plots are in a report.
"""

from collections.abc import Iterator, Sequence

from vedette.cli.output import plain
from vedette.lab.core.experiment import Experiment
from vedette.lab.core.registry import metric_of
from vedette.lab.core.rows import Row
from vedette.lab.core.scales import THIN
from vedette.lab.core.sheets import sheets, spoken

__all__ = ["table_lines"]

WIDTH = 100
MOST_LINES = 40  # what is longer is for a report
MOST_ROWS = 10_000
NAMED = ("world", "budget", "policy")


def table_lines(rows: Sequence[Row], experiment: Experiment, width: int = WIDTH) -> list[str]:
    """The plain table of one experiment's rows, or nothing where it would be long; as many metrics as there is room."""
    told = {(row.cell.world, row.cell.budget, row.cell.policy) for row in rows}
    if len(told) > MOST_LINES or len(rows) > MOST_ROWS or not _is_plain(rows, experiment):
        return []
    sheet = sheets(rows, experiment)[0]
    columns = [[plain(text.replace(THIN, " "), WIDTH) for text in line] for line in (sheet.columns, *sheet.lines)]
    names = [at for at, name in enumerate(NAMED) if name == "policy" or len({line[at] for line in sheet.lines}) > 1]
    of_metrics = range(len(NAMED), len(sheet.columns) - 1)  # the last one counts values
    widths = [max(len(line[at]) for line in columns) + 2 for at in range(len(sheet.columns))]
    shown = [*names, *_fitting(of_metrics, widths, width - sum(widths[at] for at in names))]
    lines = ["".join(line[at].ljust(widths[at]) for at in shown).rstrip() for line in columns]
    return [*lines, *_meanings(sheet.columns, [at for at in shown if at in of_metrics], experiment)]


def _is_plain(rows: Sequence[Row], experiment: Experiment) -> bool:
    """Whether each row is one cell's: curves and rows of hosts are for a report."""
    return bool(rows) and all(name in experiment.metrics for row in rows for name in row.numbers)


def _fitting(metrics: Sequence[int], widths: Sequence[int], room: int) -> Iterator[int]:
    """At least one, and then as many as there is room for, in their order."""
    for number, at in enumerate(metrics):
        room -= widths[at]
        if number and room < 0:
            return
        yield at


def _meanings(columns: Sequence[str], shown: Sequence[int], experiment: Experiment) -> list[str]:
    words = {spoken(name): metric_of(experiment, name).words for name in experiment.metrics}
    return [*(f"{columns[at]}: {words[columns[at]]}" for at in shown), "In brackets: 95 % intervals over seeds."]
