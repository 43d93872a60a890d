"""Webhook messages: signed, retried until they are accepted or given up, and not lost if a process is killed."""

import hmac
import json
import os
import signal
import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.runtime.alerts.test_publisher import appears, text, web
from tests.runtime.indexing.test_index_builder import Web, page
from tests.tree_runs import PATIENCE_S, patiently

from vedette.adapters.alerts.alert_store import ALERTS_NAME, AlertReader, AlertStore, Delivery
from vedette.adapters.clock import start_clock
from vedette.config import Config, Serve
from vedette.runtime.alerts.service import FolderAlertService
from vedette.runtime.alerts.webhooks import build_poster
from vedette.runtime.processes.notifier import RETRY_DELAYS_S, Notifier, run_notifier
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.web.commands.alert_text import parse_alert
from vedette.web.commands.commands import AddAlert, RemoveAlert

__all__ = ["web"]


@dataclass
class Receiver:
    """A real server that stores messages; it responds with ``statuses`` in order, then with 204."""

    port: int = 0
    statuses: list[int] = field(default_factory=list)
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    hold: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """Return its URL."""
        return f"http://127.0.0.1:{self.port}/hook"

    def messages(self) -> list[dict[str, Any]]:
        """Return its messages."""
        return [json.loads(body) for _, body in self.got]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver during the test."""
    receiver = Receiver()
    receiver.hold.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
            receiver.hold.wait(PATIENCE_S)
            status = receiver.statuses.pop(0) if receiver.statuses else 204
            self.send_response(status)
            self.send_header("location", "http://127.0.0.1:1/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Do not log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield receiver
    finally:
        receiver.hold.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver on loopback."""
    with receiving() as receiver:
        yield receiver


def settings_for(web: Web, *networks: str) -> RuntimeSettings:
    """The settings of a tree on the folder, with webhooks allowed to loopback."""
    config = Config(serve=Serve(webhook_networks=networks))
    return RuntimeSettings(config, start_clock(web.now_s, 1.0), web.folder, "vedette/test")


LOOPBACK = "127.0.0.0/8"


def messages_end(web: Web) -> list[Delivery]:
    """Return the messages, oldest first."""
    return AlertReader(web.folder).list_deliveries(50)[::-1]


def stepped_until(herald: Notifier, done: Any) -> None:
    """Step the notifier until a condition is true."""

    def worked() -> bool:
        herald.step()
        return bool(done())

    patiently(worked)


def hurry(web: Web) -> None:
    """Make the next attempt due now."""
    with closing(sqlite3.connect(web.folder / ALERTS_NAME, timeout=PATIENCE_S)) as db, db:
        db.execute("UPDATE delivery SET next_s = 0 WHERE next_s IS NOT NULL")


def test_a_message_is_signed_and_tried_again_under_the_same_id(web: Web, receiver: Receiver) -> None:
    """A receiver with the secret can verify time and body; an error is shown and retried, then it is delivered."""
    web.ordered(AddAlert(parse_alert("all", "*", webhook=receiver.url)))
    appears(web, "a", page("Apples", text("apple")))
    web.index()
    receiver.statuses = [500, 302]
    with closing(Notifier(settings_for(web, LOOPBACK))) as herald:
        for tries, error in ((1, "it returned status 500"), (2, "it returned status 302"), (3, "")):
            stepped_until(herald, lambda tries=tries: [one.tries for one in messages_end(web)] == [tries])
            (message,) = messages_end(web)
            assert message.error == error
            assert (message.next_s is None) is (tries == 3)
            hurry(web)
    assert len({body for _, body in receiver.got}) == 1
    headers, body = receiver.got[-1]
    assert headers["x-vedette-delivery"] == message.id == json.loads(body)["id"]
    (kept,) = FolderAlertService(settings_for(web)).list_alerts()
    stamp, _, digest = headers["x-vedette-signature"].partition(",v1=")
    signed = stamp.removeprefix("t=").encode() + b"." + body
    assert hmac.compare_digest(digest, hmac.digest(kept.secret.encode(), signed, "sha256").hex())
    (item,) = json.loads(body)["items"]
    assert item["title"] == "Apples"
    assert item["url"].endswith("/a")


def test_an_unreachable_receiver_is_given_up(web: Web) -> None:
    """After the last pause there are no more attempts."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    web.ordered(AddAlert(parse_alert("all", "*", webhook=f"http://127.0.0.1:{port}/")))
    appears(web, "a", page("Apples", text("apple")))
    web.index()
    with closing(Notifier(settings_for(web, LOOPBACK))) as herald:
        for tries in range(1, len(RETRY_DELAYS_S) + 2):
            stepped_until(herald, lambda tries=tries: [one.tries for one in messages_end(web)] == [tries])
            hurry(web)
    (message,) = messages_end(web)
    assert message.next_s is None
    assert "no connection" in message.error
    assert f"given up after {len(RETRY_DELAYS_S) + 1} tries" in message.error


def test_private_addresses_are_refused_unless_allowed(web: Web, receiver: Receiver) -> None:
    """This is checked when an alert is created and for each message, because DNS may change."""
    closed, opened = build_poster(Config()), build_poster(Config(serve=Serve(webhook_networks=(LOOPBACK,))))
    for url in (
        "http://127.0.0.1/",
        "http://10.1.2.3/",
        "http://[::1]/",
        "http://169.254.169.254/x",
        "http://localhost/",
    ):
        assert "private address" in closed.check_url(url)
        assert closed.post(url, (), b"{}").status == 0
    assert opened.check_url(receiver.url) == ""
    assert "private address" in opened.check_url("http://10.1.2.3/")
    web.ordered(AddAlert(parse_alert("all", "*", webhook=receiver.url)))
    appears(web, "a", page("Apples", text("apple")))
    web.index()
    with closing(Notifier(settings_for(web))) as herald:
        stepped_until(herald, lambda: [one.tries for one in messages_end(web)] == [1])
    assert "serve.webhook_networks" in messages_end(web)[0].error
    assert receiver.got == []
    closed.close()
    opened.close()


def test_a_slow_receiver_delays_no_other(web: Web, receiver: Receiver) -> None:
    """Each alert has its own queue, and its own messages stay in order."""
    with receiving() as slow:
        slow.hold.clear()
        web.ordered(AddAlert(parse_alert("slow", "*", webhook=slow.url)))
        web.ordered(AddAlert(parse_alert("quick", "*", webhook=receiver.url)))
        with closing(Notifier(settings_for(web, LOOPBACK))) as herald:
            for path in ("a", "b"):
                appears(web, path, page(path, text(f"{path}pple")))
                web.index()
                herald.step()
            stepped_until(herald, lambda: len(receiver.got) == 2)
            assert len(slow.got) <= 1
            slow.hold.set()
            stepped_until(herald, lambda: len(slow.got) == 2)
    titles = [[item["title"] for item in message["items"]] for message in slow.messages()]
    assert titles == [["a"], ["b"]]


def test_a_removed_alert_ends_its_messages(web: Web, receiver: Receiver) -> None:
    """They end with the reason."""
    web.ordered(AddAlert(parse_alert("all", "*", webhook=receiver.url)))
    appears(web, "a", page("Apples", text("apple")))
    web.index()
    receiver.statuses = [500] * 9
    with closing(Notifier(settings_for(web, LOOPBACK))) as herald:
        stepped_until(herald, lambda: [one.tries for one in messages_end(web)] == [1])
        web.ordered(RemoveAlert("all"))
        hurry(web)
        stepped_until(herald, lambda: messages_end(web)[0].next_s is None)
    assert messages_end(web)[0].error == "the watch was removed"


def test_a_test_is_sent_at_once_and_written_down(web: Web, receiver: Receiver) -> None:
    """It has no items, and can fail like any other message."""
    web.ordered(AddAlert(parse_alert("all", "*", webhook=receiver.url)))
    desk = FolderAlertService(settings_for(web, LOOPBACK))
    receiver.statuses = [204, 410]
    assert desk.send_test("all").delivery.error == ""
    assert desk.send_test("all").delivery.error == "it returned status 410"
    assert [(one["test"], one["items"]) for one in receiver.messages()] == [(True, []), (True, [])]
    assert [one.name for one in desk.list_messages(10)] == ["all", "all"]


def test_a_herald_that_is_killed_loses_no_message(web: Web, receiver: Receiver) -> None:
    """If the notifier is killed before the receiver responds, the message is sent again under the same id."""
    web.ordered(AddAlert(parse_alert("all", "*", webhook=receiver.url)))
    appears(web, "a", page("Apples", text("apple")))
    web.index()
    receiver.hold.clear()
    pid = os.fork()
    if pid == 0:
        try:
            run_notifier(settings_for(web, LOOPBACK))
        finally:
            os._exit(1)
    patiently(lambda: len(receiver.got) == 1)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    receiver.hold.set()
    with closing(Notifier(settings_for(web, LOOPBACK))) as herald:
        stepped_until(herald, lambda: [one.ended_s is None for one in messages_end(web)] == [False])
    first, second = receiver.messages()
    assert first == second
    assert [item.title for item in AlertReader(web.folder).list_items(0, 10)] == ["Apples"]


def test_a_book_that_cannot_be_read_makes_way(web: Web, capfd: pytest.CaptureFixture[str]) -> None:
    """The file is moved aside, and the notifier continues."""
    (web.folder / ALERTS_NAME).write_bytes(b"no database" * 500)
    with closing(Notifier(settings_for(web))) as herald:
        assert not herald.step()
        assert not herald.step()
    assert "moved to watch-damaged-1.db" in capfd.readouterr().err
    assert (web.folder / "watch-damaged-1.db").exists()
    with closing(AlertStore(web.folder)) as book:
        assert book.list_new_pages(1) == []
