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
from vedette.serve.slate import PageVersion, SearchRequest, Slate

FILLER = "plain words about nothing in particular that stand on every page of this small web"
_NUMBERS = count()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for an index."""
    return tmp_path / "index"


def searched(
    folder: Path, leaves: Sequence[Leaf], wish: SearchRequest | str, rules: SearchRules = NO_RULES, **more: object
) -> Slate:
    """Search these pages."""
    shelf = TestShelf(leaves, folder / str(next(_NUMBERS)), **more)  # type: ignore[arg-type]  # its own fields
    return Searcher(shelf, rules).search(SearchRequest(wish) if isinstance(wish, str) else wish, NOW_S)


def urls(slate: Slate) -> list[str]:
    """Return the URLs of the results."""
    return [result.url for result in slate.results]


def page(number: int, host: str = "example.org", **about: object) -> Leaf:
    """One of many pages."""
    return Leaf(**{"url": f"http://{host}/{number}", "body": f"kites {FILLER} {number}", **about})  # type: ignore[arg-type]


def test_a_page_with_the_query_as_its_title_comes_first(folder: Path) -> None:
    """A page whose title is the query comes before one whose text merely contains the words."""
    leaves = [
        Leaf("http://a.org/x", "Other things", f"consumer groups have lag {FILLER}"),
        Leaf("http://a.org/y", "Consumer lag", f"consumer lag is how far behind a consumer is {FILLER}"),
        Leaf("http://a.org/z", "Nothing", FILLER),
    ]
    slate = searched(folder, leaves, "consumer lag")
    assert urls(slate) == ["http://a.org/y", "http://a.org/x"]
    assert slate.total == 2


def test_results_explain_their_scores(folder: Path) -> None:
    """Each result explains its score in a table and in a sentence."""
    (result,) = searched(folder, [Leaf("http://a.org/x", "Red kites", "red kites fly")], "red kites").results
    assert sum(reason.contribution for reason in result.why) == pytest.approx(result.score, abs=0.1)
    assert all(reason.value * reason.weight == pytest.approx(reason.contribution) for reason in result.why)
    assert "its title" in result.sentence
    assert "red kites" in result.sentence


def test_snippet_has_the_words(folder: Path) -> None:
    """The snippet contains the query's words and marks them."""
    (result,) = searched(folder, [Leaf("http://a.org/x", "", f"{FILLER * 9}. Red kites fly high.")], "kites").results
    assert [result.snippet.text[start:end].lower() for start, end in result.snippet.marks] == ["kites"]


@pytest.mark.parametrize(("marks", "longest"), [("nosnippet", 0), ("noarchive, max-snippet:20", 20), ("", 200)])
def test_owners_limit_snippets_and_copies(folder: Path, marks: str, longest: int) -> None:
    """Text that its owner excludes from snippets is not shown."""
    (result,) = searched(folder, [page(1, marks=marks)], "kites").results
    assert len(result.snippet.text) <= longest
    assert bool(result.snippet.text) == (longest > 0)
    assert result.has_copy == ("noarchive" not in marks)


def test_private_pages_are_found_by_their_readers_only(folder: Path) -> None:
    """A private page is found only by its site's readers, and no one else learns that it exists."""
    leaves = [page(1), page(2, private="http://example.org/")]
    assert searched(folder, leaves, "kites").total == 1
    assert searched(folder, leaves, SearchRequest("kites", allowed=("http://example.org/",))).total == 2
    assert searched(folder, leaves, SearchRequest("kites", allowed=("http://else.org/",))).total == 1


def test_access_is_checked_again(folder: Path) -> None:
    """Even if the index is wrong about who may see a page, no one else sees it, not even if it is pinned."""
    leaves = [page(1), page(2, private="http://example.org/")]
    rules = parse_rules([], [("kites", "http://example.org/2")], [])
    assert urls(searched(folder, leaves, "kites", rules, lying=True)) == ["http://example.org/1"]


def test_copies_are_folded(folder: Path) -> None:
    """Copies are shown as one result, unless the user wants them all."""
    leaves = [page(1, group=7), page(2, group=7), page(3)]
    slate = searched(folder, leaves, "kites")
    assert sorted(result.similar for result in slate.results) == [0, 1]
    assert len(searched(folder, leaves, SearchRequest("kites", folded=False)).results) == 3


def test_the_canonical_stands_for_copies_unless_the_query_names_another(folder: Path) -> None:
    """Of rooms that differ in their number only, the one with the number of the query is shown."""
    leaves = [page(number, group=7, is_canonical=number == 103) for number in range(100, 110)]
    assert urls(searched(folder, leaves, "kites")) == ["http://example.org/103"]
    assert urls(searched(folder, leaves, "kites 105")) == ["http://example.org/105"]


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
    """Across result pages, every match is shown once, including those too deep to be scored."""
    leaves = [page(number, f"h{number % 7}.org") for number in range(230)]
    shelf = TestShelf(leaves, folder)
    seen = [
        result.url
        for number in range(1, 26)
        for result in Searcher(shelf).search(SearchRequest("kites", page=number), NOW_S).results
    ]
    assert len(seen) == len(set(seen)) == len(leaves)


def test_new_pages_are_candidates(folder: Path) -> None:
    """For news, today's page comes first, although the index prefers hundreds of others with long texts."""
    leaves = [page(number, title="News of kites", date_s=NOW_S - 3e8 + number) for number in range(260)]
    leaves.append(page(999, title="News of kites", body=f"{FILLER * 50} kites", date_s=NOW_S - 60))
    assert urls(searched(folder, leaves, "kites news"))[0] == "http://example.org/999"


def test_home_page_of_the_site_that_is_named(folder: Path) -> None:
    """The name of a site finds its home page, although hundreds of its pages use the name more often."""
    leaves = [page(number, "kafka.example.org", title="Kafka", body="kafka kafka kafka") for number in range(260)]
    leaves.append(Leaf("http://kafka.example.org/", "Welcome", f"{FILLER} kafka {FILLER}"))
    assert urls(searched(folder, leaves, "kafka"))[0] == "http://kafka.example.org/"
    assert urls(searched(folder, [*leaves, Leaf("http://prism-break.org/", "Tools", FILLER)], "prism break"))[0] == (
        "http://prism-break.org/"
    )


def test_looser_where_few_pages_have_all(folder: Path) -> None:
    """If no page has all words, those with most words are shown, and the missing words are listed."""
    leaves = [page(1, body="red kites fly"), page(2, body="blue boats")]
    slate = searched(folder, leaves, "red kites swim")
    assert urls(slate) == ["http://example.org/1"]
    assert slate.relaxed == ("swim",)
    assert searched(folder, leaves, "red kites").relaxed == ()


def test_a_phrase_is_relaxed_only_if_no_page_has_it(folder: Path) -> None:
    """A phrase that is on no page is searched by its words, and a note says so; otherwise it is required."""
    slate = searched(folder, [page(1, body="kites red")], '"red kites" fly')
    assert urls(slate) == ["http://example.org/1"]
    assert "without the quotes" in slate.notes[-1]
    both = searched(folder, [page(1, body="kites red"), page(2, body="some red kites")], '"red kites" fly')
    assert urls(both) == ["http://example.org/2"]
    assert both.notes == ()


def test_a_question_finds_pages_with_any_of_its_words(folder: Path) -> None:
    """Hardly any page has all of many words; the page with the most distinctive ones comes first."""
    leaves = [page(1, body="kites fly over land"), page(2, body="how boats are built"), page(3, body="trees")]
    asked = "how do red kites manage to fly over the northern mountains"
    assert urls(searched(folder, leaves, asked))[0] == "http://example.org/1"


def test_another_spelling_is_offered(folder: Path) -> None:
    """A query with few results may be mistyped; its filters are kept in the suggestion."""
    leaves = [page(1), page(2, body="kitse")]
    slate = searched(folder, leaves, "kitse site:example.org", spellings={"kitse": "kites"})
    assert (slate.suggestion, slate.corrected) == ("kites site:example.org", "")
    assert searched(folder, [page(number) for number in range(9)], "kites").suggestion == ""


def test_no_other_spelling_of_what_a_title_has(folder: Path) -> None:
    """A rare word in the title of a result isn't a typo; one in its text may be."""
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
    """Synonyms match, pinned pages are first and marked, hidden ones are not shown."""
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
    """Filters chosen in the form narrow the results."""
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
    """Words of a long text after the stored part count like those in it."""
    far = f"{'nothing new ' * MAX_WORDS} red kites fly"
    leaves = [page(1, body=far), page(2, body="kites fly red over here"), page(3, body=FILLER)]
    assert urls(searched(folder, leaves, "red kites fly"))[0] == "http://example.org/1"


def test_spam_ranks_lower(folder: Path) -> None:
    """Of two pages with the same text, the one that looks like spam comes second."""
    leaves = [page(1, spam=0.4), page(2)]
    assert urls(searched(folder, leaves, "kites"))[0] == "http://example.org/2"


def test_a_page_that_is_gone_meanwhile(folder: Path) -> None:
    """A page that is in the index but no longer in the page table is left out."""
    assert urls(searched(folder, [page(1), page(2)], "kites", gone=frozenset({1}))) == ["http://example.org/2"]


def test_an_empty_query_and_an_empty_index_give_no_results(folder: Path) -> None:
    """An empty query and an empty index give no results and no error."""
    assert searched(folder, [page(1)], "  ").results == ()
    assert searched(folder, [], "kites").results == ()
    assert searched(folder, [page(1)], "site:example.org").total == 1


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> TestShelf:
    """Return a small web that stays the same."""
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
def test_any_query_gets_a_slate(shelf: TestShelf, query: str, n: int, number: int) -> None:
    """For any query and page number, there are at most this many results."""
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
    named = searched(folder, leaves, "set up broker 1.9").results
    assert [(result.version, result.other_versions) for result in named] == [
        ("1.9", (PageVersion("2.0", leaves[2].url), PageVersion("1.10", leaves[1].url)))
    ]
    for query in (SearchRequest("broker", version="1.9"), "broker version:v1.9", "broker version:1 -version:1.10"):
        assert urls(searched(folder, leaves, query)) == [leaves[0].url]


def test_copies_in_other_releases_are_versions(folder: Path) -> None:
    """Near-duplicates of several releases are folded under the newest, even if their titles differ."""
    leaves = [
        Leaf(f"http://a.org/docs/{release}/setup", f"Setup {name}", "how to set up the broker", group=1)
        for release, name in (("1.9", "one"), ("2.0", "two"))
    ]
    newest = searched(folder, leaves, "set up broker").results
    assert [(result.version, result.versions, result.similar) for result in newest] == [("2.0", 1, 0)]


def test_a_word_that_is_nowhere_is_corrected(folder: Path) -> None:
    """Its likely spelling is searched, in any position, and the page says so; quotes keep the word as typed."""
    leaves = [page(1), page(2)]
    slate = searched(folder, leaves, "kietes page", spellings={"kietes": "kites"})
    assert (len(slate.results), slate.corrected, slate.verbatim) == (2, "kites page", '"kietes" page')
    assert slate.results[0].snippet.marks
    slate = searched(folder, leaves, "kites paeg -wings", spellings={"paeg": "page"})
    assert (slate.corrected, slate.verbatim) == ("kites page -wings", 'kites "paeg" -wings')
    assert searched(folder, leaves, slate.verbatim, spellings={"paeg": "page"}).corrected == ""
    assert searched(folder, leaves, "kites page", spellings={"kites": "mites"}).corrected == ""


def test_a_word_of_a_private_page_is_corrected_for_others(folder: Path) -> None:
    """Otherwise, a missing correction would reveal that a private page has the word."""
    leaves = [page(1), Leaf("http://intranet/", "", "kietes", private="http://intranet/")]
    assert searched(folder, leaves, "kietes", spellings={"kietes": "kites"}).corrected == "kites"
    reader = SearchRequest("kietes", allowed=("http://intranet/",))
    assert searched(folder, leaves, reader, spellings={"kietes": "kites"}).corrected == ""


def test_the_last_word_of_an_incomplete_query_is_a_prefix(folder: Path) -> None:
    """While someone types, the last word counts as the beginning of words."""
    leaves = [Leaf("http://a.org/1", "Setup", "broker replication"), Leaf("http://a.org/2", "Other", "broker setup")]
    assert urls(searched(folder, leaves, SearchRequest("broker repli", is_partial=True)))[0] == "http://a.org/1"
    assert searched(folder, leaves, SearchRequest("broker repli ", is_partial=True)).relaxed == ("repli",)


@pytest.mark.parametrize("text", ["multi-targeted compilers", "multi targeted compilers", "multitargeted compilers"])
def test_compounds_match_however_they_are_written(folder: Path, text: str) -> None:
    """A hyphenated word is no exact phrase."""
    found = searched(folder, [Leaf("http://a.org/1", "Notes", text), page(2)], "multi-targeted compilers")
    assert urls(found) == ["http://a.org/1"]
    assert not found.relaxed


def test_a_page_called_like_the_query_is_first(folder: Path) -> None:
    """``/faq.html`` is the page for "faq", even if other pages say the word more often."""
    leaves = [
        Leaf("http://a.org/docs/setup.html", "Setup", "see the faq, the faq, and the faq", ("The faq",)),
        Leaf("http://a.org/faq.html", "Frequently asked questions", "what is this"),
        Leaf("http://a.org/blog/2020/news.html", "News", "the faq moved", ("New faq",)),
    ]
    assert urls(searched(folder, leaves, "faq"))[0] == "http://a.org/faq.html"


def test_a_long_question_counts_all_its_words(folder: Path) -> None:
    """The last of sixty words matters as well."""
    leaves = [page(1), Leaf("http://a.org/1", "Kelp", "about seaweed")]
    question = " ".join(f"word{number} of the" for number in range(20)) + " seaweed"
    assert urls(searched(folder, leaves, question)) == ["http://a.org/1"]


def test_a_question_may_quote_what_few_pages_have(folder: Path) -> None:
    """Pages with the words of a question are shown as well if hardly any has a phrase quoted in it."""
    leaves = [Leaf("http://a.org/1", "Kelp", "seaweed forest growth near cold coasts"), page(2)]
    question = 'growth of seaweed in a forest near "warm coasts"'
    assert urls(searched(folder, leaves, question)) == ["http://a.org/1"]
    assert searched(folder, leaves, 'seaweed "warm coasts"').notes  # a short query says that it was unquoted
