"""How the budget was spent: every request is counted once, by purpose, with its cost and gain."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from tests.engine.memory_web import Drive, MemoryWeb, Reply, memory_book, page, robots, rules_for

from vedette.engine.ports import FetchGain
from vedette.engine.scheduling.first_fetch import BelowPrice, load_held_summary
from vedette.engine.scheduling.spending import (
    DAYS,
    MAX_SITES,
    OTHER_SITES,
    DaySpending,
    FetchStats,
    classify_fetch,
    load_all_time,
    load_days,
)
from vedette.model import Failure, Site

A, B = "https://a.test", "https://b.test"
HOUR_S, DAY_S = 3_600.0, 86_400.0


def spoken(hour: int) -> Reply:
    """Return a page with a different text every hour."""
    words = ("salt sea wind rope anchor", "leaf root branch seed bark", "wheel axle spoke hub rim")[hour % 3]
    body = f"<p>{' and then '.join([words] * 5)}</p>"
    return Reply(200, (("content-type", "text/html"),), body.encode())


def crawled() -> Drive:
    """Crawl two sites: one has changing pages, a list as home page and a page that disappears; one does not respond."""
    web = MemoryWeb(
        {f"{A}/robots.txt": robots(), f"{A}/": page("/one", "/two", "/gone"), f"{A}/two": page(title="two")}
    )
    web.replies[f"{A}/one"] = lambda now_s: spoken(int(now_s // HOUR_S))
    web.replies[f"{A}/gone"] = lambda now_s: page(title="here") if now_s < 2 * HOUR_S else Reply(404)
    web.replies[f"{B}/"] = Failure.TIMEOUT
    rules = rules_for(Site(f"{A}/"), Site(f"{B}/"), recrawl=True, budget_per_s=0.2)
    return Drive(web, rules, workers=1).begin()


def sums(drive: Drive) -> dict[str, dict[str, FetchStats]]:
    """Add up all days, by site and kind."""
    drive.keeper.spending.save(drive.now_s)
    found: dict[str, dict[str, FetchStats]] = {}
    for day in load_days(drive.book, drive.now_s, DAYS):
        for site, kinds in day.sites.items():
            for kind, spent in kinds.items():
                found.setdefault(site, {})[kind] = found.get(site, {}).get(kind, FetchStats()) + spent
    return found


def test_every_request_is_counted_once_by_purpose() -> None:
    """Counts by site equal those of the servers, and each kind of fetch occurs where expected."""
    drive = crawled().run(14 * HOUR_S)
    drive.keeper.request_urls([f"{A}/two"], drive.now_s)
    drive.run(HOUR_S)
    drive._report()
    found, seen = sums(drive), Counter(asked.host for asked in drive.log)
    for host, start in (("a.test", f"{A}/"), ("b.test", f"{B}/")):
        assert abs(sum(spent.fetches for spent in found[start].values()) - seen[host]) <= 1
    own = found[f"{A}/"]
    assert own["first"].fetches == 4
    assert own["first"].found == 3
    assert own["asked"].fetches == 1
    assert own["refresh"].fetches > own["refresh"].changed > 0
    assert own["look"].fetches > 0
    assert own["refresh"].failed == 1
    assert own["robots"].fetches > 0
    assert own["refresh"].seconds > 0
    assert found[f"{B}/"]["robots"].failed == found[f"{B}/"]["robots"].fetches


def test_gains_are_put_down_to_the_kind_and_site_of_their_fetch() -> None:
    """This is true whichever gain was measured first; unknown fetches are not counted, and gains are not fetches."""
    drive = crawled().run(HOUR_S)
    row = drive.pages()[f"{A}/two"]
    drive.keeper.on_gains(
        (), drive.now_s, [FetchGain(row.id, row.fetched_s, 0.5, None), FetchGain(999, 0.0, 7.0, None)]
    )
    before, after = sums(drive), sums(drive)
    first = after[f"{A}/"]["first"]
    assert (first.gain, first.measured) == (0.5, 1)
    assert before == after
    ever = first + after[f"{B}/"]["first"]
    assert load_all_time(drive.book)["first"] == ever
    assert Drive(drive.web, drive.rules, db=drive.db, start_s=drive.now_s).keeper.spending.all_time["first"] == ever


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(1, 9)), max_size=600))
def test_sites_of_a_day_are_bounded_and_nothing_is_lost(asked: list[tuple[int, int]]) -> None:
    """Sites beyond the limit are counted together, without a name."""
    day = DaySpending(3, {})
    for site, fetches in asked:
        day.add(f"https://s{site}.test/", "first", FetchStats(fetches=float(fetches)))
    total = sum(spent.fetches for kinds in day.sites.values() for spent in kinds.values())
    assert total == sum(fetches for _, fetches in asked)
    assert len(day.sites) <= MAX_SITES + 1
    assert OTHER_SITES not in day.sites or len(day.sites) == MAX_SITES + 1
    assert DaySpending.from_json(day.to_json()) == day


def test_days_go_by_themselves() -> None:
    """A month-old day is not reported, even if its key is still there."""
    book = memory_book()
    for number in (1, 5, 40):
        book.set_value(f"spending {number % DAYS}", DaySpending(number, {"a": {"first": FetchStats(1.0)}}).to_json())
    assert [day.number for day in load_days(book, 40.5 * DAY_S, DAYS)] == [40]
    assert [day.number for day in load_days(book, 5.5 * DAY_S, DAYS)] == [1, 5]
    assert [day.number for day in load_days(book, 5.5 * DAY_S, 1)] == [5]


def test_urls_below_the_price_are_listed_until_they_are_fetched() -> None:
    """The best URLs come first; after an hour they are no longer listed."""
    book, held = memory_book(), BelowPrice()
    for number in range(50):
        held.add(f"{A}/{number}", float(number), 99.0, 0.0)
    held.remove(f"{A}/49")
    held.save_periodically(book, 1.0)
    assert load_held_summary(book, 2.0).urls == 49
    assert [one.url for one in load_held_summary(book, 2.0).best[:2]] == [f"{A}/48", f"{A}/47"]
    assert load_held_summary(book, 2 * HOUR_S).urls == 0
    book.set_value("held back", '{"best": [["x", 1]], "urls": 1, "at_s": 0}')
    assert load_held_summary(book, 0.0).urls == 0


def test_retried_and_requested_fetches_are_counted_separately() -> None:
    """A fetch that the operator requests counts as such, whatever the page is, and a missing page is retried."""
    row = crawled().run(HOUR_S).pages()[f"{A}/two"]
    gone = row._replace(status=404)
    assert classify_fetch(gone, wished=False, is_polled=True) == "gone"
    assert classify_fetch(gone, wished=True, is_polled=False) == "asked"
    assert classify_fetch(row, wished=False, is_polled=True) == "look"
