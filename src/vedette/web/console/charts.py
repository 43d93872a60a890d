"""Charts as inline SVG, drawn here: a line over time, bars of a whole. Each has a table beside it that says the same.

Text is placed in an outer drawing, in per cent of its width, so that it has one size on every screen; the line is in an
inner one that is stretched. Values may be anything: what cannot be drawn is left out.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from markupsafe import Markup

from vedette.web.console.scales import said, time_ticks, top_of
from vedette.web.words import ago, exact, stamp

__all__ = ["HEIGHT", "Line", "bars", "line_chart", "stacked"]

HEIGHT = 176
TOP, BOTTOM = 20, 148  # between these lies what is drawn
SIDE = 1000  # of the inner drawing
TICKS = 4
GAP = 5.0  # a pause of so many usual steps is a gap
MOST_ROWS = 60
FEWEST = 2
_EM_DASH = "\N{EM DASH}"

Point = tuple[float, float]


class Line(NamedTuple):
    """A line to be drawn: what it measures, its points, from when to when, and where all its points can be had.

    ``name`` is unique on a page.
    """

    name: str
    title: str
    words: str
    unit: str
    points: Sequence[Point]
    since_s: float
    now_s: float
    csv: str = ""


def line_chart(line: Line) -> Markup:
    """A line over time, from zero, with its latest value in its heading."""
    points = _within(line)
    latest = said(points[-1][1], line.unit) if points else _EM_DASH
    drawn = _drawing(line, points) if len(points) >= FEWEST else _too_few(line)
    return Markup(
        '<figure class="chart"><figcaption><span class="what">{}</span> <span class="latest">{}</span></figcaption>'
        "{}{}</figure>"
    ).format(line.title, latest, drawn, _below(line, points))


def _within(line: Line) -> list[Point]:
    """The points that can be drawn, in their order."""
    finite = (point for point in line.points if math.isfinite(point[0]) and math.isfinite(point[1]))
    return sorted(point for point in finite if line.since_s <= point[0] <= line.now_s)


def _too_few(line: Line) -> Markup:
    return Markup('<p class="few">{} Numbers come every few seconds while Vedette runs.</p>').format(
        "There is nothing to draw yet." if not line.points else "One number is too few for a line."
    )


def _drawing(line: Line, points: Sequence[Point]) -> Markup:
    top = top_of([value for _, value in points], line.unit)
    return Markup(
        '<svg class="drawing" width="100%" height="{height}" role="img" aria-labelledby="{name}-title {name}-desc">'
        '<title id="{name}-title">{title}</title><desc id="{name}-desc">{desc}</desc>{grid}{times}'
        '<svg x="0" y="{top}" width="100%" height="{tall}" viewBox="0 0 {side} {side}" preserveAspectRatio="none" '
        'overflow="visible">{paths}</svg></svg>'
    ).format(
        height=HEIGHT,
        name=line.name,
        title=line.title,
        desc=_description(line, points),
        grid=_grid(top, line.unit),
        times=_times(line.now_s - line.since_s),
        top=TOP,
        tall=BOTTOM - TOP,
        side=SIDE,
        paths=Markup().join(_path(run, line, top) for run in _runs(points)),
    )


def _description(line: Line, points: Sequence[Point]) -> str:
    values = [value for _, value in points]
    low, high, last = (said(value, line.unit) for value in (min(values), max(values), values[-1]))
    return f"{line.words}: between {low} and {high}, {last} at the end."


def _grid(top: float, unit: str) -> Markup:
    """Lines at round numbers; each number stands on its line, so that it takes no room beside the drawing."""
    rows = [(BOTTOM - (BOTTOM - TOP) * step / TICKS, said(top * step / TICKS, unit)) for step in range(TICKS + 1)]
    rule = Markup('<line class="grid" x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>')
    text = Markup('<text class="tick" x="0" y="{y:.1f}">{words}</text>')
    lines = Markup().join(rule.format(y=y) for y, _ in rows)
    return lines + Markup().join(text.format(y=y - 4, words=words) for y, words in rows[2::2])


def _times(span_s: float) -> Markup:
    ticks = time_ticks(max(span_s, 1.0))
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


def _runs(points: Sequence[Point]) -> list[list[Point]]:
    """The points without the gaps between them: where nothing was measured, nothing is drawn."""
    usual_s = median(later[0] - earlier[0] for earlier, later in pairwise(points))
    runs = [[points[0]]]
    for earlier, later in pairwise(points):
        if later[0] - earlier[0] > max(GAP * usual_s, 1e-9):
            runs.append([])
        runs[-1].append(later)
    return runs


def _path(run: Sequence[Point], line: Line, top: float) -> Markup:
    span_s = max(line.now_s - line.since_s, 1e-9)
    places = [(SIDE * _share((at_s - line.since_s) / span_s), SIDE * (1 - _share(value / top))) for at_s, value in run]
    way = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    # A line of no length has round ends, and so is a dot.
    tail = "" if len(places) > 1 else "h0"
    return Markup('<path class="line" vector-effect="non-scaling-stroke" d="M{}{}"/>').format(way, tail)


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def _below(line: Line, points: Sequence[Point]) -> Markup:
    """The same as a table, of which the file has all rows."""
    if not points:
        return Markup()
    step = math.ceil(len(points) / MOST_ROWS)
    row = Markup('<tr><td><time datetime="{}" title="{}">{}</time></td><td class="n">{}</td></tr>')
    rows = Markup().join(
        row.format(stamp(at_s), exact(at_s), ago(line.now_s, at_s), said(value, line.unit))
        for at_s, value in points[::-step]
    )
    csv = Markup(' <a class="csv" href="{}" download="">CSV</a>').format(line.csv) if line.csv else Markup()
    return Markup(
        '<div class="below"><details><summary>Show as table</summary>'
        '<div class="scrolling" tabindex="0"><table class="data">'
        '<thead><tr><th scope="col">When</th><th scope="col" class="n">{}</th></tr></thead>'
        "<tbody>{}</tbody></table></div></details>{}</div>"
    ).format(line.title, rows, csv)


def bars(rows: Sequence[tuple[str, float]], unit: str, head: tuple[str, str]) -> Markup:
    """A table of amounts, each with a bar beside it; the longest is the whole width."""
    top = max((value for _, value in rows if math.isfinite(value)), default=0.0)
    row = Markup(
        '<tr><th scope="row"><bdi class="short">{}</bdi></th><td class="n">{}</td>'
        '<td class="bar" aria-hidden="true"><svg viewBox="0 0 100 8" preserveAspectRatio="none">'
        '<rect class="amount" width="{:.2f}" height="8"/></svg></td></tr>'
    )
    body = Markup().join(row.format(words, said(value, unit), 100 * _part(value, top)) for words, value in rows)
    return Markup(
        '<table class="data with-bars"><thead><tr><th scope="col">{}</th><th scope="col" class="n">{}</th><td></td>'
        "</tr></thead><tbody>{}</tbody></table>"
    ).format(*head, body)


def stacked(parts: Sequence[tuple[str, float]], unit: str, words: str) -> Markup:
    """Parts of a whole on one bar, the first at its start; the table beside it says which is which."""
    whole = sum(max(value, 0.0) for _, value in parts if math.isfinite(value))
    at, pieces = 0.0, []
    for place, (_, value) in enumerate(parts):
        wide = 100 * _part(value, whole)
        pieces.append(Markup('<rect class="part-{}" x="{:.3f}" width="{:.3f}" height="8"/>').format(place, at, wide))
        at = min(at + wide, 100.0)
    told = ", ".join(f"{name} {said(value, unit)}" for name, value in parts)
    return Markup(
        '<svg class="stack" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label="{}: {}">{}</svg>'
    ).format(words, told, Markup().join(pieces))


def _part(value: float, whole: float) -> float:
    return _share(value / whole) if whole > 0 and math.isfinite(value) else 0.0
