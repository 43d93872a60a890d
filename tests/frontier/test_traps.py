"""Budgets by yield: patterns without yield are bounded, and those with yield never starve."""

import json
from collections.abc import Callable, Iterable

import pytest
from bench.traps import Simulation, figures_of, worlds_of
from hypothesis import given
from hypothesis import strategies as st

from vedette.frontier.pattern_yield import FetchYield, TrapBudget
from vedette.frontier.traps import PERMIT, Deferral, TrapDetector

HOME = "http://a.test/"
RICH, THIN = FetchYield(600), FetchYield(40)


def crawl(traps: TrapDetector, urls: Iterable[str], results: Callable[[str], FetchYield], finder: str = HOME) -> int:
    """Find and request URLs one by one, as far as allowed; return how many were."""
    fetched = 0
    for url in urls:
        traps.add_url(url, finder)
        if traps.judge_url(url) is PERMIT:
            traps.on_result(traps.on_request(url), results(url))
            fetched += 1
    return fetched


def started(budget: TrapBudget | None = None, pages: int = 30) -> TrapDetector:
    """Return a host with a home page and some rich pages."""
    traps = TrapDetector(budget)
    traps.add_url(HOME, None)
    traps.on_result(traps.on_request(HOME), THIN)
    assert crawl(traps, (f"http://a.test/page/{n}" for n in range(pages)), lambda _: RICH) == pages
    return traps


@pytest.mark.parametrize(
    "template", ["/2026/11/15/slug-{}", "/thread/{}", "/product/kettle-{}", "/wiki/{}", "/list?page={}", "/d/{}/x.html"]
)
def test_rich_patterns_never_starve(template: str) -> None:
    """Pages with much text are all fetched, however many numbers their URLs have."""
    traps = started()
    urls = [HOME[:-1] + template.format(n) for n in range(1000)]
    assert crawl(traps, urls, lambda _: RICH) == len(urls)


def test_short_pages_are_measured_by_their_host() -> None:
    """On a site where every page is short, such as a dictionary, all are fetched."""
    traps = TrapDetector()
    traps.add_url(HOME, None)
    urls = [f"http://a.test/word/{n}" for n in range(500)]
    assert crawl(traps, urls, lambda _: THIN) == len(urls)


def test_thin_pages_beside_rich_ones_are_bounded() -> None:
    """A calendar of ten thousand days on a site of articles gets a few fetches, and the reason names it."""
    traps = started()
    assert crawl(traps, (f"http://a.test/calendar/{n}/{n % 12}" for n in range(10_000)), lambda _: THIN) < 10
    verdict = traps.judge_url("http://a.test/calendar/3/3")
    assert isinstance(verdict, Deferral)
    assert "/calendar/#/#" in verdict.reason
    assert verdict.good_needed > traps.hosts["a.test"].good


def test_copies_are_bounded_over_all_paths() -> None:
    """A parameter that makes copies is learned once for the host, not once per section."""
    traps = started(pages=100)
    urls = [f"http://a.test/{chr(97 + n % 20)}/text-{n}?print=1" for n in range(2000)]
    assert crawl(traps, urls, lambda _: FetchYield(600, is_copy=True), "http://a.test/page/1") < 10


def test_a_listing_is_paid_for_by_what_it_leads_to() -> None:
    """Listings without text are always fetched if each leads to an article."""
    traps = started()
    for n in range(300):
        listing, article = f"http://a.test/archive/{n}", f"http://a.test/article/{n}"
        assert crawl(traps, [listing], lambda _: FetchYield(0)) == 1, n
        assert crawl(traps, [article], lambda _: RICH, listing) == 1, n


def test_a_maze_of_ever_new_folders_is_bounded() -> None:
    """Nested folders that each form a new pattern don't each get a first try."""
    traps, finder, fetched = started(), HOME, 0
    for n in range(500):
        url = f"http://a.test/browse/{'abcdefghij'[n % 10]}/" + "/".join("xyz"[: 1 + n % 3]) + "/"
        fetched += crawl(traps, [url], lambda _: THIN, finder)
        finder = url
    assert fetched < 15


def test_pages_that_are_gone_do_not_condemn_the_rest() -> None:
    """After a run of 404s, the remaining pages of the same pattern are still fetched."""
    traps = started()
    urls = [f"http://a.test/item/{n}" for n in range(200)]
    living = sum(n >= 4 for n in range(200))
    assert crawl(traps, urls, lambda url: FetchYield(status=404) if int(url.rpartition("/")[2]) < 4 else RICH) >= living


def test_a_release_with_a_few_moved_pages_is_finite() -> None:
    """A growing folder whose pages are twins of another release, and a few copies, is fetched when nothing waits."""
    traps, finder = started(), HOME
    for n in range(18):
        url = f"http://a.test/doc/stable/guide/{chr(97 + n)}.html"
        for linked in (url, *(f"{url[:-5]}{more}.html" for more in "xyz")):
            traps.add_url(linked, finder)
        twin = FetchYield(600, is_copy=True, is_free=n % 4 > 0)
        traps.on_result(traps.on_request(url), twin)
        finder = url
    assert traps.judge_url("http://a.test/doc/stable/guide/new.html", is_idle=True) is PERMIT


def test_a_farm_of_hosts_is_bounded_and_costs_no_memory() -> None:
    """Of thousands of hosts of one domain that link to each other, few are requested and few are remembered."""
    traps, finder = started(), "http://a.test/page/1"
    fetched = 0
    for n in range(5000):
        url = f"http://h{n}.farm.test/"
        fetched += crawl(traps, [url], lambda _: THIN, finder)
        finder = url
    assert 0 < fetched < 10
    assert len(traps.hosts) < 20


def test_many_good_hosts_of_a_domain_are_welcome() -> None:
    """A hosting domain with a hundred blogs of a few pages each is crawled completely."""
    traps = started()
    urls = [f"http://blog{n}.hoster.test/{page}" for n in range(100) for page in range(6)]
    assert crawl(traps, urls, lambda _: RICH) == len(urls)


def test_a_name_in_a_sitemap_weighs_more() -> None:
    """URLs in a sitemap are tried more often before they are given up."""
    plain, named = started(), started()
    urls = [f"http://a.test/event/{n}" for n in range(100)]
    for url in urls:
        named.add_url(url, None, is_named=True)
    assert crawl(plain, urls, lambda _: THIN) < crawl(named, urls, lambda _: THIN) < len(urls)


def test_accounts_survive_a_restart() -> None:
    """A host whose account was stored as JSON is judged as before."""
    traps, again = started(), TrapDetector()
    crawl(traps, (f"http://a.test/calendar/{n}/1" for n in range(50)), lambda _: THIN)
    again.from_json("a.test", json.loads(json.dumps(traps.to_json("a.test"))))
    for path in ("calendar/9/9", "page/77", "never/seen"):
        assert type(again.judge_url(HOME + path)) is type(traps.judge_url(HOME + path)), path
    assert again.hosts["a.test"].debt == pytest.approx(traps.hosts["a.test"].debt, abs=0.1)


def test_asking_changes_nothing() -> None:
    """Requesting a verdict a thousand times leaves the account unchanged."""
    traps = started()
    before = json.dumps(traps.to_json("a.test"))
    for n in range(1000):
        traps.judge_url(f"http://a.test/new/{n}/x?q={n}")
    assert json.dumps(traps.to_json("a.test")) == before


def test_patterns_of_a_host_are_bounded() -> None:
    """A host that invents a folder for each page is merged into coarser patterns, and isn't starved."""
    traps = started()
    urls = [f"http://a.test/{'ab'[n % 2] * (1 + n % 20)}{chr(97 + n // 40)}/page" for n in range(1000)]
    assert crawl(traps, dict.fromkeys(urls), lambda _: RICH) == len(dict.fromkeys(urls))
    assert len(traps.hosts["a.test"].patterns) < 2 * traps.budget.max_patterns


@pytest.mark.parametrize("name", ["made", "half", "calm"])
def test_a_made_web_is_crawled_and_its_traps_are_not(name: str) -> None:
    """On a small web, nearly all pages are fetched with hardly any waste."""
    ((_, world, spelling),) = worlds_of([name], "small", 3)
    figures = figures_of(world, Simulation(world, TrapDetector(), spelling, sitemaps=True).run(10**6))
    assert figures.recall >= 0.95
    assert figures.waste <= 0.05


def test_patience_is_for_short_pages_and_not_for_copies() -> None:
    """On a little-known host, a parameter that makes copies is given up as soon as elsewhere."""
    traps = TrapDetector()
    traps.add_url(HOME, None)
    traps.on_result(traps.on_request(HOME), THIN)
    copies = (f"http://a.test/item/{n}?ref=home" for n in range(100))
    assert crawl(traps, copies, lambda _: FetchYield(600, is_copy=True)) < 5
    assert crawl(traps, (f"http://a.test/word/{n}" for n in range(100)), lambda _: FetchYield(15)) > 40


def test_requests_under_way_are_counted() -> None:
    """Few URLs of an unknown pattern are sent before the first response; if those yield nothing, as many may follow."""
    traps = started()
    urls = [f"http://a.test/new/{n}" for n in range(50)]
    for url in urls:
        traps.add_url(url, HOME)
    out = [traps.on_request(url) for url in urls if traps.judge_url(url) is PERMIT]
    assert 0 < len(out) < 5
    assert isinstance(traps.judge_url(urls[-1]), Deferral)
    for account in out:
        traps.on_dropped(account)
    assert traps.judge_url(urls[-1]) is PERMIT


@given(st.lists(st.tuples(st.sampled_from("abcd?"), st.integers(0, 3), st.integers(0, 400)), max_size=120))
def test_a_host_owes_what_its_patterns_owe(events: list[tuple[str, int, int]]) -> None:
    """The running sum equals the sum over all patterns, for any events in any order."""
    traps, out = started(pages=3), []
    for number, (folder, what, words) in enumerate(events):
        url = f"http://a.test/{folder}/{number}?{folder}=1" if folder == "?" else f"http://a.test/{folder}/{number}"
        traps.add_url(url, f"http://a.test/{events[0][0]}/x")
        out.append(traps.on_request(url))
        if what == 0:
            traps.on_dropped(out.pop(0))
        elif what < 3:
            traps.on_result(out.pop(0), FetchYield(words, is_copy=what == 2))
    host = traps.hosts["a.test"]
    assert host.debt == pytest.approx(sum(one.debt for one in host.patterns.values() if one.is_counted), abs=1e-6)
