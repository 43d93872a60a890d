"""The public pages as a browser gets them from a real server: their texts, links and policies."""

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send
from tests.tree_runs import PATIENCE_S
from tests.web.public.sample_pages import NOW_S, SENTENCE, HeldPages, application, copy, first, result, serving

from vedette.serve.slate import PageVersion, SearchResult, Snippet
from vedette.web.ports import FacetCount, IndexOverview
from vedette.web.rendering import Branding, error_page


class Got(NamedTuple):
    """A response: status, headers in lower case, and text."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def tree(self) -> LexborHTMLParser:
        """Return the page as a browser parses it."""
        return LexborHTMLParser(self.text)

    @property
    def words(self) -> str:
        """Return the visible text in one line."""
        return " ".join(first(self.tree, "main").text().split())


class Server(NamedTuple):
    """A server with real connections."""

    address: str

    def get(self, path: str, method: str = "GET", **headers: str) -> Got:
        """Return the response to one request; redirects are not followed."""
        connection = http.client.HTTPConnection(urlsplit(self.address).netloc, timeout=PATIENCE_S)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            named = {name.lower(): value for name, value in answer.getheaders()}
            return Got(answer.status, named, answer.read().decode())
        finally:
            connection.close()


@contextmanager
def served(search: HeldPages, look: Branding | None = None) -> Iterator[Server]:
    """Serve the pages over a search during the block."""
    with serving(application(search, look or Branding())) as address:
        yield Server(address)


MANY = tuple(result(n, f"Lag number {n}", similar=3 if n == 1 else 0) for n in range(1, 36))
KNOWN = IndexOverview(
    35,
    (FacetCount("kafka.example.org", 30), FacetCount("docs.example.org", 5)),
    (FacetCount("html", 34), FacetCount("pdf", 1)),
    (FacetCount("en", 35),),
    NOW_S - 240,
    7_200.0,
    waiting=2,
    newest_pages=(result(9, "A new & good page"),),
)


@pytest.fixture(scope="module")
def much() -> Iterator[tuple[Server, HeldPages]]:
    """A server with a lot to show."""
    search = HeldPages(
        MANY,
        {1: copy("<h1>Hi</h1><script>hurt()</script>"), 2: copy("%PDF", "application/pdf", "a <b> line\nanother")},
        {1: MANY[1:4]},
        KNOWN,
    )
    with served(
        search, Branding(name="Finder", contact=lambda: "ops@example.org", address="https://find.example.org")
    ) as server:
        yield server, search


# --- first page ---


def test_the_home_page_shows_the_size_of_the_index(much: tuple[Server, HeldPages]) -> None:
    """One field, and one sentence on the number of pages, the sites, and freshness."""
    got = much[0].get("/")
    assert got.status == 200
    assert [field.attributes["name"] for field in got.tree.css("main input")] == ["q"]
    assert "35 pages from kafka.example.org and docs.example.org." in got.words
    assert "within the last 2\N{NARROW NO-BREAK SPACE}h" in first(got.tree, ".state").text()
    assert not got.tree.css(".born")


def test_the_demo_lists_new_pages() -> None:
    """Each new page is linked to a search for its title."""
    with served(HeldPages(known=KNOWN), Branding(demo=True)) as server:
        link = first(server.get("/").tree, ".born a")
    assert parse_qs(urlsplit(link.attributes["href"] or "").query) == {"q": ["A new & good page"]}


def test_results_of_made_up_sites_open_their_copy_in_the_demo_only() -> None:
    """The hosts of a synthetic web don't exist, but those of a real site are linked directly."""
    made = result(1, "Lag made", has_copy=True)._replace(url="http://a.test/x")
    real = result(2, "Lag real", has_copy=True)._replace(url="http://docs.localhost:8000/x")
    for demo, links in ((True, ["/cached/1", real.url]), (False, [made.url, real.url])):
        with served(HeldPages((made, real)), Branding(demo=demo)) as server:
            found = server.get("/search?q=lag").tree.css("a.title")
        assert [link.attributes["href"] for link in found] == links


@pytest.mark.parametrize(
    ("waiting", "message"),
    [(3, "3 sites are waiting for their"), (1, "1 site is waiting for its"), (0, "vedette sites add")],
)
def test_an_empty_index_explains_what_it_waits_for(waiting: int, message: str) -> None:
    """Before the first page, both pages say what they are waiting for."""
    with served(HeldPages(known=IndexOverview(waiting=waiting))) as server:
        for path in ("/", "/search?q=lag"):
            assert "Nothing is indexed yet" in server.get(path).words
            assert message in server.get(path).words


def test_many_sites_are_not_counted_wrongly() -> None:
    """An overview lists at most a hundred sites, so with that many, no total is shown."""
    sites = tuple(FacetCount(f"s{n}.example.org", 1) for n in range(100))
    with served(HeldPages(known=IndexOverview(9, sites))) as server:
        assert "s2.example.org and many more sites" in server.get("/").words


def test_an_empty_query_is_the_first_page(much: tuple[Server, HeldPages]) -> None:
    """An empty query leads back to the field; a filter alone is a query."""
    assert much[0].get("/search?q=++").headers["location"] == "/"
    assert much[0].get("/search").status == 302
    assert much[0].get("/search?q=&site=kafka.example.org").status == 200


# --- results ---


def test_a_result_has_all_parts(much: tuple[Server, HeldPages]) -> None:
    """Title, place, age, date, snippet with marks, copy, similar pages and reasons."""
    shown = first(much[0].get("/search?q=lag").tree, ".result")
    assert first(shown, "a.title").attributes["href"] == "https://kafka.example.org/documentation/ops/1"
    assert [crumb.text() for crumb in shown.css(".crumbs bdi")] == ["kafka.example.org", "documentation", "ops", "1"]
    assert [time.attributes["datetime"] for time in shown.css("time")] == [
        "2026-09-21T14:09:20Z",
        "2026-08-12T14:13:20Z",
    ]
    assert [mark.text() for mark in shown.css("mark")] == ["lag"]
    assert [link.attributes["href"] for link in shown.css(".more > a")] == ["/cached/1", "/similar/1?q=lag"]
    assert first(shown, ".reasons p").text() == SENTENCE
    assert [row.text() for row in shown.css("tbody th")] == [
        "words in the title",
        "words in linking pages",
        "likely spam",
    ]


def test_bars_are_proportional_to_contributions(much: tuple[Server, HeldPages]) -> None:
    """Contributions of 3, 2 and -0.4 get bars in that proportion, the last to the left of the others."""
    bars = first(much[0].get("/search?q=lag").tree, ".result").css("rect")
    up, less, down = ((float(b.attributes["x"] or ""), float(b.attributes["width"] or "")) for b in bars)
    assert up[1] / less[1] == pytest.approx(3 / 2, rel=0.01)
    assert up[1] / down[1] == pytest.approx(3 / 0.4, rel=0.01)
    assert down[0] + down[1] == pytest.approx(up[0], abs=0.02)


def test_filters_are_handed_to_the_search(much: tuple[Server, HeldPages]) -> None:
    """Each filter in the URL reaches the search, and stays selected on the page."""
    server, search = much
    got = server.get("/search?q=lag&page=2&site=Kafka.example.org&time=week&type=pdf&lang=en&similar=0")
    wish = search.wishes[-1]
    assert (wish.query, wish.page, wish.site, wish.kind, wish.language) == ("lag", 2, "kafka.example.org", "pdf", "en")
    assert (wish.after_s, wish.folded, wish.allowed) == (NOW_S - 7 * 86_400, False, ())
    chosen = {select.attributes["name"]: first(select, "option[selected]") for select in got.tree.css("select")}
    assert {name: option.attributes["value"] for name, option in chosen.items()} == {
        "time": "week",
        "site": "kafka.example.org",
        "type": "pdf",
        "lang": "en",
    }


@pytest.mark.parametrize("path", ["page=0", "page=-1", "page=x", "page=" + "9" * 5000, "page=%00", "time=ever"])
def test_invalid_parameters_of_pages_are_ignored(much: tuple[Server, HeldPages], path: str) -> None:
    """No value of a parameter is an error."""
    assert much[0].get(f"/search?q=lag&{path}").status == 200
    assert much[1].wishes[-1].after_s is None


def test_paging_leads_through_all_results(much: tuple[Server, HeldPages]) -> None:
    """Following "next" shows every result once, and ends; filters are kept."""
    seen, path = [], "/search?q=lag&lang=en"
    while path:
        tree = much[0].get(path).tree
        seen += [title.text() for title in tree.css("a.title")]
        path = next((link.attributes["href"] or "" for link in tree.css("nav a[rel=next]")), "")
        assert not path or "lang=en" in path
    assert seen == [one.title for one in MANY]


def test_beyond_the_last_page_there_is_a_way_back(much: tuple[Server, HeldPages]) -> None:
    """A page that does not exist says so and links to the first."""
    got = much[0].get("/search?q=lag&page=90")
    assert "No more results" in got.words
    assert first(got.tree, ".empty a").attributes["href"] == "/search?q=lag"


def test_no_results_come_with_advice(much: tuple[Server, HeldPages]) -> None:
    """The query is repeated, filters can be dropped, and sites that are still being crawled are counted."""
    got = much[0].get("/search?q=streams&type=pdf")
    assert "No page matches streams" in got.words
    assert "2 sites are still being crawled" in got.words
    assert first(got.tree, ".empty a").attributes["href"] == "/search?q=streams"


def test_notes_of_the_search_are_shown() -> None:
    """Notes, another spelling, dropped words, and an incomplete index are shown above the results."""
    says = {"notes": ("One note.",), "suggestion": "kafka streams", "relaxed": ("strems", "<b>")}
    with served(HeldPages(MANY, says=says, behind="the index is being built")) as server:
        got = server.get("/search?q=lag+strems&time=day")
    notes = [" ".join(note.text().split()) for note in got.tree.css(".note")]
    assert notes == [
        "One note.",
        "Not all results contain: strems, <b>.",
        "These results may be incomplete: the index is being built.",
    ]
    assert first(got.tree, ".meant a").attributes["href"] == "/search?q=kafka+streams&time=day"


def test_a_corrected_query_can_be_searched_as_typed() -> None:
    """The page says what it searched for, and links to the query with the unknown word in quotes."""
    with served(HeldPages(MANY, says={"corrected": "lag <b>", "verbatim": '"leg" <b>'})) as server:
        got = server.get("/search?q=leg&type=html")
    assert first(got.tree, ".corrected b").text() == "lag <b>"
    assert first(got.tree, ".corrected a").attributes["href"] == "/search?q=%22leg%22+%3Cb%3E&type=html"


def test_other_versions_are_offered_without_script() -> None:
    """A result lists the same page of other releases, by their labels; a URL that is no link is not linked."""
    others = (PageVersion("2.8", "https://a.example/2.8/lag"), PageVersion("", "javascript:alert(1)"))
    newest = result(1, "lag", version="3.0", versions=3, other_versions=others)
    with served(HeldPages((newest,))) as server:
        got = server.get("/search?q=lag")
    shown = first(got.tree, "details.versions")
    assert first(shown, "summary").text().split() == ["Version", "3.0", "·", "3", "other", "versions"]
    assert [link.attributes["href"] for link in shown.css("a")] == [others[0].url, "/search?q=lag&similar=0"]
    assert [item.text(strip=True) for item in shown.css("li")] == ["2.8", "current", "Show all as results"]


def test_similar_pages_are_listed(much: tuple[Server, HeldPages]) -> None:
    """What was folded under a result can be seen, and there is a way back; nothing similar is no page."""
    got = much[0].get("/similar/1?q=lag")
    assert [title.text() for title in got.tree.css("a.title")] == [one.title for one in MANY[1:4]]
    assert first(got.tree, ".lead a").attributes["href"] == "/search?q=lag"
    assert much[0].get("/similar/2").status == much[0].get("/similar/x").status == 404


# --- hostile pages ---

ODD = st.text() | st.sampled_from(
    ["<script>hurt()</script>", "\"'><img src=x onerror=hurt()>", "\ud800", "\u202e", "{{7*7}}"]
)
ODD_RESULTS = st.builds(
    SearchResult,
    id=st.integers(0, 2**60),
    url=ODD | st.sampled_from(["javascript:hurt()", "https://x/%ff%00/" + "y" * 999]),
    title=ODD,
    snippet=st.builds(
        Snippet, ODD, st.lists(st.tuples(st.integers(-9, 99), st.integers(-9, 99)), max_size=3).map(tuple)
    ),
    site=ODD,
    kind=ODD,
    language=ODD,
    fetched_s=st.floats(),
    born_s=st.floats(),
    date_s=st.none() | st.floats(),
    score=st.floats(),
    sentence=ODD,
    note=ODD,
    similar=st.integers(0, 2**70),
    has_copy=st.booleans(),
)


@pytest.fixture(scope="module")
def odd() -> Iterator[tuple[Server, HeldPages]]:
    """A server whose results change under it."""
    search = HeldPages()
    with served(search, Branding(demo=True)) as server:
        yield server, search


@settings(max_examples=60)
@given(ODD_RESULTS, ODD)
def test_no_page_can_break_ours(odd: tuple[Server, HeldPages], strange: SearchResult, message: str) -> None:
    """Whatever results and notes contain, the page is complete, has none of their markup, and only web links."""
    server, search = odd
    search.says = {"results": (strange,), "total": 1, "notes": (message,), "suggestion": message, "relaxed": (message,)}
    search.known = IndexOverview(
        1, (FacetCount(message, 1),), (FacetCount(message, 1),), (FacetCount(message, 1),), newest_pages=(strange,)
    )
    search.likes = {1: (strange,)}
    for path in ("/search?q=x", "/", "/similar/1"):
        got = server.get(path)
        assert got.status == 200
        assert len(got.tree.css("footer")) == len(got.tree.css("main")) == 1
        assert [(script.attributes["src"] or "")[:8] for script in got.tree.css("script")] == ["/static/"] * 2
        assert not got.tree.css("main img, main script, main iframe, [onerror]")
        links = [link.attributes["href"] or "" for link in got.tree.css("a")]
        assert all(link.lower().startswith(("/", "#", "http://", "https://")) for link in links)


@settings(max_examples=40)
@given(st.text(min_size=1))
def test_any_query_is_answered_and_repeated(odd: tuple[Server, HeldPages], query: str) -> None:
    """The query is in the field again, on one line, whatever it is."""
    server, search = odd
    search.says, search.known = {}, None
    got = server.get("/search?q=" + quote(query, errors="replace"))
    cleaned = " ".join(query.replace("\0", " ").split())
    assert got.status == (200 if cleaned else 302)
    if cleaned:
        assert first(got.tree, "#q").attributes["value"] == search.wishes[-1].query


# --- cached copies ---


def test_a_copy_is_shown_in_a_frame_without_rights(much: tuple[Server, HeldPages]) -> None:
    """The page around it says what it is, and gives the frame no permissions at all."""
    got = much[0].get("/cached/1")
    frame = first(got.tree, "iframe")
    assert (frame.attributes["src"], frame.attributes["sandbox"]) == ("/cached/1/body", None)
    assert "This copy was fetched" in got.words
    assert first(got.tree, ".lead a").attributes["href"] == "https://kafka.example.org/documentation/ops/1"


def test_the_copy_itself_is_clean_and_locked_up(much: tuple[Server, HeldPages]) -> None:
    """Its policy only allows our style and embedded images, even if it is opened directly."""
    got = much[0].get("/cached/1/body")
    assert "<h1>Hi</h1>" in got.text
    assert "hurt" not in got.text
    policy = [part.strip() for part in got.headers["content-security-policy"].split(";")]
    assert {"sandbox", "default-src 'none'", "style-src 'unsafe-inline'", "img-src data:"} <= set(policy)
    assert not [part for part in policy if part.startswith(("script-src", "connect-src", "frame-src"))]


def test_a_document_is_shown_as_its_text(much: tuple[Server, HeldPages]) -> None:
    """Content other than HTML is never sent as is: its text is shown, escaped."""
    got = much[0].get("/cached/2/body")
    assert got.headers["content-type"].startswith("text/html")
    assert first(got.tree, "pre").text() == "a <b> line\nanother"


@pytest.mark.parametrize("id_", ["3", "0", "-1", "x", "1" * 5000, "%F0%9D%9F%99"])
def test_a_missing_copy_has_a_page(much: tuple[Server, HeldPages], id_: str) -> None:
    """Absent, unwanted and private copies look the same from outside."""
    for path in (f"/cached/{id_}", f"/cached/{id_}/body"):
        got = much[0].get(path)
        assert got.status == 404
        assert "owner may not allow cached copies" in got.words


class Allowing:
    """A middleware that lets the user see one private site, as access control does."""

    def __init__(self, app: ASGIApp, start: str) -> None:
        self.app, self.start = app, start

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Set the state and continue."""
        scope.setdefault("state", {})["allowed"] = (self.start,)
        await self.app(scope, receive, send)


def test_private_copies_are_for_their_readers() -> None:
    """Only users with access see the copy, and search with that access."""
    start = "https://kafka.example.org/"
    search = HeldPages(MANY, {1: copy("<p>secret")}, private=start)
    with served(search) as server:
        assert server.get("/cached/1/body").status == 404
    app = application(search, Branding())
    app.user_middleware.append(Middleware(Allowing, start))
    with serving(app) as address:
        assert "secret" in Server(address).get("/cached/1/body").text
        Server(address).get("/search?q=lag")
    assert search.wishes[-1].allowed == (start,)


# --- everything ---

PATHS = ("/", "/search?q=lag", "/similar/1", "/cached/1", "/bot", "/nothing", "/cached/99")


@pytest.mark.parametrize("path", PATHS)
def test_every_page_has_a_strict_policy(much: tuple[Server, HeldPages], path: str) -> None:
    """It forbids sniffing and referrers, and each page has its own policy: nothing inline, nothing external."""
    got = much[0].get(path)
    policy = dict(part.strip().partition(" ")[::2] for part in got.headers["content-security-policy"].split(";"))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data:",
        "connect-src": "'self'",
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-src": "'self'",
        "frame-ancestors": "'none'",
    }
    assert got.headers["x-content-type-options"] == "nosniff"
    assert got.headers["referrer-policy"] == "no-referrer"
    assert not got.tree.css("style, [style], [onclick], script:not([src])")
    loaded = [node.attributes.get("src") or node.attributes.get("href") for node in got.tree.css("[src], link")]
    assert all((address or "").startswith("/") for address in loaded)


@pytest.mark.parametrize("path", PATHS)
def test_every_page_can_be_read_by_machines_that_read_aloud(much: tuple[Server, HeldPages], path: str) -> None:
    """For screen readers, it has a language, a title, one main heading, a skip link, and a label for every field."""
    tree = much[0].get(path).tree
    assert first(tree, "html").attributes["lang"] == "en"
    assert first(tree, "title").text().strip()
    assert len(tree.css("h1")) == 1
    assert first(tree, "a.skip").attributes["href"] == "#main"
    for field in tree.css("input:not([type=hidden])"):
        assert tree.css(f"label[for={field.attributes['id']}]")


def test_files_are_kept_for_ever_under_their_contents(much: tuple[Server, HeldPages]) -> None:
    """A file's URL has its digest; under another digest, it is sent but not cached; others do not exist."""
    server = much[0]
    for node in server.get("/").tree.css("link[rel=stylesheet], link[rel=icon], script"):
        address = node.attributes.get("href") or node.attributes.get("src") or ""
        got = server.get(address)
        assert got.status == 200
        assert "immutable" in got.headers["cache-control"]
        assert server.get(address, **{"If-None-Match": got.headers["etag"]}).status == 304
        name = address.rpartition("/")[2]
        assert server.get(f"/static/old/{name}").headers["cache-control"] == "no-cache"
    assert server.get("/static/old/..%2fpages.py").status == 404
    assert server.get("/static/old/nothing.css").status == 404


def test_the_script_of_the_pages_is_small(much: tuple[Server, HeldPages]) -> None:
    """Both scripts together are less than eight kilobytes, so that no one waits for them."""
    addresses = [script.attributes["src"] or "" for script in much[0].get("/").tree.css("script")]
    assert sum(len(much[0].get(address).text) for address in addresses) < 8_000


def test_the_chosen_color_scheme_is_in_the_page(much: tuple[Server, HeldPages]) -> None:
    """The server writes the choice into the page, so that it does not flash; invalid choices are ignored."""
    assert first(much[0].get("/", Cookie="theme=dark").tree, "html").attributes["data-theme"] == "dark"
    assert "data-theme" not in first(much[0].get("/", Cookie='theme="><script>').tree, "html").attributes


def test_browsers_can_add_the_search(much: tuple[Server, HeldPages]) -> None:
    """The description has the public address, or that of the request if none is configured."""
    got = much[0].get("/opensearch.xml")
    assert got.headers["content-type"].startswith("application/opensearchdescription+xml")
    assert 'template="https://find.example.org/search?q={searchTerms}"' in got.text
    with served(HeldPages()) as server:
        assert f'template="{server.address}/search?q=' in server.get("/opensearch.xml").text


def test_site_owners_can_identify_the_crawler(much: tuple[Server, HeldPages]) -> None:
    """The page about the crawler has its name for robots.txt, and a contact."""
    got = much[0].get("/bot")
    assert "User-agent: vedette" in got.text
    assert first(got.tree, "article a").attributes["href"] == "mailto:ops@example.org"
    with served(HeldPages()) as server:
        assert "not provided contact details" in server.get("/bot").words


def test_the_embedded_box_is_one_script(much: tuple[Server, HeldPages]) -> None:
    """It may be loaded from anywhere, is cached briefly, and adds no names to the page."""
    got = much[0].get("/embed.js")
    assert got.headers["content-type"].startswith("text/javascript")
    assert got.headers["cross-origin-resource-policy"] == "cross-origin"
    assert "immutable" not in got.headers["cache-control"]
    assert got.text.startswith("(() => {")
    assert "attachShadow" in got.text
    assert "offerSuggestions" in got.text


@pytest.mark.parametrize("status", [400, 403, 404, 405, 418, 429, 500, 503])
def test_problem_pages_have_advice(status: int) -> None:
    """Each problem page has its status, a title, help, and a link; the caller's words are escaped."""
    page = error_page(status)
    tree = LexborHTMLParser(bytes(page.body).decode())
    assert page.status_code == status
    assert first(tree, "h1").text()
    assert len(first(tree, ".empty p").text()) > 20
    assert first(tree, ".empty a").attributes["href"] == "/"
    assert "&lt;b&gt;" in bytes(error_page(status, "<b>").body).decode()


def test_unknown_addresses_and_methods_are_problems_too(much: tuple[Server, HeldPages]) -> None:
    """A wrong URL and a wrong method each get a page; a HEAD request gets no body."""
    assert much[0].get("/nothing").status == 404
    assert much[0].get("/search?q=lag", "POST").status == 405
    assert much[0].get("/search?q=lag", "HEAD").text == ""
