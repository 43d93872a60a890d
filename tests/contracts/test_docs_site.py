"""The documentation builds as a site without warnings, loads nothing external, and has no dead links."""

import doctest
import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest
import yaml

import vedette
from vedette import config
from vedette.web.api.openapi import build_openapi
from vedette.web.metrics import Metrics

ROOT = Path(__file__).parents[2]
HERE = "http://docs.test/"
LOADED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "link": "href",
}


class PageFacts(HTMLParser):
    """The resources, links, anchors and text of a page."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.pieces: list[str] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect an element's resources, link targets and anchors."""
        values = {name: value for name, value in attrs if value}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if LOADED.get(tag, "") in values:
            self.loads.append(values[LOADED[tag]])
        self.anchors.update(values[name] for name in ("id", "name") if name in values)

    def handle_data(self, data: str) -> None:
        """Collect text."""
        self.pieces.append(data)

    @property
    def text(self) -> str:
        """Return the whole text of the page."""
        return "".join(self.pieces)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as ``make docs`` builds it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = os.environ | {"PYTHONPATH": str(Path(vedette.__file__).parents[1]), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, PageFacts]:
    """Return every page of the site by path."""
    found = sorted(site.rglob("*.html"))
    return {path.relative_to(site).as_posix(): PageFacts(path.read_text(encoding="utf-8")) for path in found}


def navigation(entries: list[object]) -> Iterator[str]:
    """Yield the pages of the navigation, in order."""
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        elif isinstance(entry, dict):
            for value in entry.values():
                yield from navigation(value if isinstance(value, list) else [value])


def test_every_page_of_the_navigation_is_there(pages: dict[str, PageFacts]) -> None:
    """The navigation has every page, and no missing ones."""
    listed = list(navigation(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]))
    assert len(listed) == len(set(listed))
    assert {place.removesuffix(".md") + ".html" for place in listed} | {"404.html"} == set(pages)


def test_nothing_comes_from_elsewhere(site: Path, pages: dict[str, PageFacts]) -> None:
    """Pages and style sheets only load files of the site, so it works offline and does not reveal who reads it."""
    foreign = [(place, url) for place, page in pages.items() for url in page.loads if urlsplit(url).netloc]
    assert foreign == []
    sheets = [sheet.name for sheet in site.rglob("*.css") if "url(http" in sheet.read_text(encoding="utf-8")]
    assert sheets == []


def test_every_link_leads_somewhere(site: Path, pages: dict[str, PageFacts]) -> None:
    """All linked files and anchors exist; links on the 404 page are not relative to it."""
    assert [
        link for place, page in pages.items() if place != "404.html" for link in dead_links(place, page, site, pages)
    ] == []


def dead_links(place: str, page: PageFacts, site: Path, pages: dict[str, PageFacts]) -> Iterator[tuple[str, str]]:
    """Yield the links and resources of a page whose file or anchor does not exist."""
    for link in (*page.links, *page.loads):
        url, fragment = urldefrag(urljoin(HERE + place, link))
        if not url.startswith(HERE):
            continue
        path = unquote(urlsplit(url).path).lstrip("/")
        is_file = (site / path).is_file()
        if not is_file or (fragment and path in pages and unquote(fragment) not in pages[path].anchors):
            yield place, link


def test_a_dead_link_would_be_found(site: Path, pages: dict[str, PageFacts]) -> None:
    """A missing file and a missing anchor are both reported."""
    page = PageFacts('<a href="none.html">a</a><a href="cli.html#none">b</a><a href="cli.html">c</a>')
    assert [link for _, link in dead_links("index.html", page, site, pages)] == ["none.html", "cli.html#none"]


def test_the_references_are_complete(pages: dict[str, PageFacts]) -> None:
    """Every setting, API operation, metric and Python name is on its page."""
    settings = [name for name, _, _ in config.describe()]
    paths = build_openapi("vedette", "", "1", with_ads=True)["paths"].items()
    operations = [f"{method.upper()} {path}" for path, methods in paths for method in methods]
    metrics = [family.name for family in Metrics().describe_families()]
    names = [f"vedette.{name}" for name in vedette.__all__ if not name.startswith("__")]
    for place, wanted in {
        "configuration": settings,
        "reference/api": operations,
        "reference/metrics": metrics,
        "reference/python": names,
    }.items():
        assert len(wanted) > 5
        assert [name for name in wanted if name not in pages[f"{place}.html"].text] == []


def test_links_to_source_files_become_code(pages: dict[str, PageFacts]) -> None:
    """A page shows the path of a source file, instead of linking to what the site does not have."""
    assert "discover/urls/scope.py" in pages["architecture.html"].text
    assert not [link for page in pages.values() for link in page.links if link.endswith(".py")]


@pytest.mark.parametrize("name", ["docs_site", "docs_reference", "plots"])
def test_examples_of_the_tools(name: str) -> None:
    """The examples in their docstrings work."""
    names = runpy.run_path(str(ROOT / "tools" / f"{name}.py"))
    runner = doctest.DocTestRunner()
    for function in [value for value in names.values() if getattr(value, "__module__", "") == "<run_path>"]:
        for example in doctest.DocTestFinder(recurse=False).find(function, globs=names):
            runner.run(example)
    assert runner.summarize(verbose=False).failed == 0
    assert runner.tries > 0


def test_every_plot_of_the_results_can_be_drawn() -> None:
    """The tables for the plots are where the tool expects them, and each plot is a file of the results."""
    drawn = dict(runpy.run_path(str(ROOT / "tools" / "plots.py"))["draw_all"]())
    assert set(drawn) == set((ROOT / "docs" / "results" / "plots").glob("*.svg"))
    assert all(svg.count("<path") + svg.count("<circle") > 3 for svg in drawn.values())
