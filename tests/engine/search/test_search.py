"""A search over a real index: results, their order, and notes."""

from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engine.index_snapshots import NOW_S, Leaf, TestShelf

from vedette.engine.search.search import Searcher
from vedette.index.fields import MAX_WORDS
from vedette.serve.rank.rules import NO_RULES, SearchRules, parse_rules
from vedette.serve.slate import SearchRequest, Slate

FILLER = "plain words about nothing in particular that stand on every page of this small web"
_NUMBERS = count()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for an index."""
    return tmp_path / "index"


def searched(
    folder: Path, leaves: Sequence[Leaf], wish: SearchRequest | str, rules: SearchRules = NO_RULES, **more: object
) -> Slate:
    """What a search over these pages shows."""
    shelf = TestShelf(leaves, folder / str(next(_NUMBERS)), **more)  # type: ignore[arg-type]  # its own fields
    return Searcher(shelf, rules).search(SearchRequest(wish) if isinstance(wish, str) else wish, NOW_S)


def urls(slate: Slate) -> list[str]:
    """Where the results are."""
    return [result.url for result in slate.results]


def page(number: int, host: str = "example.org", **about: object) -> Leaf:
    """One of many pages."""
    return Leaf(**{"url": f"http://{host}/{number}", "body": f"kites {FILLER} {number}", **about})  # type: ignore[arg-type]


def test_the_page_that_is_called_so_comes_first(folder: Path) -> None:
    """A title that is the query goes before a text that merely has the words."""
    leaves = [
        Leaf("http://a.org/x", "Other things", f"consumer groups have lag {FILLER}"),
        Leaf("http://a.org/y", "Consumer lag", f"consumer lag is how far behind a consumer is {FILLER}"),
        Leaf("http://a.org/z", "Nothing", FILLER),
    ]
    slate = searched(folder, leaves, "consumer lag")
    assert urls(slate) == ["http://a.org/y", "http://a.org/x"]
    assert slate.total == 2


def test_reasons_add_up_and_are_told(folder: Path) -> None:
    """Each result says what made its score, in a table and in a sentence."""
    (result,) = searched(folder, [Leaf("http://a.org/x", "Red kites", "red kites fly")], "red kites").results
    assert sum(reason.contribution for reason in result.why) == pytest.approx(result.score, abs=0.1)
    assert all(reason.value * reason.weight == pytest.approx(reason.contribution) for reason in result.why)
    assert "its title" in result.sentence
    assert "red kites" in result.sentence


def test_snippet_has_the_words(folder: Path) -> None:
    """The piece of text that is shown has the words, and marks them."""
    (result,) = searched(folder, [Leaf("http://a.org/x", "", f"{FILLER * 9}. Red kites fly high.")], "kites").results
    assert [result.snippet.text[start:end].lower() for start, end in result.snippet.marks] == ["kites"]


@pytest.mark.parametrize(("marks", "longest"), [("nosnippet", 0), ("noarchive, max-snippet:20", 20), ("", 200)])
def test_owners_limit_snippets_and_copies(folder: Path, marks: str, longest: int) -> None:
    """What its owner does not want shown is not shown."""
    (result,) = searched(folder, [page(1, marks=marks)], "kites").results
    assert len(result.snippet.text) <= longest
    assert bool(result.snippet.text) == (longest > 0)
    assert result.has_copy == ("noarchive" not in marks)


def test_private_pages_are_for_those_who_may(folder: Path) -> None:
    """A private page is found by readers of its site alone, and no one else learns that it exists."""
    leaves = [page(1), page(2, private="http://example.org/")]
    assert searched(folder, leaves, "kites").total == 1
    assert searched(folder, leaves, SearchRequest("kites", allowed=("http://example.org/",))).total == 2
    assert searched(folder, leaves, SearchRequest("kites", allowed=("http://else.org/",))).total == 1


def test_access_is_checked_again(folder: Path) -> None:
    """Even if the index is wrong about who may see a page, it is shown to no one else, not even when it is pinned."""
    leaves = [page(1), page(2, private="http://example.org/")]
    rules = parse_rules([], [("kites", "http://example.org/2")], [])
    assert urls(searched(folder, leaves, "kites", rules, lying=True)) == ["http://example.org/1"]


def test_copies_are_folded(folder: Path) -> None:
    """Pages of one group are shown as one, unless the reader wants them all."""
    leaves = [page(1, group=7), page(2, group=7), page(3)]
    slate = searched(folder, leaves, "kites")
    assert sorted(result.similar for result in slate.results) == [0, 1]
    assert len(searched(folder, leaves, SearchRequest("kites", folded=False)).results) == 3


def test_sites_share_the_first_page(folder: Path) -> None:
    """A site with many good pages leaves room for others, with a note; not if it was requested."""
    leaves = [page(number, "big.org", title="Kites") for number in range(9)]
    leaves += [page(number, f"small{number}.org") for number in range(8)]
    slate = searched(folder, leaves, SearchRequest("kites", n=20))
    assert sum(result.site == "big.org" for result in slate.results[:10]) == 3
    assert sum("moved down" in result.note for result in slate.results) == 6
    assert len(slate.results) == len(leaves)
    only = searched(folder, leaves, SearchRequest("kites", n=20, site="big.org"))
    assert not any(result.note for result in only.results)


def test_pages_of_results_go_through_all(folder: Path) -> None:
    """Page by page, every match is shown once, also those too deep to be weighed."""
    leaves = [page(number, f"h{number % 7}.org") for number in range(230)]
    shelf = TestShelf(leaves, folder)
    seen = [
        result.url
        for number in range(1, 26)
        for result in Searcher(shelf).search(SearchRequest("kites", page=number), NOW_S).results
    ]
    assert len(seen) == len(set(seen)) == len(leaves)


def test_new_pages_are_candidates(folder: Path) -> None:
    """A page of today comes first for news, though the index prefers hundreds of others to its long text."""
    leaves = [page(number, title="News of kites", date_s=NOW_S - 3e8 + number) for number in range(260)]
    leaves.append(page(999, title="News of kites", body=f"{FILLER * 50} kites", date_s=NOW_S - 60))
    assert urls(searched(folder, leaves, "kites news"))[0] == "http://example.org/999"


def test_home_page_of_the_site_that_is_named(folder: Path) -> None:
    """The name of a site finds its home page, though hundreds of its pages say the name more often."""
    leaves = [page(number, "kafka.example.org", title="Kafka", body="kafka kafka kafka") for number in range(260)]
    leaves.append(Leaf("http://kafka.example.org/", "Welcome", f"{FILLER} kafka {FILLER}"))
    assert urls(searched(folder, leaves, "kafka"))[0] == "http://kafka.example.org/"
    assert urls(searched(folder, [*leaves, Leaf("http://prism-break.org/", "Tools", FILLER)], "prism break"))[0] == (
        "http://prism-break.org/"
    )


def test_looser_where_few_pages_have_all(folder: Path) -> None:
    """If no page has all words, those with most are shown, and the missing words are listed."""
    leaves = [page(1, body="red kites fly"), page(2, body="blue boats")]
    slate = searched(folder, leaves, "red kites swim")
    assert urls(slate) == ["http://example.org/1"]
    assert slate.relaxed == ("swim",)
    assert searched(folder, leaves, "red kites").relaxed == ()


def test_quoted_words_are_let_go_of_only_where_no_page_has_them(folder: Path) -> None:
    """A phrase that no page has is searched by its words, and a note says so; where a page has it, it is required."""
    slate = searched(folder, [page(1, body="kites red")], '"red kites" fly')
    assert urls(slate) == ["http://example.org/1"]
    assert "without the quotes" in slate.notes[-1]
    both = searched(folder, [page(1, body="kites red"), page(2, body="some red kites")], '"red kites" fly')
    assert urls(both) == ["http://example.org/2"]
    assert both.notes == ()


def test_a_question_finds_pages_with_any_of_its_words(folder: Path) -> None:
    """Of many words hardly any page has all; the page with the most telling ones comes first."""
    leaves = [page(1, body="kites fly over land"), page(2, body="how boats are built"), page(3, body="trees")]
    asked = "how do red kites manage to fly over the northern mountains"
    assert urls(searched(folder, leaves, asked))[0] == "http://example.org/1"


def test_another_spelling_is_offered(folder: Path) -> None:
    """What finds nothing may have been meant otherwise; filters of the query stay."""
    slate = searched(folder, [page(1)], "kitse site:example.org", spellings={"kitse": "kites"})
    assert slate.suggestion == "kites site:example.org"
    assert searched(folder, [page(number) for number in range(9)], "kites").suggestion == ""


def test_no_other_spelling_of_what_a_title_has(folder: Path) -> None:
    """A rare word that a result has in its title is no typo; in its text it may be one."""
    spellings = {"walrus": "warns"}
    titled = page(1, title="The Walrus Operator", body="assignment")
    assert searched(folder, [titled], "walrus", spellings=spellings).suggestion == ""
    assert searched(folder, [page(1, title="News", body="a walrus")], "walrus", spellings=spellings).suggestion


def test_forms_find_pages(folder: Path) -> None:
    """Another form of a word finds a page, but the typed form ranks higher."""
    leaves = [page(1, title="Kite", body="one kite"), page(2, title="Kites", body="two kites")]
    slate = searched(folder, leaves, "kites", forms={"kites": (("kite", 0.8),)})
    assert urls(slate) == ["http://example.org/2", "http://example.org/1"]


def test_rules_of_the_operator(folder: Path) -> None:
    """Synonyms match, pinned pages are first and say so, hidden ones are not shown."""
    leaves = [page(1, title="Kites"), page(2), page(3), page(4, body="paper dragons")]
    rules = parse_rules(
        [("kites", "paper dragons")], [("Kites", "http://example.org/3")], [("kites", "http://example.org/2")]
    )
    slate = searched(folder, leaves, "kites", rules)
    assert urls(slate)[0] == "http://example.org/3"
    assert slate.results[0].note == "pinned for this query"
    assert set(urls(slate)) == {f"http://example.org/{number}" for number in (1, 3, 4)}
    assert urls(searched(folder, leaves, "kites plain", rules))[0] != "http://example.org/3"


def test_filters_beside_the_query(folder: Path) -> None:
    """Filters chosen in the form narrow the query."""
    leaves = [
        page(1, kind="pdf", language="de", date_s=NOW_S - 1e7),
        page(2, date_s=NOW_S - 1e6),
        page(3, "other.org", date_s=NOW_S - 1e6),
    ]
    assert urls(searched(folder, leaves, SearchRequest("kites", kind="pdf"))) == ["http://example.org/1"]
    assert urls(searched(folder, leaves, SearchRequest("kites", language="de"))) == ["http://example.org/1"]
    assert urls(searched(folder, leaves, SearchRequest("kites", site="https://Other.org/"))) == ["http://other.org/3"]
    assert urls(searched(folder, leaves, SearchRequest("kites", before_s=NOW_S - 5e6))) == ["http://example.org/1"]
    assert len(urls(searched(folder, leaves, SearchRequest("kites", after_s=NOW_S - 5e6)))) == 2


def test_words_far_into_a_long_text(folder: Path) -> None:
    """Words of a long text beyond the stored part count like those in it."""
    far = f"{'nothing new ' * MAX_WORDS} red kites fly"
    leaves = [page(1, body=far), page(2, body="kites fly red over here"), page(3, body=FILLER)]
    assert urls(searched(folder, leaves, "red kites fly"))[0] == "http://example.org/1"


def test_spam_stands_lower(folder: Path) -> None:
    """Of two pages that say the same, the one that looks like spam comes second."""
    leaves = [page(1, spam=0.4), page(2)]
    assert urls(searched(folder, leaves, "kites"))[0] == "http://example.org/2"


def test_a_page_that_is_gone_meanwhile(folder: Path) -> None:
    """What the index still has and the shelf no longer does is left out."""
    assert urls(searched(folder, [page(1), page(2)], "kites", gone=frozenset({1}))) == ["http://example.org/2"]


def test_nothing_asked_and_nothing_there(folder: Path) -> None:
    """An empty query shows nothing, and so does an empty index; neither is an error."""
    assert searched(folder, [page(1)], "  ").results == ()
    assert searched(folder, [], "kites").results == ()
    assert searched(folder, [page(1)], "site:example.org").total == 1


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> TestShelf:
    """A small web that stays the same."""
    return TestShelf([page(number, f"h{number % 6}.org") for number in range(40)], tmp_path_factory.mktemp("index"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    query=st.text(max_size=200)
    | st.lists(st.sampled_from(["kites", "the", '"on every', "-page", "OR", "site:h1.org", "12.5", "中文", "|"])).map(
        " ".join
    ),
    n=st.integers(1, 50),
    number=st.integers(1, 1000),
)
def test_never_an_error(shelf: TestShelf, query: str, n: int, number: int) -> None:
    """For any input, and any page number, there is a slate of at most this many results."""
    slate = Searcher(shelf).search(SearchRequest(query, n=n, page=number), NOW_S)
    assert len(slate.results) <= n
    assert len({result.id for result in slate.results}) == len(slate.results)
    assert slate.total >= len(slate.results)


def test_of_several_releases_the_newest_is_shown(folder: Path) -> None:
    """Older pages of a manual are folded, unless they are requested, or the newest no longer has the words."""
    leaves = [
        Leaf(f"http://a.org/docs/{release}/setup", "Setup", f"how to set up the broker {more}")
        for release, more in (("1.9", "zookeeper"), ("1.10", "zookeeper"), ("2.0", "quorum"))
    ]
    newest = searched(folder, leaves, "set up broker").results
    assert [(result.url, result.versions) for result in newest] == [("http://a.org/docs/2.0/setup", 2)]
    assert searched(folder, leaves, "broker zookeeper").results[0].url == "http://a.org/docs/1.10/setup"
    assert len(searched(folder, leaves, SearchRequest("set up broker", folded=False)).results) == 3
    assert len(searched(folder, leaves, "set up broker 1.9").results) > 1
