"""Pages that need JavaScript, in a real browser: complete if rendering yields text, contained if they are hostile."""

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.browser.script_sites import ARTICLES, CHAPTERS, HOSTILE, ScriptSites, article_word, serve_sites
from tests.tree_runs import PATIENCE_S

import vedette
from vedette.adapters.crawl_store.reader import open_state_reader
from vedette.adapters.net.renderer import (
    FailedPage,
    PageRenderer,
    PartAnswer,
    PartWanted,
    RenderedPage,
    RenderEvent,
    RenderFailure,
    RenderJob,
    RenderLimits,
    explain_missing_browser,
    find_browser,
    list_descendants,
    measure_usage,
)
from vedette.engine.scheduling.rendering_model import RENDERING_KEY

MISSING = explain_missing_browser()
pytestmark = [
    # Nothing but a real browser shows what a page's script does; the reason names what to install.
    pytest.mark.skipif(bool(MISSING), reason=MISSING),
]
# CPU time and memory end a page, never how long it takes on a busy machine.
LIMITS = RenderLimits(script_s=PATIENCE_S, cpu_s=4.0, wall_s=PATIENCE_S, start_s=PATIENCE_S, memory_bytes=900 * 2**20)


class Crawled(NamedTuple):
    """A finished crawl of an application, a manual and a static site."""

    sites: ScriptSites
    folder: Path

    def run(self, *words: str) -> dict[str, Any]:
        """Return a command's JSON output for the data folder."""
        command = [sys.executable, "-m", "vedette", *words, "--data", str(self.folder / "data"), "--json"]
        report: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        return report


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """Crawl an application, a manual and a static site with default settings except for delays."""
    folder = tmp_path_factory.mktemp("rendering")
    (folder / "vedette.toml").write_text('[crawl]\ndelay = "50ms"\naddress_delay = "10ms"\n')
    with serve_sites() as sites:
        run = Crawled(sites, folder)
        options = ["--connect-to", f"*:80=127.0.0.1:{sites.port}", "--allow-private"]
        starts = ("http://app.test/", "http://manual.test/", "http://static.test/")
        run.run("crawl", *starts, "--config", str(folder / "vedette.toml"), *options)
        yield run


def test_an_application_is_found_in_full(crawled: Crawled) -> None:
    """Every article is found by its word, although all URLs return the same empty page and links are lazy."""
    folder = vedette.open_folder(crawled.folder / "data")
    for number in range(ARTICLES):
        results = folder.search(article_word(number)).results
        assert [one.url for one in results] == [f"http://app.test/article/{number}"]


def test_links_that_a_script_fills_in_are_followed(crawled: Crawled) -> None:
    """A page with text but without usable links is rendered for its links, and no template URL is requested."""
    asked = crawled.sites.list_targets("manual.test")
    assert {target for target in asked if "chapter" in target} == {f"/7/chapter/{n}" for n in range(CHAPTERS)}
    report = crawled.run("explain", "http://manual.test/")
    assert report["rendering"]["done"]
    assert report["content"]["words"] > 50


def test_scripts_are_fetched_once_and_robots_txt_holds_for_them(crawled: Crawled) -> None:
    """Shared resources are fetched once, and those that robots.txt disallows are not fetched."""
    asked = crawled.sites.list_targets("app.test")
    assert asked.count("/app.js") == 1
    assert "/private/secret.json" not in asked


def test_a_static_site_costs_no_rendering(crawled: Crawled) -> None:
    """Nothing is learned about rendering, because nothing was rendered."""
    with open_state_reader(crawled.folder / "data") as reader:
        learned = json.loads(reader.store.get_value(RENDERING_KEY) or "")
    assert {name.partition(" ")[0] for name in learned} == {"app.test", "manual.test"}
    assert len(crawled.sites.list_targets("static.test")) == 14  # robots.txt, two guesses at sitemaps, 11 pages


def test_explain_shows_cost_and_yield_of_rendering(crawled: Crawled) -> None:
    """The output has the share of renderings with text, and their cost in fetches, from seconds and requests."""
    report = crawled.run("explain", "http://app.test/article/1")["rendering"]
    assert report["done"]
    assert (report["rendered"], report["brought"], report["render"]) == (ARTICLES, ARTICLES, True)
    assert report["cost"] > 0


@pytest.fixture
def renderer() -> Iterator[PageRenderer[str]]:
    """A browser with tight limits that leaves no process behind."""
    before = set(list_descendants(os.getpid()))
    made: PageRenderer[str] = PageRenderer(find_browser(), LIMITS)
    yield made
    made.close()
    assert set(list_descendants(os.getpid())) <= before


def render(renderer: PageRenderer[str], script: str) -> tuple[RenderedPage | FailedPage, list[str]]:
    """Return the outcome of a page with a script, with all of its requests answered, and the requests."""
    html = f'<body><div id="app"></div><script>{script}</script>'
    renderer.submit("it", RenderJob("http://hostile.test/", "text/html", html.encode(), "vedette/0"))
    asked: list[str] = []
    while True:
        select.select([renderer.fd], [], [], 0.1)
        for _, event in renderer.collect():
            if not isinstance(event, PartWanted):
                return event, asked
            asked.append(event.url)
            renderer.answer_part(event.number, PartAnswer(200, "text/javascript", b"1"))


def text_of(event: RenderEvent) -> str:
    """Return the HTML of a rendered page."""
    assert isinstance(event, RenderedPage), event
    return event.html.decode()


def test_scripts_make_requests_only_through_the_crawler(renderer: PageRenderer[str]) -> None:
    """Private addresses, pop-ups, frames, workers, sockets and beacons cause no connection."""
    with serve_sites() as sites:
        for path in ("/private", "/popups", "/worker"):
            script = HOSTILE[path].replace("{port}", str(sites.port))
            event, asked = render(renderer, f"{script}; document.body.append('the end')")
            assert "the end" in text_of(event)
            assert not any(part in url for url in asked for part in ("/frame", "/posted", "/pop", "/beacon", "file:"))
        assert sites.requests == []


def test_a_script_that_never_ends_or_takes_all_memory_is_ended(renderer: PageRenderer[str]) -> None:
    """The page fails within the limits, and a new browser renders the next one."""
    endless, _ = render(renderer, HOSTILE["/loop"])
    assert isinstance(endless, FailedPage)
    assert endless.reason == RenderFailure.TIMEOUT
    assert endless.seconds > LIMITS.cpu_s / 2
    render(renderer, HOSTILE["/buffers"])
    assert measure_usage(os.getpid()).memory_bytes < 2 * LIMITS.memory_bytes
    moved, _ = render(renderer, f"{HOSTILE['/moves']} document.body.append('well')")
    assert "well" in text_of(moved)
    assert 'content="0; url=http://hostile.test/moved-by-script"' in text_of(moved)
