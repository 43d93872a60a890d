"""Whether forecasts can be trusted: what was said of pages before they were fetched again, against what was found.

Of the pages of which a chance of 30 to 40 % was said about 35 % should turn out to have changed. So each tenth of the
chances is a dot: how high was said to the right, how often it came true upwards. Dots on the diagonal are as said.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from vedette.web.console.explain.refresh_text import per_cent
from vedette.web.console.ports.monitoring import Tenth
from vedette.web.console.ui.tables import Column, Table
from vedette.web.formatting import THIN

__all__ = ["TENTHS", "TenthLine", "reliability", "tenth_lines", "trust"]

FEWEST = 30  # refreshes, before anything is said
LEAST = 0.5  # of a refresh: what has faded to less tells nothing
# How far off chances may be on average, beyond what chance itself does.
CLOSE, ROUGH = 0.05, 0.15
ON_THE_WHOLE = 0.02
Z = 1.96
TALL, TOP, BOTTOM = 276, 24, 248
SMALLEST, LARGEST = 4.0, 10.0


class TenthLine(NamedTuple):
    """A tenth of the chances as people read it: which, the mean that was said, what was found, of how many."""

    place: int
    said: float
    found: float
    refreshes: float

    @property
    def name(self) -> str:
        """Its ends."""
        return f"{10 * self.place} to {10 * (self.place + 1)}{THIN}%"


TENTHS: Table[TenthLine] = Table(
    (
        Column("chance", "Chance", lambda row: row.name),
        Column("said", "Said on average", lambda row: round(row.said, 4), is_number=True),
        Column("found", "Had changed", lambda row: round(row.found, 4), is_number=True),
        Column("refreshes", "Refreshes", lambda row: round(row.refreshes, 1), is_number=True),
    ),
    key="calibration",
)


def tenth_lines(tenths: Sequence[Tenth]) -> list[TenthLine]:
    """Those of which enough is left to tell something."""
    return [
        TenthLine(place, _share(each.expected / each.refreshes), _share(each.found / each.refreshes), each.refreshes)
        for place, each in enumerate(tenths)
        if all(map(math.isfinite, each)) and each.refreshes >= LEAST
    ]


def trust(tenths: Sequence[Tenth]) -> str:
    """Whether forecasts can be trusted, in a sentence or two.

    >>> trust([Tenth(100.0, 35.0, 37.0)]).replace(THIN, " ")
    'Forecasts can be trusted: 35 % were said to have changed, and 37 % had.'
    >>> trust([Tenth(100.0, 35.0, 80.0)]).replace(THIN, " ").partition(": ")[0]
    'Forecasts cannot be trusted yet'
    """
    lines = tenth_lines(tenths)
    count = sum(line.refreshes for line in lines)
    if count < FEWEST:
        return f"It is too early to say: {FEWEST} refreshes tell something, and there were {round(count)} of late."
    said = sum(line.refreshes * line.said for line in lines) / count
    found = sum(line.refreshes * line.found for line in lines) / count
    off = sum(line.refreshes * abs(line.found - line.said) for line in lines) / count - _by_chance(lines, count)
    if off <= CLOSE:
        return f"Forecasts can be trusted: {per_cent(said)} were said to have changed, and {per_cent(found)} had."
    verdict = "are roughly right" if off <= ROUGH else "cannot be trusted yet"
    told = f"{per_cent(said)} were said to have changed, and {per_cent(found)} had"
    return f"Forecasts {verdict}: {told}. {_so(found - said)}"


def _by_chance(lines: Sequence[TenthLine], count: float) -> float:
    """How far off the best of forecasts may be with so few refreshes: the mean distance, and twice its deviation."""
    spread = [line.refreshes * line.said * (1 - line.said) for line in lines]
    mean = sum(math.sqrt(2 / math.pi * each) for each in spread)
    return (mean + 2 * math.sqrt((1 - 2 / math.pi) * sum(spread))) / count


def _so(more: float) -> str:
    if abs(more) <= ON_THE_WHOLE:
        return "On the whole that fits; but high chances, or low ones, do not come true as said."
    if more > 0:
        return "Pages change more often than is thought, so they are fetched too late; this is learned with each fetch."
    return "Pages change less often than is thought, so fetches are wasted; this is learned with each fetch."


def reliability(tenths: Sequence[Tenth]) -> Markup:
    """The drawing; text has one size on every screen, as in other charts. The table beside it says the same."""
    lines = tenth_lines(tenths)
    most = max((line.refreshes for line in lines), default=1.0)
    return Markup(
        '<svg class="drawing reliability" width="100%" height="{}" role="img" '
        'aria-labelledby="reliability-title reliability-desc"><title id="reliability-title">Said and found</title>'
        '<desc id="reliability-desc">{}</desc>{}{}{}</svg>'
    ).format(TALL, _description(lines), _frame(), _whiskers(lines), Markup().join(_dot(line, most) for line in lines))


def _description(lines: Sequence[TenthLine]) -> str:
    return " ".join(f"Of {per_cent(line.said)} said, {per_cent(line.found)} had changed." for line in lines)


def _frame() -> Markup:
    rule = Markup('<line class="grid" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>')
    up = Markup('<text class="tick" x="0" y="{y:.1f}">{words}</text>')
    across = Markup('<text class="tick" x="{x}%" y="{y}" text-anchor="{anchor}">{words}</text>')
    rules = Markup().join(rule.format(y=_height(part / 4)) for part in range(5))
    ups = up.format(y=_height(0.5) - 4, words=per_cent(0.5)) + up.format(
        y=_height(1.0) - 4, words=f"{per_cent(1.0)} had changed"
    )
    ends = ((0, "start", per_cent(0.0)), (50, "middle", "chance that was said"), (100, "end", per_cent(1.0)))
    acrosses = Markup().join(across.format(x=x, y=BOTTOM + 20, anchor=anchor, words=words) for x, anchor, words in ends)
    diagonal = Markup('<line class="as-said" x1="0" y1="{}" x2="100%" y2="{}"/>').format(BOTTOM, TOP)
    return rules + ups + acrosses + diagonal


def _whiskers(lines: Sequence[TenthLine]) -> Markup:
    """Where the true share lies with 95 %, by Wilson's interval."""
    mark = Markup('<line class="whisker" x1="{x:.2f}%" x2="{x:.2f}%" y1="{low:.1f}" y2="{high:.1f}"/>')
    ends = ((line, *_interval(line)) for line in lines)
    return Markup().join(
        mark.format(x=100 * line.said, low=_height(low), high=_height(high)) for line, low, high in ends
    )


def _interval(line: TenthLine) -> tuple[float, float]:
    count, share = line.refreshes, line.found
    middle = (share + Z * Z / (2 * count)) / (1 + Z * Z / count)
    half = Z / (1 + Z * Z / count) * math.sqrt(share * (1 - share) / count + Z * Z / (4 * count * count))
    return _share(middle - half), _share(middle + half)


def _dot(line: TenthLine, most: float) -> Markup:
    """As large as there were many."""
    size = max(SMALLEST, LARGEST * math.sqrt(line.refreshes / most))
    return Markup('<circle class="dot" cx="{:.2f}%" cy="{:.1f}" r="{:.1f}"/>').format(
        100 * line.said, _height(line.found), size
    )


def _height(share: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * share


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)
