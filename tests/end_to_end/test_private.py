"""Pages fetched with credentials are revealed to no one but their readers, by any request to the server.

A wiki that requires a key is crawled beside an open site. Each private page has words that no public page has, and
every response to a stranger is searched for them.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.search_runs import Heard, Leaf, SmallWeb, Up, page, prose, small_web, up, vedette
from tests.tree_runs import patiently

WIKI, OPEN = "http://wiki.test", "http://open.test"
KEY = "sesame-0451"
ENVIRONMENT = {"WIKI_KEY": f"X-Key: {KEY}"}
PATIENCE_S = 300.0
FINNISH = (
    "Tämä sivu kertoo palkoista ja lomista, joita henkilöstöosasto suunnittelee ensi vuodelle. Jokainen työntekijä saa "
    "tietää omasta palkastaan keskustelussa esimiehensä kanssa, eikä kukaan muu saa nähdä näitä lukuja koskaan."
)
TWIN, SAME = prose("said in both places", 200), prose("word for word", 200)


def _alike(title: str, text: str) -> Leaf:
    """A page with nothing of its own but these words."""
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
    """The served folder, and who may ask it as whom."""

    def __init__(self, run: Up, keys: Mapping[str, str]) -> None:
        self.run = run
        self.headers = {name: {"Authorization": f"Bearer {key}"} for name, key in keys.items()}
        self.ids = [result["id"] for result in run.search("insideword", self.headers[ANN], n=50)["results"]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder that knows both sites."""
    made = tmp_path_factory.mktemp("private")
    add = ("sites", "add", f"{WIKI}/", "--allow-private", "--secrets", "env:WIKI_KEY", "--readers", f"{ANN},{BOB}")
    vedette(made, *add, environment=ENVIRONMENT)
    return made


@pytest.fixture(scope="module")
def web() -> Iterator[SmallWeb]:
    """Both sites; the wiki shows nothing to those without its key."""
    locked = {url: leaf._replace(key=KEY) for url, leaf in WIKI_PAGES.items()}
    with small_web({**OPEN_PAGES, **locked}) as served:
        yield served


@pytest.fixture(scope="module")
def readers(folder: Path, web: SmallWeb) -> Iterator[Readers]:
    """All pages are found by Ann, and the background jobs have finished."""
    with up(web, folder, f"{OPEN}/", environment=ENVIRONMENT) as run:
        scopes = {ANN: "search,private", BOB: "search", EVE: "search,private"}
        keys = {name: _key(run, name, scope) for name, scope in scopes.items()}
        ann = {"Authorization": f"Bearer {keys[ANN]}"}
        patiently(lambda: run.search("sharedword")["total"] == 3, PATIENCE_S)
        patiently(lambda: run.get("/api/v1/sites", ann).status == 200, PATIENCE_S)
        patiently(lambda: len(run.search("insideword", ann)["results"]) == 3, PATIENCE_S)
        patiently(lambda: "about us" in run.get("/api/v1/suggest?q=abou").body.decode().lower(), PATIENCE_S)
        yield Readers(run, keys)


def _key(run: Up, name: str, scope: str) -> str:
    lines = run.vedette("keys", "create", name, "--scope", scope).splitlines()
    return next(line for line in lines if line.startswith("vk_"))


def told_of(heard: Heard) -> list[str]:
    """The telling words in an answer or its headers."""
    text = (heard.body.decode("utf-8", "replace") + str(heard.headers)).lower()
    return [word for word in TELLING if word in text]


STRANGER_ASKS = (
    *("/", "/api/v1/sites", "/metrics", "/healthz", "/bot", "/opensearch.xml", "/api/openapi.json", "/robots.txt"),
    *("/search?q=sharedword", "/search?q=sharedword&similar=0", "/search?lang=fi", "/search?time=day"),
    *("/api/v1/search?q=sharedword&n=50", "/api/v1/search?q=&n=50", "/api/v1/search?q=site:test&n=50"),
    *("/api/v1/search?q=-sharedword&n=50", "/api/v1/search?q=lang:fi", "/api/v1/search?q=after:2000-01-01&n=50"),
    *("/api/v1/search?q=sharedword+OR+open&lang=fi", "/api/v1/suggest?q=s", "/api/v1/suggest?q=in"),
)


def test_no_answer_to_a_stranger_tells_a_word(readers: Readers) -> None:
    """Pages, API, counts, hosts, filters, numbers: no word and no host of a private page is in them."""
    for target in STRANGER_ASKS:
        assert told_of(readers.run.get(target)) == [], target


def test_filters_and_counts_leave_private_pages_out(readers: Readers) -> None:
    """The language that only a private page has is not offered, and nothing private is counted."""
    shown = readers.run.get("/search?q=sharedword").body.decode()
    assert 'value="fi"' not in shown
    assert readers.run.get("/healthz").json["pages"] == len(OPEN_PAGES)
    assert readers.run.get("/api/v1/sites").json["sites"] == [{"site": "open.test", "pages": len(OPEN_PAGES)}]
    assert f"vedette_pages {len(OPEN_PAGES)}.0" in readers.run.get("/metrics").body.decode()


@pytest.mark.parametrize("word", SECRET_WORDS)
def test_guessing_a_word_brings_nothing(readers: Readers, word: str) -> None:
    """Neither the word itself, nor a mistake in it, nor its beginning brings a result, a spelling or a suggestion."""
    told = readers.run.search(word)
    assert (told["total"], told["results"], told["did_you_mean"]) == (0, [], None)
    for query in (f'"{word}"', f"title:{word}", f"url:{word}", f"{word} sharedword"):
        shown = readers.run.search(query)["results"]
        assert all(word not in result["url"] + result["title"] + result["snippet"] for result in shown)
    wrong = word[:-2] + word[-1]
    for guess in (wrong, word[:-1], word[:4]):
        for target in (f"/api/v1/search?q={guess}", f"/search?q={guess}", f"/api/v1/suggest?q={guess}&n=20"):
            assert told_of(readers.run.get(target)) == [], target
        for site in ("wiki.test", "test", "open.test"):
            assert readers.run.get(f"/api/v1/suggest?q={guess}&site={site}").json["suggestions"] == []


def test_naming_the_site_brings_nothing(readers: Readers) -> None:
    """Knowing its name reveals no more: not even whether it is crawled."""
    for query in ("site:wiki.test", "site:wiki.test sharedword", "url:wiki", "sharedword site:wiki.test/plans"):
        told, unknown = readers.run.search(query), readers.run.search(query.replace("wiki", "nowhere"))
        for answer in (told, unknown):
            del answer["query"], answer["took_ms"], answer["slate"]
        assert told == unknown
    assert readers.run.search("sharedword", site="wiki.test")["total"] == 0


def test_copies_are_not_told_from_pages_that_never_were(readers: Readers) -> None:
    """A private page's number answers a stranger as a number that no page has."""
    assert readers.ids
    for place in ("/cached/{}", "/cached/{}/body", "/similar/{}"):
        missing = readers.run.get(place.format(987_654))
        for id_ in readers.ids:
            heard = readers.run.get(place.format(id_))
            assert (heard.status, heard.body) == (missing.status, missing.body) == (404, missing.body)
    for id_ in range(1, 40):
        for place in ("/cached/{}", "/cached/{}/body", "/similar/{}"):
            assert told_of(readers.run.get(place.format(id_))) == []


def test_a_public_page_is_not_found_by_what_a_private_one_calls_it(readers: Readers) -> None:
    """The text of a private link counts for no one: not even readers are shown the public page for it."""
    assert readers.run.found("anchorquill") == []
    assert f"{OPEN}/target" not in readers.run.found("anchorquill", readers.headers[ANN])
    assert readers.run.found("public target")[0] == f"{OPEN}/target"


def test_a_public_page_with_a_private_copy_stays_and_stands_alone(readers: Readers) -> None:
    """To a stranger a page that the wiki repeats has no copy; a reader sees that there is one."""
    for words, name in ((TWIN, "twin"), (SAME, "same")):
        query = " ".join(words.split()[:4])
        patiently(lambda query=query: readers.run.found(query), PATIENCE_S)  # type: ignore[misc]  # the default binds the query
        (shown,) = readers.run.search(query)["results"]
        assert (shown["url"], shown["similar"]) == (f"{OPEN}/{name}", 0)
        assert readers.run.get(f"/similar/{shown['id']}").status == 404
        (seen,) = readers.run.search(query, readers.headers[ANN])["results"]
        assert seen["similar"] == 1
        assert readers.run.get(f"/similar/{seen['id']}", readers.headers[ANN]).status == 200


def test_a_public_page_whose_author_names_a_private_one_instead_stays(readers: Readers) -> None:
    """What strangers cannot find takes the place of nothing that they can."""
    assert readers.run.found("elsewhereword") == [f"{OPEN}/named"]


def test_a_named_reader_sees_all_of_it(readers: Readers) -> None:
    """Results, counts, hosts, filters and copies include the wiki for Ann; no cache on the way may keep them."""
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
def test_a_key_without_the_scope_or_without_the_name_sees_nothing(readers: Readers, name: str) -> None:
    """Bob is named and has no scope for it, Eve has the scope and is not named: both are strangers."""
    for target in STRANGER_ASKS:
        assert told_of(readers.run.get(target, readers.headers[name])) == [], target
    assert readers.run.found("bodyquill", readers.headers[name]) == []
    for id_ in readers.ids:
        assert readers.run.get(f"/cached/{id_}", readers.headers[name]).status == 404


def test_a_name_that_nobody_vouches_for_counts_for_nothing(readers: Readers) -> None:
    """The header of a proxy is not read where no proxy was configured, wherever it comes from."""
    for name in ("X-Forwarded-User", "X-Remote-User", "Remote-User"):
        assert readers.run.found("bodyquill", {name: ANN, "X-Forwarded-For": "127.0.0.1"}) == []


def test_a_new_key_opens_though_nobody_else_asks(readers: Readers) -> None:
    """A key is known a moment after it was made, also where refused requests are all that come meanwhile."""
    fay = {"Authorization": f"Bearer {_key(readers.run, 'fay', 'search')}"}
    patiently(lambda: readers.run.get("/api/v1/search?q=sharedword", fay).status == 200, 10.0)


def test_a_revoked_key_opens_nothing(readers: Readers) -> None:
    """From its expiry on, a key is refused; its owner is not revealed."""
    secret = _key(readers.run, "carol", "search,private")
    carol = {"Authorization": f"Bearer {secret}"}
    readers.run.vedette("sites", "set", f"{WIKI}/", f"readers={ANN},{BOB},carol")
    patiently(lambda: readers.run.get("/api/v1/search?q=bodyquill", carol).status == 200, PATIENCE_S)
    patiently(lambda: readers.run.found("bodyquill", carol), PATIENCE_S)
    readers.run.vedette("keys", "revoke", "carol")
    patiently(lambda: readers.run.get("/api/v1/search?q=bodyquill", carol).status == 401, PATIENCE_S)
    assert told_of(readers.run.get("/api/v1/search?q=sharedword", carol)) == []
    assert readers.run.get(f"/cached/{readers.ids[0]}", {"Cookie": f"vedette_key={secret}"}).status == 404


def test_who_is_no_reader_any_more_sees_nothing(readers: Readers) -> None:
    """A name that the site does not list any more is a stranger's, although its key is good."""
    dave = {"Authorization": f"Bearer {_key(readers.run, 'dave', 'search,private')}"}
    readers.run.vedette("sites", "set", f"{WIKI}/", f"readers={ANN},{BOB},dave")
    patiently(lambda: readers.run.get("/api/v1/search?q=bodyquill", dave).status == 200, PATIENCE_S)
    patiently(lambda: readers.run.found("bodyquill", dave), PATIENCE_S)
    readers.run.vedette("sites", "set", f"{WIKI}/", f"readers={ANN},{BOB}")
    patiently(lambda: readers.run.found("bodyquill", dave) == [], PATIENCE_S)
    assert readers.run.found("sharedword", dave)


def test_readers_behind_a_proxy(folder: Path, web: SmallWeb, readers: Readers) -> None:
    """A proxy's word is enough for those whom the site names; no one, two at once, and others see nothing."""
    readers.run.process.terminate()
    readers.run.process.wait(PATIENCE_S)
    serve = 'access = "proxy"\nproxy_header = "X-Told-User"'
    with up(web, folder, serve=serve, environment=ENVIRONMENT) as run:
        ann, other = {"X-Told-User": ANN}, {"X-Told-User": "mallory"}
        patiently(lambda: run.get("/api/v1/search?q=x", ann).status == 200, PATIENCE_S)
        patiently(lambda: run.found("bodyquill", ann), PATIENCE_S)
        for target in STRANGER_ASKS:
            assert told_of(run.get(target, other)) == [], target
        for headers in ({}, {"X-Forwarded-User": ANN}, {"X-Told-User": ""}):
            heard = run.get("/api/v1/search?q=bodyquill", headers)
            assert heard.status == 401
            assert told_of(heard) == []


def test_where_all_is_private_strangers_are_told_of_nothing(tmp_path: Path, web: SmallWeb) -> None:
    """Not even that a site is there: the first page is that of a server without sites."""
    vedette(
        tmp_path, "sites", "add", f"{WIKI}/", "--allow-private", "--secrets", "env:WIKI_KEY", environment=ENVIRONMENT
    )
    with up(web, tmp_path, environment=ENVIRONMENT) as run:
        patiently(lambda: "Index     " in run.vedette("status") and "Index     0 pages" not in run.vedette("status"))
        first = run.get("/").body.decode()
        assert "because there are no sites" in first
        assert told_of(run.get("/")) == told_of(run.get("/search?q=sharedword")) == []
