"""The endpoints for pings and hubs follow their protocols, and the console's page shows the push status."""

import hmac
import json
from collections.abc import Mapping

import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient
from tests.web.small_operator import SmallOperator
from tests.web.small_search import NOW_S

from vedette.adapters.push.push_store import CreditRow, IgnoredSignals, Subscription
from vedette.config import Serve
from vedette.discover.push.credit import SignalTrust
from vedette.discover.push.indexnow import Ping
from vedette.web.auth.access import AccessControl
from vedette.web.auth.tokens import is_valid_signature
from vedette.web.console.crawl.push import PushPage
from vedette.web.console.ui.layout import ConsoleShell
from vedette.web.push.ports import HubDelivery, PushReply, PushStatus
from vedette.web.push.routes import is_push_path, push_routes
from vedette.web.rendering import Branding

KEY = "0123456789abcdef"
URL = "https://example.org/a"
HOSTILE = '<script>alert("x")</script>'


class SmallPush:
    """Accepts everything as ``told`` says, and records it."""

    def __init__(self, report: PushReply | None = None, look: PushStatus | None = None) -> None:
        self.told, self.seen = report or PushReply(200, "Taken."), look or PushStatus()
        self.pings: list[Ping] = []
        self.deliveries: list[tuple[str, HubDelivery]] = []

    def verify_intent(self, _token: str, query: Mapping[str, str]) -> PushReply:
        """Repeat any challenge."""
        return PushReply(200, query.get("hub.challenge", ""))

    def accept_delivery(self, token: str, delivery: HubDelivery) -> PushReply:
        """Record it."""
        self.deliveries.append((token, delivery))
        return self.told

    def accept_ping(self, ping: Ping, _client: str = "") -> PushReply:
        """Record it."""
        self.pings.append(ping)
        return self.told

    def get_status(self) -> PushStatus:
        """Return the configured status."""
        return self.seen


def client(push: SmallPush) -> TestClient:
    """A client that knows the URLs."""
    return TestClient(Starlette(routes=push_routes(push)))


def get_page(look: PushStatus, query: str = "") -> str:
    """Return the console page as the operator sees it."""
    shell = ConsoleShell(SmallOperator(), Branding(), AccessControl(Serve(), tuple), lambda: NOW_S)
    app = Starlette(routes=[Route("/push", PushPage(shell, SmallPush(look=look)).show)])
    answer = TestClient(app).get(f"/push{query}")
    assert answer.status_code == 200
    return answer.text


def test_a_ping_by_address_is_handed_on() -> None:
    """GET with url and key is a ping of one URL."""
    push = SmallPush()
    assert client(push).get("/indexnow", params={"url": URL, "key": KEY}).status_code == 200
    assert push.pings == [Ping(KEY, f"https://example.org/{KEY}.txt", (URL,))]


def test_a_ping_by_json_is_handed_on() -> None:
    """A POST contains many URLs of one host."""
    push = SmallPush()
    urls = [f"https://example.org/{number}" for number in range(10_000)]
    report = {"host": "example.org", "key": KEY, "urlList": urls}
    assert client(push).post("/indexnow", json=report).status_code == 200
    assert push.pings[0].urls == tuple(urls)


@pytest.mark.parametrize("status", [202, 403, 422, 429, 503])
def test_a_ping_is_answered_as_it_was_taken(status: int) -> None:
    """The response is the coordinator's decision, with a message if it is rejected."""
    answer = client(SmallPush(PushReply(status, "So it is.", 60))).get("/indexnow", params={"url": URL, "key": KEY})
    assert answer.status_code == status
    assert "So it is." in answer.text
    assert ("retry-after" in answer.headers) is (status >= 400)


def test_an_invalid_ping_is_rejected() -> None:
    """An invalid ping is rejected here."""
    push = SmallPush()
    assert client(push).get("/indexnow").status_code == 400
    assert client(push).post("/indexnow", content=b"\xff" * 100).status_code == 400
    assert push.pings == []


def test_a_challenge_is_plain_text() -> None:
    """A hub's challenge is repeated as plain text, so that browsers don't render it."""
    answer = client(SmallPush()).get("/push/token", params={"hub.challenge": HOSTILE})
    assert answer.text == HOSTILE
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_delivery_is_handed_on_whole() -> None:
    """Body, type, signature and links arrive unchanged."""
    push = SmallPush(PushReply(202))
    headers = {"content-type": "application/rss+xml", "x-hub-signature": "sha1=00", "link": "<a>; rel=self"}
    assert client(push).post("/push/token", content=b"<rss/>", headers=headers).status_code == 202
    assert push.deliveries == [("token", HubDelivery(b"<rss/>", "application/rss+xml", "sha1=00", ("<a>; rel=self",)))]


@pytest.mark.parametrize("method", ["sha1", "sha256", "sha384", "sha512"])
def test_signatures_are_checked(method: str) -> None:
    """Either case is accepted; another secret, another body or a truncated signature is not."""
    right = f"{method}={hmac.digest(b'secret', b'body', method).hex()}"
    assert is_valid_signature(b"body", right, "secret")
    assert is_valid_signature(b"body", right.upper().replace(method.upper(), method), "secret")
    assert not is_valid_signature(b"body", right, "another")
    assert not is_valid_signature(b"other", right, "secret")
    assert not is_valid_signature(b"body", right[:-1], "secret")
    assert not is_valid_signature(b"body", f"{right}é", "secret")


def test_which_paths_are_for_push() -> None:
    """The gate decides by path alone."""
    assert [is_push_path(path) for path in ("/indexnow", "/push/x", "/pushy", "/console/push")] == [
        True,
        True,
        False,
        False,
    ]


def test_the_page_names_the_missing_setting() -> None:
    """Without a public address, it names the setting."""
    assert "serve.public_url" in get_page(PushStatus())
    assert "is not set" not in get_page(PushStatus("https://search.example.org"))


def test_the_page_shows_subscriptions_credit_and_lies() -> None:
    """Each has a row, whatever strangers wrote into it, and no secret is shown."""
    row = Subscription(f"https://example.org/{HOSTILE}", "https://hub.example.net/", URL, "tok", "sec", "active")
    look = PushStatus(
        "https://search.example.org",
        1,
        (row._replace(token="", secret=""), row._replace(topic="b", standing="denied", why=HOSTILE)),
        (CreditRow("websub x", SignalTrust(6.0, 0.0), 6, NOW_S - 60),),
        (IgnoredSignals("websub x", "a wrong signature", 7, NOW_S - 5),),
    )
    text = get_page(look)
    assert HOSTILE not in text
    for words in ("its updates", "denied", "80%", "a wrong signature"):
        assert words in text


@pytest.mark.parametrize(("table", "head"), [("feeds", "Feed"), ("credit", "Source"), ("ignored", "Source")])
def test_each_table_is_a_file_too(table: str, head: str) -> None:
    """Each table can be downloaded as CSV."""
    assert get_page(PushStatus(), f"?csv={table}").startswith(head)


def test_json_of_any_shape_is_answered() -> None:
    """Nothing that is posted causes a server error."""
    values: list[object] = [None, 1, "x", [], {"urlList": {}}, {"host": [], "key": {}, "urlList": [URL]}]
    for value in values:
        assert client(SmallPush()).post("/indexnow", content=json.dumps(value)).status_code in {400, 422}
