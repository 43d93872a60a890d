"""Requests of rendered pages: under the same rules as pages, from allowed hosts, and back to the requester."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import pytest
from tests.engine.memory_web import Drive, MemoryWeb, Served, Server, moved, page, robots, rules_for

from vedette.engine.coordinator.page_parts import PagePartQueue
from vedette.engine.coordinator.shard import ForeignLinks, PartitionShard, ShardMap
from vedette.engine.messages import PagePart, PartRequest
from vedette.model import Site, partition_of

A, CDN = "https://a.test", "https://cdn.test"
# Worker 7 renders, others fetch for it.
RENDERER = 7


def crawl(site: Site | None = None) -> Drive:
    """Return a crawl of a site whose pages were fetched, and the resources that its scripts may request."""
    served: dict[str, Served | Server] = {
        f"{A}/": page(),
        f"{A}/robots.txt": robots("Disallow: /private/"),
        f"{A}/data.json": page(),
        f"{A}/there": moved("/data.json"),
        f"{A}/away": moved("https://else.test/"),
        f"{CDN}/app.js": page(),
        f"{CDN}/robots.txt": robots("Disallow: /no/"),
    }
    return Drive(MemoryWeb(dict(served)), rules_for(site or Site(f"{A}/")), workers=2).begin().run()


def ask(drive: Drive, *urls: str) -> dict[str, int]:
    """Request resources of a page and return the status of each; 0 if it was refused."""
    for number, url in enumerate(urls):
        drive.keeper.parts.request(PartRequest(url, PagePart(RENDERER, number, f"{A}/")))
    drive.run()
    assert {worker for worker, _ in drive.keeper.parts.replies} == {RENDERER}
    return {urls[reply.number]: reply.status for _, reply in drive.keeper.parts.replies}


def test_a_page_loads_from_its_own_origin_by_its_robots_txt() -> None:
    """Data is fetched, following redirects; what robots.txt disallows is not, nor what is elsewhere."""
    good, bad = (
        (f"{A}/data.json", "/there"),
        (f"{A}/private/x", f"{A}:8443/x", f"{A}/away", f"{CDN}/app.js", "ftp://a/"),
    )
    text = ask(crawl(), *good, *bad)
    assert [text[url] for url in good] == [200, 200]
    assert [text[url] for url in bad] == [0] * len(bad)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "http://169.254.169.254/latest", "http://[::1]/", "http://10.0.0.1/"]
)
def test_private_addresses_are_refused(url: str) -> None:
    """Even if the operator allows the host by name, private addresses are refused."""
    host = url.split("/")[2]
    drive = crawl(site=Site(f"{A}/", render_from=(host,)))
    drive.web.names[host] = (host.strip("[]"),)
    assert ask(drive, url) == {url: 0}
    assert not drive.asked_of(host)


def test_an_allowed_host_is_requested_after_its_robots_txt() -> None:
    """An allowed host is looked up, and its robots.txt decides before any other request."""
    drive = crawl(site=Site(f"{A}/", render_from=("cdn.test", "inside.test")))
    drive.web.names["inside.test"] = ("10.1.2.3",)
    assert ask(drive, f"{CDN}/app.js", f"{CDN}/no/x.js", "https://inside.test/") == {
        f"{CDN}/app.js": 200,
        f"{CDN}/no/x.js": 0,
        "https://inside.test/": 0,
    }
    assert [asked.url for asked in drive.asked_of("cdn.test")] == [f"{CDN}/robots.txt", f"{CDN}/app.js"]


def test_parts_keep_the_pauses_of_their_host() -> None:
    """Pages and parts of one host are requested one after another, with the delay in between."""
    drive = crawl()
    ask(drive, *[f"{A}/data.json?{number}" for number in range(4)])
    times = [asked.sent_s for asked in drive.asked_of("a.test")]
    assert all(later - earlier >= drive.keeper.rules.delay_s for earlier, later in pairwise(times))


def test_the_parts_of_a_lost_fetcher_are_refused() -> None:
    """The rendering fetcher is notified, and the host is free for the next."""
    drive = crawl()
    drive.keeper.parts.request(PartRequest(f"{A}/data.json", PagePart(RENDERER, 1, f"{A}/")))
    room = {0: 9, 1: 9}
    drive.keeper.assign_work(drive.now_s, drive.now_s + 60, room)
    (worker,) = [number for number, free in room.items() if free < 9]
    drive.keeper.on_fetcher_lost(worker, drive.now_s)
    assert [(to, reply.status) for to, reply in drive.keeper.parts.replies] == [(RENDERER, 0)]
    assert not drive.keeper.hosts["a.test"].busy


class NoOutbox:
    """An outbox for a shard that sends nothing."""

    def put_links(self, links: Mapping[int, Sequence[ForeignLinks]]) -> None:
        """Send nothing."""
        raise AssertionError(links)


def test_in_a_cluster_a_page_loads_from_hosts_of_its_shard_in_their_turn() -> None:
    """Requests to hosts in other shards are refused; those in its own wait until the address may be requested."""
    drive = crawl(site=Site(f"{A}/", render_from=("cdn.test",)))
    first, second = sorted(partition_of(host) for host in ("a.test", "cdn.test"))
    shards = ShardMap((0, second), (0, 1))
    shard = PartitionShard(shards, shards.find(partition_of("a.test")), NoOutbox())
    assert first != second
    drive.keeper.parts = PagePartQueue(drive.keeper.host_table, shard)
    urls = (f"{A}/data.json", f"{CDN}/app.js")
    for number, url in enumerate(urls):
        drive.keeper.parts.request(PartRequest(url, PagePart(RENDERER, number, f"{A}/")))
    drive.keeper.assign_work(drive.now_s, drive.now_s + 60, {0: 9, 1: 9})
    assert [reply.number for _, reply in drive.keeper.parts.replies] == [1]
    address = drive.keeper.hosts["a.test"].address or ""
    assert shard.list_wanted() == [address]
    shard.grant(address, drive.now_s)
    drive.run()
    assert {urls[reply.number]: reply.status for _, reply in drive.keeper.parts.replies} == {urls[0]: 200, urls[1]: 0}
