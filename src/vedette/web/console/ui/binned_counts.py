"""Counts per time bin: increments of decaying sums, as charts and CSV files of the console.

The coordinator counts refreshes and polls in decaying sums (``engine.scheduling.forecast``), so that they describe
about the last day at any moment. The increment between two samples is the later sum minus the decayed earlier one.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from markupsafe import Markup
from starlette.responses import Response

from vedette.engine.scheduling.forecast import HALF_LIFE_S
from vedette.web.console.ports.monitoring import Monitoring
from vedette.web.console.ui.charts import LineChart, Point, SecondLine, render_line_chart
from vedette.web.console.ui.tables import csv_response
from vedette.web.console.ui.time_series import TimeRange
from vedette.web.formatting import stamp

MAX_SAMPLES = 4_000
MAX_BINS = 60
# By the name of the time range: seconds of a bin, and its name.
_BIN_SIZES = {"hour": (300.0, "per 5 minutes"), "day": (3_600.0, "per hour"), "month": (86_400.0, "per day")}


class BinnedCounts(NamedTuple):
    """Binned counts of one kind of fetches and of the wasted ones, which found nothing new, with the total."""

    all: list[Point]
    wasted: list[Point]
    total: float

    @property
    def second_line(self) -> SecondLine:
        """Return the binned counts of wasted fetches as the chart's second line."""
        return SecondLine("found nothing new", self.wasted)

    def csv_response(self, name: str, over: TimeRange) -> Response:
        """Return the binned counts of all and of wasted fetches as a CSV file."""
        pairs = zip(self.all, self.wasted, strict=True)
        rows = [(stamp(at_s), round(count, 1), round(wasted, 1)) for (at_s, count), (_, wasted) in pairs]
        return csv_response(name, ["when", f"{name} {get_bin_size(over)[1]}", "found nothing new"], rows)


def get_bin_size(over: TimeRange) -> tuple[float, str]:
    """Return the bin size of binned counts in seconds for a time range, and its description."""
    return _BIN_SIZES[over.name]


def compute_increments(sums: Sequence[Point], half_life_s: float) -> list[Point]:
    """Compute the increments of a decaying sum between samples: when each was seen first, and how much.

    They are off by about one at most. A sum that nothing was added to may keep its value, because it decays only when
    something is added.

    >>> compute_increments([(0.0, 8.0), (86_400.0, 7.0), (90_000.0, 7.0)], 86_400.0)
    [(86400.0, 3.0), (90000.0, 0.0)]
    """
    found = []
    for (earlier_s, earlier), (later_s, later) in pairwise(sums):
        left = earlier * 0.5 ** (max(later_s - earlier_s, 0.0) / half_life_s)
        found.append((later_s, 0.0 if later == earlier else max(later - left, 0.0)))
    return found


def sum_by_bin(amounts: Sequence[Point], begun_s: float, now_s: float, step_s: float) -> list[Point]:
    """Sum timed values per bin, at each bin's end; bins that began before measuring did are left out.

    >>> sum_by_bin([(5.0, 1.0), (12.0, 2.0), (19.0, 3.0)], 0.0, 20.0, 10.0)
    [(10.0, 1.0), (20.0, 5.0)]
    """
    span_s = now_s - begun_s
    count = min(max(int(span_s / step_s), 0), MAX_BINS) if math.isfinite(span_s) else 0
    sums = [0.0] * count
    for at_s, amount in amounts:
        back = (now_s - at_s) / step_s
        if 0 <= back < count and math.isfinite(amount):
            sums[int(back)] += amount
    return [(now_s - back * step_s, sums[back]) for back in reversed(range(count))]


def load_counts(monitoring: Monitoring, over: TimeRange, now_s: float, series: tuple[str, str]) -> BinnedCounts:
    """Load binned counts over a time range from a decaying sum's series and its wasted share's series."""
    since_s = now_s - over.span_s
    sums = monitoring.load_series(series[0], since_s, MAX_SAMPLES)
    shares = dict(monitoring.load_series(series[1], since_s, MAX_SAMPLES))
    lost = [(at_s, value * shares.get(at_s, 0.0)) for at_s, value in sums]
    begun_s = sums[0][0] if sums else now_s
    counts, wasted = (compute_increments(each, HALF_LIFE_S) for each in (sums, lost))
    every, nothing_new = (sum_by_bin(each, begun_s, now_s, get_bin_size(over)[0]) for each in (counts, wasted))
    return BinnedCounts(every, nothing_new, sum(amount for _, amount in counts))


def render_binned_chart(
    page_url: str,
    what: tuple[str, str, str],
    points: Sequence[Point],
    when: tuple[TimeRange, float],
    second: SecondLine | None = None,
) -> Markup:
    """Draw binned counts as a chart; ``what`` is its name (for the page's CSV), its title and its unit."""
    (name, title, unit), (over, now_s) = what, when
    begun_s = points[0][0] if points else now_s - over.span_s
    csv = f"{page_url}?csv={name}&over={over.name}"
    return render_line_chart(LineChart(name, title, title, unit, points, min(begun_s, now_s - 1.0), now_s, csv, second))
