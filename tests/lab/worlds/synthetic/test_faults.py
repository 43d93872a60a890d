"""Traps and faults of the synthetic web: each exists, is linked, and does what it claims."""

import zlib
from collections.abc import Callable
from urllib.parse import urljoin, urlsplit

import pytest
from tests.lab.synthetic_pages import ask, hrefs

from vedette.lab.worlds.synthetic import SyntheticWorld, open_synthetic_world
from vedette.lab.worlds.synthetic.sites import Site
from vedette.lab.worlds.world import Delivery, Reply, WorldRequest
from vedette.timeutil import DAY_S, HOUR_S


@pytest.fixture(scope="module")
def world() -> SyntheticWorld:
    """Return a small world with everything that can go wrong."""
    return open_synthetic_world("small")


def host_with(world: SyntheticWorld, feature: str) -> Site:
    """Return the largest healthy host with a feature."""
    return next(site for site in world.sites.values() if feature in site.features and not site.host_fault)


def odd(world: SyntheticWorld, name: str) -> Reply:
    """Return one of the faults under /odd/."""
    return ask(world, f"http://{host_with(world, 'odd').name}/odd/{name}", world.start_s)


@pytest.mark.parametrize("size", ["tiny", "small"])
def test_even_small_worlds_have_every_trap(size: str) -> None:
    """Each trap is on some host and linked from its home page."""
    world = open_synthetic_world(size)
    linked = {
        target
        for host in world.sites
        for target in hrefs(f"http://{host}/", world.reply(WorldRequest(host, "/"), world.start_s).body)
    }
    for part in ("/calendar/", "/members/", "/browse/", "/odd/", ".bargain-orchard.test/"):
        assert any(part in target for target in linked)
    assert any("soft404" in site.features for site in world.sites.values())


def walk(world: SyntheticWorld, url: str, steps: int, step: Callable[[list[str]], str]) -> list[str]:
    """Return the URLs visited when one link is followed again and again."""
    passed = [url]
    for _ in range(steps):
        reply = ask(world, passed[-1], world.start_s)
        if reply.status == 302:
            passed.append(urljoin(passed[-1], dict(reply.headers)["location"]))
            continue
        assert reply.status == 200, passed[-1]
        passed.append(step(hrefs(passed[-1], reply.body)))
    return passed


def test_the_calendar_has_no_end(world: SyntheticWorld) -> None:
    """There is always a next month, and it is another page."""
    name = host_with(world, "calendar").name
    months = walk(
        world,
        f"http://{name}/calendar/2026/1",
        200,
        lambda links: [link for link in links if link.count("/") == 5 and "/calendar/" in link][1],
    )
    assert len(set(months)) == len(months)


def test_paths_have_no_end(world: SyntheticWorld) -> None:
    """Every folder contains folders, without end."""
    name = host_with(world, "paths").name
    folders = walk(
        world,
        f"http://{name}/browse/",
        100,
        lambda links: next(link for link in links if link.endswith("/north/")),
    )
    assert len(folders[-1]) > len(folders[0]) + 500


def test_every_link_hands_out_a_new_session(world: SyntheticWorld) -> None:
    """Going from lobby to lobby never uses the same session twice."""
    name = host_with(world, "sessions").name
    visits = walk(
        world,
        f"http://{name}/members/lobby",
        50,
        lambda links: next(link for link in links if "/members/lobby?sid=" in link),
    )
    assert len(set(visits)) == len(visits)


def test_the_farm_links_to_more_and_more_hosts(world: SyntheticWorld) -> None:
    """Two clicks from one farm page lead to hundreds of host names, all served at one address."""
    start = "http://offers.bargain-orchard.test/"
    near = hrefs(start, ask(world, start, world.start_s).body)
    hosts = {urlsplit(link).netloc for url in near for link in hrefs(url, ask(world, url, world.start_s).body)}
    assert len(hosts) > 200
    assert {world.classify_url(link) for link in near} == {"trap"}
    assert [host.name for host in world.hosts() if host.name.startswith("*.")] == ["*.bargain-orchard.test"]


def test_a_soft_404_says_200(world: SyntheticWorld) -> None:
    """Such a host answers any unknown path with a page, except robots.txt and sitemaps."""
    name = host_with(world, "soft404").name
    reply = ask(world, f"http://{name}/no/such/page", world.start_s)
    assert reply.status == 200
    assert b"not found" in reply.body
    assert b"canonical" not in reply.body


def test_every_way_of_delivery_occurs(world: SyntheticWorld) -> None:
    """Under /odd/, there is a reply for each way in which a delivery can fail."""
    name = host_with(world, "odd").name
    index = f"http://{name}/odd/"
    urls = [
        url for url in hrefs(index, ask(world, index, world.start_s).body) if urlsplit(url).path.startswith("/odd/")
    ]
    replies = [ask(world, url, world.start_s) for url in urls]
    assert {world.classify_url(url) for url in urls} == {"fault"}
    ways: dict[str, Callable[[Delivery], bool]] = {
        "waits": lambda way: way.wait_s > 0,
        "drips": lambda way: way.bytes_per_s is not None,
        "stops": lambda way: way.stop_after_bytes is not None and way.then == "close",
        "resets": lambda way: way.stop_after_bytes is not None and way.then == "reset",
        "hangs": lambda way: way.stop_after_bytes is not None and way.then == "hang",
        "never ends": lambda way: way.endless,
        "chunks": lambda way: way.chunked,
    }
    assert [name for name, meets in ways.items() if not any(meets(reply.delivery) for reply in replies)] == []
    cut = [reply for reply in replies if reply.delivery.stop_after_bytes is not None]
    assert all((reply.delivery.stop_after_bytes or 0) < len(reply.body) for reply in cut)


def test_the_bomb_is_small_and_swells(world: SyntheticWorld) -> None:
    """A few kilobytes of gzip expand to more than ten megabytes."""
    reply = odd(world, "bomb")
    assert ("content-encoding", "gzip") in reply.headers
    assert len(reply.body) < 20_000
    assert len(zlib.decompress(reply.body, wbits=31)) > 10_000_000


@pytest.mark.parametrize(
    ("name", "text", "meant"), [("latin-said-utf8", "utf-8", "latin-1"), ("utf8-said-latin", "iso-8859-1", "utf-8")]
)
def test_charsets_are_mislabelled(world: SyntheticWorld, name: str, text: str, meant: str) -> None:
    """The header names one encoding, but only another one decodes the text correctly."""
    reply = odd(world, name)
    assert f"charset={text}" in dict(reply.headers)["content-type"]
    assert "crème brûlée" in reply.body.decode(meant)
    assert "crème brûlée" not in reply.body.decode(text, "replace")


def test_redirects_loop_and_run_long(world: SyntheticWorld) -> None:
    """Two pages redirect to each other, one to itself, and a chain takes more than ten steps."""
    name = host_with(world, "odd").name

    def steps(start: str) -> list[str]:
        passed = [f"http://{name}/odd/{start}"]
        while len(passed) < 30:
            reply = ask(world, passed[-1], world.start_s)
            if reply.status not in (301, 302):
                break
            passed.append(urljoin(passed[-1], dict(reply.headers)["location"]))
        return passed

    assert len(set(steps("loop"))) == 2
    assert len(set(steps("self"))) == 1
    chain = steps("chain-1")
    assert chain[-1].endswith("/odd/end")
    assert 10 < len(chain) < 30


def test_ill_hosts_are_ill_some_of_the_time(world: SyntheticWorld) -> None:
    """Outages, limits and failures of robots.txt are temporary; the slow host is always slow."""
    ill: dict[str, str] = {site.host_fault: site.name for site in world.sites.values() if site.host_fault}
    hours = [world.start_s + hour * HOUR_S for hour in range(0, 24 * 14, 3)]

    def statuses(affliction: str, target: str) -> set[int]:
        return {ask(world, f"http://{ill[affliction]}{target}", now_s).status for now_s in hours}

    assert statuses("outage", "/") == statuses("outage", "/about") == {200, 503}
    assert statuses("limited", "/") == {200, 429}
    assert statuses("robots-outage", "/") == {200}
    assert 503 in statuses("robots-outage", "/robots.txt")
    slow = [ask(world, f"http://{ill['slow']}/{page}", world.start_s).delivery for page in ("", "about", "tags")]
    assert all(delivery.wait_s >= 0.2 for delivery in slow)


def test_a_limited_host_says_when_to_come_back(world: SyntheticWorld) -> None:
    """After the seconds in Retry-After, requests are no longer refused."""
    site = next(site for site in world.sites.values() if site.host_fault == "limited")
    url = f"http://{site.name}/"
    refusals = [
        now_s for now_s in (world.start_s + turn * 450 for turn in range(300)) if ask(world, url, now_s).status == 429
    ]
    waits = [int(dict(ask(world, url, now_s).headers)["retry-after"]) for now_s in refusals]
    after = [ask(world, url, now_s + wait_s).status for now_s, wait_s in zip(refusals, waits, strict=True)]
    assert after.count(200) > len(after) / 2


def test_a_host_that_fails_sometimes_recovers(world: SyntheticWorld) -> None:
    """The page that fails in some hours shows both responses within two days."""
    name = host_with(world, "odd").name
    hours = range(int(2 * DAY_S / HOUR_S))
    seen = {ask(world, f"http://{name}/odd/sometimes", world.start_s + hour * HOUR_S).status for hour in hours}
    assert seen == {200, 503}
