"""Access control: who gets in, how, and that users only see what they may."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.web.small_search import FOR_ALL_NAMED, PRIVATE, SITES, Ask, Heard, bearer, made_key, served

from vedette.config import Rate, Serve
from vedette.model import Site
from vedette.web.auth.access import Identity, allowed_sites
from vedette.web.auth.keys import Key

UNLIMITED = Serve(rate=Rate(0, 1.0))
ANN, ANN_KEY = made_key("ann", "search", "private")
BOB, BOB_KEY = made_key("bob", "search", "private")
PLAIN, PLAIN_KEY = made_key("ann", "search")  # the right name without the scope
DOCS, DOCS_KEY = made_key("docs", "search", sites=["docs.example.org"])
MANY, MANY_KEY = made_key("many", "search", sites=["docs.example.org/a/", "hr.example.org"])
LIMITED, LIMITED_KEY = made_key("limited", "search", "private", sites=["docs.example.org"])
NOTHING, NOTHING_KEY = made_key("nothing", "admin")
GONE, GONE_KEY = made_key("gone", "search", "private")
PLAIN_KEY = replace(PLAIN_KEY, hash=made_key("plain")[1].hash)
PLAIN = made_key("plain")[0]
KEYS = (ANN_KEY, BOB_KEY, PLAIN_KEY, DOCS_KEY, MANY_KEY, LIMITED_KEY, NOTHING_KEY, replace(GONE_KEY, revoked_s=1.0))


def keys() -> Sequence[Key]:
    """All keys."""
    return KEYS


@pytest.fixture(scope="module")
def open_server() -> Iterator[Ask]:
    """Everyone may search."""
    with served(UNLIMITED, keys) as (ask, _):
        yield ask


@pytest.fixture(scope="module")
def token_server() -> Iterator[Ask]:
    """Only users with a key may search."""
    with served(replace(UNLIMITED, access="token"), keys) as (ask, _):
        yield ask


@pytest.fixture(scope="module")
def proxy_server() -> Iterator[Ask]:
    """Only users named by a proxy at 127.0.0.1 may search."""
    with served(replace(UNLIMITED, access="proxy"), keys) as (ask, _):
        yield ask


def ids(answer: Heard) -> list[int]:
    """Return the page ids in a response."""
    return [each["id"] for each in answer.json["results"]]


LAG = "/api/v1/search?q=lag"


def test_anonymous_users_see_public_pages_only(open_server: Ask) -> None:
    """No result, suggestion or count reveals a private page, whatever the headers."""
    for headers in ({}, {"X-Forwarded-User": "ann"}, {"Cookie": "vedette_key=ann"}, {"Authorization": "Basic YTpi"}):
        assert ids(open_server(LAG, headers)) == [1]
        assert ids(open_server("/api/v1/instant?q=la", headers)) == [1]
        assert b"ecret" not in open_server("/api/v1/passages?q=lag", headers).body
        assert open_server("/api/v1/suggest?q=lag", headers).json["suggestions"] == ["Consumer lag"]
        assert open_server("/api/v1/sites", headers).json["sites"] == [{"site": "docs.example.org", "pages": 2}]
        assert [open_server(f"/cached/{id_}", headers).status for id_ in (1, 3, 4)] == [200, 404, 404]
        assert [open_server(f"/cached/{id_}/body", headers).status for id_ in (1, 3, 4)] == [200, 404, 404]
        assert b"Salaries" not in open_server("/similar/1", headers).body
    page = open_server("/search?q=lag", {"X-Forwarded-User": "ann"}).body
    assert b"Consumer" in page
    assert b"Salaries" not in page
    assert b"Holidays" not in page


def test_a_key_shows_the_private_sites_that_name_it(open_server: Ask) -> None:
    """Sites name it, or ``*`` for every key; it needs the scope, and responses are never cached."""
    assert ids(open_server(LAG, bearer(ANN))) == [1, 3, 4]
    assert ids(open_server("/api/v1/instant?q=la", bearer(ANN))) == [1, 3, 4]
    assert ids(open_server(LAG, bearer(BOB))) == [1, 4]
    assert ids(open_server(LAG, bearer(PLAIN))) == [1]
    assert ids(open_server(f"{LAG}&key={ANN}")) == [1, 3, 4]
    assert open_server(LAG, bearer(ANN)).headers["cache-control"] == "private, no-store"
    assert "Authorization" in open_server(LAG).headers["vary"]


def test_a_wrong_key_is_an_error(open_server: Ask) -> None:
    """Otherwise a user with a mistyped or revoked key would wonder where the pages are."""
    for wrong in ("vk_guessed", "", GONE, ANN[:-1], ANN + "x"):
        assert open_server(LAG, bearer(wrong)).complaint == (401, "wrong_key", None)
    assert open_server(f"{LAG}&key=vk_guessed").complaint == (401, "wrong_key", None)


def test_a_key_in_an_address_is_for_programs_only(token_server: Ask) -> None:
    """Page URLs are copied, logged and shared, so a key in them is ignored."""
    assert token_server(f"{LAG}&key={ANN}").status == 200
    assert token_server(f"/search?q=lag&key={ANN}").status == 303
    assert token_server(f"/?key={ANN}").status == 303


def test_nothing_is_readable_without_a_key(token_server: Ask) -> None:
    """Programs get 401 and people the sign-in page; only health, styles and the crawler's page are public."""
    for path in (
        "/api/v1/search?q=lag",
        "/api/v1/passages?q=lag",
        "/api/v1/instant?q=la",
        "/api/v1/suggest?q=l",
        "/api/v1/sites",
        "/api/openapi.json",
        "/metrics",
        "/api/x",
    ):
        refused = token_server(path)
        assert refused.complaint == (401, "no_key", None)
        assert refused.headers["www-authenticate"] == "Bearer"
    for path in ("/", "/search?q=lag", "/cached/1", "/cached/1/body", "/similar/1", "/nowhere"):
        assert token_server(path).status == 303
    assert token_server("/search?q=a&n=1").headers["location"] == "/signin?next=%2Fsearch%3Fq%3Da%26n%3D1"
    assert [token_server(path).status for path in ("/healthz", "/signin", "/bot", "/embed.js")] == [200] * 4
    assert token_server("/metrics", bearer(ANN)).status == 200


@pytest.mark.parametrize("host", ["x/static/", "x/signin?", "x/healthz#", "x/api/", "", "x:y", "[", "x\\static"])
def test_the_host_header_grants_no_access(token_server: Ask, host: str) -> None:
    """The path is that of the request, whatever the Host header contains."""
    assert token_server(f"/search?q=lag&key={ANN}", {"Host": host}).status in {303, 400}
    assert token_server(LAG, {"Host": host}).status in {401, 400}


def test_a_key_without_the_scope_may_not_search(token_server: Ask) -> None:
    """The error differs from that for an unknown key."""
    assert token_server(LAG, bearer(NOTHING)).complaint == (403, "not_for_search", None)


def test_a_key_for_some_sites_searches_only_these(open_server: Ask) -> None:
    """The default is the key's own site; others are refused; with several, one must be named; pages are closed."""
    assert ids(open_server(LAG, bearer(DOCS))) == [1]
    assert ids(open_server(f"{LAG}&site=docs.example.org/x", bearer(DOCS))) == [1]
    for other in ("hr.example.org", "example.org", "docs.example.org.evil.example", "evil-docs.example.org", "org"):
        assert open_server(f"{LAG}&site={other}", bearer(DOCS)).complaint == (400, "wrong_parameter", "site")
        assert open_server(f"/api/v1/suggest?q=l&site={other}", bearer(DOCS)).complaint[0] == 400
    assert ids(open_server("/api/v1/search?q=", bearer(BOB))) == [1, 2, 4]
    assert ids(open_server("/api/v1/search?q=", bearer(LIMITED))) == [1, 2]
    assert open_server(LAG, bearer(MANY)).complaint == (400, "wrong_parameter", "site")
    assert open_server(f"{LAG}&site=docs.example.org/b/", bearer(MANY)).complaint[0] == 400
    assert open_server(f"{LAG}&site=docs.example.org/a/b", bearer(MANY)).status == 200
    assert [each["site"] for each in open_server("/api/v1/sites", bearer(DOCS)).json["sites"]] == ["docs.example.org"]
    assert open_server("/", bearer(DOCS)).status == 403


def test_a_proxy_names_the_reader(proxy_server: Ask) -> None:
    """The name decides what is visible; without a name, or with two, nothing is."""
    assert ids(proxy_server(LAG, {"X-Forwarded-User": "ann"})) == [1, 3, 4]
    assert ids(proxy_server(LAG, {"X-Forwarded-User": "eve"})) == [1, 4]
    assert proxy_server(LAG, {"X-Forwarded-User": "ann"}).headers["cache-control"] == "private, no-store"
    assert proxy_server("/search?q=lag", {"X-Forwarded-User": "ann"}).headers["cache-control"] == "private, no-store"
    for headers in ({}, {"X-Forwarded-User": ""}, {"X-Forwarded-User": " "}):
        assert proxy_server(LAG, headers).complaint == (401, "no_user", None)
    assert proxy_server(LAG, {"X-Forwarded-User": "ann", "x-forwarded-user": "bob"}).complaint == (401, "no_user", None)
    assert proxy_server("/").status == 401
    assert proxy_server(LAG, {"Authorization": "Bearer the.proxys.own", "X-Forwarded-User": "ann"}).status == 200


def test_only_trusted_proxies_are_believed() -> None:
    """Other addresses only get the health check."""
    elsewhere = replace(UNLIMITED, access="proxy", trusted_proxies=("203.0.113.0/24",))
    with served(elsewhere, keys) as (ask, _):
        for headers in ({"X-Forwarded-User": "ann"}, {"X-Forwarded-For": "203.0.113.5"}, bearer(ANN), {}):
            assert ask(LAG, headers).complaint == (403, "not_through_proxy", None)
            assert ask("/", headers).status == 403
        assert ask("/healthz").status == 200


FORM = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}


def posted(ask: Ask, headers: dict[str, str] | None = None, **fields: str) -> Heard:
    """Submit the sign-in form."""
    return ask("/signin", FORM if headers is None else headers, "POST", urlencode(fields).encode())


def test_signing_in_sets_a_cookie_that_opens_the_pages(token_server: Ask) -> None:
    """Scripts can't read the cookie and other sites can't send it; the user gets to the requested page."""
    answer = posted(token_server, key=ANN, next="/search?q=lag")
    assert (answer.status, answer.headers["location"]) == (303, "/search?q=lag")
    cookie = answer.headers["set-cookie"].lower()
    assert all(part in cookie for part in ("httponly", "samesite=lax", "path=/"))
    assert "secure" not in cookie
    held = {"Cookie": answer.headers["set-cookie"].partition(";")[0]}
    page = token_server("/search?q=lag", held)
    assert page.status == 200
    assert b"Salaries" in page.body
    assert page.headers["cache-control"] == "private, no-store"
    assert ids(token_server(LAG, held)) == [1, 3, 4]
    assert b"Sign out" in token_server("/signin", held).body
    out = posted(token_server, {**FORM, **held})
    assert 'vedette_key=""' in out.headers["set-cookie"]


@pytest.mark.parametrize(("key", "status"), [("vk_wrong", 401), (GONE, 401), (DOCS, 403), (NOTHING, 403)])
def test_a_key_that_is_not_for_pages_does_not_sign_in(token_server: Ask, key: str, status: int) -> None:
    """The page says why, sets nothing, and remembers the requested page."""
    answer = posted(token_server, key=key, next="/search?q=lag")
    assert answer.status == status
    assert b'value="/search?q=lag"' in answer.body
    assert b'role="alert"' in answer.body
    assert "set-cookie" not in answer.headers


def test_behind_https_the_cookie_is_for_https() -> None:
    """Either the proxy or the configured address says so."""
    with served(replace(UNLIMITED, access="token"), keys) as (ask, _):
        report = posted(ask, {**FORM, "X-Forwarded-Proto": "https"}, key=ANN)
        assert "secure" in report.headers["set-cookie"].lower()
    with served(replace(UNLIMITED, access="token", address="https://search.example.org"), keys) as (ask, _):
        assert "secure" in posted(ask, key=ANN).headers["set-cookie"].lower()


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Origin": "http://127.0.0.1"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {},
    ],
)
def test_a_form_of_another_page_does_not_sign_in(token_server: Ask, headers: dict[str, str]) -> None:
    """No one can be signed in with someone else's key in order to be tracked."""
    answer = posted(token_server, {"Content-Type": FORM["Content-Type"], **headers}, key=ANN)
    assert (answer.status, "set-cookie" in answer.headers) == (403, False)


def test_an_origin_header_is_enough_to_sign_in(token_server: Ask) -> None:
    """It must be the origin of the requested host."""
    headers = {"Content-Type": FORM["Content-Type"], "Origin": "http://search.test:1", "Host": "search.test:1"}
    assert posted(token_server, headers, key=ANN).status == 303


@pytest.mark.parametrize(
    "place", ["//evil.example", "/\\evil.example", "https://evil.example", "", "/a\r\nSet-Cookie: x", "x"]
)
def test_signing_in_leads_nowhere_else(token_server: Ask, place: str) -> None:
    """It only redirects to pages of this server."""
    assert posted(token_server, key=ANN, next=place).headers["location"] == "/"


def test_other_bodies_than_forms_are_refused(token_server: Ask) -> None:
    """This includes other types and long bodies."""
    assert token_server("/signin", {**FORM, "Content-Type": "text/plain"}, "POST", b"key=x").status == 400
    assert posted(token_server, key="x" * 5000).status == 400
    assert token_server("/signin", FORM, "POST", b"%ff&&&&&&&&=" * 300).status in {303, 401}


NAMES = st.sampled_from(["", "ann", "bob", "*"])


@given(
    st.builds(
        Identity,
        NAMES,
        st.sampled_from([("search",), ("search", "private"), ("admin",)]),
        auth_method=st.sampled_from(["", "key", "proxy"]),
    ),
    st.lists(st.builds(Site, st.just("https://x/"), secrets=st.sampled_from(["", "env:X"]), readers=st.tuples(NAMES))),
)
def test_private_is_shown_only_to_the_known_and_named(reader: Identity, sites: list[Site]) -> None:
    """For any sites and users; a public site never needs permission."""
    allowed = allowed_sites(reader, sites)
    named = [site for site in sites if site.secrets and (reader.name in site.readers or "*" in site.readers)]
    may = bool(reader.auth_method) and "private" in reader.scopes
    assert allowed == (tuple(site.start for site in named) if may else ())


def test_a_private_site_without_readers_is_hidden() -> None:
    """This is the default for a private site."""
    ann = Identity("ann", ("search", "private"), auth_method="key")
    assert allowed_sites(ann, SITES) == (PRIVATE.start, FOR_ALL_NAMED.start)
    assert allowed_sites(ann, [replace(PRIVATE, readers=())]) == ()
