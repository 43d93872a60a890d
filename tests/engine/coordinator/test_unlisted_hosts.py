"""Hosts that pages link to but no site covers: reported by the fetcher, counted by the coordinator, never requested."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.engine.memory_web import Drive, MemoryWeb, Reply, page, robots, rules_for

from vedette.adapters.crawl_store.unlisted_host_store import UnlistedHostRow
from vedette.discover.urls.normalize import resolve
from vedette.discover.urls.scope import SiteIndex
from vedette.engine import links as links_module
from vedette.engine.fetcher.page_reader import parse_outcome
from vedette.engine.links import LinkResolver
from vedette.engine.messages import FetchSuccess, FetchTask, StoredCopy
from vedette.model import FetchResponse, Site, origin_of

A, B = "https://a.test", "https://b.test"
SITES = SiteIndex(
    [Site(f"{A}/"), Site("https://c.test/docs/", scope="prefix"), Site("https://d.test/", scope="domain")]
)

ENDS = st.text("abAZ09.:@/?#\\ \t%-_~'`$;()[]é!", max_size=20)
HREFS = st.builds(
    lambda beginning, end: beginning + end,
    st.sampled_from(["https://", "HTTP://", "//", "https://x.test/", "/", "mailto:", "ftp://", "https:/", " //", ""]),
    ENDS,
)


def read(body: str, *headers: tuple[str, str], copy: StoredCopy | None = None) -> FetchSuccess:
    """Return the fetcher's report on a page with this body."""
    errand = FetchTask(1, "a.test", f"{A}/", "page", copy=copy)
    kept = (("content-type", "text/html"), *headers)
    answer = FetchResponse(errand.url, "page", 200, kept, body.encode(), 0.0, 1.0, "93.184.216.34")
    result = parse_outcome(errand, answer, LinkResolver(SITES))
    assert isinstance(result, FetchSuccess)
    return result


def crawled(web: MemoryWeb, *sites: str | Site, **settings: object) -> Drive:
    """Crawl to the end."""
    return Drive(web, rules_for(*sites, **settings)).begin().run()


def offered(drive: Drive) -> dict[str, UnlistedHostRow]:
    """Return the hosts on offer by name, in order."""
    return {row.host: row for row in drive.book.list_unlisted_hosts(1000)}


# What the worker tells


def test_linked_hosts_outside_all_sites_are_reported() -> None:
    """The host of each external link is reported once, in lower case, but no hosts of sites, whatever their scope."""
    hrefs = ["https://X.test/1", "http://x.test/2", "//y.test", "https://c.test/blog", "https://www.d.test/", "/here"]
    assert LinkResolver(SITES).find_unlisted_hosts(hrefs) == ("x.test", "y.test")


def test_only_valid_host_names_are_reported() -> None:
    """Ports and credentials are left out; names with characters that a shell would interpret are not hosts."""
    hrefs = ["https://me:secret@x.test:8443/", "https://y.test./", "https://$(reboot).test/", "https://a`b.test/"]
    assert LinkResolver(SITES).find_unlisted_hosts([*hrefs, "https://[::1]/", "https://" + "l" * 64 + ".test/"]) == (
        "x.test",
        "y.test",
    )


def test_internationalized_names_are_reported_in_ascii() -> None:
    """An internationalized name is the same host as its ASCII form."""
    assert LinkResolver(SITES).find_unlisted_hosts(["https://bücher.test/", "https://xn--bcher-kva.test/"]) == (
        "xn--bcher-kva.test",
    )


def test_a_page_reports_a_limited_number_of_hosts() -> None:
    """Of a page with very many links, the first twenty hosts count."""
    hrefs = [f"https://h{number}.test/" for number in range(1000)]
    assert LinkResolver(SITES).find_unlisted_hosts(hrefs) == tuple(f"h{number}.test" for number in range(20))


@given(st.lists(HREFS, max_size=6))
def test_a_reported_host_is_the_target_of_a_link(hrefs: list[str]) -> None:
    """Whatever pages contain, each reported host is the target of a link and not part of a site."""
    links = LinkResolver(SITES)
    report = links.find_unlisted_hosts(hrefs)
    urls = [url for href in hrefs if (url := resolve(href, f"{A}/")) is not None]
    assert set(report) <= {origin_of(url).host.removesuffix(".") for url in urls}
    assert not any(SITES.find_by_host(host) for host in report)
    assert links.find_unlisted_hosts(hrefs) == report


def test_the_memory_of_hosts_is_bounded() -> None:
    """Pages that name ever more hosts do not fill the memory."""
    links = LinkResolver(SITES)
    for start in range(0, 3 * links_module.MAX_HOSTS, 20):
        links.find_unlisted_hosts(f"https://h{number}.test/" for number in range(start, start + 20))
    assert len(links._hosts) <= links_module.MAX_HOSTS


def test_nofollow_does_not_recommend() -> None:
    """Links marked nofollow do not count, nor do any links of pages marked nofollow."""
    marked = '<a rel="nofollow" href="https://x.test/">x</a><a href="https://y.test/">y</a>'
    assert read(marked).unlisted_hosts == ("y.test",)
    assert read(f'<meta name="robots" content="nofollow">{marked}').unlisted_hosts == ()
    assert read(marked, ("x-robots-tag", "nofollow")).unlisted_hosts == ()


def test_only_a_first_fetch_reports_hosts() -> None:
    """Only a first fetch counts, so the fetcher does not look later."""
    again = StoredCopy("", "", "d", "d", 0.0)
    assert read('<a href="https://x.test/">x</a>', copy=again).unlisted_hosts == ()


# Counting in the coordinator


def test_unlisted_hosts_are_counted_by_page_and_never_requested() -> None:
    """A page counts once for each linked host, hosts with most links come first, and none is requested."""
    web = MemoryWeb(
        {
            f"{A}/": page("/1", "https://x.test/", "https://x.test/again", "https://y.test/"),
            f"{A}/1": page("https://x.test/"),
            f"{B}/": page("https://x.test/"),
        }
    )
    drive = crawled(web, f"{A}/", f"{B}/")
    rows = offered(drive)
    assert [(row.host, row.pages) for row in rows.values()] == [("x.test", 3), ("y.test", 1)]
    assert (rows["x.test"].domains, rows["y.test"].domains) == (2, 1)
    assert rows["y.test"].example == f"{A}/"
    assert {asked.host for asked in drive.log} == {"a.test", "b.test"}


def test_refetched_pages_count_once() -> None:
    """Refetching a page, changed or not, adds nothing."""
    web = MemoryWeb({f"{A}/": lambda now_s: page("https://x.test/", title=f"at {now_s}")})
    drive = Drive(web, rules_for(f"{A}/", recrawl=True)).begin().run(for_s=40_000.0)
    assert len(drive.asked_urls()) > 3
    assert offered(drive)["x.test"].pages == 1


def test_hosts_of_paused_sites_are_not_unlisted() -> None:
    """Hosts of the operator's sites are left out, even though fetchers don't know them."""
    web = MemoryWeb({f"{A}/": page(f"{B}/", "https://x.test/")})
    assert list(offered(crawled(web, f"{A}/", paused=(Site(f"{B}/"),)))) == ["x.test"]


def test_an_added_host_is_crawled() -> None:
    """Once added, it is treated like any other site."""
    web = MemoryWeb({f"{A}/": page(f"{B}/"), f"{B}/": page(), f"{B}/robots.txt": robots()})
    drive = crawled(web, f"{A}/")
    assert list(offered(drive)) == ["b.test"]
    drive.rule(replace(drive.rules, sites=(*drive.rules.sites, Site(f"{B}/"))))
    drive.run()
    assert f"{B}/" in drive.pages()


def test_other_responses_than_pages_report_no_hosts() -> None:
    """A redirect, a sitemap or a missing page recommends no host."""
    sitemap = b'<?xml version="1.0"?><urlset><url><loc>https://x.test/</loc></url></urlset>'
    web = MemoryWeb(
        {
            f"{A}/": page("/s", "/m", "/n"),
            f"{A}/s": Reply(200, (("content-type", "application/xml"),), sitemap),
            f"{A}/m": Reply(301, (("location", "https://y.test/"),)),
            f"{A}/n": Reply(404, (("content-type", "text/html"),), b'<a href="https://z.test/">z</a>'),
        }
    )
    assert offered(crawled(web, f"{A}/")) == {}
