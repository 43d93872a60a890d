"""Gateways and search processes of shards over real sockets: hanging shards are skipped, strangers are refused."""

import os
import select
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from vedette.runtime.cluster.remote_shards import RemoteShards
from vedette.runtime.cluster.search_wire import encode_call
from vedette.runtime.processes import shard_search
from vedette.runtime.processes.shard_search import ShardServer, derive_key, open_channel
from vedette.web.ports import FacetCount, IndexOverview

SECRET = b"a secret of this test"


class Search:
    """A shard's search that knows one number."""

    def __init__(self, pages: int) -> None:
        self.pages = pages
        self.may_answer = threading.Event()
        self.may_answer.set()

    def get_overview(self, _allowed: tuple[str, ...]) -> IndexOverview:
        """Return the number once the test releases it."""
        self.may_answer.wait()
        return IndexOverview(self.pages, (FacetCount("a.test", self.pages),))

    def find_page(self, url: str, _allowed: tuple[str, ...]) -> int | None:
        """Fail."""
        raise LookupError(url)


@pytest.fixture
def searches() -> Iterator[tuple[list[Search], list[str]]]:
    """Two shards, and the addresses at which they listen."""
    some = [Search(3), Search(5)]
    servers: list[Any] = [ShardServer(search, SECRET, "127.0.0.1") for search in some]  # type: ignore[arg-type]  # as far as it is asked
    for server in servers:
        threading.Thread(target=server.run, daemon=True).start()
    yield some, [server.address for server in servers]
    for search in some:
        search.may_answer.set()


def ask_pages(shards: RemoteShards) -> dict[int, int]:
    """Return the number of pages in each shard that responds."""
    replies = shards.ask("get_overview", dict.fromkeys(shards.numbers, ((),)))
    return {shard: reply.pages for shard, reply in replies.items()}


def test_a_hanging_shard_is_left_out_until_it_responds(searches: tuple[list[Search], list[str]]) -> None:
    """It delays one request and is then skipped, until it can be reached again."""
    (one, _), addresses = searches
    shards = RemoteShards(lambda: dict(enumerate(addresses)), SECRET, deadline_s=0.5)
    shards.renew()
    assert ask_pages(shards) == {0: 3, 1: 5}
    one.may_answer.clear()
    assert ask_pages(shards) == {1: 5}
    assert ask_pages(shards) == {1: 5}
    one.may_answer.set()
    shards.renew()
    assert ask_pages(shards) == {0: 3, 1: 5}


def test_a_failure_is_no_reply(searches: tuple[list[Search], list[str]]) -> None:
    """A call that fails in a shard does not affect the connection."""
    shards = RemoteShards(lambda: dict(enumerate(searches[1])), SECRET)
    shards.renew()
    assert shards.ask("find_page", {0: ("http://a.test/", ())}) == {}
    assert ask_pages(shards) == {0: 3, 1: 5}


def test_only_gateways_with_the_secret_are_answered(searches: tuple[list[Search], list[str]]) -> None:
    """A gateway of another cluster gets nothing, and neither side serves the other."""
    strange = RemoteShards(lambda: dict(enumerate(searches[1])), b"another secret")
    strange.renew()
    assert ask_pages(strange) == {}


def test_a_handshake_cannot_be_passed_on(searches: tuple[list[Search], list[str]]) -> None:
    """A program that listens at a shard's former address gets no access by relaying bytes to another shard."""
    with socket.create_server(("127.0.0.1", 0)) as stale:
        passing = threading.Thread(target=pass_on, args=(stale, searches[1][0]), daemon=True)
        passing.start()
        shards = RemoteShards(lambda: {0: f"127.0.0.1:{stale.getsockname()[1]}"}, SECRET)
        shards.renew()
        assert ask_pages(shards) == {}
        passing.join()


def pass_on(stale: socket.socket, address: str) -> None:
    """Relay bytes between the first client and an address, in both directions, until one of them ends."""
    ours, _ = stale.accept()
    host, _, port = address.rpartition(":")
    with ours, socket.create_connection((host, int(port))) as theirs:
        ways = {ours: theirs, theirs: ours}
        while True:
            for one in select.select(list(ways), [], [])[0]:
                data = one.recv(4096)
                if not data:
                    return
                ways[one].sendall(data)


@pytest.mark.parametrize("said", [b"", b"\0\0\0\4abcd", b"SSH-2.0-OpenSSH_9.2\r\n", b"\xff" * 12])
def test_a_stranger_at_the_address_of_a_shard(searches: tuple[list[Search], list[str]], said: bytes) -> None:
    """Another program that got a shard's port is refused, and the other shards are still reached."""
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        greeting = threading.Thread(target=greet, args=(stranger, said))
        greeting.start()
        addresses = {0: f"127.0.0.1:{stranger.getsockname()[1]}", 1: searches[1][1]}
        shards = RemoteShards(lambda: addresses, SECRET)
        shards.renew()
        greeting.join()
    assert ask_pages(shards) == {1: 5}


def greet(stranger: socket.socket, said: bytes) -> None:
    """Send something to the first client, and disconnect."""
    client, _ = stranger.accept()
    with client:
        client.sendall(said)


def test_a_shard_that_moved_is_found_again(searches: tuple[list[Search], list[str]]) -> None:
    """A shard that moved is found at its new address."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nowhere = f"127.0.0.1:{taken.getsockname()[1]}"
    addresses = {0: nowhere, 1: ""}
    shards = RemoteShards(lambda: addresses, SECRET)
    shards.renew()
    assert ask_pages(shards) == {}
    addresses |= dict(enumerate(searches[1]))
    shards.renew()
    assert ask_pages(shards) == {0: 3, 1: 5}


def test_a_gateway_that_hangs_in_a_message_holds_up_no_other(
    searches: tuple[list[Search], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shard reads in one thread; it gives up half a message after a while, and responds to the next gateway."""
    monkeypatch.setattr(shard_search, "MESSAGE_TIMEOUT_S", 1)
    address = searches[1][0]
    sock = socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])))
    hanging = open_channel(sock, derive_key(SECRET, address), is_server=False)
    hanging.send_bytes(encode_call("find_page", ("http://a.test/", ())))
    assert hanging.recv_bytes()
    shards = RemoteShards(lambda: {0: address}, SECRET, deadline_s=60.0)
    shards.renew()
    assert ask_pages(shards) == {0: 3}
    os.write(hanging.fileno(), b"\x00\x00")  # half of the length of a message
    assert ask_pages(shards) == {0: 3}
    hanging.close()
