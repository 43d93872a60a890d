"""A gateway over shards of real indexes finds the same as a single index of all pages, and says what is missing."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.engine.index_snapshots import NOW_S, Leaf, TestShelf
from tests.learn.sample_events import made_record

from vedette.engine.search.gateway import Gateway, join_host, split_id
from vedette.engine.search.scoring import build_reputation
from vedette.engine.search.search import Searcher
from vedette.engine.search.shard_search import ShardSearcher
from vedette.learn.clicks.impressions import build_impressions
from vedette.learn.clicks.reputations import learn_reputations
from vedette.runtime.cluster.search_wire import call_verb, decode_call, decode_reply, encode_call, encode_reply
from vedette.serve.rank.rules import parse_rules
from vedette.serve.slate import SearchRequest

FILLER = "plain words about nothing in particular that are on every page of this small web and say little"
HOSTS = ("a.test", "b.test", "c.test")


class Shards:
    """Shards of real indexes, called with encoded messages; ``silent`` ones do not respond."""

    def __init__(self, shelves: Sequence[TestShelf], silent: frozenset[int] = frozenset(), **rules: Any) -> None:
        self._searchers = [ShardSearcher(shelf, **rules) for shelf in shelves]
        self._silent = silent

    @property
    def numbers(self) -> Sequence[int]:
        """Return all shards."""
        return range(len(self._searchers))

    def ask(self, verb: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[int, Any]:
        """Call a verb in some shards."""
        return {
            shard: decode_reply(verb, encode_reply(call_verb(_Shard(self._searchers[shard]), *decode_call(call))))
            for shard, values in arguments.items()
            if shard not in self._silent and (call := encode_call(verb, values))
        }


class _Shard:
    def __init__(self, searcher: ShardSearcher) -> None:
        self.show = searcher.show
        self.get_searcher = lambda: searcher


Open = Callable[[Sequence[Leaf]], list[TestShelf]]


@pytest.fixture
def divide(tmp_path: Path) -> Open:
    """Build an index of each host's pages."""
    numbers = count()

    def build(leaves: Sequence[Leaf]) -> list[TestShelf]:
        parts = [[leaf for leaf in leaves if f"//{host}/" in leaf.url] for host in HOSTS]
        return [TestShelf(part, tmp_path / str(next(numbers))) for part in parts if part]

    return build


def pages(host: str, text: str, many: int, **about: Any) -> list[Leaf]:
    """Return some different pages of a host."""
    return [Leaf(f"http://{host}/{at}", f"Page {at}", f"{text} {FILLER} {host} {at}", **about) for at in range(many)]


def test_scores_are_those_of_one_index(divide: Open, tmp_path: Path) -> None:
    """A word that is common in one shard and rare in all others has the same weight everywhere."""
    leaves = [
        *pages("a.test", "kites", 30),
        Leaf("http://a.test/x", "Red kites", f"red kites {FILLER}"),
        *pages("b.test", "red herons", 12),
        *pages("c.test", "gulls", 25),
        Leaf("http://c.test/y", "A red sky", f"kites in a red sky {FILLER}"),
    ]
    one = Searcher(TestShelf(leaves, tmp_path / "one"))
    gateway = Gateway(Shards(divide(leaves)))
    for query in ("red kites", "red", "kites", "sky kites red herons gulls", '"red sky"', "gulls -red"):
        expected, found = (engine.search(SearchRequest(query), NOW_S) for engine in (one, gateway))
        assert found.total == expected.total, query
        scores = {result.url: result.score for result in expected.results}
        assert found.results[0].url == expected.results[0].url, query
        for result in found.results:
            assert result.score == pytest.approx(scores.get(result.url, result.score), abs=0.02), query
        assert found.relaxed == expected.relaxed, query


def test_a_silent_shard_is_mentioned(divide: Open) -> None:
    """The other shards' results are shown, with a note; ids say which shard a page is in."""
    shelves = divide([*pages("a.test", "kites", 3), *pages("b.test", "kites", 3)])
    slate = Gateway(Shards(shelves, silent=frozenset({0}))).search(SearchRequest("kites"), NOW_S)
    assert {result.site for result in slate.results} == {"b.test"}
    assert {split_id(result.id)[0] for result in slate.results} == {1}
    assert slate.notes == ("Some results may be missing: 1 of 2 parts of the index did not respond.",)


def test_copies_in_several_shards_are_folded(divide: Open) -> None:
    """The same text on two hosts is one result; private pages of either are not found."""
    text = f"kites {FILLER} {FILLER}"
    leaves = [Leaf(f"http://{host}/", "Kites", text) for host in HOSTS[:2]]
    leaves += [Leaf("http://c.test/secret", "Kites", f"{text} secret", private="http://c.test/")]
    slate = Gateway(Shards(divide(leaves))).search(SearchRequest("kites"), NOW_S)
    assert [(result.site, result.similar) for result in slate.results] == [("a.test", 1)]
    assert slate.total == 2


def test_pages_of_results_follow_each_other(divide: Open) -> None:
    """Every result is on one page, and none on two."""
    shelves = divide([*pages("a.test", "kites", 14), *pages("b.test", "kites", 14)])
    gateway = Gateway(Shards(shelves))
    shown = [
        result.url for page in (1, 2, 3) for result in gateway.search(SearchRequest("kites", page=page), NOW_S).results
    ]
    assert len(shown) == len(set(shown)) == 28


def test_rules_hold_in_all_shards(divide: Open) -> None:
    """A pinned page is first, and a hidden one is not shown, whichever shards they are in."""
    shelves = divide([*pages("a.test", "kites", 4), *pages("b.test", "kites", 4)])
    rules = parse_rules([], [("kites", "http://b.test/3")], [("kites", "http://a.test/0")])
    found = Gateway(Shards(shelves, rules=rules)).search(SearchRequest("kites"), NOW_S)
    assert found.results[0].url == "http://b.test/3"
    assert len(found.results) == found.total == 7


def test_a_word_on_no_page_is_corrected_by_the_largest_shard(divide: Open) -> None:
    """The correction of the shard with the most pages is used; a word that any shard has is left alone."""
    shelves = divide([*pages("a.test", "kites", 4), *pages("b.test", "gulls", 4)])
    shelves[0].spellings = {"kitse": "kites", "gulls": "kites"}
    gateway = Gateway(Shards(shelves))
    slate = gateway.search(SearchRequest("kitse"), NOW_S)
    assert (slate.corrected, slate.total) == ("kites", 4)
    assert gateway.search(SearchRequest("gulls"), NOW_S).corrected == ""


def test_results_are_reordered_by_clicks(divide: Open) -> None:
    """A page of any shard that people like moves up, and the result says so; without learning nothing changes."""
    leaves = [*pages("a.test", "kites", 5), *pages("b.test", "kites", 5)]
    gateway, wish = Gateway(Shards(divide(leaves))), SearchRequest("kites", is_explained=True)
    plain = [result.id for result in gateway.search(wish, NOW_S).results]
    quality = dict.fromkeys(plain, 0.05) | {plain[-1]: 0.95}
    slates, events = made_record(quality, 600)
    slates = [slate._replace(query="kites", words="kites") for slate in slates]
    seen = build_impressions(slates, events)
    taught = learn_reputations(seen, {id_: join_host(split_id(id_)[0], 1) for id_ in plain}, 4.0)
    assert taught is not None
    gateway.reputation = build_reputation(taught, seen.groups)
    learned = gateway.search(wish, NOW_S).results
    assert learned[0].id == plain[-1]
    assert learned[0].why != gateway.search(wish, NOW_S).results[-1].why
    unlearned = wish._replace(audience=wish.audience._replace(is_learned=False))
    assert [result.id for result in gateway.search(unlearned, NOW_S).results] == plain
