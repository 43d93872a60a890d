"""Pages fetched with credentials are only revealed to their users, whatever is requested from the server.

A wiki that requires a key is crawled next to an open site. Each private page has words that no public page has, and
every response to a stranger is searched for them.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.search_runs import Heard, Leaf, SmallWeb, Up, page, prose, small_web, up, vedette
from tests.tree_runs import PATIENCE_S, patiently

WIKI, OPEN = "http://wiki.test", "http://open.test"
KEY = "sesame-0451"
ENVIRONMENT = {"WIKI_KEY": f"X-Key: {KEY}"}
FINNISH = (
    "Tämä sivu kertoo palkoista ja lomista, joita henkilöstöosasto suunnittelee ensi vuodelle. Jokainen työntekijä saa "
    "tietää omasta palkastaan keskustelussa esimiehensä kanssa, eikä kukaan muu saa nähdä näitä lukuja koskaan."
)
TWIN, SAME = prose("said in both places", 200), prose("word for word", 200)


def _alike(title: str, text: str) -> Leaf:
    """Return a page with nothing but these words."""
    return Leaf(f"<!doctype html><html lang=en><title>{title}</title><main><h1>{title}</h1><p>{text}</p></main>")


OPEN_PAGES = {
    f"{OPEN}/": page(
        "Open house",
        "sharedword everybody",
        {p: f"to {p[1:]}" for p in ("/about", "/target", "/twin", "/same", "/named")},
    ),
    f"{OPEN}/about": page("About us", "sharedword and nothing else"),
    f"{OPEN}/target": page("A public target", "sharedword that others link to"),
    f"{OPEN}/named": page("Named", "elsewhereword", head=f'<link rel="canonical" href="{WIKI}/plans">'),
    f"{OPEN}/twin": _alike("Twin", f"{TWIN} publicly"),
    f"{OPEN}/same": _alike("Same", SAME),
}
WIKI_PAGES = {
    f"{WIKI}/": page(
        "Wikihome xyloquartz",
        "sharedword insideword",
        {p: f"inside {p[1:]}" for p in ("/salaries-pathquill", "/plans", "/kieli", "/twin", "/same")},
    ),
    f"{WIKI}/salaries-pathquill": page(
        "Salaries titlequill",
        "sharedword insideword bodyquill",
        head='<meta name="description" content="descriptionquill">',
    ),
    f"{WIKI}/plans": page("Plans", "sharedword insideword", {f"{OPEN}/target": "anchorquill of the merger"}),
    f"{WIKI}/kieli": Leaf(f"<!doctype html><html lang=fi><title>Palkat</title><main><p>{FINNISH}</p></main>"),
    f"{WIKI}/twin": _alike("Twin", f"{TWIN} secretly"),
    f"{WIKI}/same": _alike("Same", SAME),
}
# A mistake in each of these is what someone would try who guesses.
SECRET_WORDS = ("xyloquartz", "titlequill", "bodyquill", "descriptionquill", "anchorquill", "pathquill")
ANN, BOB, EVE = "ann", "bob", "eve"


def _words(pages: Mapping[str, Leaf]) -> set[str]:
    return {
        word for leaf in pages.values() for word in re.findall(r"\w{5,}", re.sub("<[^>]*>", " ", leaf.body.lower()))
    }


TELLING = sorted((_words(WIKI_PAGES) - _words(OPEN_PAGES)) | {*SECRET_WORDS, "wiki.test"})


class Readers:
    """The served folder, and which users have access."""

    def __init__(self, run: Up, keys: Mapping[str, str]) -> None:
        self.run = run
        self.headers = {name: {"Authorization": f"Bearer {key}"} for name, key in keys.items()}
        self.ids = [result["id"] for result in run.search("insideword", self.headers[ANN], n=50)["results"]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with both sites."""
    made = tmp_path_factory.mktemp("private")
    add = ("sites", "add", f"{WIKI}/", "--allow-private", "--secrets", "env:WIKI_KEY", "--readers", f"{ANN},{BOB}")
    vedette(made, *add, environment=ENVIRONMENT)
    return made


@pytest.fixture(scope="module")
def web() -> Iterator[SmallWeb]:
    """Both sites; the wiki requires its key."""
    locked = {url: leaf._replace(key=KEY) for url, leaf in WIKI_PAGES.items()}
    with small_web({**OPEN_PAGES, **locked}) as served:
        yield served


@pytest.fixture(scope="module")
def readers(folder: Path, web: SmallWeb) -> Iterator[Readers]:
    """Wait until Ann finds all pages and background jobs have finished."""
    with up(web, folder, f"{OPEN}/", environment=ENVIRONMENT) as run:
        scopes = {ANN: "search,private", BOB: "search", EVE: "search,private"}
        keys = {name: _key(run, name, scope) for name, scope in scopes.items()}
        ann = {"Authorization": f"Bearer {keys[ANN]}"}
        patiently(lambda: run.search("sharedword")["total"] == 3)
        patiently(lambda: run.get("/api/v1/sites", ann).status == 200)
        patiently(lambda: len(run.search("insideword", ann)["results"]) == 3)
        patiently(lambda: "about us" in run.get("/api/v1/suggest?q=abou").body.decode().lower())
        yield Readers(run, keys)


def _key(run: Up, name: str, scope: str) -> str:
    lines = run.vedette("keys", "create", name, "--scope", scope).splitlines()
    return next(line for line in lines if line.startswith("vk_"))


def find_private_words(heard: Heard) -> list[str]:
    """Return the private words in a response or its headers."""
    text = (heard.body.decode("utf-8", "replace") + str(heard.headers)).lower()
    return [word for word in TELLING if word in text]


STRANGER_ASKS = (
    *("/", "/api/v1/sites", "/metrics", "/healthz", "/bot", "/opensearch.xml", "/api/openapi.json", "/robots.txt"),
    *("/search?q=sharedword", "/search?q=sharedword&similar=0", "/search?lang=fi", "/search?time=day"),
    *("/api/v1/search?q=sharedword&n=50", "/api/v1/search?q=&n=50", "/api/v1/search?q=site:test&n=50"),
    *("/api/v1/search?q=-sharedword&n=50", "/api/v1/search?q=lang:fi", "/api/v1/search?q=after:2000-01-01&n=50"),
    *("/api/v1/search?q=sharedword+OR+open&lang=fi", "/api/v1/suggest?q=s", "/api/v1/suggest?q=in"),
)


def test_no_response_to_a_stranger_has_a_private_word(readers: Readers) -> None:
    """Pages, API, counts, hosts, filters and numbers contain no word and no host of a private page."""
    for target in STRANGER_ASKS:
        assert find_private_words(readers.run.get(target)) == [], target


def test_filters_and_counts_leave_private_pages_out(readers: Readers) -> None:
    """A language that only a private page has is not offered, and nothing private is counted."""
    shown = readers.run.get("/search?q=sharedword").body.decode()
    assert 'value="fi"' not in shown
    assert readers.run.get("/healthz").json["pages"] == len(OPEN_PAGES)
    assert readers.run.get("/api/v1/sites").json["sites"] == [{"site": "open.test", "pages": len(OPEN_PAGES)}]
    assert f"vedette_pages {len(OPEN_PAGES)}.0" in readers.run.get("/metrics").body.decode()


@pytest.mark.parametrize("word", SECRET_WORDS)
def test_guessing_a_private_word_finds_nothing(readers: Readers, word: str) -> None:
    """Neither the word, nor a typo of it, nor its beginning gives a result, a spelling or a suggestion."""
    told = readers.run.search(word)
    assert (told["total"], told["results"], told["did_you_mean"]) == (0, [], None)
    for query in (f'"{word}"', f"title:{word}", f"url:{word}", f"{word} sharedword"):
        shown = readers.run.search(query)["results"]
        assert all(word not in result["url"] + result["title"] + result["snippet"] for result in shown)
    wrong = word[:-2] + word[-1]
    for guess in (wrong, word[:-1], word[:4]):
        for target in (f"/api/v1/search?q={guess}", f"/search?q={guess}", f"/api/v1/suggest?q={guess}&n=20"):
            assert find_private_words(readers.run.get(target)) == [], target
        for site in ("wiki.test", "test", "open.test"):
            assert readers.run.get(f"/api/v1/suggest?q={guess}&site={site}").json["suggestions"] == []


def test_naming_a_private_site_finds_nothing(readers: Readers) -> None:
    """Knowing the site's name reveals nothing, not even whether it is crawled."""
    for query in ("site:wiki.test", "site:wiki.test sharedword", "url:wiki", "sharedword site:wiki.test/plans"):
        told, unknown = readers.run.search(query), readers.run.search(query.replace("wiki", "nowhere"))
        for answer in (told, unknown):
            del answer["query"], answer["took_ms"], answer["slate"]
        assert told == unknown
    assert readers.run.search("sharedword", site="wiki.test")["total"] == 0


def test_private_copies_look_like_missing_pages(readers: Readers) -> None:
    """For a stranger, the id of a private page behaves like an unused id."""
    assert readers.ids
    for place in ("/cached/{}", "/cached/{}/body", "/similar/{}"):
        missing = readers.run.get(place.format(987_654))
        for id_ in readers.ids:
            heard = readers.run.get(place.format(id_))
            assert (heard.status, heard.body) == (missing.status, missing.body) == (404, missing.body)
    for id_ in range(1, 40):
        for place in ("/cached/{}", "/cached/{}/body", "/similar/{}"):
            assert find_private_words(readers.run.get(place.format(id_))) == []


def test_private_anchor_texts_find_no_public_page(readers: Readers) -> None:
    """The anchor text of a private link counts for no one, not even for readers."""
    assert readers.run.found("anchorquill") == []
    assert f"{OPEN}/target" not in readers.run.found("anchorquill", readers.headers[ANN])
    assert readers.run.found("public target")[0] == f"{OPEN}/target"


def test_a_private_copy_does_not_affect_a_public_page(readers: Readers) -> None:
    """A stranger sees no copy of a page that the wiki repeats; a reader does."""
    for words, name in ((TWIN, "twin"), (SAME, "same")):
        query = " ".join(words.split()[:4])
        patiently(lambda query=query: readers.run.found(query))  # type: ignore[misc]  # the default binds the query
        (shown,) = readers.run.search(query)["results"]
        assert (shown["url"], shown["similar"]) == (f"{OPEN}/{name}", 0)
        assert readers.run.get(f"/similar/{shown['id']}").status == 404
        (seen,) = readers.run.search(query, readers.headers[ANN])["results"]
        assert seen["similar"] == 1
        assert readers.run.get(f"/similar/{seen['id']}", readers.headers[ANN]).status == 200


def test_a_public_page_whose_author_names_a_private_one_instead_stays(readers: Readers) -> None:
    """A page that strangers can't see does not replace one that they can."""
    assert readers.run.found("elsewhereword") == [f"{OPEN}/named"]


def test_a_named_reader_sees_all_of_it(readers: Readers) -> None:
    """Results, counts, hosts, filters and copies include the wiki for Ann, and no cache may store them."""
    ann = readers.headers[ANN]
    (result,) = readers.run.search("bodyquill", ann)["results"]
    assert result["title"] == "Salaries titlequill"
    assert {"site": "wiki.test", "pages": len(WIKI_PAGES)} in readers.run.get("/api/v1/sites", ann).json["sites"]
    assert "wiki.test" in readers.run.get("/", ann).body.decode()
    assert 'value="fi"' in readers.run.get("/search?q=sharedword", ann).body.decode()
    copy = readers.run.get(f"/cached/{result['id']}/body", ann)
    assert b"bodyquill" in copy.body
    assert copy.headers["cache-control"] == "private, no-store"
    titles = readers.run.get("/api/v1/suggest?q=sala&site=wiki.test", ann).json["suggestions"]
    assert titles in (["Salaries titlequill"], [])


@pytest.mark.parametrize("name", [BOB, EVE])
def test_a_key_needs_the_scope_and_a_listed_name(readers: Readers, name: str) -> None:
    """Bob is listed but lacks the scope, and Eve has the scope but is not listed: both are strangers."""
    for target in STRANGER_ASKS:
        assert find_private_words(readers.run.get(target, readers.headers[name])) == [], target
    assert readers.run.found("bodyquill", readers.headers[name]) == []
    for id_ in readers.ids:
        assert readers.run.get(f"/cached/{id_}", readers.headers[name]).status == 404


def test_a_proxy_header_without_a_proxy_is_ignored(readers: Readers) -> None:
    """The proxy header is ignored if no proxy is configured, wherever it comes from."""
    for name in ("X-Forwarded-User", "X-Remote-User", "Remote-User"):
        assert readers.run.found("bodyquill", {name: ANN, "X-Forwarded-For": "127.0.0.1"}) == []


def test_a_new_key_works_without_other_requests(readers: Readers) -> None:
    """A key works a moment after it was created, even if only refused requests came in the meantime."""
    fay = {"Authorization": f"Bearer {_key(readers.run, 'fay', 'search')}"}
    patiently(lambda: readers.run.get("/api/v1/search?q=sharedword", fay).status == 200)


def test_a_revoked_key_opens_nothing(readers: Readers) -> None:
    """A revoked key is refused, and its owner is not revealed."""
    secret = _key(readers.run, "carol", "search,private")
    carol = {"Authorization": f"Bearer {secret}"}
    readers.run.vedette("sites", "set", f"{WIKI}/", f"readers={ANN},{BOB},carol")
    patiently(lambda: readers.run.get("/api/v1/search?q=bodyquill", carol).status == 200)
    patiently(lambda: readers.run.found("bodyquill", carol))
    readers.run.vedette("keys", "revoke", "carol")
    patiently(lambda: readers.run.get("/api/v1/search?q=bodyquill", carol).status == 401)
    assert find_private_words(readers.run.get("/api/v1/search?q=sharedword", carol)) == []
    assert readers.run.get(f"/cached/{readers.ids[0]}", {"Cookie": f"vedette_key={secret}"}).status == 404


def test_a_removed_reader_sees_nothing(readers: Readers) -> None:
    """A reader whom the site no longer lists is a stranger, even with a valid key."""
    dave = {"Authorization": f"Bearer {_key(readers.run, 'dave', 'search,private')}"}
    readers.run.vedette("sites", "set", f"{WIKI}/", f"readers={ANN},{BOB},dave")
    patiently(lambda: readers.run.get("/api/v1/search?q=bodyquill", dave).status == 200)
    patiently(lambda: readers.run.found("bodyquill", dave))
    readers.run.vedette("sites", "set", f"{WIKI}/", f"readers={ANN},{BOB}")
    patiently(lambda: readers.run.found("bodyquill", dave) == [])
    assert readers.run.found("sharedword", dave)


def test_readers_behind_a_proxy(folder: Path, web: SmallWeb, readers: Readers) -> None:
    """The proxy's header is enough for readers of the site; no name, two names, and others see nothing."""
    readers.run.process.terminate()
    readers.run.process.wait(PATIENCE_S)
    serve = 'access = "proxy"\nproxy_header = "X-Told-User"'
    with up(web, folder, serve=serve, environment=ENVIRONMENT) as run:
        ann, other = {"X-Told-User": ANN}, {"X-Told-User": "mallory"}
        patiently(lambda: run.get("/api/v1/search?q=x", ann).status == 200)
        patiently(lambda: run.found("bodyquill", ann))
        for target in STRANGER_ASKS:
            assert find_private_words(run.get(target, other)) == [], target
        for headers in ({}, {"X-Forwarded-User": ANN}, {"X-Told-User": ""}):
            heard = run.get("/api/v1/search?q=bodyquill", headers)
            assert heard.status == 401
            assert find_private_words(heard) == []


def test_strangers_cannot_tell_that_private_sites_exist(tmp_path: Path, web: SmallWeb) -> None:
    """Strangers can't tell that a site exists: the home page is that of a server without sites."""
    vedette(
        tmp_path, "sites", "add", f"{WIKI}/", "--allow-private", "--secrets", "env:WIKI_KEY", environment=ENVIRONMENT
    )
    with up(web, tmp_path, environment=ENVIRONMENT) as run:
        patiently(lambda: "Index     " in run.vedette("status") and "Index     0 pages" not in run.vedette("status"))
        first = run.get("/").body.decode()
        assert "because there are no sites" in first
        assert find_private_words(run.get("/")) == find_private_words(run.get("/search?q=sharedword")) == []
