"""The synthetic web as a whole: sizes, hosts, and that a response depends only on seed, URL and time."""

import ipaddress
from collections import Counter

import pytest

from vedette.errors import UsageError
from vedette.lab.worlds.synthetic import SIZES, SyntheticWorld, open_synthetic_world
from vedette.lab.worlds.world import WorldRequest
from vedette.timeutil import DAY_S

TARGETS = ("/", "/archive", "/archive/0", "/robots.txt", "/sitemap.xml", "/feed.xml", "/tags", "/about", "/private/")


def bodies(world: SyntheticWorld, now_s: float) -> list[tuple[int, bytes]]:
    """Return status and bytes of many URLs of a world."""
    pages = [
        (host, url.removeprefix(f"http://{host}")) for host in world.sites for url in world.live_pages(host, now_s)
    ]
    plain = [(host, target) for host in world.sites for target in TARGETS]
    replies = [world.reply(WorldRequest(*place), now_s) for place in plain + pages]
    return [(reply.status, reply.body) for reply in replies]


def test_same_seed_same_bytes() -> None:
    """Two worlds opened separately with one seed respond alike, even after requests in another order."""
    first, second = open_synthetic_world("tiny", 4), open_synthetic_world("tiny", 4)
    bodies(second, second.start_s + 90 * DAY_S)
    assert bodies(first, first.start_s + DAY_S) == bodies(second, second.start_s + DAY_S)


def test_another_seed_is_another_web() -> None:
    """Two seeds share at most one host name and no article."""
    first, second = open_synthetic_world("tiny", 1), open_synthetic_world("tiny", 2)
    assert len(set(first.sites) & set(second.sites)) <= 1
    articles = [{body for _, body in bodies(world, world.start_s) if b"<article>" in body} for world in (first, second)]
    assert min(map(len, articles)) > 100
    assert not articles[0] & articles[1]


@pytest.mark.parametrize("name", SIZES)
def test_a_world_opens_with_its_size(name: str) -> None:
    """The number of live pages at the start is within 10% of the stated one, and the number of hosts is exact."""
    world = open_synthetic_world(name)
    live = sum(len(world.live_pages(host, world.start_s)) for host in world.sites)
    assert live == pytest.approx(SIZES[name].pages, rel=0.1)
    assert len(world.sites) == SIZES[name].hosts


def test_an_unknown_size_names_the_known_ones() -> None:
    """The error lists the valid sizes."""
    with pytest.raises(UsageError, match=r"tiny.*small.*medium.*large"):
        open_synthetic_world("enormous")


def test_hosts_have_loopback_addresses_of_their_own() -> None:
    """No two hosts share an address, except those of one blog hoster; none is 127.0.0.1 or ends in 0 or 255."""
    hosts = open_synthetic_world("medium").hosts()
    for host in hosts:
        address = ipaddress.IPv4Address(host.address)
        assert address.is_loopback
        assert address != ipaddress.IPv4Address("127.0.0.1")
        assert int(address) % 256 not in (0, 255)
    shared = [count for count in Counter(host.address for host in hosts).values() if count > 1]
    assert len(shared) == 1
    assert len({host.name for host in hosts}) == len(hosts)


def test_few_hosts_hold_most_pages_and_most_links() -> None:
    """Sizes and links between hosts have heavy tails: a fifth of the hosts has more than half of both."""
    world = open_synthetic_world("medium")
    sizes = sorted((len(world.live_pages(host, world.start_s)) for host in world.sites), reverse=True)
    assert sum(sizes[: len(sizes) // 5]) > sum(sizes) / 2
    linked = Counter(world._web.popular_sites).most_common()
    assert sum(count for _, count in linked[: len(world.sites) // 5]) > sum(count for _, count in linked) / 2


def test_an_unknown_host_is_turned_away() -> None:
    """A name that is not in this world gets an error; a known one is found with any port or case."""
    world = open_synthetic_world("tiny")
    host = next(iter(world.sites))
    assert world.reply(WorldRequest("elsewhere.example", "/"), world.start_s).status == 421
    assert world.reply(WorldRequest(host.upper() + ":8080", "/"), world.start_s).status == 200


def test_the_world_knows_what_its_urls_are() -> None:
    """Each kind of URL is recognized by its spelling."""
    world = open_synthetic_world("tiny")
    host = next(iter(world.sites))
    page = world.live_pages(host, world.start_s)[0]
    mirror = next(place.name for place in world.hosts() if place.name.startswith("mirror."))
    original = next(name for name in world.sites if name.removeprefix("www.") == mirror.removeprefix("mirror."))
    copied = world.live_pages(original, world.start_s)[0].replace(original, mirror)
    expected = {
        page: "page",
        page + "?utm_source=x": "copy",
        copied: "copy",
        page + "0": "unknown",
        f"http://{host}/": "listing",
        f"http://{host}/robots.txt": "robots",
        f"http://{host}/sitemap-3.xml": "sitemap",
        f"http://{host}/feed.xml": "feed",
        f"http://{host}/about": "aside",
        "http://any.bargain-orchard.test/x": "trap",
        "http://nowhere.example/": "unknown",
    }
    assert {url: world.classify_url(url) for url in expected} == expected


def test_a_calm_world_has_no_traps_and_no_faults() -> None:
    """In a calm world, no host has traps or faults, and every reply arrives completely and immediately."""
    world = open_synthetic_world("small", calm=True)
    assert not any(host.name.startswith("*.") for host in world.hosts())
    for name, site in world.sites.items():
        assert site.host_fault == ""
        for target in ("/odd/", "/calendar/2026/1", "/members/lobby", "/browse/", "/no-such-page"):
            assert world.reply(WorldRequest(name, target), world.start_s).status == 404
