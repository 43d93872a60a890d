"""Gains of fetches are measured during indexing, with a real state, archive and index."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from tests.data_folders import NOW_S
from tests.runtime.indexing.test_index_builder import SITE, Web, page

from vedette.adapters.clock import start_clock
from vedette.adapters.crawl_store.store import SiteRow
from vedette.adapters.event_store.store import EventStore
from vedette.adapters.index_store.gain_store import Gain, read_gains_since
from vedette.adapters.index_store.generations import Generations
from vedette.engine.search.needy_queries import QueryNeeds
from vedette.index.quality.watched_queries import WatchedQueries
from vedette.runtime.indexing.indexer import rebuild
from vedette.runtime.indexing.query_curves import (
    CurveFile,
    CurveInfo,
    load_needs,
    load_workload,
    read_curve_info,
    save_curves,
    save_needs,
    update_curves,
)
from vedette.runtime.processes.gain_reader import sum_by_page
from vedette.text import hash_word


@pytest.fixture
def web(tmp_path: Path) -> Web:
    """Three pages, and people who search for zeppelins four times as often as for submarines."""
    web = Web(tmp_path / "data")
    with web.state() as state:
        state.store.save_site(SiteRow(SITE, paused=False, added_s=NOW_S))
    with closing(EventStore(web.folder)) as record:
        record.import_queries([("zeppelin flights", NOW_S, 4000), ("submarine", NOW_S, 1000)])
    web.all_answer(
        {
            "a": page("First", "zeppelin"),
            "b": page("Second", "sailing zeppelin boats, and another zeppelin"),
            "c": page("Third", "gardens"),
        }
    )
    web.index()
    return web


def measure_gains(web: Web, seq: int = 0) -> list[Gain]:
    """Return the indexer's measurements of everything new."""
    web.index()
    return read_gains_since(Generations(web.folder).folder, seq, 100)


def shares_of(watched: WatchedQueries) -> dict[tuple[str, ...], float]:
    """Return the share of searches of each watched query, in order, by the words that a test looks for."""
    spelled = {hash_word(word): word for word in ["zeppelin", "flights", "submarine", "first", "second", "third"]}
    first = watched.words[np.append(True, np.diff(watched.slot) > 0)]
    words = [spelled.get(number, str(number)) for number in first.tolist()]
    return {
        tuple(words[begin:end]): share
        for begin, end, share in zip(watched.start, watched.start[1:], watched.frequency.tolist(), strict=False)
    }


def ids(web: Web) -> dict[str, int]:
    """Return pages by path."""
    shelf = web.index()
    stored = ((id_, shelf.table.read_stored(id_)) for id_ in shelf.table.indexed.tolist())
    return {one.url.removeprefix(SITE.start): id_ for id_, one in stored if one is not None}


def test_what_people_ask_for_is_watched(web: Web) -> None:
    """These are whole queries by their number of searches and, to a small extent, page titles."""
    generation = Generations(web.folder).current()
    assert generation is not None
    by = CurveFile(generation).load()
    assert by is not None
    share = shares_of(by.curves.watched)
    assert share["zeppelin", "flights"] == pytest.approx(4 * share["submarine",])
    assert 0 < share["first",] < share["submarine",] / 10
    assert ("flights",) not in share
    assert load_workload(web.folder, NOW_S).count_searches(NOW_S) == 5000
    about = read_curve_info(generation)
    assert about is not None
    assert about.overlap == 1.0, "of the one query of two words, search serves what is measured"


def test_a_changed_page_has_a_gain_and_one_that_is_the_same_has_none(web: Web) -> None:
    """The gain depends on how often people search for what has changed, and has the fetch time and the views."""
    web.answers("c", page("Third", "gardens for a zeppelin"))
    (gain,) = measure_gains(web)
    assert (gain.page, gain.fetched_s, gain.what) == (ids(web)["c"], web.now_s, "again")
    assert gain.gain > 0
    assert gain.views is not None
    assert gain.views > 0
    web.answers("a", page("First", "zeppelin"))
    assert measure_gains(web, gain.seq) == []
    web.answers("b", page("Second", "sailing zeppelin boats, and another zeppelin, and hedgehogs"))
    (little,) = measure_gains(web, gain.seq)
    assert abs(little.gain) < gain.gain / 100


def test_first_and_last_fetches_are_told_too(web: Web) -> None:
    """A new page gains what it is found for; a deleted one is no longer shown, and others move up."""
    web.answers("new", page("Zeppelin", "zeppelin zeppelin zeppelin"))
    (first,) = measure_gains(web)
    assert (first.what, first.gain > 0) == ("first", True)
    new = ids(web)["new"]
    web.answers("new", "gone", 404)
    (gone,) = measure_gains(web, first.seq)
    assert (gone.page, gone.what, gone.views) == (new, "gone", 0.0)
    assert gone.gain > 0


def test_a_name_counts_for_the_page_whose_fetch_gave_it(web: Web) -> None:
    """A new anchor text changes a page's rank: the gain belongs to the linking page, the views to its target."""
    web.answers("a", page("First", "zeppelin", links='<a href="/c">submarine</a>'))
    found = measure_gains(web)
    by_name = ids(web)
    (named,) = [gain for gain in found if gain.what == "names" and gain.page == by_name["a"]]
    assert (named.fetched_s, named.views) == (web.now_s, None)
    (seen,) = [gain for gain in found if gain.page == by_name["c"]]
    assert (seen.gain, seen.by_links) == (0.0, 0.0)
    # It was not fetched: nothing must be learned of what its own fetches bring.
    (report,) = sum_by_page([seen])
    assert (report.page, report.gain) == (by_name["c"], None)
    assert named.gain > 0
    assert seen.views is not None
    assert seen.views > 0


def test_what_was_not_fetched_anew_brings_nothing(web: Web) -> None:
    """A rebuilt generation measures nothing for old pages, and its curves work immediately."""
    rebuild(web.folder, start_clock(web.now_s, 1.0), lambda _done, _pages: None)
    assert measure_gains(web) == []
    web.answers("c", page("Third", "gardens for a zeppelin"))
    assert [gain.what for gain in measure_gains(web)] == ["again"]


def test_without_searches_pages_are_expected_to_be_asked_for_by_name(web: Web) -> None:
    """Something is measured before anyone has searched; damaged curves count as missing."""
    with closing(EventStore(web.folder)) as record:
        record.delete_imported()
    generation = Generations(web.folder).current()
    assert generation is not None
    update_curves(web.folder, generation, web.now_s)
    web.answers("c", page("Second", "gardens"))
    (gain,) = measure_gains(web)
    assert gain.gain > 0
    (generation / "curves").write_bytes(b"PK nothing")
    assert CurveFile(generation).load() is None


def test_queries_that_changes_improve_are_remembered_and_the_rest_is_measured_no_more(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gains by query are stored with the curves; changes don't affect queries that are not needy."""
    generation = Generations(web.folder).current()
    assert generation is not None
    before = measure_gains(web)
    web.answers("c", page("Third", "gardens for a zeppelin and a submarine"))
    changed = measure_gains(web, before[-1].seq if before else 0)
    whole = sum(row.gain for row in changed if row.what == "again")
    needs, file = load_needs(generation), CurveFile(generation)
    by = file.load()
    assert by is not None
    rows = {query: row for row, query in enumerate(shares_of(by.curves.watched))}
    zeppelins, submarines = (
        by.curves.watched.prints[rows[query]] for query in (("zeppelin", "flights"), ("submarine",))
    )
    gained = dict(zip(needs.prints.tolist(), needs.gained.tolist(), strict=True))
    assert gained[int(zeppelins)] > 0 < gained[int(submarines)]
    assert set(needs.changes.tolist()) == {1.0}
    # From now on the other queries are known to gain, and this one is not.
    monkeypatch.setattr("vedette.engine.search.needy_queries.MIN_QUERIES", 1)
    prints = by.curves.watched.prints
    gains = (np.sort(prints) != zeppelins).astype(np.float64)
    save_needs(generation, QueryNeeds(np.sort(prints), gains, np.full(len(prints), 1e9)))
    file.select_needy(load_needs(generation))
    assert file.needy is not None
    assert not file.needy[prints == zeppelins].any(), "at once, without new curves"
    save_curves(generation, by.curves, CurveInfo(3, 0.0, 0.0))
    web.answers("c", page("Third", "gardens"))
    measure_gains(web)
    web.answers("c", page("Third", "gardens for a zeppelin and a submarine"))
    part = measure_gains(web, changed[-1].seq)
    assert 0 < part[-1].gain < whole
    web.answers("d", page("Fourth", "another zeppelin"))
    (first,) = [row for row in measure_gains(web, part[-1].seq) if row.what == "first"]
    assert first.gain > 0, "first fetches are measured by all queries"
