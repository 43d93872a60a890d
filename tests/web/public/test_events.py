"""Views and clicks over real connections: what is accepted or rejected, and never lost or trusted."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Self

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.web.small_search import NOW_S, Ask, Heard, HeldLog, bearer, made_key, recording_to, served

from vedette.config import Rate, Serve
from vedette.errors import StoreError
from vedette.web.auth.tokens import TokenClaims, sign_token
from vedette.web.gate import MAX_BODY_BYTES
from vedette.web.public.visits import Visitor

BROWSER = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}
JSON = {"Content-Type": "application/json"}
OPEN = Serve(rate=Rate(0, 1.0), embed_origins=("https://docs.example.org",))
ANN, ANN_KEY = made_key("ann")
ID = "ab" * 16


class EventServer:
    """A server, its log, and a wall clock that moves only on request."""

    def __init__(self, serve: Serve, keep_days: int = 30) -> None:
        self.wall_s = 1_790_000_000.0
        self.log = HeldLog()
        self.recording = recording_to(self.log, lambda: self.wall_s, keep_days)
        self.running = served(serve, lambda: [ANN_KEY], recording=self.recording)
        self.ask: Ask

    def __enter__(self) -> Self:
        self.ask, _ = self.running.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self.running.__exit__(None, None, None)

    def token(self, age_s: float = 0.0, secret: bytes = b"a secret", slate: str = ID) -> str:
        """Return a token of this server, unless it is signed with another secret."""
        return sign_token(TokenClaims(slate, self.wall_s - age_s), secret)

    def post(self, body: object, headers: Mapping[str, str] = JSON) -> Heard:
        """Return the response to a body."""
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.ask("/api/v1/events", {**BROWSER, **headers}, "POST", sent)

    def send_event(self, token: str, kind: str = "click", page: int = 1, headers: Mapping[str, str] = JSON) -> Heard:
        """Return the response to an event."""
        return self.post({"slate": token, "kind": kind, "page": page}, {**JSON, **headers})


@pytest.fixture(scope="module")
def server() -> Iterator[EventServer]:
    """An open server."""
    with EventServer(OPEN) as running:
        yield running


def test_acknowledged_events_are_in_the_log(server: EventServer) -> None:
    """They can be JSON or a beacon, and have world time and the seconds since the search."""
    before = len(server.log.events)
    token = server.token(age_s=4.5)
    assert [server.send_event(token, "view", 0).status, server.send_event(token, "click", 7).status] == [204, 204]
    beacon = json.dumps({"slate": token, "kind": "click", "page": 8}).encode()
    answer = server.post(beacon, {"Content-Type": "text/plain;charset=UTF-8"})
    assert (answer.status, answer.body, answer.headers["cache-control"]) == (204, b"", "no-store")
    view, click, other = server.log.events[before:]
    assert (view.slate, view.kind, view.page, view.at_s, view.after_s) == (ID, "view", 0, NOW_S, 4.5)
    assert (click.kind, click.page, other.page) == ("click", 7, 8)
    assert view.visitor == click.visitor == other.visitor
    assert view.filter_reason == ""


def test_a_page_and_its_events_have_one_mark(server: EventServer) -> None:
    """So the two can be joined; events from programs are flagged."""
    token = server.ask("/api/v1/search?q=lag", BROWSER).json["slate"]
    assert server.send_event(token).status == 204
    slate, event = server.log.slates[-1], server.log.events[-1]
    assert (event.slate, event.visitor) == (slate.id, slate.visitor)
    assert server.send_event(token, headers={"User-Agent": "curl/8.5.0"}).status == 204
    assert server.log.events[-1].filter_reason


def test_only_tokens_of_this_server_are_believed(server: EventServer) -> None:
    """Forged, truncated, foreign and expired ones are rejected with what to do, and not recorded."""
    before = len(server.log.records)
    token = server.token()
    forged = token[:-1] + ("A" if token[-1] != "A" else "B")
    for wrong in ("", "x", forged, token[:-1], token + token, server.token(secret=b"another"), "\ud800" * 48):
        assert server.send_event(wrong).complaint == (403, "wrong_slate", None)
    assert server.send_event(server.token(age_s=86_401)).complaint == (410, "old_slate", None)
    assert len(server.log.records) == before
    assert server.send_event(server.token(age_s=86_399)).status == 204
    assert server.send_event(server.token(age_s=-30, slate="cd" * 16)).status == 204  # a clock was set back
    assert server.log.events[-1].after_s == 0


@pytest.mark.parametrize(
    ("body", "parameter"),
    [
        *((b"", None), (b"[]", None), (b"null", None), (b"\xff\xfe", None), (b"[" * 2000, None), (b'{"a":', None)),
        ({"kind": "view", "page": 0}, "slate"),
        ({"slate": 7, "kind": "view", "page": 0}, "slate"),
        ({"slate": "x", "kind": "buy", "page": 0}, "kind"),
        ({"slate": "x", "kind": ["view"], "page": 0}, "kind"),
        ({"slate": "x", "kind": "view"}, "page"),
        ({"slate": "x", "kind": "click", "page": -1}, "page"),
        ({"slate": "x", "kind": "click", "page": 1.5}, "page"),
        ({"slate": "x", "kind": "click", "page": True}, "page"),
        ({"slate": "x", "kind": "click", "page": 2**53}, "page"),
        (b'{"slate": "x", "kind": "click", "page": NaN}', "page"),
        ({"slate": "x", "kind": "click", "page": 1, "user": "ann"}, "user"),
    ],
)
def test_invalid_events_get_the_name_of_the_field(server: EventServer, body: object, parameter: str | None) -> None:
    """A missing, wrong or unknown field gets 400 and its name."""
    assert server.post(body).complaint == (400, "wrong_parameter", parameter)


@settings(max_examples=60)
@given(
    st.binary(max_size=300)
    | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3))
    | st.dictionaries(st.sampled_from(["slate", "kind", "page"]), st.text() | st.integers() | st.floats())
)
def test_no_body_breaks_it(server: EventServer, body: object) -> None:
    """Garbage is rejected, is never a server error, and leaves nothing behind."""
    before = len(server.log.records)
    assert server.post(body).status in {400, 403}
    assert len(server.log.records) == before


def test_bodies_are_small_and_of_a_type_that_is_known(server: EventServer) -> None:
    """Larger bodies are rejected by the route or by the gate before it, and forms are not parsed."""
    padded = json.dumps({"slate": server.token(), "kind": "view", "page": 0}).encode()
    assert server.post(padded.ljust(2049)).complaint == (413, "too_large", None)
    assert server.post(b" " * (MAX_BODY_BYTES + 1)).complaint == (413, "too_large", None)
    assert server.post(padded, {"Content-Type": "application/x-www-form-urlencoded"}).complaint == (
        415,
        "wrong_type",
        None,
    )
    assert server.post(padded.ljust(2048)).status == 204


def test_the_size_of_any_request_is_limited() -> None:
    """This is true even if a route would read everything, or no length is announced."""
    with EventServer(OPEN) as server:
        form = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}
        assert server.ask("/signin", form, "POST", b"k" * (MAX_BODY_BYTES + 1)).status == 413
        assert server.ask("/signin", form, "POST", iter([b"k" * 1000] * 70)).status == 413
        assert server.ask("/signin", form, "POST", b"k" * MAX_BODY_BYTES).status in {303, 400}
        assert server.ask("/search?q=lag", {}, "POST", b"x").status == 405


def test_only_posts_are_events(server: EventServer) -> None:
    """GET explains how it is used."""
    for method in ("GET", "PUT", "DELETE"):
        answer = server.ask("/api/v1/events", {}, method)
        assert answer.complaint == (405, "wrong_method", None)
        assert "POST" in answer.headers["allow"]


def test_events_that_cannot_be_logged_are_not_acknowledged(server: EventServer) -> None:
    """A full disk is reported as such, so that a program can retry; with enough space, it works."""
    token = server.token(slate="ef" * 16)
    for error in (StoreError("no room"), OSError("no room")):
        server.log.broken = error
        assert server.send_event(token).complaint == (503, "not_kept", None)
    server.log.broken = None
    assert server.send_event(token).status == 204


def test_one_slate_has_so_many_events_a_minute(server: EventServer) -> None:
    """After that, it gets none for a while; other searches are not affected."""
    token, other = server.token(slate="01" * 16), server.token(slate="02" * 16)
    received = [server.recording.record_event(token, "click", 1, Visitor()) for _ in range(70)]
    assert {each.status for each in received} == {204, 429}
    with EventServer(OPEN) as fresh:
        statuses = [fresh.send_event(fresh.token()) for _ in range(70)]
        refused = [each for each in statuses if each.status == 429]
        assert refused
        assert int(refused[0].headers["retry-after"]) >= 1
        assert fresh.send_event(fresh.token(slate="03" * 16)).status == 204
    assert server.recording.record_event(other, "click", 1, Visitor()).status == 204


def test_no_key_is_needed_but_the_way_through_the_proxy() -> None:
    """The token is enough; a wrong key next to it does no harm; a program with a key has no visitor hash."""
    with EventServer(replace(OPEN, access="token")) as server:
        assert server.send_event(server.token()).status == 204
        assert server.send_event(server.token(), headers=bearer("vk_wrong")).status == 204
        assert server.ask("/api/v1/search?q=lag", BROWSER).status == 401
        token = server.ask("/api/v1/search?q=lag", {**BROWSER, **bearer(ANN)}).json["slate"]
        assert server.send_event(token, headers={**bearer(ANN), "User-Agent": "Another/1.0"}).status == 204
        assert (server.log.slates[-1].visitor, bool(server.log.events[-1].visitor)) == ("", True)
    with EventServer(replace(OPEN, access="proxy")) as server:
        assert server.send_event(server.token()).status == 204
    with EventServer(replace(OPEN, access="proxy", trusted_proxies=("203.0.113.0/24",))) as server:
        assert server.send_event(server.token()).complaint == (403, "not_through_proxy", None)
        assert server.log.records == []


def test_the_gate_counts_events_like_anything_else() -> None:
    """A visitor who floods the server is limited before the log is used."""
    with EventServer(replace(OPEN, rate=Rate(2, 3600.0))) as server:
        assert [server.send_event(server.token()).status for _ in range(3)] == [204, 204, 429]
        assert len(server.log.events) == 2


def test_other_origins_may_send_events(server: EventServer) -> None:
    """JSON needs a preflight, a beacon does not; credentials are never sent."""
    asked = {"Origin": "https://docs.example.org", "Access-Control-Request-Method": "POST"}
    leave = server.ask("/api/v1/events", asked, "OPTIONS")
    assert (leave.status, leave.headers["access-control-allow-methods"]) == (204, "POST")
    assert leave.headers["access-control-allow-headers"] == "content-type"
    told = server.send_event(server.token(), headers={"Origin": "https://docs.example.org"})
    assert told.headers["access-control-allow-origin"] == "https://docs.example.org"
    assert "access-control-allow-credentials" not in told.headers
    elsewhere = server.send_event(server.token(), headers={"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in elsewhere.headers


def test_events_are_refused_if_nothing_is_recorded() -> None:
    """This is true even with a token that was once valid."""
    with EventServer(OPEN, keep_days=0) as server:
        assert server.send_event(server.token()).complaint == (409, "not_recording", None)
        assert server.log.records == []


def test_slates_and_events_are_counted() -> None:
    """They are counted by origin and outcome; nothing that visitors send becomes a label."""
    with EventServer(OPEN) as server:
        server.ask("/search?q=lag", BROWSER)
        token = server.ask("/api/v1/search?q=lag", BROWSER).json["slate"]
        server.send_event(token, "view", 0)
        server.send_event("made up", "click", 7)
        told = server.ask("/metrics").body.decode()
    assert 'vedette_slates_total{via="page"} 1.0' in told
    assert 'vedette_slates_total{via="api"} 1.0' in told
    assert 'vedette_events_total{kind="view",outcome="taken"} 1.0' in told
    assert 'vedette_events_total{kind="click",outcome="wrong_slate"} 1.0' in told
