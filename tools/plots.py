"""Draw the plots of the results from the tables on the same pages: ``python tools/plots.py``.

The numbers come from the tables, so plots and tables always agree. Run this after you change a table.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from vedette.lab.core.plots import Plot, Point, Series, draw_svg

RESULTS = Path(__file__).parents[1] / "docs" / "results"


def read_table(page: str, after: str) -> list[dict[str, str]]:
    """Return the rows of the first table behind a text of a results page, by the names of their columns."""
    text = (RESULTS / page).read_text(encoding="utf-8")
    _, found, rest = text.partition(after)
    if not found:
        sys.exit(f'docs/results/{page} no longer has "{after}": update the text before the table in tools/plots.py')
    lines = re.search(r"(?:^\|.*\n)+", rest, re.MULTILINE)
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in (lines[0] if lines else "").splitlines()]
    return [dict(zip(rows[0], row, strict=False)) for row in rows[2:]]


def read_numbers(cell: str) -> list[float]:
    """Return the numbers of a cell.

    >>> read_numbers(".715 [.703, .721]"), read_numbers("**1.0**"), read_numbers("30.2 %"), read_numbers("")
    ([0.715, 0.703, 0.721], [1.0], [30.2], [])
    """
    return [float(number) for number in re.findall(r"-?(?:\d+\.?\d*|\.\d+)", cell)]


def plot_discovery() -> Plot:
    """Build the plot of coverage by polls per snapshot on front pages."""
    rows = read_table("discovery.md", "**The whole year 2023**")
    policies = ("default", "thompson", "pham", "bound-myopic")
    series = [
        Series(policy, [Point(float(row["k"]), float(row["coverage"])) for row in rows if row["policy"] == policy])
        for policy in policies
    ]
    return Plot("New articles found, front pages 2023", "polls per hourly snapshot", "coverage", "share", series)


def plot_order() -> Plot:
    """Build the plot of impact by the share of fetches on one site."""
    rows = read_table("order.md", "**kubernetes, real queries, Dataset 1**")
    policies = ("default", "hybrid", "query-driven", "inlinks", "random", "bound-impact")
    chosen = {row["policy"]: row for row in rows if row["policy"] in policies}
    series = [
        Series(policy, [Point(float(x), float(y)) for x, y in chosen[policy].items() if x != "policy"])
        for policy in policies
    ]
    return Plot(
        "Impact of the pages fetched first, Kubernetes", "share of pages fetched", "share of impact", "share", series
    )


def plot_refresh() -> Plot:
    """Build the plot of lost quality by budget on one history, with intervals."""
    rows = [row for row in read_table("refresh.md", "bold if the share is below .25") if row["history"] == "Boost"]
    series = [
        Series(policy, [read_lost(row["fetches a day"], row[policy]) for row in rows])
        for policy in ("default", "uniform", "bound-known")
    ]
    label = "search quality lost, in units of .0001"
    return Plot("Search quality lost to outdated copies, Boost", "fetches a day", label, "", series)


def read_lost(budget: str, cell: str) -> Point:
    """Return lost quality and its interval, the last part of a cell, at a budget."""
    return Point(read_numbers(budget)[0], *read_numbers(cell.rpartition("/")[2]))


def plot_sites() -> Plot:
    """Build the plot of real sites: each line leads from before to after."""
    before = {row["site"]: read_numbers(row["share"])[0] / 100 for row in read_table("real-sites.md", "## Before")}
    after = {row["site"]: read_numbers(row["share"])[0] / 100 for row in read_table("real-sites.md", "## After")}
    series = [Series(site, [Point(0, after[site], share, after[site])]) for site, share in before.items()]
    label = "share of reachable pages fetched; each line leads from before to after"
    return Plot("Real sites, crawled with default settings", "site", label, "share", series)


PLOTS = {"discovery": plot_discovery, "order": plot_order, "refresh": plot_refresh, "real-sites": plot_sites}


def draw_all() -> Iterator[tuple[Path, str]]:
    """Yield the file of each plot and its content."""
    for name, build in PLOTS.items():
        yield RESULTS / "plots" / f"{name}.svg", draw_svg(build())


if __name__ == "__main__":
    for path, svg in draw_all():
        path.parent.mkdir(exist_ok=True)
        path.write_text(svg, encoding="utf-8")
