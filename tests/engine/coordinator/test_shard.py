"""Shards in the engine: every link has one owner, and shards take turns at addresses."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.memory_web import Drive, MemoryWeb, Reply, moved, robots, rules_for
from tests.engine.memory_web import page as web_page

from vedette.engine.coordinator.shard import (
    WHOLE_WEB,
    ForeignLinks,
    PartitionShard,
    Shard,
    split_evenly,
)
from vedette.engine.coordinator.state import FoundUrl, HostState
from vedette.engine.messages import FetchTask
from vedette.model import PARTITIONS


class Sent:
    """An outbox that keeps the links put into it, by target."""

    def __init__(self) -> None:
        self.links: dict[int, list[ForeignLinks]] = {}

    def put_links(self, links: Mapping[int, Sequence[ForeignLinks]]) -> None:
        """Keep the links."""
        for target, groups in links.items():
            self.links.setdefault(target, []).extend(groups)


def page(number: int) -> str:
    """Return a page of one of many hosts."""
    return f"http://host{number}.test/p"


@given(st.integers(1, PARTITIONS))
def test_every_partition_has_one_owner(shards: int) -> None:
    """The ranges of the shards follow each other, cover everything, and agree with the lookup."""
    even = split_evenly(shards)
    owners = [number for number in range(shards) for _ in even.partitions(number)]
    assert owners == [even.find(partition) for partition in range(PARTITIONS)]
    sizes = [len(even.partitions(number)) for number in range(shards)]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("shard", [WHOLE_WEB, PartitionShard(split_evenly(1), 0, Sent())], ids=["machine", "one shard"])
def test_an_only_owner_keeps_everything(shard: Shard) -> None:
    """A single machine and a cluster's only shard keep all links in order, and own every URL."""
    groups = [([page(1), page(2)], FoundUrl("", 1)), ([page(3)], FoundUrl("", 2, source=page(1)))]
    assert [(list(urls), found) for urls, found in shard.keep_own(groups)] == groups
    assert all(shard.owns(page(number)) for number in range(50))


class OnlyShard(PartitionShard):
    """The only shard of a cluster, which gets each turn at once."""

    def may_request(self, host: HostState) -> bool:
        """Take the turn at the address of a host."""
        if not super().may_request(host):
            assert host.address is not None
            self.grant(host.address, 0.0)
        return super().may_request(host)


def test_the_only_shard_of_a_cluster_crawls_as_one_machine_does() -> None:
    """It makes the same requests at the same times: also with redirects, a moved robots.txt and a canonical URL."""
    one, two = "http://one.test", "http://two.test"
    logs = []
    for build in (lambda _sent: WHOLE_WEB, lambda sent: OnlyShard(split_evenly(1), 0, sent)):
        web = MemoryWeb({f"{one}/": web_page("/a", f"{two}/b"), f"{one}/a": web_page(), f"{two}/b": moved(f"{one}/c")})
        web.replies |= {f"{one}/robots.txt": moved(f"{two}/rules.txt"), f"{two}/rules.txt": robots("Disallow: /d")}
        web.replies[f"{one}/c"] = Reply(
            200, (("content-type", "text/html"),), f'<link rel="canonical" href="{two}/e"><a href="/d">x</a>'.encode()
        )
        drive, sent = Drive(web, rules_for(f"{one}/", f"{two}/")), Sent()
        drive.keeper.shard = build(sent)
        drive.begin().run()
        assert sent.links == {}
        logs.append([(asked.url, asked.sent_s) for asked in drive.log])
    assert logs[0] == logs[1]
    assert f"{one}/c" in {url for url, _ in logs[0]}


def test_every_link_reaches_its_owner_with_its_origin() -> None:
    """Together, two shards keep and send all links, and a sent link says how it was found."""
    urls = [page(number) for number in range(40)]
    found = FoundUrl("", 3, 1, 2, source="http://from.test/", from_list=True, is_refetch=True)
    sent = Sent()
    first = PartitionShard(split_evenly(2), 0, sent)
    ((kept, kept_as),) = first.keep_own([(urls, found)])
    (foreign,) = sent.links[1]
    assert kept_as == found
    assert sorted([*kept, *foreign.urls]) == sorted(urls)
    assert [url for url in kept if not first.owns(url)] == []
    assert foreign.to_group(foreign.urls) == (foreign.urls, found)


def has_work(_host: HostState, _by_s: float) -> bool:
    """Every host has something to fetch."""
    return True


def host_at(address: str, name: str = "a.test") -> HostState:
    """Return a host with a known address."""
    return HostState(name, 1, address=address)


def test_no_host_is_requested_before_its_turn() -> None:
    """A host waits until the address is granted, and is listed once, no matter how often it comes up."""
    shard, host = PartitionShard(split_evenly(2), 0, Sent(), min_turn_s=2.0), host_at("127.0.0.1")
    assert not shard.may_request(host)
    assert not shard.may_request(host)
    assert shard.list_wanted() == ["127.0.0.1"]
    assert shard.grant("127.0.0.1", 10.0) == [host]
    assert shard.may_request(host)
    assert shard.list_wanted() == []


def test_a_turn_ends_only_when_nothing_is_in_flight() -> None:
    """A contested address is released after the shortest turn and the last response; then its hosts wait."""
    shard, host = PartitionShard(split_evenly(2), 0, Sent(), min_turn_s=2.0), host_at("127.0.0.1")
    shard.may_request(host)
    shard.grant("127.0.0.1", 10.0)
    assert shard.may_request(host)
    host.in_flight[7] = FetchTask(7, host.name, page(1), "page")
    assert shard.end_turns(["127.0.0.1"], 11.0, has_work) == []
    assert shard.may_request(host), "the turn is too young to end"
    assert shard.end_turns(["127.0.0.1"], 13.0, has_work) == []
    assert not shard.may_request(host), "it ends as soon as nothing is in flight"
    host.in_flight.clear()
    assert shard.end_turns(["127.0.0.1"], 14.0, has_work) == ["127.0.0.1"]
    assert shard.list_wanted() == ["127.0.0.1"]


def test_a_turn_without_work_ends_at_once() -> None:
    """If no host of a shard has something to fetch at an address, another shard does not wait for the shortest turn."""
    shard, host = PartitionShard(split_evenly(2), 0, Sent(), min_turn_s=2.0), host_at("127.0.0.1")
    shard.may_request(host)
    shard.grant("127.0.0.1", 10.0)
    asked = []

    def has_none(one: HostState, by_s: float) -> bool:
        asked.append((one.name, by_s))
        return False

    host.in_flight[7] = FetchTask(7, host.name, page(1), "page")
    assert shard.end_turns(["127.0.0.1"], 10.5, has_none) == []
    host.in_flight.clear()
    assert shard.end_turns(["127.0.0.1"], 10.6, has_none) == ["127.0.0.1"]
    assert set(asked) == {(host.name, 12.0)}


def test_a_turn_that_was_lost_with_the_coordinator_ends_at_once() -> None:
    """An address that a restarted coordinator does not know, but the cluster believes to be its own, is released."""
    assert PartitionShard(split_evenly(2), 0, Sent()).end_turns(["127.0.0.1"], 1.0, has_work) == ["127.0.0.1"]
