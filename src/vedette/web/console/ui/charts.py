"""Charts of the console as inline SVG: lines over time, and bars. Each has a table with the same data.

Text is placed in an outer SVG, in percent of its width, so that it has one size on every screen; the line is in an
inner SVG that is stretched. Values may be anything: what cannot be drawn is left out.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from markupsafe import Markup, escape

from vedette.web.console.ui.scales import build_time_ticks, format_value, round_axis_top
from vedette.web.formatting import ago, exact, stamp

HEIGHT = 176
TOP, BOTTOM = 20, 148  # the drawing area is between these
VIEWBOX_SIDE = 1000  # of the inner drawing
TICKS = 4
GAP_FACTOR = 5.0  # a pause of this many usual steps is a gap
MAX_ROWS = 60
MIN_POINTS = 2
_EM_DASH = "\N{EM DASH}"

Point = tuple[float, float]


class SecondLine(NamedTuple):
    """A second line in a line chart, in the same unit: its label and its points."""

    title: str
    points: Sequence[Point]


class LineChart(NamedTuple):
    """A line chart to draw: what it measures, its points, its time range, and the URL of its CSV.

    ``name`` is unique on a page. ``second`` is drawn dashed beside it, with its own legend. ``band`` has the bounds of
    each point's interval. ``empty_hint`` says when there will be more points, if there are too few.
    """

    name: str
    title: str
    words: str
    unit: str
    points: Sequence[Point]
    since_s: float
    now_s: float
    csv: str = ""
    second: SecondLine | None = None
    band: Sequence[tuple[float, float, float]] = ()
    empty_hint: str = "Data points are added every few seconds while Vedette runs."


def render_line_chart(line: LineChart) -> Markup:
    """Draw a line chart over time as SVG, starting at zero, with its latest value in the heading."""
    points = _select_points(line, line.points)
    latest = _format_latest(points, line.unit)
    drawn = _draw(line, points) if len(points) >= MIN_POINTS else _render_too_few(line)
    return Markup(
        '<figure class="chart"><figcaption><span class="what">{}</span> <span class="latest">{}</span></figcaption>'
        "{}{}{}</figure>"
    ).format(line.title, latest, _draw_legend(line), drawn, _render_data_table(line, points))


def _format_latest(points: Sequence[Point], unit: str) -> str:
    return format_value(points[-1][1], unit) if points else _EM_DASH


def _draw_legend(line: LineChart) -> Markup:
    """Draw the legend of a line chart's second line: a dash sample, its label and its latest value."""
    if line.second is None:
        return Markup()
    return Markup(
        '<p class="second-line"><span><svg class="sign" width="20" height="8" aria-hidden="true">'
        '<path class="line other" d="M0 4H20"/></svg> {}</span> <span class="n">{}</span></p>'
    ).format(line.second.title, _format_latest(_select_second(line), line.unit))


def _select_second(line: LineChart) -> list[Point]:
    return _select_points(line, line.second.points) if line.second else []


def _select_points(line: LineChart, points: Sequence[Point]) -> list[Point]:
    """Select the points of a line chart that can be drawn, sorted by time."""
    finite = (point for point in points if math.isfinite(point[0]) and math.isfinite(point[1]))
    return sorted(point for point in finite if line.since_s <= point[0] <= line.now_s)


def _render_too_few(line: LineChart) -> Markup:
    return Markup('<p class="few">{} {}</p>').format(
        "No data yet." if not line.points else "Only one data point so far.", line.empty_hint
    )


def _draw(line: LineChart, points: Sequence[Point]) -> Markup:
    others = _select_second(line)
    highs = [(at_s, high) for at_s, _, high in _select_band(line)]
    top = round_axis_top([value for _, value in (*points, *others, *highs)], line.unit)
    return Markup(
        '<svg class="drawing" width="100%" height="{height}" role="img" aria-labelledby="{name}-title {name}-desc">'
        '<title id="{name}-title">{title}</title><desc id="{name}-desc">{desc}</desc>{grid}{times}'
        '<svg x="0" y="{top}" width="100%" height="{tall}" viewBox="0 0 {side} {side}" preserveAspectRatio="none" '
        'overflow="visible">{paths}</svg></svg>'
    ).format(
        height=HEIGHT,
        name=line.name,
        title=line.title,
        desc=_describe_chart(line, points),
        grid=_draw_grid(top, line.unit),
        times=_draw_time_axis(line.now_s - line.since_s),
        top=TOP,
        tall=BOTTOM - TOP,
        side=VIEWBOX_SIDE,
        paths=_draw_band(line, top)
        + _draw_lines(others, line, top, "line other")
        + _draw_lines(points, line, top, "line"),
    )


def _describe_chart(line: LineChart, points: Sequence[Point]) -> str:
    values = [value for _, value in points]
    low, high, last = (format_value(value, line.unit) for value in (min(values), max(values), values[-1]))
    other = (
        f" {line.second.title}: {_format_latest(_select_second(line), line.unit)} at the end." if line.second else ""
    )
    return f"{line.words}: between {low} and {high}, {last} at the end.{other}"


def _draw_grid(top: float, unit: str) -> Markup:
    """Draw a chart's horizontal grid lines at round numbers, with the number on each line."""
    rows = [
        (BOTTOM - (BOTTOM - TOP) * step / TICKS, format_value(top * step / TICKS, unit)) for step in range(TICKS + 1)
    ]
    rule = Markup('<line class="grid" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>')
    text = Markup('<text class="tick" x="0" y="{y:.1f}">{words}</text>')
    lines = Markup().join(rule.format(y=y) for y, _ in rows)
    return lines + Markup().join(text.format(y=y - 4, words=words) for y, words in rows[2::2])


def _draw_time_axis(span_s: float) -> Markup:
    ticks = build_time_ticks(max(span_s, 1.0))
    text = Markup('<text class="{kind}" x="{x:.2f}%" y="{y}" text-anchor="{anchor}">{words}</text>')
    return Markup().join(
        text.format(
            kind="tick" if place in {0.0, 1.0} else "tick between",
            x=100 * place,
            y=HEIGHT - 8,
            anchor="start" if place == 0.0 else "end" if place == 1.0 else "middle",
            words=words,
        )
        for place, words in ticks
    )


def _draw_lines(points: Sequence[Point], line: LineChart, top: float, kind: str) -> Markup:
    return Markup().join(_draw_line(run, line, top, kind) for run in _split_gaps(points))


def _split_gaps(points: Sequence[Point]) -> list[list[Point]]:
    """Split a chart line's points at gaps in the measurements, where nothing is drawn."""
    if len(points) < MIN_POINTS:
        return []
    usual_s = median(later[0] - earlier[0] for earlier, later in pairwise(points))
    runs = [[points[0]]]
    for earlier, later in pairwise(points):
        if later[0] - earlier[0] > max(GAP_FACTOR * usual_s, 1e-9):
            runs.append([])
        runs[-1].append(later)
    return runs


def _draw_line(run: Sequence[Point], line: LineChart, top: float, kind: str) -> Markup:
    places = _to_coordinates(run, line, top)
    way = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    # A line of length zero has round ends, and so appears as a dot.
    tail = "" if len(places) > 1 else "h0"
    return Markup('<path class="{}" vector-effect="non-scaling-stroke" d="M{}{}"/>').format(kind, way, tail)


def _select_band(line: LineChart) -> list[tuple[float, float, float]]:
    return sorted(each for each in line.band if line.since_s <= each[0] <= line.now_s and all(map(math.isfinite, each)))


def _draw_band(line: LineChart, top: float) -> Markup:
    """Draw the interval band of a line chart as an area, interrupted at gaps."""
    ends = {at_s: (low, high) for at_s, low, high in _select_band(line)}
    found = Markup()
    for run in _split_gaps([(at_s, high) for at_s, (_, high) in ends.items()]):
        places = [*run, *((at_s, ends[at_s][0]) for at_s, _ in reversed(run))]
        way = "L".join(f"{x:.1f} {y:.1f}" for x, y in _to_coordinates(places, line, top))
        found += Markup('<path class="band" d="M{}Z"/>').format(way)
    return found


def _to_coordinates(run: Sequence[Point], line: LineChart, top: float) -> list[Point]:
    span_s = max(line.now_s - line.since_s, 1e-9)
    return [
        (VIEWBOX_SIDE * _clamp((at_s - line.since_s) / span_s), VIEWBOX_SIDE * (1 - _clamp(value / top)))
        for at_s, value in run
    ]


def _clamp(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def _render_data_table(line: LineChart, points: Sequence[Point]) -> Markup:
    """Render a chart's data as a table; the CSV file has all rows."""
    if not points:
        return Markup()
    step = math.ceil(len(points) / MAX_ROWS)
    others = dict(_select_second(line)) if line.second else None
    rows = Markup().join(_render_row(line, point, others) for point in points[::-step])
    title, titles = (
        Markup('<th scope="col" class="n">{}</th>'),
        [line.title, *([line.second.title] if line.second else [])],
    )
    csv = Markup(' <a class="csv" href="{}" download="">CSV</a>').format(line.csv) if line.csv else Markup()
    return Markup(
        '<div class="below"><details><summary>Show as table</summary>'
        '<div class="scrolling" tabindex="0"><table class="data">'
        '<thead><tr><th scope="col">When</th>{}</tr></thead>'
        "<tbody>{}</tbody></table></div></details>{}</div>"
    ).format(Markup().join(map(title.format, titles)), rows, csv)


def _render_row(line: LineChart, point: Point, others: dict[float, float] | None) -> Markup:
    at_s, value = point
    values = [value, *([others.get(at_s, math.nan)] if others is not None else [])]
    cells = Markup().join(Markup('<td class="n">{}</td>').format(format_value(each, line.unit)) for each in values)
    when = Markup('<td><time datetime="{}" title="{}">{}</time></td>')
    return Markup("<tr>{}{}</tr>").format(when.format(stamp(at_s), exact(at_s), ago(line.now_s, at_s)), cells)


def render_bar_table(
    rows: Sequence[tuple[str, float]],
    unit: str,
    head: tuple[str, str],
    address: Callable[[str], str] | None = None,
) -> Markup:
    """Render a bar chart as a table of amounts with a bar each; the largest takes the full width.

    ``address`` returns the URL of the rows behind an amount.
    """
    top = max((value for _, value in rows if math.isfinite(value)), default=0.0)
    row = Markup(
        '<tr><th scope="row"><bdi class="short">{}</bdi></th><td class="n">{}</td>'
        '<td class="bar" aria-hidden="true"><svg viewBox="0 0 100 8" preserveAspectRatio="none">'
        '<rect class="amount" width="{:.2f}" height="8"/></svg></td></tr>'
    )
    body = Markup().join(
        row.format(_link_label(words, address), format_value(value, unit), 100 * _compute_fraction(value, top))
        for words, value in rows
    )
    return Markup(
        '<table class="data with-bars"><thead><tr><th scope="col">{}</th><th scope="col" class="n">{}</th><td></td>'
        "</tr></thead><tbody>{}</tbody></table>"
    ).format(*head, body)


def _link_label(words: str, address: Callable[[str], str] | None) -> Markup:
    return Markup('<a href="{}">{}</a>').format(address(words), words) if address else escape(words)


def render_stacked_bar(parts: Sequence[tuple[str, float]], unit: str, words: str) -> Markup:
    """Draw a chart of the parts of a whole as one stacked bar, with a table as its legend."""
    whole = sum(max(value, 0.0) for _, value in parts if math.isfinite(value))
    at, pieces = 0.0, []
    for place, (_, value) in enumerate(parts):
        wide = 100 * _compute_fraction(value, whole)
        pieces.append(Markup('<rect class="part-{}" x="{:.3f}" width="{:.3f}" height="8"/>').format(place, at, wide))
        at = min(at + wide, 100.0)
    label = ", ".join(f"{name} {format_value(value, unit)}" for name, value in parts)
    return Markup(
        '<svg class="stack" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label="{}: {}">{}</svg>'
    ).format(words, label, Markup().join(pieces))


def _compute_fraction(value: float, whole: float) -> float:
    return _clamp(value / whole) if whole > 0 and math.isfinite(value) else 0.0
