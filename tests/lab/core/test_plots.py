"""Plots are well-formed, stay inside their box, and follow one set of rules."""

import math
import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.lab.core.plots import Plot, Point, Series, draw_svg

SVG = "{http://www.w3.org/2000/svg}"
LINES = [
    Series(name, [Point(1, 0.2, 0.1, 0.3), Point(2, 0.4, 0.3, 0.5)]) for name in ("default", "random", "bound-best")
]

numbers = st.floats(-1e9, 1e9) | st.sampled_from([0.0, 1.0, math.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324])
dots = st.builds(Point, numbers, numbers, numbers, numbers)
names = st.text(max_size=12) | st.sampled_from(["default", "bound-greedy", "<script>", "a&b", "\x00\x1b", "\ud800"])
plots = st.builds(
    Plot,
    names,
    names,
    names,
    st.sampled_from(["", "share", "h"]),
    st.lists(st.builds(Series, names, st.lists(dots, max_size=4)), max_size=6),
)


def box(root: ET.Element) -> tuple[float, float]:
    """Return width and height."""
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    return width, height


def places(root: ET.Element) -> list[tuple[float, float]]:
    """Return every point at which something is drawn."""
    found: list[tuple[float, float]] = []
    for each in root.iter():
        had = each.attrib
        pairs = re.findall(r"(-?[\d.]+) (-?[\d.]+)", had.get("d", ""))
        found += [(float(x), float(y)) for x, y in pairs]
        for x, y in (("x", "y"), ("x1", "y1"), ("x2", "y2"), ("cx", "cy")):
            found += [(float(had[x]), float(had[y]))] if x in had and y in had else []
    return found


@given(plots)
def test_any_plot_is_well_formed_and_inside_its_box(plot: Plot) -> None:
    """For any names and numbers, the plot is valid XML with known elements, and nothing is drawn outside."""
    root = ET.fromstring(draw_svg(plot))  # noqa: S314 - our own text
    width, height = box(root)
    assert all(0 <= x <= width and 0 <= y <= height for x, y in places(root))
    drawn = {each.tag.removeprefix(SVG) for each in root.iter()}
    assert drawn <= {"svg", "title", "desc", "style", "rect", "text", "line", "path", "circle", "g"}


@pytest.mark.parametrize("policy", ["default", "random", "bound-best"])
def test_each_kind_of_policy_has_its_look(policy: str) -> None:
    """Bounds, baselines and ``default`` differ by class, and each line is labeled by name."""
    groups = list(ET.fromstring(draw_svg(Plot("t", "x", "y", "share", LINES))).iter(f"{SVG}g"))  # noqa: S314 - our own text
    mine = next(group for group in groups if group.find(f"{SVG}text").text == policy)  # type: ignore[union-attr]  # every group has one
    kind = {"default": "default", "random": "baseline", "bound-best": "bound"}[policy]
    assert mine.attrib["class"] == f"series {kind}"
    assert mine.find(f"{SVG}path[@class='band']") is not None


def test_default_is_drawn_last() -> None:
    """It is drawn on top of all others."""
    classes = re.findall(r'<g class="series (\w+)"', draw_svg(Plot("t", "x", "y", "", LINES)))
    assert classes == ["bound", "baseline", "default"]


def test_a_policy_keeps_its_colour() -> None:
    """A policy has the same style in another plot with fewer policies."""
    colour = re.compile(r"<g class=\"series baseline\" style=\"(.*?)\"")
    one = draw_svg(Plot("t", "x", "y", "", LINES))
    two = draw_svg(Plot("u", "x", "y", "share", [LINES[1]]))
    assert colour.findall(one) == colour.findall(two) != []


def test_labels_do_not_cover_each_other() -> None:
    """Lines that end at the same place are labelled one below the other."""
    same = [Series(f"policy {number}", [Point(1, 1), Point(2, 1)]) for number in range(8)]
    root = ET.fromstring(draw_svg(Plot("t", "x", "y", "", same)))  # noqa: S314 - our own text
    heights = sorted(float(text.attrib["y"]) for group in root.iter(f"{SVG}g") for text in group.iter(f"{SVG}text"))
    assert all(later - earlier >= 13 for earlier, later in pairwise(heights))


def test_one_budget_is_drawn_as_rows() -> None:
    """With a single budget, each policy is a dot with an interval."""
    single = [Series(each.policy, each.points[:1]) for each in LINES]
    root = ET.fromstring(draw_svg(Plot("t", "x", "y", "share", single)))  # noqa: S314 - our own text
    assert len(list(root.iter(f"{SVG}circle"))) == len(LINES)


def test_it_reads_in_light_and_dark() -> None:
    """There are two sets of colors, and the reader's system chooses."""
    assert "prefers-color-scheme: dark" in draw_svg(Plot("t", "x", "y", "", []))


def numbers_below(plot: str) -> list[str]:
    """Return the labels below the axis, from left to right."""
    root = ET.fromstring(plot)  # noqa: S314 - our own text
    written = [each for each in root.iter(f"{SVG}text") if each.attrib.get("text-anchor") == "middle"]
    return [each.text or "" for each in written][:-1]


def test_what_is_counted_has_whole_numbers_below() -> None:
    """Tenths 0 to 9 have no tick at 2.5."""
    tenths = Series("default", [Point(place, 1) for place in range(10)])
    assert numbers_below(draw_svg(Plot("t", "tenth", "y", "", [tenths]))) == [str(place) for place in range(10)]
    hours = Series("default", [Point(place, 1) for place in range(168)])
    assert numbers_below(draw_svg(Plot("t", "hour", "y", "", [hours]))) == ["0", "50", "100", "150"]


def test_zero_stands_beside_ages_that_are_far_apart() -> None:
    """Ages from an hour to a thousand days are spread evenly, even though there is no factor from 0 to an hour."""
    ages = [0.0, 0.04, 0.4, 4.0, 40.0, 400.0]
    plot = draw_svg(Plot("t", "age", "y", "", [Series("default", [Point(age, 1) for age in ages])]))
    assert numbers_below(plot)[0] == "0"
    across = [float(x) for x in re.findall(r"[ML]([\d.]+) [\d.]+", plot.split("<path d=")[1].split("/>")[0])]
    gaps = [later - earlier for earlier, later in pairwise(across)]
    assert gaps[1:] == pytest.approx([gaps[1]] * 4, abs=0.2)
    assert 0 < gaps[0] < gaps[1]
