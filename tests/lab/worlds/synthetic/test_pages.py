"""Ordinary pages of the synthetic web: their text, how they change, move and die, and their links."""

import math
from collections.abc import Iterator
from itertools import pairwise
from statistics import fmean, median
from urllib.parse import urljoin, urlsplit

import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode
from tests.lab.synthetic_pages import ask, change_times, hrefs

from vedette.lab.worlds.synthetic import SyntheticWorld, open_synthetic_world
from vedette.lab.worlds.synthetic.page_traits import PageTruth, last_text_change_s, page_truth
from vedette.lab.worlds.synthetic.sites import Site
from vedette.lab.worlds.world import Reply
from vedette.timeutil import DAY_S, HOUR_S

HONEST = ("both", "etag", "modified")


@pytest.fixture(scope="module")
def world() -> SyntheticWorld:
    """Return a small world without traps and faults."""
    return open_synthetic_world("small", calm=True)


def header(reply: Reply, name: str) -> str | None:
    """Return the value of a header, if it is sent."""
    return dict(reply.headers).get(name)


def truths(world: SyntheticWorld) -> Iterator[tuple[Site, PageTruth]]:
    """Return the truth about every initial page."""
    for site in world.sites.values():
        for number in range(site.births.stock):
            yield site, page_truth(site, number)


def one(body: bytes, selector: str) -> LexborNode:
    """Return the only matching element."""
    (node,) = LexborHTMLParser(body).css(selector)
    return node


def main_text(body: bytes) -> str:
    """Return the words of the article."""
    article = LexborHTMLParser(body).css_first("article")
    return "" if article is None else article.text()


def test_a_page_is_whole_html(world: SyntheticWorld) -> None:
    """A page has language, one title, description, canonical, heading, navigation, main part and footer."""
    for host in world.sites:
        url = world.live_pages(host, world.start_s)[0]
        body = ask(world, url, world.start_s).body
        assert one(body, "html").attributes["lang"] == "en"
        assert one(body, "title").text().startswith(one(body, "main h1").text())
        assert one(body, 'link[rel="canonical"]').attributes["href"] == url
        assert one(body, 'meta[name="description"]').attributes["content"]
        assert one(body, "header nav").css("a")
        assert one(body, "footer nav").css("a")


def test_sizes_and_link_counts_are_realistic(world: SyntheticWorld) -> None:
    """Half of the pages are near ten kilobytes, a few are far larger, and a page has about forty links."""
    urls = [url for host in world.sites for url in world.live_pages(host, world.start_s)]
    replies = [ask(world, url, world.start_s) for url in urls]
    sizes = sorted(len(reply.body) for reply in replies)
    assert 7_000 < median(sizes) < 13_000
    assert sizes[-1] > 60_000
    assert 30 < fmean(reply.body.count(b"<a ") for reply in replies) < 50


def test_texts_of_different_topics_are_unlike(world: SyntheticWorld) -> None:
    """Pages of one section share more vocabulary than pages of two sections."""
    host, site = next(iter(world.sites.items()))
    words: dict[str, list[set[str]]] = {part.slug: [] for part in site.sections}
    for url in world.live_pages(host, world.start_s)[:80]:
        section = urlsplit(url).path.split("/")[1]
        if section in words:
            words[section].append(set(main_text(ask(world, url, world.start_s).body).lower().split()))
    sections = list(words.values())
    inside = [len(pages[0] & pages[1]) / min(len(pages[0]), len(pages[1])) for pages in sections]
    across = [len(a[0] & b[0]) / min(len(a[0]), len(b[0])) for a, b in pairwise(sections)]
    assert min(inside) > max(across)


def test_only_the_exact_path_is_a_page(world: SyntheticWorld) -> None:
    """Another spelling of a page's path, or a number that is not born yet, is not found."""
    for host in world.sites:
        url = world.live_pages(host, world.start_s)[-1]
        name, _, number = url.rpartition("-")
        for wrong in (url + "/", url + "x", f"{name}--{number}", url.title(), url + "?page=2"):
            assert ask(world, wrong, world.start_s).status == 404
        site = world.sites[host]
        newborn = page_truth(site, site.births.stock + 3)
        assert ask(world, newborn.url, newborn.born_s - 1).status == 404
        assert ask(world, newborn.url, newborn.born_s).status == 200


def test_a_change_edits_a_part_and_is_dated(world: SyntheticWorld) -> None:
    """When the text of a page changes, some paragraphs stay, and Last-Modified is the time of the change."""
    seen = 0
    for site, truth in truths(world):
        if site.validators != "both" or not math.isinf(min(truth.died_s, truth.moved_s)) or truth.number % 5:
            continue
        moments = [at_s for at_s in change_times(site, truth.number, world.start_s + 4 * DAY_S) if at_s > world.start_s]
        if not moments:
            continue
        before, after = ask(world, truth.url, moments[0] - 1), ask(world, truth.url, moments[0] + 1)
        old, new = main_text(before.body), main_text(after.body)
        kept = set(old.splitlines()) & set(new.splitlines())
        if len(old.splitlines()) > 9:
            assert old != new
            assert len(kept) > 4
        assert header(before, "etag") != header(after, "etag")
        assert last_text_change_s(site, truth.number, moments[0] + 1) == pytest.approx(moments[0], abs=1)
        seen += 1
    assert seen > 20


@pytest.mark.parametrize("hours", [0.0, 0.01, 1.0, 30.0, 24.0 * 20])
def test_304_exactly_when_nothing_changed(world: SyntheticWorld, hours: float) -> None:
    """On an honest host, a conditional request gets a 304 if the page is the same byte for byte."""
    statuses = set()
    for host, site in world.sites.items():
        if site.validators not in HONEST:
            continue
        for url in world.live_pages(host, world.start_s)[::9]:
            first = ask(world, url, world.start_s)
            now_s = world.start_s + hours * HOUR_S
            again = ask(world, url, now_s)
            if again.status != 200:
                continue
            validators = {"if_none_match": header(first, "etag"), "if_modified_since": header(first, "last-modified")}
            conditional = ask(world, url, now_s, **validators)
            assert (conditional.status == 304) == (again.body == first.body)
            statuses.add(conditional.status)
    assert 304 in statuses
    assert hours < 1 or 200 in statuses


def test_if_none_match_wins_over_the_date(world: SyntheticWorld) -> None:
    """A matching date does not help if the ETag differs; lists, weak tags and the star are understood."""
    site = next(site for site in world.sites.values() if site.validators == "both")
    url = world.live_pages(site.name, world.start_s)[0]
    reply = ask(world, url, world.start_s)
    etag, date = header(reply, "etag"), header(reply, "last-modified")
    assert ask(world, url, world.start_s, if_none_match='"other"', if_modified_since=date).status == 200
    for known in (f'"other", {etag}', f"W/{etag}", "*"):
        assert ask(world, url, world.start_s, if_none_match=known).status == 304
    assert ask(world, url, world.start_s, if_modified_since="Fri, 01 Jan 2100 00:00:00 GMT").status == 304
    assert ask(world, url, world.start_s, if_modified_since="Thu, 01 Jan 1970 00:00:00 GMT").status == 200


def test_some_hosts_send_no_validators_and_some_lie(world: SyntheticWorld) -> None:
    """One host sends none; another gives the same text a new ETag every hour."""
    kinds = {site.validators: site for site in reversed(list(world.sites.values()))}
    silent = ask(world, world.live_pages(kinds["none"].name, world.start_s)[0], world.start_s)
    assert (header(silent, "etag"), header(silent, "last-modified")) == (None, None)
    liar = kinds["lying"]
    number = next(n for n in range(9) if page_truth(liar, n).law == "never" and math.isinf(page_truth(liar, n).died_s))
    url = page_truth(liar, number).url
    first, second = ask(world, url, world.start_s), ask(world, url, world.start_s + HOUR_S)
    assert first.body == second.body
    assert header(first, "etag") != header(second, "etag")


def test_boxes_turn_while_the_text_stays(world: SyntheticWorld) -> None:
    """An hour later, some pages only differ in the box next to their text."""
    turned = 0
    for host in world.sites:
        for url in world.live_pages(host, world.start_s)[::7]:
            first, later = (ask(world, url, world.start_s + at_s).body for at_s in (0.0, HOUR_S))
            if b"<aside>" in first and main_text(first) == main_text(later):
                turned += one(first, "aside").text() != one(later, "aside").text()
    assert turned > 3


def test_a_rebuild_changes_every_page_of_a_site_at_once(world: SyntheticWorld) -> None:
    """Within some months, each site changes its footer on all pages at the same time."""
    site = next(iter(world.sites.values()))
    urls = [url for url in world.live_pages(site.name, world.start_s)[:30] if world.truth(url) is not None]
    for day in (1, 200):
        replies = [ask(world, url, world.start_s + day * DAY_S) for url in urls]
        feet = {one(reply.body, "footer p").text() for reply in replies if reply.status == 200}
        assert len(feet) == 1
    early, late = (ask(world, f"http://{site.name}/about", world.start_s + day * DAY_S).body for day in (1, 200))
    assert early.partition(b"build")[2] != late.partition(b"build")[2]


def test_a_moved_page_redirects_to_its_new_address(world: SyntheticWorld) -> None:
    """Before the move, the new URL is unknown; after it, the old one redirects permanently."""
    moving = [truth for _, truth in truths(world) if world.start_s < truth.moved_s < truth.died_s]
    assert len(moving) > 10
    for truth in moving:
        assert ask(world, truth.url, truth.moved_s - 1).status == 200
        assert ask(world, truth.moved_url, truth.moved_s - 1).status == 404
        redirect = ask(world, truth.url, truth.moved_s)
        assert redirect.status in (301, 308)
        assert urljoin(truth.url, header(redirect, "location") or "") == truth.moved_url
        assert ask(world, truth.moved_url, truth.moved_s).status == 200


def test_a_dead_page_is_gone(world: SyntheticWorld) -> None:
    """After its death, a page responds with 404 or 410, at both of its URLs."""
    dying = [truth for _, truth in truths(world) if world.start_s < truth.died_s < math.inf]
    assert len(dying) > 10
    seen = set()
    for truth in dying:
        alive = truth.moved_url if truth.moved_s < truth.died_s else truth.url
        assert ask(world, alive, truth.died_s - 1).status == 200
        seen |= {ask(world, truth.url, truth.died_s).status, ask(world, alive, truth.died_s).status}
    assert seen == {404, 410}


def test_every_link_leads_to_something_known(world: SyntheticWorld) -> None:
    """A link leads to a page or a redirect to one; only links to dead pages fail."""
    now_s = world.start_s + 2 * DAY_S
    checked: dict[str, None] = {}
    for host in world.sites:
        for url in world.live_pages(host, now_s)[::25]:
            checked |= dict.fromkeys(hrefs(url, ask(world, url, now_s).body))
    for url in checked:
        reply = ask(world, url, now_s)
        if reply.status in (301, 308):
            reply = ask(world, urljoin(url, header(reply, "location") or ""), now_s)
        truth = world.truth(url)
        assert reply.status == 200 or (truth is not None and truth.died_s <= now_s), url
    assert len(checked) > 500


def test_copies_name_the_clean_page(world: SyntheticWorld) -> None:
    """Tracking, sorting and printing spellings name the clean URL as canonical; print has less around the text."""
    for site in world.sites.values():
        url = world.live_pages(site.name, world.start_s)[-1]
        clean = ask(world, url, world.start_s).body
        for query in ("utm_source=a&utm_medium=b", "ref=home", "sort=newest"):
            assert ask(world, f"{url}?{query}", world.start_s).body == clean
        if "print" in site.features:
            printed = ask(world, f"{url}?print=1", world.start_s).body
            assert one(printed, 'link[rel="canonical"]').attributes["href"] == url
            assert len(printed) < len(clean)


def test_a_mirror_serves_the_same_pages(world: SyntheticWorld) -> None:
    """A second host answers with the same articles; of two mirrors one names the original as canonical."""
    named = set()
    for mirror in (place.name for place in world.hosts() if place.name.startswith("mirror.")):
        original = next(name for name in world.sites if name.removeprefix("www.") == mirror.removeprefix("mirror."))
        url = world.live_pages(original, world.start_s)[0]
        first, second = ask(world, url, world.start_s), ask(world, url.replace(original, mirror), world.start_s)
        assert main_text(first.body) == main_text(second.body)
        named.add(b'rel="canonical"' in second.body)
    assert named == {True, False}


def test_agency_articles_stand_on_several_sites() -> None:
    """Some articles have the same paragraphs on different hosts, in different frames and with other titles."""
    world = open_synthetic_world("medium", calm=True)
    hosts_by_text: dict[str, set[str]] = {}
    for host in list(world.sites)[:40]:
        for url in world.live_pages(host, world.start_s)[:120]:
            paragraphs = LexborHTMLParser(ask(world, url, world.start_s).body).css("article > p:not(.byline)")
            opening = "".join(node.text() for node in paragraphs[:2])
            hosts_by_text.setdefault(opening, set()).add(host)
    assert max(len(hosts) for hosts in hosts_by_text.values()) > 1
