"""Unseen URLs ordered by worth if the price is limiting: none is lost, known pages stay, nothing else changes."""

from collections.abc import Sequence

import numpy as np
import pytest
from tests.engine.memory_web import Drive, MemoryWeb, page, rules_for
from tests.engine.shocks import BusyDrive

from vedette.engine.ports import FetchGain
from vedette.engine.scheduling import url_order as by_worth
from vedette.engine.scheduling.price_controller import PRICE_KEY, PriceController
from vedette.engine.scheduling.url_order import LAST_QUEUE
from vedette.model import Site

A = "https://a.test"
SITE = Site(f"{A}/start", scope="host", overrule=("trap",))
TRIED, PAGES = 20, 300
PRICE = 700.0


def site() -> MemoryWeb:
    """Return some pages of both sections, then the other poor ones, then the other good ones."""
    paths = [f"/{part}/{n}" for n in range(TRIED) for part in ("poor", "good")]
    paths += [f"/{part}/{n}" for part in ("poor", "good") for n in range(TRIED, PAGES)]
    web = MemoryWeb({f"{A}{path}": page(title=path) for path in paths})
    web.replies[f"{A}/start"] = page(*paths)
    return web


def taught(gains: dict[str, float], order: str = "impact") -> Drive:
    """Return a crawl that fetched some of both, learned their gains, and then got a price."""
    rules = rules_for(SITE, recrawl=True, budget_per_s=1.0, delay_s=0.5, order=order)
    drive = BusyDrive(site(), rules, workers=1).begin()
    drive.run(until=lambda: len(drive.pages()) > 2 * TRIED)
    drive._report()
    rows = [(url.split("/")[3], row) for url, row in drive.pages().items() if not url.endswith("/start")]
    firsts = [FetchGain(row.id, row.fetched_s, gains[part], None) for part, row in rows if gains]
    drive.keeper.on_gains([FetchGain(row.id, row.fetched_s, 1.0, None) for _, row in rows if gains], drive.now_s)
    drive.keeper.on_gains((), drive.now_s + 3_600.0, firsts)
    drive.book.set_value(PRICE_KEY, PriceController("expected-gain", price=PRICE, is_settled=True).to_json())
    return BusyDrive(drive.web, rules, workers=1, db=drive.db, start_s=drive.now_s).begin()


def sections(urls: Sequence[str]) -> list[str]:
    """Return the section of each."""
    return [url.split("/")[3] for url in urls if url.count("/") > 3]


@pytest.mark.parametrize("step", [7, 5_000])
def test_good_urls_come_first_though_found_last_and_none_is_lost(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """However many are weighed at a time, no waiting URL is lost, and most of those requested are good."""
    monkeypatch.setattr(by_worth, "URLS_PER_STEP", step)
    drive = taught({"good": 9.0, "poor": 0.0})
    known = set(drive.depths())
    drive.run(300.0)
    late = sections(drive.asked_urls())[-60:]
    assert late.count("good") >= 45
    assert late.count("poor") >= 1
    ids, _ = drive.urls.get_queue(drive.keeper.hosts["a.test"].id)
    waiting = set(drive.book.get_urls(ids.tolist()).values())
    assert len(waiting) == len(ids) == drive.urls.count_waiting(drive.keeper.hosts["a.test"].id)
    assert known <= waiting | set(drive.pages()) | {f"{A}/start"}


def test_urls_below_the_price_wait_by_worth() -> None:
    """In the last queue, too, the good ones are ahead, though found last."""
    drive = taught({"good": 0.9, "poor": 0.0})
    host = drive.keeper.hosts["a.test"]
    drive.run(until=lambda: host.sort_state is not None)
    ids, fronts = drive.urls.get_queue(host.id)
    urls = drive.book.get_urls(ids.tolist())
    held = sections([urls[id_] for id_ in ids[fronts == LAST_QUEUE].tolist()])
    assert set(held) == {"good", "poor"}
    assert set(held[: len(held) // 3]) == {"good"}


def test_later_urls_join_the_queue_of_their_worth() -> None:
    """A good page found behind hundreds of poor ones is among the next; a poor one is not."""
    drive = taught({"good": 9.0, "poor": 0.0})
    drive.run(120.0)
    host = drive.keeper.hosts["a.test"].id
    drive.keeper.add_urls([f"{A}/good/new", f"{A}/poor/new"], 4, drive.now_s)
    ids, fronts = drive.urls.get_queue(host)
    new = dict(zip(drive.urls.find_ids([f"{A}/good/new", f"{A}/poor/new"]).tolist(), ("good", "poor"), strict=True))
    found = {new[id_]: front for id_, front in zip(ids.tolist(), fronts.tolist(), strict=True) if id_ in new}
    assert found["good"] < 6 < found["poor"]


@pytest.mark.parametrize(("gains", "order"), [({}, "impact"), ({"good": 9.0, "poor": 0.0}, "breadth")])
def test_the_order_stays_breadth_first_without_lessons(gains: dict[str, float], order: str) -> None:
    """Without measured gains, the order stays: first found, first fetched."""
    drive = taught(gains, order)
    drive.run(150.0)
    host = drive.keeper.hosts["a.test"]
    assert host.sort_state is None
    _, fronts = drive.urls.get_queue(host.id)
    assert set(fronts.tolist()) == {2}


def test_known_pages_that_wait_again_keep_their_place() -> None:
    """A page waiting for a refresh is not unseen, whatever its section."""
    drive = taught({"good": 9.0, "poor": 0.0})
    host = drive.keeper.hosts["a.test"].id
    seen = [row.id for url, row in drive.pages().items() if "/poor/" in url]
    drive.run(5.0)
    drive.urls.requeue(seen, priority=6)
    drive.run(until=lambda: drive.keeper.hosts["a.test"].sort_state is not None)
    ids, fronts = drive.urls.get_queue(host)
    still = {id_: front for id_, front in zip(ids.tolist(), fronts.tolist(), strict=True) if id_ in seen}
    assert set(still.values()) == {6}


def test_many_worths_are_those_of_each() -> None:
    """Scoring many at once gives the same as one at a time, also where impact is known."""
    firsts = taught({"good": 9.0, "poor": 0.0}).keeper.first_fetches
    urls = [f"{A}/{path}" for path in ("good/1", "poor/2", "good/x/y?a=/b/", "", "other/3", "good/4")]
    links = [1, 1, 5, 0, 200, 3]
    each = [firsts.estimate_worth(url, number) for url, number in zip(urls, links, strict=True)]
    assert np.allclose(firsts.estimate_worths(urls, links), each)
    gains = np.array([0.5, np.nan, 3.0, np.nan, 0.0, np.nan])
    each = [firsts.estimate_worth(*one) for one in zip(urls, links, gains.tolist(), strict=True)]
    assert np.allclose(firsts.estimate_worths(urls, links, gains), each)
