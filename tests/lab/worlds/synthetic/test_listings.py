"""Listing pages: every live page is found by links, new pages appear and later drop off."""

import math
from collections.abc import Iterator
from datetime import datetime
from urllib.parse import urljoin, urlsplit
from xml.etree import ElementTree as ET

import pytest
from tests.lab.synthetic_pages import ask, hrefs

from vedette.lab.worlds.synthetic import SyntheticWorld, open_synthetic_world
from vedette.lab.worlds.synthetic.page_traits import last_text_change_s, page_truth
from vedette.timeutil import DAY_S


@pytest.fixture(scope="module")
def world() -> SyntheticWorld:
    """Return a small world without traps and faults."""
    return open_synthetic_world("small", calm=True)


def depths(world: SyntheticWorld, now_s: float) -> dict[str, int]:
    """Return the number of clicks from the home pages to every URL of the ordinary hosts that responds with 200."""
    found = {f"http://{host}/": 0 for host in world.sites}
    waiting = list(found)
    for url in waiting:
        reply = ask(world, url, now_s)
        if reply.status in (301, 308):
            targets = [urljoin(url, dict(reply.headers)["location"])]
        else:
            targets = hrefs(url, reply.body) if reply.status == 200 else []
        for target in targets:
            if target not in found and urlsplit(target).netloc in world.sites:
                found[target] = found[url] + 1
                waiting.append(target)
    return found


@pytest.mark.parametrize("days", [0, 30])
def test_every_live_page_is_a_few_clicks_from_home(days: int) -> None:
    """Links from the home pages lead to every live page within three clicks."""
    world = open_synthetic_world("tiny", calm=True)
    now_s = world.start_s + days * DAY_S
    found = depths(world, now_s)
    live = [url for host in world.sites for url in world.live_pages(host, now_s)]
    assert [url for url in live if found.get(url, math.inf) > 3] == []


def test_live_pages_are_those_that_answer(world: SyntheticWorld) -> None:
    """Every URL that the world considers alive responds with 200, and no dead page is among them."""
    now_s = world.start_s + 3 * DAY_S
    for host, site in world.sites.items():
        urls = world.live_pages(host, now_s)
        assert {ask(world, url, now_s).status for url in urls} == {200}
        dead = sum(page_truth(site, number).died_s <= now_s for number in range(site.births.count_born(now_s)))
        assert len(urls) + dead == site.births.count_born(now_s)


@pytest.mark.parametrize("listing", ["/", "/section/*", "/feed.xml"])
def test_a_newborn_is_listed_and_later_drops_off(world: SyntheticWorld, listing: str) -> None:
    """Home page, section and feed list a page from its birth until there are enough newer ones."""
    site = next(site for site in world.sites.values() if site.kind.name == "news" and site.feed)
    numbers = range(site.births.stock, site.births.stock + 60)
    truth = next(t for t in (page_truth(site, n) for n in numbers) if math.isinf(min(t.died_s, t.moved_s)))
    section = urlsplit(truth.url).path.split("/")[1]
    url = f"http://{site.name}{listing.replace('*', section)}"
    path = urlsplit(truth.url).path.encode()
    assert path not in ask(world, url, truth.born_s - 1).body
    assert path in ask(world, url, truth.born_s).body
    assert path not in ask(world, url, truth.born_s + 300 * DAY_S).body


def test_tag_pages_list_pages_with_the_tag(world: SyntheticWorld) -> None:
    """Every page on a tag page links back to that tag."""
    site = next(iter(world.sites.values()))
    listed = 0
    for tag in site.tags[:6]:
        url = f"http://{site.name}/tag/{tag}"
        for target in hrefs(url, ask(world, url, world.start_s).body):
            if world.classify_url(target) == "page":
                assert url in hrefs(target, ask(world, target, world.start_s).body)
                listed += 1
    assert listed > 10


def locations(world: SyntheticWorld, url: str, now_s: float) -> Iterator[tuple[str, str | None]]:
    """Return URL and date of every page in a sitemap, following indexes."""
    root = ET.fromstring(ask(world, url, now_s).body)  # noqa: S314 (our own XML, not the web's)
    space = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9"}
    for entry in root.findall("s:sitemap", space):
        yield from locations(world, entry.findtext("s:loc", "", space), now_s)
    for entry in root.findall("s:url", space):
        yield entry.findtext("s:loc", "", space), entry.findtext("s:lastmod", None, space)


def test_sitemaps_list_exactly_the_live_pages() -> None:
    """A host with a sitemap lists all its live pages, in an index if there are more than a thousand."""
    world = open_synthetic_world("medium", calm=True)
    shapes = set()
    for site in list(world.sites.values())[:8]:
        url = f"http://{site.name}/sitemap.xml"
        if site.sitemap:
            assert [place for place, _ in locations(world, url, world.start_s)] == world.live_pages(
                site.name, world.start_s
            )
            shapes.add(b"<sitemapindex" in ask(world, url, world.start_s).body)
        else:
            assert ask(world, url, world.start_s).status == 404
    assert shapes == {True, False}


def test_sitemap_dates_are_honest_on_honest_hosts(world: SyntheticWorld) -> None:
    """An honest host dates a page by its last change of text, a lying one dates all pages alike."""
    now_s = world.start_s + 2.5 * DAY_S
    for site in world.sites.values():
        if not site.sitemap:
            continue
        dates = dict(locations(world, f"http://{site.name}/sitemap.xml", now_s))
        if site.sitemap == "honest":
            url, date = next(iter(dates.items()))
            truth = world.truth(url)
            assert truth is not None
            assert date is not None
            changed_s = last_text_change_s(site, truth.number, now_s)
            assert datetime.fromisoformat(date).timestamp() == int(changed_s)
        else:
            assert len(set(dates.values())) == 1


def test_feeds_are_xml_with_the_newest_pages(world: SyntheticWorld) -> None:
    """Both kinds of feed can be parsed, and start with the newest live page."""
    kinds = set()
    for site in world.sites.values():
        reply = ask(world, f"http://{site.name}/feed.xml", world.start_s)
        if not site.feed:
            assert reply.status == 404
            continue
        root = ET.fromstring(reply.body)  # noqa: S314 (our own XML, not the web's)
        kinds.add(root.tag.rpartition("}")[2])
        newest = world.live_pages(site.name, world.start_s)[-1]
        places = [node.get("href") or node.text for node in root.iter() if node.tag.rpartition("}")[2] == "link"]
        assert newest in places[:2]
    assert kinds == {"feed", "rss"}


def test_robots_files_vary(world: SyntheticWorld) -> None:
    """Hosts have no file, a plain one, named groups, crawl delays, wildcards, and one is closed to all."""
    texts = {}
    for site in world.sites.values():
        reply = ask(world, f"http://{site.name}/robots.txt", world.start_s)
        texts[site.name] = reply.body.decode().lower() if reply.status == 200 else "none"
    marks = ("none", "disallow:\n", "user-agent: vedette", "crawl-delay: ", "*?sort=", "disallow: /\n", "sitemap: http")
    assert [mark for mark in marks if not any(mark in text for text in texts.values())] == []


def test_robots_files_change_seldom(world: SyntheticWorld) -> None:
    """Over two years, some file changes; from one day to the next, almost none does."""

    def files(now_s: float) -> list[bytes]:
        return [ask(world, f"http://{host}/robots.txt", now_s).body for host in world.sites]

    today, tomorrow = files(world.start_s), files(world.start_s + DAY_S)
    assert sum(old != new for old, new in zip(today, tomorrow, strict=True)) <= 2
    assert any(files(world.start_s + months * 30 * DAY_S) != today for months in range(24))


def test_the_staff_folder_exists_and_is_linked(world: SyntheticWorld) -> None:
    """What robots.txt disallows exists, and the home page links to it."""
    for host in world.sites:
        home = f"http://{host}/"
        assert f"{home}private/" in hrefs(home, ask(world, home, world.start_s).body)
        assert ask(world, f"{home}private/note-1", world.start_s).status == 200
