"""Only equal searches share results; whatever results depend on takes effect."""

from typing import Any

import pytest
from tests.runtime.indexing.test_index_builder import Web, page, web
from tests.tree_runs import patiently

from vedette.adapters.clock import start_clock
from vedette.engine.search.search import Searcher
from vedette.runtime.search.result_cache import MAX_RESULTS, ResultCache, normalize_request
from vedette.runtime.search.searcher import FolderSearch
from vedette.serve.slate import Audience, SearchRequest, SearchResult, Slate, Snippet
from vedette.web.commands.commands import AddRules, Rule

__all__ = ["web"]


def test_changes_of_the_index_and_of_rules_count_at_once(web: Web) -> None:
    """New, changed and hidden pages take effect immediately, even for a query that was just searched."""
    web.answers("a", page("First", "zeppelin"))
    web.index()
    search = FolderSearch(web.folder, start_clock(web.now_s, 1.0))

    def titles() -> list[str]:
        return [result.title for result in search.search(SearchRequest("zeppelin")).results]

    assert titles() == titles() == ["First"]
    web.answers("b", page("Second", "zeppelin"))
    web.index()
    patiently(lambda: sorted(titles()) == ["First", "Second"])
    web.answers("a", page("Other", "submarine"))
    web.index()
    patiently(lambda: titles() == ["Second"])
    web.ordered(AddRules((Rule("hide", "zeppelin", "http://www.example.org/b"),)))
    patiently(lambda: titles() == [])


def test_only_equal_searches_share_results(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search is answered from the cache if only the user differs, and nothing was learned from users."""
    web.answers("a", page("First", "zeppelin"))
    web.index()
    search = FolderSearch(web.folder, start_clock(web.now_s, 1.0))
    searched: list[SearchRequest] = []
    really = Searcher.search

    def watched(searcher: Searcher, wish: SearchRequest, now_s: float) -> Slate:
        searched.append(wish)
        return really(searcher, wish, now_s)

    monkeypatch.setattr(Searcher, "search", watched)
    first = SearchRequest("zeppelin")
    other = first._replace(audience=Audience(seed=7))
    assert search.search(first).results == search.search(other).results
    assert search.search(other).request.audience.seed == 7
    assert len(searched) == 1
    differing: list[dict[str, Any]] = [
        {"query": "Zeppelin"},
        {"n": 5},
        {"page": 2},
        {"site": "www.example.org"},
        {"allowed": ("http://private.example/",)},
        {"folded": False},
        {"is_partial": True},
    ]
    for count, change in enumerate(differing, 2):
        search.search(first._replace(**change))
        assert len(searched) == count


def test_with_learning_each_audience_has_its_own_results() -> None:
    """Once anything was learned, results depend on the user: on trial slots and on the control group."""
    one, other = (SearchRequest("kites", audience=Audience(seed=seed)) for seed in (1, 2))
    assert normalize_request(one, is_learned=False) == normalize_request(other, is_learned=False)
    assert normalize_request(one, is_learned=True) != normalize_request(other, is_learned=True)


def test_the_cache_is_bounded_by_results() -> None:
    """The oldest results are dropped; a result list larger than the cache is not stored."""
    cache = ResultCache()
    result = SearchResult(1, "http://a.example/", "", Snippet(), "a.example", "html", "", 0.0, 0.0, None, 0.0)
    requests = [SearchRequest(f"kites {n}") for n in range(12)]
    for request in requests:
        cache.add(request, Slate(request, 1, (result,) * (MAX_RESULTS // 10)), 0.0)
    kept = [cache.find(request, 0.0) is not None for request in requests]
    assert kept == [False] * 3 + [True] * 9
    cache.add(requests[0], Slate(requests[0], 1, (result,) * MAX_RESULTS), 0.0)
    assert all(cache.find(request, 0.0) is None for request in requests)
