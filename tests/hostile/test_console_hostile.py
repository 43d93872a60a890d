"""Attacks on the console, the API commands and the event store.

Half of the tests use a real ``vedette up``, because path spelling, disk writes and surviving processes concern the
whole tree. The other half use the application with an in-memory operator.
"""

import http.client
import json
import re
import socket
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.search_runs import Heard, Up, page, small_web, up
from tests.tree_runs import PATIENCE_S, patiently
from tests.web.small_operator import OURS, Console, SmallDesk, SmallOperator, SmallWatch, signed_in
from tests.web.small_search import Ask, made_key, served

from vedette.adapters.event_store.reader import QueryCount
from vedette.config import Rate, Serve
from vedette.web.commands.commands import Dismiss
from vedette.web.console.admin.guard import SESSION_COOKIE
from vedette.web.console.routes import ConsoleServices

HOME = "http://bog.test/"
AGENT = "Mozilla/5.0 (X11; Linux x86_64) Quaggabrowser/77.4"
LIVE = "/console/live"
JSON = {"content-type": "application/json"}
FORM = {"content-type": "application/x-www-form-urlencoded"}
ADMIN, ADMIN_KEY = made_key("ops", "search", "admin")
HALF = "\ud800"  # of a surrogate pair, which JSON can write and no text can be


# the whole tree


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Run a server over one page."""
    pages = {HOME: page("Bog", "Cranberry and sundew.")}
    with small_web(pages) as web, up(web, tmp_path_factory.mktemp("bog"), HOME) as started:
        patiently(lambda: started.search("cranberry")["total"] == 1)
        yield started


class Knock(http.client.HTTPConnection):
    """One request on its own connection, optionally from another loopback address."""

    def __init__(self, run: Up, address: str = "127.0.0.1") -> None:
        super().__init__("127.0.0.1", run.port, timeout=PATIENCE_S, source_address=(address, 0))

    def heard(self, method: str, target: str, headers: Mapping[str, str] | None = None, body: bytes = b"") -> Heard:
        """Return the response; the path is sent exactly as given."""
        try:
            self.request(method, target, body or None, dict(headers or {}))
            answer = self.getresponse()
            return Heard(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            self.close()


class Session:
    """An operator who is signed in to the real console."""

    def __init__(self, run: Up) -> None:
        found = re.search(r"vt_\S+", (run.folder / "output.txt").read_text())
        assert found is not None
        form = urlencode({"token": found[0]}).encode()
        answer = Knock(run).heard("POST", "/console/signin", {**OURS, **FORM}, form)
        self.cookie = {"cookie": answer.headers["set-cookie"].partition(";")[0]}
        shown = re.search(rb'name="csrf" value="([^"]+)"', self.get(run, "/console/").body)
        assert shown is not None
        self.mark = shown[1].decode()

    def get(self, run: Up, target: str) -> Heard:
        """Fetch a page."""
        return Knock(run).heard("GET", target, self.cookie)

    def signed_out(self, run: Up) -> Heard:
        """End the session."""
        form = urlencode({"csrf": self.mark}).encode()
        return Knock(run).heard("POST", "/console/signout", {**self.cookie, **OURS, **FORM}, form)


@pytest.mark.parametrize(
    "target",
    [
        *("/console/sites", "//console/sites", "/console//sites", "/console/../console/sites", "/x/../console/sites"),
        *(
            "/%63onsole/sites",
            "/console%2fsites",
            "/console/%2e%2e/console/sites",
            "/console/sites%00",
            "/console/sites.",
        ),
        *(
            "/CONSOLE/sites",
            "/console./sites",
            "/console;a/sites",
            "/console/signin/../sites",
            "/console/signin%2f..%2fsites",
        ),
        *("/static/../console/sites", "/static/%2e%2e/%2e%2e/console/sites", "http://bog.test/console/sites"),
        *("/console/sites?csv=1", "/console/series.csv?name=pages", LIVE, "/api/v1/actions", "/api//v1/actions"),
        *("/static/a/..%2f..%2fapp.py", "/cached/..%2f..%2fstate.db", "/console/signin?next=/console/sites"),
    ],
)
def test_no_spelling_of_a_path_avoids_the_sign_in(run: Up, target: str) -> None:
    """However the path is spelled and requested, a stranger gets the sign-in form, a redirect to it, or nothing."""
    disguise = {"x-http-method-override": "GET", "x-original-url": "/console/sites", "x-rewrite-url": "/console/sites"}
    for method in ("GET", "HEAD", "POST", "PUT", "OPTIONS", "TRACE"):
        heard = Knock(run).heard(method, target, disguise)
        is_form = target.startswith("/console/signin?") and method in {"GET", "HEAD"}
        assert heard.status in ({200} if is_form else {303, 308, 400, 401, 403, 404, 421, 405})
        assert b"bog.test" not in heard.body
        assert b"Sign out" not in heard.body
        assert "set-cookie" not in heard.headers


def test_a_stream_ends_with_the_session(run: Up) -> None:
    """After signing out, nothing more is sent to an open page, and the stream can't be opened again."""
    session, held = Session(run), Knock(run)
    held.request("GET", LIVE, headers=session.cookie)
    stream = held.getresponse()
    assert stream.readline().startswith(b"data: ")
    assert session.signed_out(run).status == 303
    stream.read()  # to its end, or the patience of the socket ends
    held.close()
    assert session.get(run, LIVE).status == 303


def test_half_a_letter_stops_no_crawl(run: Up) -> None:
    """Invalid text is rejected before the coordinator has to store it."""
    keeper = run.pid("keeper")
    headers = {**JSON, "authorization": f"Bearer {run.vedette('keys', 'create', 'ops', '--scope', 'admin').split()[0]}"}
    patiently(lambda: Knock(run).heard("GET", "/api/v1/actions", headers).status == 200)
    for order in (
        {"order": "dismiss", "host": HALF},
        {"order": "add_rule", "kind": "synonym", "query": f"a{HALF}", "value": "b"},
        {"order": "set_site", "site": HOME, "settings": {"include": [f"/{HALF}"]}},
        {"order": "add_site", "site": "moor.test", "settings": {"readers": [HALF]}},
        {"order": "undo", HALF: 1},
    ):
        assert Knock(run).heard("POST", "/api/v1/orders", headers, json.dumps(order).encode()).status == 400
    assert run.pid("keeper") == keeper


def test_addresses_and_browsers_are_nowhere_on_the_disk(run: Up) -> None:
    """Searches, clicks and sign-in attempts leave at most a hash."""
    named = {"user-agent": AGENT, "x-forwarded-for": "203.0.113.99", "accept-language": "en"}
    found = Knock(run, "127.0.0.77").heard("GET", "/api/v1/search?q=sundew", named).json
    click = {"slate": found["slate"], "kind": "click", "page": found["results"][0]["id"]}
    for headers in (named, {"user-agent": AGENT}):
        report = Knock(run, "127.0.0.77").heard(
            "POST", "/api/v1/events", {**JSON, **headers}, json.dumps(click).encode()
        )
        assert report.status == 204
    Knock(run, "127.0.0.77").heard("POST", "/console/signin", {**OURS, **FORM, **named}, b"token=wrong")
    kept = [path.read_bytes() for path in (run.folder / "data").rglob("*") if path.is_file()]
    assert any(b"sundew" in each for each in kept)
    for address in ("127.0.0.77", "203.0.113.99"):
        assert not any(address.encode() in each or socket.inet_aton(address) in each for each in kept)
    assert not any(b"Quaggabrowser" in each for each in kept)


def test_a_token_that_was_changed_anywhere_is_none(run: Up) -> None:
    """The signature covers the slate and the time."""
    token = run.search("cranberry")["slate"]
    for place in range(len(urlsafe_b64decode(token))):
        held = bytearray(urlsafe_b64decode(token))
        held[place] ^= 1
        event = {"slate": urlsafe_b64encode(held).decode(), "kind": "view", "page": 0}
        assert Knock(run).heard("POST", "/api/v1/events", JSON, json.dumps(event).encode()).status == 403


def test_no_secret_of_the_operator_is_stored_in_clear(run: Up) -> None:
    """Neither the token nor a session secret is in any file."""
    secret = Session(run).cookie["cookie"].removeprefix(f"{SESSION_COOKIE}=")
    token = re.search(r"vt_\S+", (run.folder / "output.txt").read_text())
    assert token is not None
    kept = [path.read_bytes() for path in (run.folder / "data").rglob("*") if path.is_file()]
    assert not any(hidden.encode() in each for each in kept for hidden in (secret, token[0]))
    assert list((run.folder / "data" / "sessions").iterdir())


def test_nothing_went_wrong_behind_the_answers(run: Up) -> None:
    """After all these attacks the same processes are running, and none of them reported an error."""
    assert run.process.poll() is None
    assert run.messages() == ""


# the application


@pytest.fixture(scope="module")
def console() -> Console:
    """Share one console between all tests."""
    return signed_in()


@pytest.mark.parametrize("typed", ["0" * 20 + "9" * 30, "0" * 5000, "9" * 5000, "9" * 15, "-1", "1e3", "\u0661"])
def test_any_number_of_an_action_is_answered(console: Console, typed: str) -> None:
    """This includes long numbers and ones with many leading zeros, which no database can count to."""
    assert console.client.get("/console/storage", params={"done": typed}).status_code == 200
    assert console.client.get("/console/actions", params={"before": typed}).status_code == 200
    assert console.post("/console/undo", action=typed).status_code == 422


@pytest.mark.parametrize("origin", ["http://[::1", "http://[", "null", "http://search.example.org.evil.example", "//"])
@pytest.mark.parametrize("path", ["/console/signin", "/signin", "/console/undo"])
def test_an_origin_that_is_none_is_not_ours(console: Console, path: str, origin: str) -> None:
    """It is rejected with a message, and is not a server error."""
    answer = console.client.post(path, data={"csrf": console.mark()}, headers={"origin": origin})
    assert answer.status_code == 403


def test_asking_for_the_head_of_a_stream_holds_none_open(console: Console) -> None:
    """Every HEAD request gets a response, no matter how many there are."""
    assert {console.client.head(LIVE).status_code for _ in range(120)} == {200}


def test_forms_of_many_fields_are_read(console: Console) -> None:
    """This is true up to the limit; unknown fields are ignored."""
    mark = f"csrf={console.mark()}&".encode()
    for fields in (b"a&" * 32_000, b"&" * 65_000, b"&".join(b"%x=" % number for number in range(9_000))):
        answer = console.client.post("/console/undo", content=mark + fields, headers={**OURS, **FORM})
        assert answer.status_code == 422


@pytest.mark.parametrize("query", ["=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\n=1", '=HYPERLINK("http://a")'])
def test_exported_queries_are_no_formulas(query: str) -> None:
    """A spreadsheet treats it as text."""
    console = signed_in()
    console.watch.asked = console.watch.asked._replace(top=(QueryCount("one", query, 9, 4, 0, 5, 0.0),))
    cell = console.client.get("/console/searches?csv=top").content.split(b"\r\n", 1)[1]
    assert cell.removeprefix(b'"').startswith(b"'")


def test_a_long_way_back_is_cut_short(console: Console) -> None:
    """Whatever a field contains, browsers and proxies accept the response headers."""
    answer = console.post("/console/results/remove", kind="block", value="a.example", url='"' * 20_000)
    assert answer.status_code == 303
    assert len(answer.headers["location"]) < 16_384


@pytest.fixture(scope="module")
def operator() -> SmallOperator:
    """Receive the API's commands."""
    return SmallOperator()


@pytest.fixture(scope="module")
def ask(operator: SmallOperator) -> Iterator[Ask]:
    """Return an open server with a console and one operator key."""
    parts = ConsoleServices(operator, SmallWatch(), SmallDesk())
    with served(Serve(rate=Rate(0, 1.0)), lambda: (ADMIN_KEY,), console=parts) as (ask, _):
        yield ask


@pytest.mark.parametrize("authorization", ["Basic dTpw", "Basic", "Digest a", "bearer", "Bearer vk_guessed", "x"])
@pytest.mark.parametrize("place", ["cookie", "address"])
def test_another_authorization_makes_no_order_of_a_cookie(
    ask: Ask, operator: SmallOperator, authorization: str, place: str
) -> None:
    """Browsers add proxy credentials to everything; a key only counts if it was sent on purpose."""
    headers = {"authorization": authorization} | ({"cookie": f"vedette_key={ADMIN}"} if place == "cookie" else {})
    query = f"?key={ADMIN}" if place == "address" else ""
    before = len(operator.orders)
    body = b'{"order": "pause_site", "site": "example.org"}'
    assert ask(f"/api/v1/orders{query}", {**JSON, **headers}, "POST", body).status == 401
    assert ask(f"/api/v1/actions{query}", headers).status == 401
    assert len(operator.orders) == before


def ordered(ask: Ask, order: object) -> Any:
    """Return the response to a command."""
    headers = {**JSON, "authorization": f"Bearer {ADMIN}"}
    return ask("/api/v1/orders", headers, "POST", order if isinstance(order, bytes) else json.dumps(order).encode())


@pytest.mark.parametrize("host", ["a\r\nx: 1", "a\0.example", "<b>", "=cmd|x", "...", "a" * 300, " ", "javascript:1"])
def test_only_hosts_are_dismissed(ask: Ask, operator: SmallOperator, host: str) -> None:
    """Nothing else gets into the log, and a host is stored in its normal form."""
    assert ordered(ask, {"order": "dismiss", "host": host}).status == 400
    assert ordered(ask, {"order": "dismiss", "host": "Spam.Example"}).status == 200
    assert operator.orders[-1] == Dismiss("spam.example")


@pytest.mark.parametrize(
    "body",
    [b"[" * 60_000, b'{"order":' * 7_000, b'{"order":"undo","action":' + b"9" * 60_000 + b"}", b"\xff\xfe{", b"NaN"],
)
def test_no_body_is_too_odd_to_be_refused(ask: Ask, body: bytes) -> None:
    """This includes deeply nested, huge and non-text bodies."""
    assert ordered(ask, body).status == 400
