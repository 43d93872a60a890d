"""What unseen URLs are expected to bring, worked out from a real folder: when, from what, and what is done without."""

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from tests.data_folders import NOW_S
from tests.runtime.indexing.test_index_builder import SITE, Web, page

from vedette.adapters.clock import start_clock
from vedette.adapters.crawl_store.store import SiteRow
from vedette.adapters.crawl_store.url_list import list_unfetched
from vedette.adapters.event_store.store import EventStore
from vedette.adapters.index_store.gain_store import read_gains_since
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.impact_store import SKETCH_FILE as SKETCHES
from vedette.adapters.index_store.impact_store import (
    ImpactEstimates,
    StoredSketches,
    read_info,
    read_sketches,
    write_sketches,
)
from vedette.adapters.index_store.page_table import PageTable
from vedette.adapters.index_store.tantivy_index import open_reader
from vedette.runtime.explain.decisions import collect_first_fetch
from vedette.runtime.indexing.impact import is_due, run_impact_pass
from vedette.runtime.indexing.impact_inputs import build_finder, encode_queries, needy_queries, update_sketches
from vedette.runtime.indexing.indexer import catch_up

TOPICS = [f"{first}{second}" for first in ("bor", "kel", "mun", "ril") for second in ("ado", "eko", "ina", "uma")]
PAGES = 60
FILES = ("expected", "expected.places", "expected.links")


def words(number: int) -> str:
    """What the page with this number is about."""
    return f"{TOPICS[number % len(TOPICS)]} {TOPICS[(number * 7 + 3) % len(TOPICS)]}"


@pytest.fixture
def web(tmp_path: Path) -> Web:
    """A folder with pages, and a list that names as many again which nobody has fetched."""
    made = Web(tmp_path / "data")
    with made.state() as state:
        state.store.save_site(SiteRow(SITE, paused=False, added_s=NOW_S))
    links = "".join(f'<a href="/p/{n}">{words(n)}</a> ' for n in range(2 * PAGES))
    links += '<a href="/wanted">xylo zenith</a> <a href="/other">quiet corner</a>'
    made.all_answer({"": page("All", "A list of everything.", links=links)})
    made.all_answer({f"p/{n}": page(words(n), f"{words(n)} " * 3 + f"unique{n}x") for n in range(PAGES)})
    catch_up(made.folder, start_clock(made.now_s, 1.0))
    return made


def search(web: Web, queries: dict[str, int]) -> None:
    """People have searched for these, so often."""
    with closing(EventStore(web.folder)) as book:
        book.import_queries((query, web.now_s, times) for query, times in queries.items())


def gains(web: Web) -> dict[str, float]:
    """What is expected of each unseen URL, by its path."""
    expected = ImpactEstimates(web.folder / "index")
    urls = list_unfetched(web.folder, 0, 1000)
    found = expected.get_known(np.array([one.id for one in urls], np.uint32)).tolist()
    return {one.url.partition(".org")[2]: gain for one, gain in zip(urls, found, strict=True)}


ASKED = {words(n): 1 + n for n in range(len(TOPICS))}


def test_words_that_people_search_for_make_an_unseen_url_worth_more(web: Web) -> None:
    """No page with these words was ever fetched; that links say them is enough."""
    search(web, ASKED | {"xylo zenith": 200})
    assert run_impact_pass(web.folder, web.now_s) >= PAGES
    found = gains(web)
    assert found["/wanted"] == max(found.values()) > 3 * found["/other"]


def test_before_anybody_has_searched_nothing_is_expected(web: Web) -> None:
    """And when nobody searches any more, what was expected is forgotten."""
    assert run_impact_pass(web.folder, web.now_s) == 0
    assert read_info(web.folder / "index") is not None
    assert ImpactEstimates(web.folder / "index").version == 0
    search(web, ASKED)
    run_impact_pass(web.folder, web.now_s)
    assert ImpactEstimates(web.folder / "index").version > 0
    with closing(EventStore(web.folder)) as book:
        book.delete_imported()
    run_impact_pass(web.folder, web.now_s)
    assert ImpactEstimates(web.folder / "index").version == 0


def test_without_an_index_nothing_happens(tmp_path: Path) -> None:
    """A folder in which nothing was indexed yet."""
    assert run_impact_pass(tmp_path, 0.0) == 0


def test_damaged_sketches_are_made_anew(web: Web) -> None:
    """A file that was cut short costs a making, and nothing else."""
    search(web, ASKED)
    run_impact_pass(web.folder, web.now_s)
    first, generation = gains(web), Generations(web.folder).current()
    assert generation is not None
    (generation / SKETCHES).write_bytes(b"PK half")
    for name in FILES:
        (web.folder / "index" / name).unlink()
    run_impact_pass(web.folder, web.now_s)
    assert gains(web) == first


def kept_of(web: Web, kept: StoredSketches | None, changed: list[int]) -> StoredSketches:
    """The sketches of what was asked, after these pages changed."""
    generation = Generations(web.folder).current()
    assert generation is not None
    table = PageTable(generation)
    texts, wanted = encode_queries(list(ASKED), np.array(list(ASKED.values()), np.float64), None, len(table.indexed))
    ask = build_finder(open_reader(generation / "tantivy"))
    made = update_sketches(kept, texts, wanted, table, np.array(changed, np.int64), 7, ask)
    assert len(needy_queries(made, wanted)) == len(texts)
    return made


def test_sketches_that_are_kept_are_those_that_are_made_anew(web: Web, tmp_path: Path) -> None:
    """Pages come, change and go: what is brought up to date page by page is what the index says if asked again."""
    before = kept_of(web, None, [])
    write_sketches(tmp_path, before)
    read = read_sketches(tmp_path)
    assert read is not None
    web.all_answer({"p/1": page("other", "nothing of that"), "wanted": page(words(2), f"{words(2)} " * 5)})
    web.answers("p/3", status=404)
    catch_up(web.folder, start_clock(web.now_s, 1.0))
    changed = sorted({row.page for row in read_gains_since(web.folder / "index", 0, 1000)})
    followed, anew = kept_of(web, read, changed), kept_of(web, None, [])
    assert sorted(map(sorted, followed.sketches.page.tolist())) == sorted(map(sorted, anew.sketches.page.tolist()))
    assert np.abs(followed.sketches.score - anew.sketches.score).max() < 1e-5
    assert (followed.sketches.page != before.sketches.page).any()
    assert sum(followed.rates.times) > 0


def test_it_is_worked_out_when_it_is_paid_for_and_soon_where_nothing_was_to_learn() -> None:
    """Whatever the file says that tells how it was made."""
    assert not is_due(None, 3, 0.0, has_changed=True)
    assert is_due(None, 1000, 0.0, has_changed=True)
    assert is_due({"made_s": "x"}, 1000, 0.0, has_changed=True)


def test_explain_says_what_is_expected_and_why(web: Web) -> None:
    """The query, how often it is asked, and where its words stand; before that, why nothing is expected."""
    (wanted,) = (one for one in list_unfetched(web.folder, 0, 1000) if one.url.endswith("/wanted"))
    told = collect_first_fetch(wanted.id, wanted.url, wanted.depth, web.folder, None)
    assert (told["gain"], told["matches"], told["names"]) == (None, [], ["xylo zenith"])
    assert "breadth" in told["reason"]
    search(web, ASKED | {"xylo zenith": 200})
    run_impact_pass(web.folder, web.now_s)
    told = collect_first_fetch(wanted.id, wanted.url, wanted.depth, web.folder, {"first_worth": 2.0, "price": 1.0})
    assert told["gain"] > told["usual"]
    assert 0 <= told["by_links"] < told["gain"]
    assert [(one["query"], one["places"]) for one in told["matches"]] == [("xylo zenith", ["links"])]
    assert (told["worth"], told["price"]) == (2.0, 1.0)
