"""First fetches at a price: URLs that are worth it are fetched, others wait, and nothing starves."""

from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from tests.engine.memory_web import Drive, MemoryWeb, memory_book, page, rules_for

from vedette.engine.coordinator.state import CrawlRules
from vedette.engine.ports import FetchGain
from vedette.engine.scheduling.first_fetch import FirstFetches
from vedette.engine.scheduling.price_controller import PriceController
from vedette.model import Site

A = "https://a.test"
MINUTE_S = 60.0
DEAR, CHEAP = 1e9, 1e-9


def asker(price: float | None, budget_per_s: float = 1.0) -> FirstFetches:
    """Return first fetches without history at a price."""
    return FirstFetches(CrawlRules(budget_per_s=budget_per_s), memory_book(), SimpleNamespace(price=price))


def let_through(firsts: FirstFetches, times_s: Sequence[float]) -> int:
    """Count the URLs that may be fetched at these times."""
    return sum(firsts.check_price(f"{A}/page", 1, at_s) is None for at_s in times_s)


@pytest.mark.parametrize(("price", "budget"), [(CHEAP, 1.0), (None, 1.0), (DEAR, 0.0)])
def test_urls_worth_the_price_are_fetched(price: float | None, budget: float) -> None:
    """The same is true of all URLs if there is no price yet, or no budget."""
    assert let_through(asker(price, budget), range(1_000)) == 1_000


def test_part_of_the_budget_is_reserved_for_first_fetches() -> None:
    """In an hour at a page per second, it is at least a tenth, and hardly more; the others get a time to come back."""
    firsts = asker(DEAR)
    assert 0.1 <= let_through(firsts, range(3_600)) / 3_600 < 0.12
    report = [firsts.check_price(f"{A}/page", 1, 3_600.0) for _ in range(2)]
    assert report[1] is not None
    assert report[1] >= 3_600.0 + MINUTE_S


def crawled(price: float) -> Drive:
    """Run a crawl under a budget, which starts with a price from an earlier run."""
    web = MemoryWeb({f"{A}/d/{n}": page(title=f"number {n}") for n in range(100)})
    web.replies[f"{A}/start"] = page(*(f"/d/{n}" for n in range(100)))
    site = Site(f"{A}/start", scope="host", overrule=("trap",))
    drive = Drive(web, rules_for(site, recrawl=True, budget_per_s=0.5, delay_s=0.1), workers=1)
    drive.book.set_value("refresh purse", PriceController("expected-gain", price=price, is_settled=True).to_json())
    return Drive(web, drive.rules, workers=1, db=drive.db).begin().run(2 * MINUTE_S)


def test_a_new_site_is_crawled_at_once_at_an_ordinary_price_and_slowly_at_any() -> None:
    """A page is usually worth far more than refreshes cost, and no price stops a first crawl."""
    assert 0.9 * 60 <= len(crawled(1.0).asked_urls()) <= 62
    assert 3 <= len(crawled(DEAR).asked_urls()) <= 0.6 * 60


def test_sections_with_more_gain_are_worth_more_also_after_a_restart() -> None:
    """Sections are valued by the search gains of their first fetches; topics without searches keep some worth."""
    web = MemoryWeb({f"{A}/{part}/{n}": page(title=f"{part} {n}") for part in ("news", "tags") for n in range(12)})
    web.replies[f"{A}/start"] = page(*(url.removeprefix(A) for url in web.replies))
    drive = Drive(web, rules_for(Site(f"{A}/start", scope="host"), delay_s=0.1), workers=1).begin().run()
    firsts = FirstFetches(CrawlRules(budget_per_s=1.0), drive.book, SimpleNamespace(price=1.0))
    rows = {url: row for url, row in drive.pages().items() if url != f"{A}/start"}
    firsts.on_change_gains([FetchGain(row.id, row.fetched_s, 1.0, None) for row in rows.values()], drive.now_s)
    gains = [FetchGain(row.id, row.fetched_s, 9.0 * ("news" in url), None) for url, row in rows.items()]
    firsts.on_first_gains(gains, drive.now_s + 3_600.0)
    again = FirstFetches(CrawlRules(budget_per_s=1.0), drive.book, SimpleNamespace(price=1.0))
    for known in (firsts, again):
        news, tags = (known.estimate_worth(f"{A}/{part}/new", 1) for part in ("news", "tags"))
        assert news > tags > 0
