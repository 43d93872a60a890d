"""Charts are well-formed, stay inside their drawing, and describe themselves, for any input."""

import math
import re
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from vedette.web.console.ui.charts import (
    HEIGHT,
    VIEWBOX_SIDE,
    LineChart,
    render_bar_table,
    render_line_chart,
    render_stacked_bar,
)
from vedette.web.console.ui.scales import build_time_ticks, format_value, round_axis_top
from vedette.web.console.ui.time_series import compute_daily_growth

UNITS = ("n", "share", "s", "bytes", "1/s", "1/h", "no unit of ours")
NOW_S = 1_770_000_000.0
DAY_S = 86_400.0
anything = st.floats() | st.integers(-(10**30), 10**30).map(float)
near = st.floats(NOW_S - 2 * DAY_S, NOW_S + DAY_S)
some_points = st.lists(st.tuples(near | anything, anything), max_size=30)
words = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff"), max_size=20)


def line(points: list[tuple[float, float]], unit: str = "n", title: str = "Pages") -> LineChart:
    """Return a line over the last day."""
    return LineChart(
        "pages", title, "pages kept", unit, points, NOW_S - DAY_S, NOW_S, "/console/series.csv?name=a&over=day"
    )


def drawn(text: str) -> ET.Element:
    """Parse the drawing as XML."""
    return ET.fromstring(f"<div>{text}</div>")  # noqa: S314 - our own text


def numbers_of(element: ET.Element) -> list[tuple[float, float]]:
    """Return the coordinates of a path."""
    found = re.findall(r"(-?[0-9.]+) (-?[0-9.]+)", element.attrib["d"])
    return [(float(x), float(y)) for x, y in found]


@given(points=some_points, unit=st.sampled_from(UNITS), title=words)
def test_any_line_is_well_formed_and_inside(points: list[tuple[float, float]], unit: str, title: str) -> None:
    """All values are drawn inside, and all numbers are finite."""
    text = str(render_line_chart(line(points, unit, title)))
    root = drawn(text)
    assert "nan" not in text.replace(title, "").lower()
    for path in root.iter("path"):
        assert all(0 <= x <= VIEWBOX_SIDE and 0 <= y <= VIEWBOX_SIDE for x, y in numbers_of(path))
    for label in root.iter("text"):
        assert 0 <= float(label.attrib["x"].rstrip("%")) <= 100
        assert 0 <= float(label.attrib["y"]) <= HEIGHT


@given(rows=st.lists(st.tuples(words, anything), max_size=8), unit=st.sampled_from(UNITS))
def test_any_bars_are_well_formed_and_inside(rows: list[tuple[str, float]], unit: str) -> None:
    """Each bar is inside its drawing, and so are the pieces of a stack."""
    for text in (render_bar_table(rows, unit, ("What", "Times")), render_stacked_bar(rows, unit, "Room taken")):
        for piece in drawn(str(text)).iter("rect"):
            start, wide = float(piece.attrib.get("x", 0)), float(piece.attrib["width"])
            assert start >= 0
            assert wide >= 0
            assert start + wide <= 100.01


@given(values=st.lists(st.floats(0, 1e17), min_size=1), unit=st.sampled_from(UNITS))
def test_an_axis_holds_all_its_values(values: list[float], unit: str) -> None:
    """Its end is above all values (a share ends at 1), but not so far that they are hard to see."""
    top = round_axis_top(values, unit)
    assert 0 < top < math.inf
    if unit != "share":
        assert max(values) <= top * (1 + 1e-6)


def test_a_line_has_a_text_with_its_latest_value_and_range() -> None:
    """There is a text for people who can't see the drawing, and the table below has every point."""
    root = drawn(str(render_line_chart(line([(NOW_S - 3600 * hour, 1000.0 + hour) for hour in range(5)]))))
    assert format_value(1000, "n") in "".join(root.find(".//figcaption").itertext())  # type: ignore[union-attr]  # it has one
    report = root.find(".//desc").text or ""  # type: ignore[union-attr]  # it has one
    assert format_value(1004, "n") in report
    assert len(list(root.iter("tr"))) == 1 + 5


def test_a_gap_without_numbers_is_a_gap_in_the_line() -> None:
    """Nothing is drawn where nothing was measured; a single point is a dot."""
    minutes = [*range(10), 300, *range(600, 610)]
    text = render_line_chart(line([(NOW_S - 60 * minute, 5.0) for minute in minutes]))
    assert len(list(drawn(str(text)).iter("path"))) == 3


def test_too_few_numbers_get_a_text() -> None:
    """An empty frame would look like an error."""
    for points in ([], [(NOW_S, 1.0)]):
        root = drawn(str(render_line_chart(line(points))))
        assert root.find(".//svg") is None
        assert "".join(root.find(".//p").itertext()).endswith(".")  # type: ignore[union-attr]  # it has one


def test_hostile_words_are_escaped() -> None:
    """Names come from strangers' pages."""
    report = '<script>"&'
    for text in (
        render_bar_table([(report, 1.0)], "n", (report, report)),
        render_stacked_bar([(report, 1.0)], "n", report),
        render_line_chart(line([], "n", report)),
    ):
        assert "<script" not in str(text)
        drawn(str(text))


def test_the_time_axis_runs_from_the_start_to_now() -> None:
    """The first time is at the left edge, and now is at the right edge."""
    for span_s in (1.0, 3600.0, DAY_S, 30 * DAY_S, 1e12):
        ticks = build_time_ticks(span_s)
        assert ticks[0][0] == 0
        assert ticks[-1] == (1.0, "now")
        assert all(text.endswith(" ago") for _, text in ticks[:-1])


@given(st.floats(-1e9, 1e9), st.floats(0, 1e12), st.floats(2 * DAY_S, 30 * DAY_S))
def test_growth_is_found_and_one_clearing_out_does_not_hide_it(slope: float, start: float, span_s: float) -> None:
    """Growth per day is the slope, even if the last points are far below the line."""
    places = [span_s * share / 20 for share in range(21)]
    cleared = places[-3]
    points = [(at_s, start + slope * at_s / DAY_S - (1e9 if at_s >= cleared else 0.0)) for at_s in places]
    found = compute_daily_growth(points)
    assert found is not None
    assert math.isclose(found, slope, rel_tol=1e-3, abs_tol=1e-3 + 1e-6 * start)
    assert compute_daily_growth([(at_s / 100, value) for at_s, value in points if at_s / 100 < DAY_S / 2]) is None
