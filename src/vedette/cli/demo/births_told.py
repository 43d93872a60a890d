"""What ``vedette demo --births`` found, as a table for people and as JSON for programs."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from vedette.cli.output import amount
from vedette.lab.judge.birth_delays import Delays

__all__ = ["Births", "Way", "as_json", "as_text"]

MINUTE_S, DAY_S = 60.0, 86_400.0
COLUMNS = ("looks by", "told", "median to the webhook", "95 %", "quarters", "median to discovery", "fetches a day")


class Way(NamedTuple):
    """One way to look for new pages: how soon births reached the webhook, how soon they were found, all its fetches."""

    name: str
    told: Delays
    found: Delays
    fetches: int


@dataclass(frozen=True, slots=True)
class Births:
    """What was run: the web, for how many of its days, how fast, with how many fetches a day; and what came of it."""

    command: str
    world: str
    days: float
    speed: float
    budget_per_day: int
    pages: int
    ways: list[Way]


def as_text(run: Births) -> str:
    """A table, with what it means."""
    rows = [COLUMNS, *(_cells(run, way) for way in run.ways)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(COLUMNS))]
    table = ["   ".join(_padded(row, widths)) for row in rows]
    births = run.ways[0].told.births if run.ways else 0
    about = (
        f"{run.world}: {amount(run.pages)} pages were known at the start, {amount(births)} births counted in "
        f"{run.days:g} days. {run.speed:g} times as fast as ours, so a second of work here is "
        f"{run.speed / MINUTE_S:.1f} minutes there. {amount(run.budget_per_day)} fetches a day for everything."
    )
    meaning = "Minutes from birth; a page that was not told counts as later than all. Intervals by the bootstrap."
    return "\n".join([about, "", *table, "", meaning])


def as_json(run: Births) -> dict[str, Any]:
    """All numbers; what is infinite is null."""
    return {
        "command": run.command,
        "world": run.world,
        "days": run.days,
        "speed": run.speed,
        "budget_per_day": run.budget_per_day,
        "pages": run.pages,
        "ways": {
            way.name: {"told": _numbers(way.told), "found": _numbers(way.found), "fetches": way.fetches}
            for way in run.ways
        },
    }


def _numbers(delays: Delays) -> dict[str, float | None]:
    told = {**delays._asdict(), "share": delays.share}
    return {name: value if math.isfinite(value) else None for name, value in told.items()}


def _cells(run: Births, way: Way) -> tuple[str, ...]:
    told = way.told
    return (
        way.name,
        f"{told.told} of {told.births}",
        minutes(told.median_s),
        f"{minutes(told.low_s)} to {minutes(told.high_s)}",
        f"{minutes(told.quarter_s)} to {minutes(told.three_quarters_s)}",
        minutes(way.found.median_s),
        amount(round(way.fetches / run.days)),
    )


def minutes(seconds: float) -> str:
    """Whole minutes; ``never`` for what was not told.

    >>> minutes(90.0), minutes(3600.0), minutes(math.inf), minutes(math.nan)
    ('2', '60', 'never', '-')
    """
    if math.isnan(seconds):
        return "-"
    return "never" if math.isinf(seconds) else f"{seconds / MINUTE_S:.0f}"


def _padded(row: tuple[str, ...], widths: list[int]) -> list[str]:
    return [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
