"""Access control: who is let in, by what, and above all that no one sees what is not theirs."""

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
    """All keys that there are."""
    return KEYS


@pytest.fixture(scope="module")
def open_server() -> Iterator[Ask]:
    """Everyone may search."""
    with served(UNLIMITED, keys) as (ask, _):
        yield ask


@pytest.fixture(scope="module")
def token_server() -> Iterator[Ask]:
    """Holders of a key may."""
    with served(replace(UNLIMITED, access="token"), keys) as (ask, _):
        yield ask


@pytest.fixture(scope="module")
def proxy_server() -> Iterator[Ask]:
    """Those may whom a proxy at 127.0.0.1 names."""
    with served(replace(UNLIMITED, access="proxy"), keys) as (ask, _):
        yield ask


def ids(answer: Heard) -> list[int]:
    """Which pages an answer shows."""
    return [each["id"] for each in answer.json["results"]]


LAG = "/api/v1/search?q=lag"


def test_anybody_sees_what_is_public_and_nothing_else(open_server: Ask) -> None:
    """No result, suggestion or count tells of a private page, whatever headers say."""
    for headers in ({}, {"X-Forwarded-User": "ann"}, {"Cookie": "vedette_key=ann"}, {"Authorization": "Basic YTpi"}):
        assert ids(open_server(LAG, headers)) == [1]
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
    """By name, or by ``*`` for all who have one; only with the scope, and never to be kept by anyone else."""
    assert ids(open_server(LAG, bearer(ANN))) == [1, 3, 4]
    assert ids(open_server(LAG, bearer(BOB))) == [1, 4]
    assert ids(open_server(LAG, bearer(PLAIN))) == [1]
    assert ids(open_server(f"{LAG}&key={ANN}")) == [1, 3, 4]
    assert open_server(LAG, bearer(ANN)).headers["cache-control"] == "private, no-store"
    assert "Authorization" in open_server(LAG).headers["vary"]


def test_a_wrong_key_is_told_and_not_passed_over(open_server: Ask) -> None:
    """A reader with a mistyped or revoked key would else wonder where the pages are."""
    for wrong in ("vk_guessed", "", GONE, ANN[:-1], ANN + "x"):
        assert open_server(LAG, bearer(wrong)).complaint == (401, "wrong_key", None)
    assert open_server(f"{LAG}&key=vk_guessed").complaint == (401, "wrong_key", None)


def test_a_key_in_an_address_is_for_programs_only(token_server: Ask) -> None:
    """Addresses of pages are copied, logged and sent on, so a key there counts for nothing."""
    assert token_server(f"{LAG}&key={ANN}").status == 200
    assert token_server(f"/search?q=lag&key={ANN}").status == 303
    assert token_server(f"/?key={ANN}").status == 303


def test_without_a_key_nothing_is_told(token_server: Ask) -> None:
    """Programs get 401, people the sign-in page; only health, style and the crawler's page are for all."""
    for path in (
        "/api/v1/search?q=lag",
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
def test_what_the_host_header_says_opens_nothing(token_server: Ask, host: str) -> None:
    """A path is what the request names, whatever is written where the name of the server belongs."""
    assert token_server(f"/search?q=lag&key={ANN}", {"Host": host}).status in {303, 400}
    assert token_server(LAG, {"Host": host}).status in {401, 400}


def test_a_key_without_the_scope_may_not_search(token_server: Ask) -> None:
    """It is reported, differently from an unknown key."""
    assert token_server(LAG, bearer(NOTHING)).complaint == (403, "not_for_search", None)


def test_a_key_for_some_sites_searches_only_these(open_server: Ask) -> None:
    """Without a site it is the key's own; another is refused; several want one to be named; pages are not for it."""
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
    """The name decides what is visible; without one, or with two, nothing is."""
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
    """From any other address nothing is answered but health."""
    elsewhere = replace(UNLIMITED, access="proxy", trusted_proxies=("203.0.113.0/24",))
    with served(elsewhere, keys) as (ask, _):
        for headers in ({"X-Forwarded-User": "ann"}, {"X-Forwarded-For": "203.0.113.5"}, bearer(ANN), {}):
            assert ask(LAG, headers).complaint == (403, "not_through_proxy", None)
            assert ask("/", headers).status == 403
        assert ask("/healthz").status == 200


FORM = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}


def posted(ask: Ask, headers: dict[str, str] | None = None, **fields: str) -> Heard:
    """What comes of the sign-in form."""
    return ask("/signin", FORM if headers is None else headers, "POST", urlencode(fields).encode())


def test_signing_in_sets_a_cookie_that_opens_the_pages(token_server: Ask) -> None:
    """The cookie cannot be read by scripts or sent by other sites; the reader lands where they wanted to go."""
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
    """The page says why, sets nothing, and remembers where the reader wanted to go."""
    answer = posted(token_server, key=key, next="/search?q=lag")
    assert answer.status == status
    assert b'value="/search?q=lag"' in answer.body
    assert b'role="alert"' in answer.body
    assert "set-cookie" not in answer.headers


def test_behind_https_the_cookie_is_for_https() -> None:
    """Whether the proxy says so or the configured address does."""
    with served(replace(UNLIMITED, access="token"), keys) as (ask, _):
        told = posted(ask, {**FORM, "X-Forwarded-Proto": "https"}, key=ANN)
        assert "secure" in told.headers["set-cookie"].lower()
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
    """No one is signed in with someone else's key to be watched."""
    answer = posted(token_server, {"Content-Type": FORM["Content-Type"], **headers}, key=ANN)
    assert (answer.status, "set-cookie" in answer.headers) == (403, False)


def test_a_browser_that_only_tells_the_origin_may_sign_in(token_server: Ask) -> None:
    """If it is that of the host it asks."""
    headers = {"Content-Type": FORM["Content-Type"], "Origin": "http://search.test:1", "Host": "search.test:1"}
    assert posted(token_server, headers, key=ANN).status == 303


@pytest.mark.parametrize(
    "place", ["//evil.example", "/\\evil.example", "https://evil.example", "", "/a\r\nSet-Cookie: x", "x"]
)
def test_signing_in_leads_nowhere_else(token_server: Ask, place: str) -> None:
    """Only to pages of this server."""
    assert posted(token_server, key=ANN, next=place).headers["location"] == "/"


def test_what_is_no_form_is_refused(token_server: Ask) -> None:
    """Other types and long bodies."""
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
    """Whatever the sites and the reader; a public site is never in need of leave."""
    allowed = allowed_sites(reader, sites)
    named = [site for site in sites if site.secrets and (reader.name in site.readers or "*" in site.readers)]
    may = bool(reader.auth_method) and "private" in reader.scopes
    assert allowed == (tuple(site.start for site in named) if may else ())


def test_a_site_without_readers_is_shown_to_nobody() -> None:
    """That is what a site starts with."""
    ann = Identity("ann", ("search", "private"), auth_method="key")
    assert allowed_sites(ann, SITES) == (PRIVATE.start, FOR_ALL_NAMED.start)
    assert allowed_sites(ann, [replace(PRIVATE, readers=())]) == ()
