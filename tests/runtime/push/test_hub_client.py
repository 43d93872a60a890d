"""With a real hub on loopback: a feed is subscribed, verified and pushed; forgeries are ignored."""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from tests.engine.memory_web import MemoryWeb, Reply, page
from tests.push_hub import Hub, Reader
from tests.runtime.push.push_setup import HOME, Bench, atom, text
from tests.tree_runs import PATIENCE_S

from vedette.adapters.net.ipc import Request
from vedette.adapters.push.push_store import Subscription
from vedette.model import Failure
from vedette.runtime.processes.hub_client import HubClient
from vedette.runtime.push.receiver import DELIVERY_RATE, FolderPushService
from vedette.runtime.push.subscriptions import HubRequest
from vedette.web.push.routes import push_routes

FEED, NEW = f"{HOME}feed.xml", f"{HOME}new"


class _Desk:
    """Pass requests from the server's threads to the coordinator in this one."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._calls: Queue[tuple[Request, Queue[dict[str, object]]]] = Queue()

    def ask(self, _folder: Path, call: Request) -> dict[str, object]:
        """Wait for the reply, as a server does."""
        reply: Queue[dict[str, object]] = Queue()
        self._calls.put((call, reply))
        return reply.get(timeout=PATIENCE_S)

    def until(self, is_so: Callable[[], Any]) -> None:
        """Answer requests until a condition is true."""
        end_s = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < end_s, "it did not come to be so"
            try:
                call, reply = self._calls.get(timeout=0.02)
            except Empty:
                continue
            reply.put(self._bench.push.handle(self._bench.now_s, **call.arguments))

    def during(self, work: Callable[[], Any]) -> Any:
        """Answer requests while something runs elsewhere; return its result."""
        done: list[Any] = []
        thread = Thread(target=lambda: done.append(work()), daemon=True)
        thread.start()
        self.until(lambda: done)
        return done[0]


class _Push(FolderPushService):
    """The state is in memory, so subscriptions are read from the coordinator."""

    def __init__(self, desk: _Desk) -> None:
        super().__init__(Path(), ask=desk.ask)
        self.known: dict[str, Subscription] = {}

    def _find_subscription(self, token: str) -> Subscription | None:
        return self.known.get(token)


@contextmanager
def served(push: FolderPushService, listener: socket.socket) -> Iterator[None]:
    """Our push endpoints on a real server."""
    app = Starlette(routes=push_routes(push))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
    thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(PATIENCE_S)


@contextmanager
def meeting() -> Iterator[tuple[Hub, Bench, _Desk, _Push]]:
    """A hub, a coordinator that knows its feed, and our server between them."""
    listener = socket.create_server(("127.0.0.1", 0))
    with Hub() as hub:
        feed = Reply(200, (("content-type", "application/atom+xml"),), atom(HOME, hub=hub.url))
        web = MemoryWeb({HOME: page("/feed.xml"), FEED: feed, NEW: text("<p>something new")})
        bench = Bench(web, public_url=f"http://127.0.0.1:{listener.getsockname()[1]}").run(20, at_once_s=10.0)
        desk = _Desk(bench)
        push = _Push(desk)
        with served(push, listener):
            yield hub, bench, desk, push


def subscribed(hub: Hub, bench: Bench, desk: _Desk, push: _Push) -> Reader:
    """Subscribe to the hub, including its verification."""
    bench.push.subscriptions.add_offer(FEED, hub.url, FEED, bench.settings.clock.wall_now())
    (errand,) = bench.push.subscriptions.take_requests(bench.settings.clock.wall_now())
    assert isinstance(errand, HubRequest)
    with HubClient(bench.settings) as caller:
        assert desk.during(lambda: caller.post(errand.hub, errand.form)) == ""
    desk.until(hub.verified.is_set)
    row = bench.push.store.find_by_token(errand.token)
    assert row is not None
    push.known[errand.token] = row
    return next(iter(hub.readers.values()))


def test_pages_pushed_by_a_hub_are_fetched() -> None:
    """From the request and the verification to a signed delivery, by every method: the new page is fetched."""
    with meeting() as (hub, bench, desk, push):
        reader = subscribed(hub, bench, desk, push)
        assert reader.topic == FEED
        assert bench.push.store.list_subscriptions(1)[0].standing == "active"
        for method in ("sha1", "sha256", "sha384", "sha512"):
            assert desk.during(partial(hub.publish, FEED, atom(NEW), method)) == [202]
        bench.run(10)
        assert len(bench.asked(NEW)) == 1
        assert bench.push.store.list_ignored(5) == []


def test_invalid_deliveries_are_ignored_and_counted() -> None:
    """Wrong signatures, another topic and invalid feeds are accepted silently, ignored, and counted."""
    with meeting() as (hub, bench, desk, push):
        reader = subscribed(hub, bench, desk, push)
        body, other = atom(NEW), '<https://example.org/other>; rel="self"'
        lies = [
            (body, "sha256=00", ""),
            (body, "", ""),
            (body, "md5=00", ""),
            (body, hub.signature(reader, body), other),
            (b"no feed", hub.signature(reader, b"no feed"), ""),
        ]
        statuses = [desk.during(partial(hub.send, reader, *lie)) for lie in lies]
        bench.run(5)
        assert statuses == [202] * len(lies)
        assert bench.asked(NEW) == []
        counted = {row.why: row.times for row in bench.push.store.list_ignored(9)}
        assert counted == {"a wrong signature": 3, "a different topic than requested": 1, "no feed": 1}


def test_excess_deliveries_are_refused() -> None:
    """Excess deliveries are refused before they reach the coordinator."""
    with meeting() as (hub, bench, desk, push):
        reader, body = subscribed(hub, bench, desk, push), atom(HOME)
        signature = hub.signature(reader, body)
        most = DELIVERY_RATE.requests
        statuses = desk.during(lambda: [hub.send(reader, body, signature) for _ in range(most + 5)])
        assert statuses == [202] * most + [429] * 5


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"mode": "subscribe", "topic": f"{HOME}other", "challenge": "x"}, 404),
        ({"mode": "unsubscribe", "topic": FEED, "challenge": "x"}, 404),
        ({"mode": "subscribe", "topic": FEED, "challenge": "x"}, 404),
        ({"mode": "subscribe", "topic": FEED, "challenge": "x" * 5_000}, 404),
        ({}, 404),
    ],
)
def test_only_requested_challenges_are_echoed(query: dict[str, str], status: int) -> None:
    """After the verification, no other topic, unsubscription or repetition is confirmed."""
    with meeting() as (hub, bench, desk, push):
        reader = subscribed(hub, bench, desk, push)
        report = desk.during(lambda: hub.ask_back(reader.callback, **query))
        assert report == (status, "")


def test_a_guessed_callback_is_not_found() -> None:
    """A guessed callback URL is not found."""
    with meeting() as (hub, bench, desk, _):
        guessed = Reader(f"{bench.public_url}/push/guessed", FEED, "x")
        assert desk.during(lambda: hub.send(guessed, atom(NEW), "sha256=00")) == 404
        assert (
            desk.during(lambda: hub.ask_back(guessed.callback, mode="subscribe", topic=FEED, challenge="x"))[0] == 404
        )


def test_a_hub_at_a_private_address_is_not_contacted() -> None:
    """Without permission for private addresses, the hub on loopback gets nothing, and the reason is reported."""
    with Hub() as hub:
        bench = Bench(MemoryWeb({HOME: page()}))

        with HubClient(replace(bench.settings, allow_private=False)) as caller:
            assert "private address" in caller.post(hub.url, [("hub.mode", "subscribe")])
        assert hub.forms == []


@pytest.mark.parametrize("status", [400, 404, 500])
def test_a_hub_that_refuses_is_quoted(status: int) -> None:
    """The hub's response is stored as the error."""
    with Hub(status=status) as hub, HubClient(Bench(MemoryWeb({HOME: page()})).settings) as caller:
        assert caller.post(hub.url, [("hub.mode", "subscribe")]) == f"the hub responded with {status}"


def test_an_unreachable_hub_is_reported() -> None:
    """If no server is listening, that is reported, and nothing raises."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with HubClient(Bench(MemoryWeb({HOME: page()})).settings) as caller:
        assert caller.post(f"http://127.0.0.1:{port}/", []).startswith(str(Failure.CONNECT))
