"""Polling: which pages become sources, when a poll is worth its price, and what survives a restart."""

import json
import zlib
from base64 import b85decode, b85encode
from math import inf

import pytest
from tests.engine.memory_web import memory_book

from vedette.adapters.crawl_store.new_page_store import AlertRow
from vedette.engine.ports import PageRow
from vedette.engine.scheduling import polling
from vedette.engine.scheduling.polling import PollResult, SourcePoller

HOUR_S, DAY_S = 3_600.0, 86_400.0
MANY = 100
FEED, NEWS, STILL, PLAIN = 1, 2, 3, 4


def kept_page(id_: int) -> PageRow:
    """Return a response in memory."""
    return PageRow(id_, 0, 200, "page", 0.0, 0.0, "", "text/html", "", "", "", "", "", 9, None, HOUR_S, HOUR_S)


def poll_hourly(looking: SourcePoller, hours: int, *, each: int = 3, begin: int = 0) -> float:
    """Poll a feed that finds this many links and a list that finds none, once an hour; return the last time."""
    for hour in range(begin, begin + hours):
        now_s = hour * HOUR_S
        shown = [1_000 + number for number in range(each * max(hour - 30, 0), each * (hour + 1))]
        feed = PollResult(FEED, 1, ok=True, is_list=True, is_refetch=hour > 0, links=shown, new=each)
        still = PollResult(STILL, 1, ok=True, is_list=True, is_refetch=hour > 0, links=[900, 901], new=0)
        looking.on_polls([feed, still], now_s)
    return (begin + hours - 1) * HOUR_S


def forecast(looking: SourcePoller, price: float, now_s: float, *ids: int) -> dict[int, float]:
    """Return when sources will be polled after the policy ran at a price."""
    looking.choose(price, MANY, now_s)
    return looking.forecast(ids, now_s)


def test_lists_are_sources_at_once_and_other_pages_by_their_links() -> None:
    """A refetched page that links to something unknown becomes a source; one that doesn't, does not."""
    looking = SourcePoller(memory_book())
    first = PollResult(NEWS, 1, ok=True, is_list=False, is_refetch=False, links=[5, 6], new=2)
    assert looking.on_polls([PollResult(FEED, 1, ok=True, is_list=True, is_refetch=False), first], 0.0) == [FEED]
    plain = PollResult(PLAIN, 1, ok=True, is_list=False, is_refetch=True, links=[5], new=0)
    assert looking.on_polls([first._replace(is_refetch=True, links=[7], new=1), plain], DAY_S) == [NEWS]
    assert [looking.is_source(id_) for id_ in (FEED, NEWS, PLAIN)] == [True, True, False]


def test_productive_sources_are_polled_sooner_and_all_later_at_a_higher_price() -> None:
    """The busy feed is polled before the quiet one, and both later if fetches cost more."""
    looking = SourcePoller(memory_book())
    now_s = poll_hourly(looking, 48)
    cheap, dear = (forecast(looking, price, now_s, FEED, STILL, PLAIN) for price in (0.3, 6.0))
    assert set(cheap) == {FEED, STILL}
    assert now_s < cheap[FEED] < cheap[STILL]
    assert cheap[FEED] < dear[FEED]


def test_a_source_is_chosen_once_per_poll_when_it_is_due() -> None:
    """A source is chosen only once it is due, and stays pending until its poll is reported."""
    looking = SourcePoller(memory_book())
    now_s = poll_hourly(looking, 48)
    due_s = forecast(looking, 0.3, now_s, FEED)[FEED]
    assert looking.choose(0.3, MANY, (now_s + due_s) / 2) == []
    assert looking.choose(0.3, MANY, due_s + 60.0) == [FEED]
    assert looking.is_pending(FEED)
    assert looking.choose(0.3, MANY, due_s + HOUR_S) == []
    looking.on_polls([PollResult(FEED, 1, ok=True, is_list=True, is_refetch=True)], due_s + HOUR_S)
    assert not looking.is_pending(FEED)


def test_a_lower_price_moves_all_polls_forward() -> None:
    """If the policy runs again at another price, earlier forecasts are replaced and come sooner."""
    looking = SourcePoller(memory_book())
    now_s = poll_hourly(looking, 48)
    dear = forecast(looking, 6.0, now_s, FEED, STILL)
    assert looking.list_outdated(now_s + 1.0) == []
    looking.choose(0.006, MANY, now_s + 1.0)
    outdated = looking.list_outdated(now_s + 1.0)
    cheap = looking.forecast(outdated, now_s + 1.0)
    assert set(outdated) == {FEED, STILL}
    assert all(cheap[id_] < dear[id_] for id_ in outdated)


def test_a_poll_that_is_on_its_way_makes_its_relative_wait() -> None:
    """Feed and home page show the same links: while one is being polled, the other isn't worth a poll."""
    looking = SourcePoller(memory_book())
    for hour in range(60):
        shown = [1_000 + 2 * number for number in range(5 * max(hour - 8, 0), 5 * (hour + 1))]
        other = [link + 1 for link in shown]
        rows = [(FEED, 1, shown, 5), (NEWS, 1, shown, 0 if hour else 5), (STILL, 2, other, 5)]
        looking.on_polls(
            [
                PollResult(id_, host, ok=True, is_list=True, is_refetch=hour > 0, links=links, new=new)
                for id_, host, links, new in rows
            ],
            hour * HOUR_S,
        )
    first = looking.choose(0.01, 1, 61 * HOUR_S)
    second = looking.choose(0.01, 1, 61 * HOUR_S + 60.0)
    assert {*first, *second} in ({FEED, STILL}, {NEWS, STILL})


@pytest.mark.parametrize(("shown", "polled"), [([10, 11, 12, 13], 1), ([20, 21, 22, 23], 2)])
def test_lists_that_name_the_same_pages_at_first_are_taken_for_relatives(shown: list[int], polled: int) -> None:
    """After a poll of the feed, the home page is worth less than before, unless it shows other pages."""
    looking = SourcePoller(memory_book())
    feed = PollResult(FEED, 1, ok=True, is_list=True, is_refetch=False, links=[10, 11, 12, 13], is_site_list=True)
    looking.on_polls([feed, feed._replace(id=NEWS, links=shown)], 0.0)
    assert len(looking.choose(0.2, MANY, 2 * HOUR_S)) == polled


def test_relatives_are_known_of_lists_that_come_while_many_wait_to_be_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    """With many sources, polls are processed later; new lists and an old one in the same batch are no problem."""
    monkeypatch.setattr(polling, "MANY_SOURCES", 1)
    looking = SourcePoller(memory_book())
    feed = PollResult(FEED, 1, ok=True, is_list=True, is_refetch=False, links=[10, 11, 12, 13], is_site_list=True)
    still = PollResult(STILL, 2, ok=True, is_list=True, is_refetch=False, links=[90])
    looking.on_polls([feed, still], 0.0)
    looking.on_polls([still._replace(is_refetch=True)], 0.0)
    looking.on_polls([still._replace(is_refetch=True), feed._replace(id=NEWS)], 0.0)
    summary = looking.summarize_source(FEED, HOUR_S)
    assert summary is not None
    assert summary.alike == (NEWS,)


def test_another_policy_may_choose_and_keeps_its_place_when_sources_go() -> None:
    """Round robin takes the sources that waited longest; counts of removed sources are forgotten."""
    looking = SourcePoller(memory_book(), policy="round-robin")
    now_s = poll_hourly(looking, 48)
    looking.on_polls([PollResult(PLAIN, 2, ok=True, is_list=True, is_refetch=False, links=[5])], now_s - HOUR_S)
    looking.on_polls([PollResult(STILL, 1, ok=True, is_list=True, is_refetch=True)], now_s - 2 * HOUR_S)
    assert looking.choose(1e-9, 1, now_s + HOUR_S) == [STILL]
    assert "round-robin" in looking.explain([FEED], now_s)[FEED]
    looking.use_policy("thompson")
    poll_hourly(looking, 24, begin=50)
    looking.forget([FEED])
    assert looking._published is not None
    assert looking._published.state.found.sum() == 0.0
    assert looking.choose(1e-9, MANY, 200 * HOUR_S) != []
    looking.use_policy("accrual")
    assert "accrual" in looking.explain([STILL], now_s)[STILL]


def test_pushed_links_let_a_source_rest() -> None:
    """Links delivered by a hub need not be polled for."""
    looking = SourcePoller(memory_book())
    now_s = poll_hourly(looking, 48) + 12 * HOUR_S
    looking.rest(FEED, now_s + HOUR_S)
    assert FEED not in looking.choose(0.01, MANY, now_s)
    assert FEED in looking.choose(0.01, MANY, now_s + HOUR_S)


def test_without_room_the_least_valuable_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    """A productive feed stays, and an idle one makes room for a newly found list."""
    monkeypatch.setattr(polling, "MAX_SOURCES", 3)
    looking = SourcePoller(memory_book())
    now_s = poll_hourly(looking, 48)
    looking.on_polls([PollResult(NEWS, 2, ok=True, is_list=True, is_refetch=False, links=[7])], now_s)
    before = looking.summarize_source(FEED, now_s)
    looking.on_polls([PollResult(PLAIN, 2, ok=True, is_list=True, is_refetch=False, links=[8])], now_s)
    assert [looking.is_source(id_) for id_ in (FEED, NEWS, STILL, PLAIN)] == [True, True, False, True]
    after = looking.summarize_source(FEED, now_s)
    assert before is not None
    assert after is not None
    assert (after.looks, after.found) == (before.looks, before.found)
    # Its own links are its evidence; a gone neighbor moves only the usual rate of its host.
    assert after.an_hour == pytest.approx(before.an_hour, rel=0.05)
    assert looking.counts.get(STILL).polls == 0
    looking.save(now_s)
    assert len(SourcePoller(looking._store)) == 3


@pytest.mark.parametrize("place", ["*", "a.test", "a.test/news"])
def test_watched_places_are_polled_sooner(place: str) -> None:
    """Sources that link to a watched place are polled sooner, until the watch is removed."""
    book = memory_book("a.test")
    links = ["http://a.test/news/1", "http://a.test/news/2"]
    book.save_pages([(kept_page(FEED), (links, ["", ""])), (kept_page(STILL), (["http://b.test/"], [""]))])
    looking = SourcePoller(book)
    now_s = poll_hourly(looking, 48)

    def waits_s(id_: int) -> float:
        return forecast(SourcePoller(book), 1.6, now_s, id_)[id_] - now_s

    looking.save(now_s)
    alone_s, other_s = waits_s(FEED), waits_s(STILL)
    book.add_alert(AlertRow("w", "m", place=place))
    report = SourcePoller(book).summarize_source(FEED, now_s)
    assert report is not None
    assert report.watched == 1.0
    assert 0.35 * alone_s < waits_s(FEED) < 0.65 * alone_s
    assert waits_s(STILL) == other_s or place == "*"
    book.delete_alert("w")
    assert waits_s(FEED) == alone_s


def test_a_watch_counts_from_the_next_question_on() -> None:
    """A running poller notices the alert by itself; a query without a place changes nothing."""
    book = memory_book("a.test")
    book.save_pages([(kept_page(FEED), (["http://a.test/1", "http://b.test/"], ["", ""]))])
    looking = SourcePoller(book)
    now_s = poll_hourly(looking, 3)
    shares = []
    for watch in (AlertRow("q", "1", query="harbour"), AlertRow("s", "2", place="a.test", query="harbour")):
        book.add_alert(watch)
        report = looking.summarize_source(FEED, now_s)
        shares.append(report.watched if report else None)
    assert shares == [0.0, 0.5]


def test_failures_put_a_source_off() -> None:
    """A source that doesn't respond is worth less."""
    up, down = SourcePoller(memory_book()), SourcePoller(memory_book())
    now_s = max(poll_hourly(each, 48) for each in (up, down))
    for hour in (1, 2, 3):
        down.on_polls([PollResult(FEED, 1, ok=False, is_list=True, is_refetch=True)], now_s + hour * HOUR_S)
    at_s = now_s + 3 * HOUR_S
    up_s, down_s = (forecast(each, 20.0, at_s, FEED)[FEED] for each in (up, down))
    assert up_s < down_s < inf


def test_estimates_survive_a_restart() -> None:
    """Another run continues with the same beliefs, bit for bit; invalid ones are reset."""
    book = memory_book()
    looking = SourcePoller(book)
    now_s = poll_hourly(looking, 30)
    looking.save(now_s)
    again = SourcePoller(book)
    assert forecast(again, 2.0, now_s + 1, FEED, STILL) == forecast(looking, 2.0, now_s + 1, FEED, STILL)
    assert again.explain([FEED, PLAIN], now_s + 1) == looking.explain([FEED, PLAIN], now_s + 1)
    assert again.summarize_source(FEED, now_s + 1) == looking.summarize_source(FEED, now_s + 1)
    book.set_value("sources", "{damaged")
    assert len(SourcePoller(book)) == 0


def test_beliefs_of_an_earlier_version_are_read() -> None:
    """In that version, columns were not compressed, and only the last poll had a date."""
    book = memory_book()
    looking = SourcePoller(book)
    now_s = poll_hourly(looking, 30)
    looking.save(now_s)
    columns = json.loads(book.get_value("sources") or "")
    del columns["poll_s"]
    plain = {name: zlib.decompress(b85decode(text)) for name, (_, _, text, _) in columns.items()}
    earlier = {name: [*columns[name][:2], b85encode(plain[name]).decode()] for name in columns}
    book.set_value("sources", json.dumps(earlier))
    again = SourcePoller(book)
    assert again.summarize_source(FEED, now_s) == looking.summarize_source(FEED, now_s)
    assert again.choose(0.3, MANY, now_s + DAY_S)[:1] == [FEED]


def test_estimated_link_rates_are_shown() -> None:
    """If each hourly poll finds three links, somewhat more appear, because some vanish before the poll."""
    looking = SourcePoller(memory_book())
    now_s = poll_hourly(looking, 72)
    report = looking.summarize_source(FEED, now_s + HOUR_S)
    assert report is not None
    assert 2.0 < report.low < report.an_hour < report.high < 6.0
    assert (report.looks, report.found, report.wasted) == (71, 213, 0)
    assert report.expected > 1.0
    assert looking.summarize_source(PLAIN, now_s) is None


def test_sources_with_short_lived_links_are_polled_sooner() -> None:
    """Of two equally productive lists, the one with short-lived links is polled sooner."""
    waits_s = []
    for stays in (False, True):
        looking, shown = SourcePoller(memory_book()), list[int]()
        for hour in range(0, 24 * 8, 2):
            new = [1_000 + hour * 4 + number for number in range(4)]
            shown = ([*shown, *new] if stays else new)[-60:]
            looking.on_polls(
                [PollResult(FEED, 1, ok=True, is_list=True, is_refetch=hour > 0, links=shown, new=4)], hour * HOUR_S
            )
        now_s = 24 * 8 * HOUR_S - 2 * HOUR_S
        waits_s.append(forecast(looking, 3.0, now_s, FEED)[FEED] - now_s)
    assert waits_s[0] < waits_s[1]
