"""Calibration of change forecasts on the console's Refresh page: forecast probabilities against changes found.

Of the pages with a forecast probability of 30 to 40%, about 35% should turn out to have changed. So each tenth of the
probabilities is a dot: the forecast on the x axis, the share that had changed on the y axis. Dots on the diagonal are
calibrated.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from vedette.web.console.ports.monitoring import CalibrationBin
from vedette.web.console.ui.scales import format_percent
from vedette.web.console.ui.tables import Column, Table

MIN_REFRESHES = 30  # refreshes needed for a verdict
MIN_BIN_WEIGHT = 0.5  # of a refresh: smaller decayed counts say nothing
# How far off forecasts may be on average, beyond chance.
WELL_CALIBRATED, ROUGHLY_CALIBRATED = 0.05, 0.15
MAX_OVERALL_BIAS = 0.02
Z_95 = 1.96
CHART_HEIGHT, TOP, BOTTOM = 276, 24, 248
MIN_DOT, MAX_DOT = 4.0, 10.0


class CalibrationRow(NamedTuple):
    """A tenth of the forecast probabilities in the calibration table: mean forecast, share changed, refreshes."""

    place: int
    predicted: float
    found: float
    refreshes: float

    @property
    def name(self) -> str:
        """Return the bounds of this tenth of the forecast probabilities."""
        return f"{10 * self.place} to {10 * (self.place + 1)}%"


CALIBRATION_TABLE: Table[CalibrationRow] = Table(
    (
        Column("chance", "Predicted", lambda row: row.name),
        Column("said", "Mean prediction", lambda row: round(row.predicted, 4), is_number=True),
        Column("found", "Actually changed", lambda row: round(row.found, 4), is_number=True),
        Column("refreshes", "Refreshes", lambda row: round(row.refreshes, 1), is_number=True),
    ),
    prefix="calibration",
)


def build_calibration_rows(tenths: Sequence[CalibrationBin]) -> list[CalibrationRow]:
    """Build the rows of the forecast calibration table; bins with too few refreshes are left out."""
    return [
        CalibrationRow(
            place, _clamp(each.expected / each.refreshes), _clamp(each.found / each.refreshes), each.refreshes
        )
        for place, each in enumerate(tenths)
        if all(map(math.isfinite, each)) and each.refreshes >= MIN_BIN_WEIGHT
    ]


def describe_calibration(tenths: Sequence[CalibrationBin]) -> str:
    """Describe in a sentence or two whether change forecasts can be trusted.

    >>> describe_calibration([CalibrationBin(100.0, 35.0, 37.0)])
    'Forecasts are accurate: 35% were predicted to have changed, and 37% had.'
    >>> describe_calibration([CalibrationBin(100.0, 35.0, 80.0)]).partition(": ")[0]
    'Forecasts are not reliable yet'
    """
    lines = build_calibration_rows(tenths)
    count = sum(line.refreshes for line in lines)
    if count < MIN_REFRESHES:
        return f"Too early to say: this needs {MIN_REFRESHES} recent refreshes, and there were {round(count)}."
    predicted = sum(line.refreshes * line.predicted for line in lines) / count
    found = sum(line.refreshes * line.found for line in lines) / count
    off = sum(line.refreshes * abs(line.found - line.predicted) for line in lines) / count
    off -= _estimate_deviation(lines, count)
    summary = f"{format_percent(predicted)} were predicted to have changed, and {format_percent(found)} had"
    if off <= WELL_CALIBRATED:
        return f"Forecasts are accurate: {summary}."
    verdict = "are roughly right" if off <= ROUGHLY_CALIBRATED else "are not reliable yet"
    return f"Forecasts {verdict}: {summary}. {_describe_bias(found - predicted)}"


def _estimate_deviation(lines: Sequence[CalibrationRow], count: float) -> float:
    """Estimate how far off perfectly calibrated forecasts may be: mean distance plus two deviations."""
    spread = [line.refreshes * line.predicted * (1 - line.predicted) for line in lines]
    mean = sum(math.sqrt(2 / math.pi * each) for each in spread)
    return (mean + 2 * math.sqrt((1 - 2 / math.pi) * sum(spread))) / count


def _describe_bias(more: float) -> str:
    if abs(more) <= MAX_OVERALL_BIAS:
        return "The overall rate fits, but high or low predictions are off."
    if more > 0:
        return "Pages change more often than predicted, so they are fetched too late. Each fetch improves the estimate."
    return "Pages change less often than predicted, so fetches are wasted. Each fetch improves the estimate."


def render_reliability_diagram(tenths: Sequence[CalibrationBin]) -> Markup:
    """Draw the reliability diagram of change forecasts as SVG.

    Text has one size on every screen, as in other charts. The table beside it says the same.
    """
    lines = build_calibration_rows(tenths)
    most = max((line.refreshes for line in lines), default=1.0)
    return Markup(
        '<svg class="drawing reliability" width="100%" height="{}" role="img" '
        'aria-labelledby="reliability-title reliability-desc">'
        '<title id="reliability-title">Predicted and actual changes</title>'
        '<desc id="reliability-desc">{}</desc>{}{}{}</svg>'
    ).format(
        CHART_HEIGHT,
        " ".join(f"Predicted {format_percent(line.predicted)}, actual {format_percent(line.found)}." for line in lines),
        _draw_axes(),
        _draw_intervals(lines),
        Markup().join(_draw_dot(line, most) for line in lines),
    )


def _draw_axes() -> Markup:
    rule = Markup('<line class="grid" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>')
    up = Markup('<text class="tick" x="0" y="{y:.1f}">{words}</text>')
    across = Markup('<text class="tick" x="{x}%" y="{y}" text-anchor="{anchor}">{words}</text>')
    rules = Markup().join(rule.format(y=_to_y(part / 4)) for part in range(5))
    ups = up.format(y=_to_y(0.5) - 4, words=format_percent(0.5)) + up.format(
        y=_to_y(1.0) - 4, words=f"{format_percent(1.0)} changed"
    )
    ends = (
        (0, "start", format_percent(0.0)),
        (50, "middle", "predicted probability"),
        (100, "end", format_percent(1.0)),
    )
    acrosses = Markup().join(across.format(x=x, y=BOTTOM + 20, anchor=anchor, words=words) for x, anchor, words in ends)
    diagonal = Markup('<line class="as-predicted" x1="0" y1="{}" x2="100%" y2="{}"/>').format(BOTTOM, TOP)
    return rules + ups + acrosses + diagonal


def _draw_intervals(lines: Sequence[CalibrationRow]) -> Markup:
    """Draw the 95% Wilson interval of each dot in the reliability diagram."""
    mark = Markup('<line class="whisker" x1="{x:.2f}%" x2="{x:.2f}%" y1="{low:.1f}" y2="{high:.1f}"/>')
    ends = ((line, *_compute_interval(line)) for line in lines)
    return Markup().join(
        mark.format(x=100 * line.predicted, low=_to_y(low), high=_to_y(high)) for line, low, high in ends
    )


def _compute_interval(line: CalibrationRow) -> tuple[float, float]:
    count, share = line.refreshes, line.found
    middle = (share + Z_95 * Z_95 / (2 * count)) / (1 + Z_95 * Z_95 / count)
    half = Z_95 / (1 + Z_95 * Z_95 / count) * math.sqrt(share * (1 - share) / count + Z_95 * Z_95 / (4 * count * count))
    return _clamp(middle - half), _clamp(middle + half)


def _draw_dot(line: CalibrationRow, most: float) -> Markup:
    """Draw a dot of the reliability diagram, sized by its number of refreshes."""
    size = max(MIN_DOT, MAX_DOT * math.sqrt(line.refreshes / most))
    return Markup('<circle class="dot" cx="{:.2f}%" cy="{:.1f}" r="{:.1f}"/>').format(
        100 * line.predicted, _to_y(line.found), size
    )


def _to_y(share: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * share


def _clamp(value: float) -> float:
    return min(max(value, 0.0), 1.0)
