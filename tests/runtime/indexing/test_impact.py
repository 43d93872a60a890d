"""Impact estimates of unseen URLs, computed from a real folder: when, from what, and the fallback."""

from contextlib import closing
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.data_folders import NOW_S
from tests.runtime.indexing.test_index_builder import SITE, Web, page

from vedette.adapters.clock import start_clock
from vedette.adapters.crawl_store.store import SiteRow
from vedette.adapters.crawl_store.url_list import list_unfetched
from vedette.adapters.event_store.store import EventStore
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.impact_store import ImpactEstimates, read_info
from vedette.adapters.index_store.page_table import PageTable
from vedette.engine.coordinator.state import HostState
from vedette.engine.ports import Ids
from vedette.engine.scheduling.url_order import ImpactLookup
from vedette.engine.search.answer_scores import AnswerScorer
from vedette.engine.search.needy_queries import build_training
from vedette.frontier.impact.estimator import ImpactModel, ImpactSettings
from vedette.frontier.impact.url_features import DescribedUrls, TrainingPages
from vedette.frontier.policies.impact import Impact
from vedette.frontier.unseen import UnseenUrls
from vedette.index.quality.gains import measure_current_gains
from vedette.lab.core.registry import find_policy
from vedette.lab.experiments.order_joined import estimate_gains
from vedette.policy import Floats, rng_for
from vedette.runtime.explain.decisions import collect_first_fetch
from vedette.runtime.indexing import impact
from vedette.runtime.indexing.impact import is_due, run_impact_pass
from vedette.runtime.indexing.indexer import catch_up
from vedette.runtime.indexing.query_curves import build_curves, load_workload
from vedette.runtime.search.index_snapshot import LiveIndexSnapshot

TOPICS = [f"{first}{second}" for first in ("bor", "kel", "mun", "ril") for second in ("ado", "eko", "ina", "uma")]
PAGES = 60


def words(number: int) -> str:
    """Return the words of the page with this number."""
    return f"{TOPICS[number % len(TOPICS)]} {TOPICS[(number * 7 + 3) % len(TOPICS)]}"


@pytest.fixture
def web(tmp_path: Path) -> Web:
    """A folder with pages, and a list that links to as many unfetched ones."""
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
    """Record this many searches for these queries."""
    with closing(EventStore(web.folder)) as book:
        book.import_queries((query, web.now_s, times) for query, times in queries.items())


def gains(web: Web) -> dict[str, float]:
    """Return the estimate of each unseen URL by path."""
    expected = ImpactEstimates(web.folder / "index")
    urls = list_unfetched(web.folder, 0, 1000)
    found = expected.get_known(np.array([one.id for one in urls], np.uint32)).tolist()
    return {one.url.partition(".org")[2]: gain for one, gain in zip(urls, found, strict=True)}


ASKED = {words(n): 1 + n for n in range(len(TOPICS))}


def test_words_that_people_search_for_make_an_unseen_url_worth_more(web: Web) -> None:
    """No page with these words was ever fetched; words in links are enough."""
    search(web, ASKED | {"xylo zenith": 200})
    assert run_impact_pass(web.folder, web.now_s) >= PAGES
    found = gains(web)
    assert found["/wanted"] == max(found.values()) > 3 * found["/other"]


def test_before_anybody_has_searched_nothing_is_expected(web: Web) -> None:
    """When no one searches any longer, the estimates are dropped."""
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
    """This is a folder in which nothing has been indexed yet."""
    assert run_impact_pass(tmp_path, 0.0) == 0


def test_a_pass_tells_the_size_that_the_index_had_when_it_began(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pass did not learn from pages that arrive while it runs, so they count as growth."""
    search(web, ASKED)
    indexed: property = vars(PageTable)["indexed"]
    seen: list[int] = []

    def growing(table: PageTable) -> object:
        found = indexed.__get__(table)
        seen.append(len(found))
        return found if len(seen) == 1 else np.append(found, found[-1:])

    monkeypatch.setattr(PageTable, "indexed", property(growing))
    run_impact_pass(web.folder, web.now_s)
    report = read_info(web.folder / "index")
    assert report is not None
    assert (len(seen) > 1, report["pages"]) == (True, PAGES + 1)


@dataclass(frozen=True, slots=True)
class Recording(Impact):
    """The live policy, recording all of its calls and results."""

    taught: list[tuple[ImpactSettings | None, UnseenUrls, float]] = field(default_factory=list)
    asked: list[tuple[UnseenUrls, Floats]] = field(default_factory=list)

    def observe(self, state: ImpactModel, batch: UnseenUrls, now: float) -> ImpactModel:
        """Record training calls."""
        self.taught.append((state.settings, batch, now))
        return Impact.observe(self, state, batch, now)

    def worth(self, state: ImpactModel, batch: UnseenUrls, now: float, rng: np.random.Generator) -> Floats:
        """Record calls and results."""
        self.asked.append((batch, Impact.worth(self, state, batch, now, rng)))
        return self.asked[-1][1]


def test_the_lab_orders_unseen_urls_as_the_live_pass_does_to_the_bit(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the same first fetches, the lab's agent computes the same worths and the same order."""
    live = Recording()
    monkeypatch.setattr(impact, "POLICY", live)
    search(web, ASKED | {"xylo zenith": 200})
    run_impact_pass(web.folder, web.now_s)
    ((settings, results, now_s),) = live.taught
    ((unseen, worth),) = live.asked
    agent = find_policy("order", "impact")
    state = agent.observe(agent.start(settings), results, now_s)
    again = agent.worth(state, unseen, now_s, rng_for(1, "order/impact"))
    assert len(np.unique(worth)) > 5, "there is something to order"
    assert again.tobytes() == worth.tobytes()
    # What the coordinator reads is that number, in four bytes; it leaves the queue of a host in the same order.
    estimates = ImpactEstimates(web.folder / "index")
    known = estimates.get_known(unseen.found.astype(np.uint32))
    assert known.tolist() == again.astype(np.float32).tolist()
    ids, left = unseen.found.astype(np.uint32), list[Ids]()
    hosts: Any = SimpleNamespace(rules=SimpleNamespace(order="impact"))
    queue: Any = SimpleNamespace(
        get_queue=lambda _host: (ids, np.full(len(ids), 7, np.uint8)),
        set_queue=lambda _host, ordered, _fronts: left.append(ordered),
    )
    ImpactLookup(hosts, queue, estimates).reorder_host(HostState("a.test", 1))
    assert left[0].tolist() == ids[np.argsort(-again.astype(np.float32), kind="stable")].tolist()


def test_the_lab_estimates_from_the_same_pages_what_the_live_pass_does_to_the_bit(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Curves, scores, gains, sketches and training are built as in the lab, on the index of the live pass.

    Both get the features of URLs before their fetch, from a state here and from a history there.
    """
    live = Recording()
    monkeypatch.setattr(impact, "POLICY", live)
    search(web, ASKED | {"xylo zenith": 200})
    run_impact_pass(web.folder, web.now_s)
    ((settings, results, _),) = live.taught
    ((unseen, worth),) = live.asked
    assert settings is not None
    assert isinstance(results, TrainingPages)
    assert isinstance(unseen, DescribedUrls)
    generation = Generations(web.folder).current()
    assert generation is not None
    shelf = LiveIndexSnapshot(generation)
    curves = build_curves(shelf, load_workload(web.folder, web.now_s), web.now_s).curves
    scores = AnswerScorer(curves.watched).score(shelf.forward(results.page), shelf.get_signals(results.page))
    gain = np.maximum(measure_current_gains(curves, scores, len(results)), 0.0)
    described = DescribedUrls(**{each.name: getattr(results, each.name) for each in fields(DescribedUrls)})
    taught = build_training(described, results.page, gain, scores, curves.watched)
    found = {
        policy: estimate_gains(policy, taught, unseen, curves, impact.SEED) for policy in ("impact", "no-sketches")
    }
    assert found["impact"].tobytes() == worth.tobytes()
    assert len(settings.queries) == len(ASKED) + 1, "all queries have several words, and a sketch each"
    assert found["no-sketches"].tobytes() != worth.tobytes(), "sketches have a part in it"


def test_it_is_worked_out_when_it_is_paid_for_and_soon_where_nothing_was_to_learn() -> None:
    """This is true whatever the status file contains."""
    assert not is_due(None, 3, 0.0, has_changed=True)
    assert is_due(None, 1000, 0.0, has_changed=True)
    assert is_due({"made_s": "x"}, 1000, 0.0, has_changed=True)


def test_explain_says_what_is_expected_and_why(web: Web) -> None:
    """It shows the query, its frequency, and where its words occur; before that, why there is no estimate."""
    (wanted,) = (one for one in list_unfetched(web.folder, 0, 1000) if one.url.endswith("/wanted"))
    report = collect_first_fetch(wanted.id, wanted.url, wanted.depth, web.folder, None)
    assert (report["gain"], report["matches"], report["names"]) == (None, [], ["xylo zenith"])
    assert "breadth" in report["reason"]
    search(web, ASKED | {"xylo zenith": 200})
    run_impact_pass(web.folder, web.now_s)
    report = collect_first_fetch(wanted.id, wanted.url, wanted.depth, web.folder, {"first_worth": 2.0, "price": 1.0})
    assert report["gain"] > report["usual"]
    assert 0 <= report["by_links"] < report["gain"]
    assert [(one["query"], one["places"]) for one in report["matches"]] == [("xylo zenith", ["links"])]
    assert (report["worth"], report["price"]) == (2.0, 1.0)
