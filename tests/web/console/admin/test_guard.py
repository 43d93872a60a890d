"""Access to the console requires the operator's token, and no one can act on the operator's behalf."""

import hashlib
import re
from dataclasses import replace
from http.cookies import SimpleCookie
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.routing import Mount, Route
from starlette.testclient import TestClient
from tests.web.small_operator import OURS, TOKEN, Console, signed_in
from tests.web.small_search import NOW_S, SmallSearch

from vedette.config import Rate, Serve
from vedette.errors import StoreError
from vedette.web.app import create_app
from vedette.web.commands.commands import ReplaceToken, Undo
from vedette.web.console.admin.guard import HOME_URL, SESSION_COOKIE, SESSION_S, safe_redirect
from vedette.web.console.ports.sites import ActionLine
from vedette.web.rendering import Branding

UNLIMITED = Serve(rate=Rate(0, 1.0))
PLANTED = {"name": SESSION_COOKIE, "value": "planted", "domain": "search.example.org", "path": "/console"}
PAUSED = ActionLine(1, NOW_S - 900, "the site <b> was paused", "the console", can_be_undone=True)


def routes(console: Console) -> list[tuple[str, str]]:
    """List every method and path under the console, with sample parameters."""
    mount = next(route for route in console.app.routes if isinstance(route, Mount))
    found = [route for route in mount.routes if isinstance(route, Route)]
    assert len(found) > 10
    paths = [(method, re.sub(r"{[^}]*}", "1", route.path)) for route in found for method in sorted(route.methods or ())]
    return [(method, f"/console{path}") for method, path in paths]


def cookie_of(answer: object) -> SimpleCookie:
    """Return the cookie that a response sets."""
    return SimpleCookie(answer.headers["set-cookie"])  # type: ignore[attr-defined]  # an answer as httpx has it


def test_every_route_requires_a_session() -> None:
    """Every route and method, and every unknown path, leads to the sign-in page or is refused."""
    console = Console()
    for method, path in [*routes(console), ("GET", "/console/none"), ("POST", "/console/none")]:
        answer = console.client.request(method, path, headers=OURS, data={"csrf": "x"} if method == "POST" else None)
        if method == "POST":
            assert answer.status_code == 403, path
        else:
            assert answer.status_code == 303, path
            assert answer.headers["location"] == f"/console/signin?next={quote(path, safe='')}"
    assert console.operator.orders == []


def test_pages_of_a_session_are_shown_and_not_cached() -> None:
    """All pages can be read, with strict headers."""
    console = signed_in()
    for method, path in routes(console):
        if method != "GET" or path == "/console/live":
            continue
        answer = console.client.get(path)
        assert answer.status_code in {200, 404}, path
        assert answer.headers["cache-control"] == "no-store"
        if answer.headers["content-type"].startswith("text/html"):
            assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
            assert "unsafe" not in answer.headers["content-security-policy"]
            assert " style=" not in answer.text


def test_every_form_that_posts_carries_the_mark() -> None:
    """A form without the token would not work, or would be insecure."""
    console = signed_in()
    console.post("/console/undo", action="1")
    for method, path in routes(console):
        if method == "GET" and path != "/console/live":
            for form in re.findall(r'<form[^>]*method="post".*?</form>', console.client.get(path).text, re.DOTALL):
                assert 'name="csrf"' in form, path


@pytest.mark.parametrize("mark", ["", "x", "0" * 64, "é" * 64])
def test_a_post_without_its_token_does_nothing(mark: str) -> None:
    """This is true for every route that accepts POST."""
    console = signed_in()
    for method, path in routes(console):
        if method == "POST":
            fields = {"csrf": mark, "action": "1"} if mark else {"action": "1"}
            assert console.client.post(path, data=fields, headers=OURS).status_code == 403, path
    assert console.operator.orders == []


def test_the_token_of_another_session_is_refused() -> None:
    """A token belongs to one session and can't be used in another."""
    console = signed_in()
    foreign = console.mark()
    console.client.cookies.clear()
    console.sign_in()
    assert console.mark() != foreign
    answer = console.client.post("/console/undo", data={"csrf": foreign, "action": "1"}, headers=OURS)
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://search.example.org.evil.example"},
    ],
)
def test_a_post_from_elsewhere_does_nothing(headers: dict[str, str]) -> None:
    """Even the right token and cookie don't help, and no one is signed in that way."""
    console = signed_in()
    answer = console.client.post("/console/undo", data={"csrf": console.mark(), "action": "1"}, headers=headers)
    assert answer.status_code == 403
    other = console.another()
    assert other.post("/console/signin", data={"token": TOKEN}, headers=headers).status_code == 403
    assert not other.cookies


def test_an_origin_header_is_enough_for_a_post() -> None:
    """Over plain http, browsers send nothing else."""
    console = signed_in()
    fields = {"csrf": console.mark(), "action": "9"}
    answer = console.client.post("/console/undo", data=fields, headers={"origin": "http://search.example.org"})
    assert answer.status_code == 422  # it is ours, and there is no such action


def test_only_forms_are_read() -> None:
    """Text that a script of another site could send is rejected."""
    console = signed_in()
    for kind in ("application/json", "text/plain", "multipart/form-data; boundary=x", ""):
        headers = {**OURS, "content-type": kind}
        body = f"csrf={console.mark()}&action=1"
        assert console.client.post("/console/undo", content=body, headers=headers).status_code == 400
        assert console.client.post("/console/signin", content=f"token={TOKEN}", headers=headers).status_code == 400


def test_a_cookie_that_was_there_before_is_worthless_and_replaced() -> None:
    """An attacker who plants a cookie gains nothing when the user signs in (session fixation)."""
    console = Console()
    console.client.cookies.set(**PLANTED)
    answer = console.sign_in()
    secret = cookie_of(answer)[SESSION_COOKIE].value
    assert secret not in PLANTED.values()
    assert list(console.operator.sessions) == [hashlib.sha256(secret.encode()).hexdigest()]
    thief = console.another()
    thief.cookies.set(**PLANTED)
    assert thief.get(HOME_URL).status_code == 303
    again = cookie_of(console.sign_in())[SESSION_COOKIE].value
    assert again != secret


@pytest.mark.parametrize(("address", "is_secure"), [("", False), ("https://search.example.org", True)])
def test_the_cookie_is_for_this_server_alone(address: str, *, is_secure: bool) -> None:
    """Scripts can't read it, other paths don't get it, and over https it is never sent over http."""
    console = Console(replace(UNLIMITED, address=address))
    cookie = cookie_of(console.sign_in())[SESSION_COOKIE]
    assert cookie["httponly"]
    assert cookie["path"] == "/console"
    assert cookie["samesite"] == "lax"
    assert int(cookie["max-age"]) == SESSION_S
    assert bool(cookie["secure"]) == is_secure
    assert len(cookie.value) >= 43  # 32 bytes, in base64


def test_guessing_is_slowed_for_one_address() -> None:
    """After some wrong tokens even the right one must wait, and the error says how long; later it works again."""
    console = Console()
    answers = [console.sign_in(token=f"wrong {number}") for number in range(12)]
    assert [answer.status_code for answer in answers] == [401] * 10 + [429] * 2
    refused = console.sign_in()
    assert refused.status_code == 429
    assert 0 < int(refused.headers["retry-after"]) <= 60
    assert "vedette token new" in refused.text
    console.clock_s += 60.0
    assert console.sign_in().status_code == 303


def test_right_tokens_are_not_counted() -> None:
    """The operator can sign in from many tabs and scripts in a row."""
    console = Console()
    assert {console.sign_in().status_code for _ in range(30)} == {303}


def test_guessing_is_slowed_for_all_addresses_together() -> None:
    """An attacker with many addresses does not get many more guesses."""
    console = Console()
    guessers = [console.another(f"192.0.2.{number}") for number in range(15)]
    statuses = [console.sign_in(guesser, "wrong").status_code for guesser in guessers for _ in range(10)]
    assert statuses.count(401) == 100
    assert statuses.count(429) == 50


def test_a_session_ends_by_time() -> None:
    """It ends after twelve hours of wall time; a session from far in the future is invalid."""
    console = signed_in()
    console.wall_s += SESSION_S - 1
    assert console.client.get(HOME_URL).status_code == 200
    console.wall_s += 2
    assert console.client.get(HOME_URL).status_code == 303
    console.wall_s -= 2 * SESSION_S
    assert console.client.get(HOME_URL).status_code == 303


def test_signing_out_ends_the_session_for_all_copies_of_its_cookie() -> None:
    """The cookie is deleted, and a copy of it no longer works."""
    console = signed_in()
    secret = console.client.cookies[SESSION_COOKIE]
    answer = console.post("/console/signout")
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/signin")
    assert SESSION_COOKIE not in console.client.cookies
    thief = console.another()
    thief.cookies.set(SESSION_COOKIE, secret, domain="search.example.org", path="/console")
    assert thief.get(HOME_URL).status_code == 303
    assert console.operator.sessions == {}


def test_a_replaced_token_ends_all_sessions() -> None:
    """The old token no longer works either."""
    console = signed_in()
    other = "vo_another"
    console.operator.run_command(ReplaceToken(hashlib.sha256(other.encode()).hexdigest()), "the command line")
    assert console.client.get(HOME_URL).status_code == 303
    assert console.sign_in().status_code == 401
    assert console.sign_in(token=other).status_code == 303


def test_a_form_that_is_sent_twice_has_one_id() -> None:
    """So its command runs once; another page's form, or other content, is another command."""
    console = signed_in()
    console.operator.refusal = StoreError("not carried out yet")
    mark = console.mark()

    def pause(csrf: str, site: str) -> str:
        fields = {"csrf": csrf, "site": site, "paused": "yes"}
        return str(console.client.post("/console/sites/pause", data=fields, headers=OURS).text)

    pause(mark, "http://a/")
    pause(mark, "http://a/")
    pause(mark, "http://b/")
    pause(console.mark(), "http://a/")
    first, second, other, later = console.operator.order_ids
    assert first == second
    assert len({first, other, later}) == 3


def test_the_token_and_the_secret_are_in_no_session_and_no_page() -> None:
    """Only digests leave the guard."""
    console = Console()
    answer = console.sign_in()
    secret = cookie_of(answer)[SESSION_COOKIE].value
    page = console.client.get(HOME_URL).text
    assert len(console.operator.sessions) == 1
    for text in (page, str(console.operator.sessions)):
        assert TOKEN not in text
        assert secret not in text


def test_an_unreachable_coordinator_is_reported() -> None:
    """No one can sign in or out then, and nothing else breaks."""
    console = signed_in()
    console.operator.refusal = StoreError("the crawler does not answer")
    assert console.post("/console/signout").status_code == 503
    answer = console.sign_in(console.another())
    assert answer.status_code == 503
    assert "the crawler does not answer" in answer.text


@pytest.mark.parametrize(
    "place",
    [
        "https://evil.example/",
        "//evil.example/console/",
        "/\\evil.example",
        "/console/../../etc/passwd",
        "/console/%2e%2e/signin",
        "/console/\r\nset-cookie: a=b",
        "/console/\n",
        "/signin",
        "javascript:alert(1)",
        "/console/" + "a" * 3000,
    ],
)
def test_signing_in_leads_nowhere_else(place: str) -> None:
    """Whatever ``next`` contains, it redirects to the console's first page, without injected headers."""
    console = Console()
    assert f'name="next" value="{HOME_URL}"' in console.client.get("/console/signin", params={"next": place}).text
    answer = console.sign_in(place=place)
    assert answer.headers["location"] == HOME_URL
    assert answer.headers.get_list("set-cookie") == [answer.headers["set-cookie"]]
    assert safe_redirect(place) == HOME_URL


@given(st.text(max_size=60))
def test_any_place_is_one_of_the_console(place: str) -> None:
    """The accepted value is a path under the console that no browser interprets differently."""
    kept = safe_redirect(place)
    assert kept.startswith("/console/")
    assert kept.isprintable()
    assert kept.isascii()


@pytest.mark.parametrize(
    "path", ["/console//", "/console/%2F..%2Fsearch", "/console/%5C..", "/console/%00", "/console/sites/"]
)
def test_odd_paths_are_no_pages(path: str) -> None:
    """They lead to the sign-in page like all others, and to nothing after it."""
    console = Console()
    assert console.client.get(path).status_code == 303
    console.sign_in()
    assert console.client.get(path).status_code == 404


def test_fields_with_breaks_make_no_headers() -> None:
    """The redirect target is quoted, whatever a field contains."""
    console = signed_in()
    console.operator.lines.append(PAUSED)
    answer = console.post("/console/undo", action="1", back="/console/sites\r\nx-evil: 1")
    assert "x-evil" not in answer.headers
    assert answer.headers["location"] == f"{HOME_URL}?done=2"


def test_the_next_page_shows_the_last_action_with_undo() -> None:
    """It is looked up by number, so that URLs contain no text."""
    console = signed_in()
    console.operator.lines.append(PAUSED)
    page = console.client.get("/console/storage?done=1").text
    assert "The site &lt;b&gt; was paused" in page
    assert 'name="action" value="1"' in page
    answer = console.post("/console/undo", action="1", back="/console/storage")
    assert answer.headers["location"] == "/console/storage?done=2"
    assert console.operator.orders == [Undo(1)]
    assert "It was undone" in console.client.get("/console/storage?done=1").text
    again = console.post("/console/undo", action="1", back="/console/storage")
    assert again.status_code == 422
    for typed in ("0", "-1", "9" * 40, "x", "1.5", "²"):
        assert 'class="done"' not in console.client.get("/console/storage", params={"done": typed}).text


@pytest.mark.parametrize("access", ["open", "token", "proxy"])
def test_the_console_asks_for_its_own_token_in_every_mode(access: str) -> None:
    """A user's key is neither needed nor sufficient; behind a proxy, only requests through it are accepted."""
    console = Console(replace(UNLIMITED, access=access))  # type: ignore[arg-type]  # one of three
    answer = console.client.get(HOME_URL)
    if access == "proxy":
        assert answer.status_code == 403
        assert console.sign_in().status_code == 403
    else:
        assert answer.headers["location"].startswith("/console/signin")
        assert console.sign_in().status_code == 303
        assert console.client.get(HOME_URL).status_code == 200


def test_without_a_console_there_is_nothing_there() -> None:
    """A server without a console has none of these pages."""
    client = TestClient(create_app(SmallSearch(), UNLIMITED, Branding()), follow_redirects=False)
    for path in ("/console", HOME_URL, "/console/signin"):
        assert client.get(path).status_code == 404
