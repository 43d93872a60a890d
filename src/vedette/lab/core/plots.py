"""SVG plots of the lab's reports: the result of each policy by budget, or at one budget, with 95% bands.

Bounds are dashed and grey, baselines thin, ``default`` thick and in the accent color. A policy has the same color in
every plot, unless another has it there. Lines are labeled at their ends. Each file is self-contained and works in light
and dark mode.
"""

import math
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

import xxhash

from vedette.web.console.ui.scales import round_up

THIN_SPACE = "\u2009"
NO_VALUE = "\N{EN DASH}"
TARGET_TICKS = 5
MAX_LABELED = 7  # values that each get a label on the axis
LOG_SCALE_RATIO = 20.0  # ratio of largest to smallest: then the axis is logarithmic
MIN_TICK_DISTANCE = 36.0  # between two labels on the axis
MAX_VALUE = 1e15  # anything larger is no measurement


class Axis(NamedTuple):
    """A plot axis from ``low`` at ``begin`` to ``high`` at ``end``, linear or logarithmic, with ``ticks``."""

    low: float
    high: float
    begin: float
    end: float
    ticks: tuple[float, ...]
    is_log: bool = False

    def to_pixels(self, value: float) -> float:
        """Return the pixel position of a value on a plot axis; values outside are drawn at the edge."""
        low, high, at = (math.log(v) if self.is_log else v for v in (self.low, self.high, max(value, self._minimum)))
        share = (at - low) / (high - low) if high > low else 0.5
        return self.begin + min(max(share, 0.0), 1.0) * (self.end - self.begin)

    @property
    def _minimum(self) -> float:
        return self.low if self.is_log else -math.inf


def build_y_axis(values: Sequence[float], unit: str, begin: float, end: float) -> Axis:
    """Build the y axis of a plot: from zero to the next round number; shares end at 1 if they are close to it.

    >>> build_y_axis([0.2, 0.93], "share", 0, 100).ticks
    (0.0, 0.25, 0.5, 0.75, 1.0)
    >>> build_y_axis([-3.0, 7.0], "", 0, 100).ticks
    (-5.0, -2.5, 0.0, 2.5, 5.0, 7.5)
    """
    low = max(min((*values, 0.0)), -MAX_VALUE)
    high = min(max((*values, 0.0)), MAX_VALUE)
    if unit == "share" and low == 0.0 and 0.8 < high <= 1.0:
        return Axis(0.0, 1.0, begin, end, (0.0, 0.25, 0.5, 0.75, 1.0))
    step = round_up((high - low) / (TARGET_TICKS - 1)) if high > low else 1.0
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(number * step for number in range(first, max(last, first + 1) + 1))
    return Axis(ticks[0], ticks[-1], begin, end, ticks)


def build_x_axis(values: Sequence[float], begin: float, end: float) -> Axis:
    """Build the x axis of a plot from the smallest to the largest value; logarithmic if these are far apart.

    >>> round(build_x_axis([10.0, 100.0, 1000.0], 0, 100).to_pixels(100.0), 6)
    50.0
    """
    places = sorted(frozenset(values))
    by_factors = places[0] > 0 and places[-1] / places[0] >= LOG_SCALE_RATIO
    bare = Axis(places[0], places[-1], begin, end, (), by_factors)
    return bare._replace(ticks=_drop_overlapping(bare, places if len(places) <= MAX_LABELED else _choose_ticks(bare)))


def _choose_ticks(axis: Axis) -> list[float]:
    if axis.is_log:
        powers = range(math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high)) + 1)
        return [10.0**power for power in powers if axis.low <= 10.0**power <= axis.high] or [axis.low, axis.high]
    step = round_up((axis.high - axis.low) / (TARGET_TICKS - 1))
    numbers = range(math.ceil(axis.low / step), math.floor(axis.high / step) + 1)
    return [number * step for number in numbers]


def _drop_overlapping(axis: Axis, places: Sequence[float]) -> tuple[float, ...]:
    """Drop tick labels of a plot axis that would overlap an earlier one."""
    ticks: list[float] = []
    for place in places:
        if not ticks or abs(axis.to_pixels(place) - axis.to_pixels(ticks[-1])) >= MIN_TICK_DISTANCE:
            ticks.append(place)
    return tuple(ticks)


def format_value(value: float, unit: str) -> str:
    """Format a measured value of a plot or table for people, with its unit.

    >>> samples = (0.834, "share"), (12345.0, ""), (2.5, "h"), (0.00123, "")
    >>> [format_value(*each).replace(THIN_SPACE, " ") for each in samples]
    ['83.4 %', '12 345', '2.5 h', '0.00123']
    """
    if not math.isfinite(value):
        return NO_VALUE
    if unit == "share":
        return f"{_format_number(100 * value)}{THIN_SPACE}%"
    return f"{_format_number(value)}{THIN_SPACE}{unit}" if unit else _format_number(value)


def _format_number(value: float) -> str:
    """Format a number with three significant digits; whole from a hundred on, with thin spaces."""
    if abs(value) >= 100:
        return f"{round(value):,}".replace(",", THIN_SPACE) if abs(value) < MAX_VALUE else f"{value:.2e}"
    text = f"{value:.3g}"
    return text if "e" in text or float(text) else "0"


WIDTH = 720
LEFT, RIGHT, TOP, BOTTOM = 64, 176, 56, 48  # around the drawing
MAX_UNIT_CHARS = 2
HEIGHT = 400
LINE_HEIGHT = 18  # between two lines of text
FIRST_BAR = 24
CHARACTER_WIDTH = 7.5  # approximate width of a character at 13 px
COLOR_COUNT = 6
ZERO_FACTOR = 2.5  # how many times smaller than the smallest value zero appears on a logarithmic axis

# Colors that can be distinguished without seeing red or green; each pair is light and dark.
_STYLE = """\
svg { --paper: #ffffff; --ink: #1b1f24; --soft: #57606a; --line: #d5dae0; --accent: #0b57a4; --grey: #7b8692;
  --c0: #8a5300; --c1: #00735a; --c2: #a3478a; --c3: #b04a00; --c4: #6b3fa0; --c5: #5f6b00; }
@media (prefers-color-scheme: dark) { svg { --paper: #14171a; --ink: #e6e9ec; --soft: #a3acb5; --line: #343b43;
  --accent: #8ab8f0; --grey: #8d97a3; --c0: #e69f00; --c1: #2fc7a0; --c2: #dd9cc6; --c3: #f08a4b; --c4: #c3a6f0;
  --c5: #d3d34a; } }
text { font: 13px system-ui, sans-serif; fill: var(--soft); }
.title { font-size: 15px; font-weight: 600; fill: var(--ink); }
.grid { stroke: var(--line); }
.series path, .series line { fill: none; stroke: var(--tone); stroke-width: 1.5; stroke-linejoin: round;
  stroke-linecap: round; }
.series .band { fill: var(--tone); stroke: none; opacity: .14; }
.series circle { fill: var(--tone); }
.series text { fill: var(--tone); }
.default { --tone: var(--accent); }
.default path, .default line { stroke-width: 3.5; }
.default text { font-weight: 600; }
.bound { --tone: var(--grey); }
.bound text { fill: var(--soft); }
.bound path, .bound line { stroke-dasharray: 6 5; stroke-linecap: butt; }
"""


class Point(NamedTuple):
    """A point of a plot: x, y, and the ends of its 95% interval (NaN if unknown)."""

    x: float
    y: float
    low: float = math.nan
    high: float = math.nan


class Series(NamedTuple):
    """A series of a plot: the points of one policy."""

    policy: str
    points: Sequence[Point]


class Plot(NamedTuple):
    """A plot to draw: title, axis labels, unit and series."""

    title: str
    x_label: str
    y_label: str
    unit: str
    series: Sequence[Series]


def draw_svg(plot: Plot) -> str:
    """Draw a plot as SVG: lines over x, or a row for each policy if x has one value; skip infinite values."""
    finite = [Series(each.policy, _select_finite(each.points)) for each in plot.series]
    drawn = [each for each in finite if each.points]
    places = frozenset(dot.x for each in drawn for dot in each.points)
    if len(places) > 1:
        return _render_svg(plot, HEIGHT, _draw_lines(plot, drawn))
    return _render_svg(plot, TOP + BOTTOM + FIRST_BAR + LINE_HEIGHT * 2 * max(len(drawn), 1), _draw_bars(plot, drawn))


def _select_finite(dots: Sequence[Point]) -> list[Point]:
    finite = (dot for dot in dots if math.isfinite(dot.x) and math.isfinite(dot.y))
    return sorted(finite, key=lambda dot: dot.x)


def _render_svg(plot: Plot, height: float, inside: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" height="{height:g}" '
        f'role="img" aria-labelledby="title desc">\n<title id="title">{_escape_text(plot.title)}</title>\n'
        f'<desc id="desc">{_escape_text(_describe_plot(plot))}</desc>\n<style>\n{_STYLE}</style>\n'
        f'<rect width="{WIDTH}" height="{height:g}" fill="var(--paper)"/>\n'
        f'<text class="title" x="16" y="24">{_escape_text(_truncate(plot.title, WIDTH - 32))}</text>\n{inside}</svg>\n'
    )


def _describe_plot(plot: Plot) -> str:
    ends = [f"{each.policy} {format_value(each.points[-1].y, plot.unit)}" for each in plot.series if each.points]
    return f"{plot.y_label} by {plot.x_label}; last: {', '.join(ends) or 'nothing'}"


def _draw_lines(plot: Plot, series: Sequence[Series]) -> str:
    dots = [dot for each in series for dot in each.points]
    across = _choose_x_axis(sorted(frozenset(float(dot.x) for dot in dots)))
    up = build_y_axis(_collect_values(dots), plot.unit, HEIGHT - BOTTOM, TOP)
    tones = _assign_colors(series)
    labels = _spread_labels([up.to_pixels(each.points[-1].y) for each in series], TOP, HEIGHT - BOTTOM)
    drawn = (
        f'<g class="{_css_class(each.policy)}"{tones.get(each.policy, "")}>{_draw_band(each.points, across, up)}'
        f"{_draw_line(each.points, across, up)}{_draw_label(each, across, up, y)}</g>\n"
        for each, y in sorted(zip(series, labels, strict=True), key=lambda pair: _layer(pair[0].policy))
    )
    words = f'<text x="{LEFT}" y="{TOP - 12}">{_escape_text(_truncate(plot.y_label, WIDTH - LEFT - 16))}</text>\n'
    return words + _draw_grid(across, up, plot) + "".join(drawn)


def _choose_x_axis(places: Sequence[float]) -> Axis:
    """Choose the x axis of a plot: whole ticks for small counts, and room for zero beside a logarithmic axis.

    >>> _choose_x_axis([0.0, 1.0, 2.0, 3.0]).ticks
    (0.0, 1.0, 2.0, 3.0)
    >>> axis = _choose_x_axis([0.0, 0.1, 1.0, 10.0, 100.0])
    >>> axis.ticks, axis.to_pixels(0.0) == LEFT, axis.to_pixels(0.1) > LEFT
    ((0.0, 0.1, 1.0, 10.0, 100.0), True, True)
    """
    if places[0] == 0.0 and places[-1] - places[-2] >= LOG_SCALE_RATIO * places[1]:
        axis = build_x_axis([places[1] / ZERO_FACTOR, *places[1:]], LEFT, WIDTH - RIGHT)
        ticks = [tick for tick in axis.ticks if axis.to_pixels(tick) - LEFT >= MIN_TICK_DISTANCE]
        return axis._replace(ticks=(0.0, *ticks))
    axis = build_x_axis(places, LEFT, WIDTH - RIGHT)
    if axis.is_log or not all(place.is_integer() for place in places):
        return axis
    drawn = [axis.to_pixels(place) for place in places]
    is_roomy = all(later - earlier >= MIN_TICK_DISTANCE for earlier, later in pairwise(drawn))
    return axis._replace(ticks=tuple(places if is_roomy else (tick for tick in axis.ticks if tick.is_integer())))


def _collect_values(dots: Sequence[Point]) -> list[float]:
    values = [value for dot in dots for value in (dot.y, dot.low, dot.high)]
    return [value for value in values if math.isfinite(value)]


def _draw_grid(across: Axis, up: Axis, plot: Plot) -> str:
    unit = _tick_unit(plot)
    ups = (
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{format_value(tick, unit)}</text>\n'
        for tick, y in ((tick, up.to_pixels(tick)) for tick in up.ticks)
    )
    base = HEIGHT - BOTTOM
    rights = (
        f'<text x="{across.to_pixels(tick):.1f}" y="{base + 18}" text-anchor="middle">{format_value(tick, "")}</text>\n'
        for tick in across.ticks
    )
    middle = (LEFT + WIDTH - RIGHT) / 2
    label = _escape_text(_truncate(plot.x_label, 480))
    words = f'<text x="{middle:g}" y="{base + 38}" text-anchor="middle">{label}</text>\n'
    return "".join(ups) + "".join(rights) + words


def _tick_unit(plot: Plot) -> str:
    """Return the unit for the tick labels of a plot; empty for a long unit, which the plot's title also names."""
    return plot.unit if len(plot.unit) <= MAX_UNIT_CHARS or plot.unit == "share" else ""


def _draw_band(dots: Sequence[Point], across: Axis, up: Axis) -> str:
    finite = [dot for dot in dots if math.isfinite(dot.low) and math.isfinite(dot.high)]
    if len(finite) < 2:
        return ""
    there = [f"{across.to_pixels(dot.x):.1f} {up.to_pixels(dot.high):.1f}" for dot in finite]
    back = [f"{across.to_pixels(dot.x):.1f} {up.to_pixels(dot.low):.1f}" for dot in reversed(finite)]
    return f'<path class="band" d="M{"L".join([*there, *back])}Z"/>'


def _draw_line(dots: Sequence[Point], across: Axis, up: Axis) -> str:
    places = [f"{across.to_pixels(dot.x):.1f} {up.to_pixels(dot.y):.1f}" for dot in dots]
    # A line of length zero has round ends, and so appears as a dot.
    return f'<path d="M{"L".join(places)}{"h0" if len(places) == 1 else ""}"/>'


def _draw_label(series: Series, across: Axis, up: Axis, y: float) -> str:
    """Draw the policy's name beside the end of its line in a plot, with a thin leader line if the label was moved."""
    last = series.points[-1]
    end, x = across.to_pixels(last.x), WIDTH - RIGHT + 14
    hair = f'<path style="stroke-width:.75" d="M{end + 4:.1f} {up.to_pixels(last.y):.1f}L{x - 3} {y - 4:.1f}"/>'
    return f'{hair}<text x="{x}" y="{y:.1f}">{_escape_text(_truncate(series.policy, RIGHT - 20))}</text>'


def _spread_labels(wanted: Sequence[float], top: float, bottom: float) -> list[float]:
    """Spread the labels of a plot so that none overlaps another, each as near as possible to its wanted position."""
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    line = min(LINE_HEIGHT, (bottom - top) / max(len(wanted) - 1, 1))
    placed = [wanted[place] + 4 for place in order]
    for earlier, later in pairwise(range(len(placed))):
        placed[later] = max(placed[later], placed[earlier] + line)
    over = max(placed[-1] - bottom, 0.0) if placed else 0.0
    for place in reversed(range(len(placed))):
        limit = placed[place + 1] - line if place + 1 < len(placed) else bottom
        placed[place] = max(min(placed[place], limit), top) if over else placed[place]
    found = dict(zip(order, placed, strict=True))
    return [found[place] for place in range(len(wanted))]


def _draw_bars(plot: Plot, series: Sequence[Series]) -> str:
    """Draw a plot of one row for each policy: its name, its value as a dot, its interval as a line."""
    values = _collect_values([dot for each in series for dot in each.points])
    wide = min(240.0, 24 + CHARACTER_WIDTH * max((len(each.policy) for each in series), default=0))
    across = build_y_axis(values, plot.unit, wide, WIDTH - 96)
    bottom = TOP + FIRST_BAR + LINE_HEIGHT * 2 * max(len(series), 1) - LINE_HEIGHT
    unit = _tick_unit(plot)
    ticks = (
        f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>'
        f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{format_value(tick, unit)}</text>\n'
        for tick, x in ((tick, across.to_pixels(tick)) for tick in across.ticks)
    )
    tones = _assign_colors(series)
    rows = (
        _draw_bar(each, across, TOP + FIRST_BAR + LINE_HEIGHT * 2 * number, plot.unit, tones.get(each.policy, ""))
        for number, each in enumerate(series)
    )
    label = _escape_text(_truncate(plot.y_label, 640))
    words = f'<text x="{WIDTH / 2:g}" y="{bottom + 40}" text-anchor="middle">{label}</text>\n'
    return "".join(ticks) + "".join(rows) + words


def _draw_bar(series: Series, across: Axis, y: float, unit: str, tone: str) -> str:
    dot = series.points[-1]
    low, high = (dot.low, dot.high) if math.isfinite(dot.low) and math.isfinite(dot.high) else (dot.y, dot.y)
    name = _escape_text(_truncate(series.policy, 224))
    return (
        f'<g class="{_css_class(series.policy)}"{tone}>'
        f'<text x="16" y="{y + 4}">{name}</text>'
        f'<line x1="{across.to_pixels(low):.1f}" x2="{across.to_pixels(high):.1f}" y1="{y}" y2="{y}"/>'
        f'<circle cx="{across.to_pixels(dot.y):.1f}" cy="{y}" r="4.5"/>'
        f'<text x="{WIDTH - 12}" y="{y + 4}" text-anchor="end">{format_value(dot.y, unit)}</text></g>\n'
    )


def _css_class(policy: str) -> str:
    return f"series {('bound', 'baseline', 'default')[_layer(policy)]}"


def _layer(policy: str) -> int:
    """Return the drawing layer of a policy's line in a plot: bounds first, ``default`` last and on top."""
    return 0 if policy.startswith("bound-") else 2 if policy == "default" else 1


def _assign_colors(series: Sequence[Series]) -> dict[str, str]:
    """Assign plot colors to policies that are neither bounds nor ``default``: by name, or the next free color."""
    free = list(range(COLOR_COUNT))
    tones: dict[str, str] = {}
    for policy in sorted(each.policy for each in series if _layer(each.policy) == 1):
        free = free or list(range(COLOR_COUNT))
        wanted = xxhash.xxh64_intdigest(policy.encode("utf-8", "replace")) % COLOR_COUNT
        colour = min(free, key=lambda each: (each - wanted) % COLOR_COUNT)
        free.remove(colour)
        tones[policy] = f' style="--tone: var(--c{colour})"'
    return tones


def _escape_text(text: str) -> str:
    """Escape a text of a plot for SVG, replacing unprintable characters that XML may not allow."""
    return escape("".join(each if each.isprintable() else "\ufffd" for each in text))


def _truncate(text: str, width: float) -> str:
    most = max(int(width / CHARACTER_WIDTH), 1)
    return text if len(text) <= most else f"{text[: most - 1]}…"
