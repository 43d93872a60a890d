"""Results of polls, by source and in total, and the reason for each poll."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.memory_web import Drive, MemoryWeb, Reply, Served, memory_book, page, rules_for

from vedette.engine.scheduling.forecast import HALF_LIFE_S
from vedette.engine.scheduling.idle_refresh import IdleRefresh
from vedette.engine.scheduling.poll_counts import EARNED, PollAllowance, PollCounts, SourceCount
from vedette.engine.scheduling.poll_schedule import PollSchedule
from vedette.engine.scheduling.polling import PollResult, SourcePoller
from vedette.engine.scheduling.schedule import Schedule
from vedette.refresh.policies.fixed import Fixed

HOUR_S, DAY_S = 3_600.0, 86_400.0
FEED, HOME = 1, 2
looks = st.lists(st.tuples(st.sampled_from([FEED, HOME]), st.integers(0, 5)), max_size=30)


@given(looks)
def test_every_look_is_counted_once(made: list[tuple[int, int]]) -> None:
    """For polls at one moment, the sums equal those of the sources and survive storage."""
    counts = PollCounts()
    for id_, new in made:
        counts.add(id_, new=new, now_s=50.0)
    each = [counts.get(id_) for id_ in (FEED, HOME)]
    assert sum(one.polls for one in each) == counts.polls == len(made)
    assert sum(one.found for one in each) == counts.found == sum(new for _, new in made)
    assert sum(one.wasted for one in each) == counts.wasted == sum(new == 0 for _, new in made)
    assert PollCounts.from_json(counts.to_json()) == counts


def test_sums_fade_and_those_of_sources_do_not() -> None:
    """A day later, a poll counts half in the totals."""
    counts = PollCounts()
    counts.add(FEED, new=0, now_s=0.0)
    counts.add(FEED, new=1, now_s=HALF_LIFE_S)
    assert counts.polls == pytest.approx(1.5)
    assert counts.wasted_share == pytest.approx(0.5 / 1.5)
    assert counts.get(FEED) == SourceCount(2, 1, 1)


@pytest.mark.parametrize("text", ["{", "[]", "null", '{"sums": [1, 2], "sources": {}}', '{"sums": [NaN, 0, 0, 0]}'])
def test_a_damaged_row_starts_over(text: str) -> None:
    """A damaged row starts from zero."""
    assert PollCounts.from_json(text) == PollCounts()


def test_a_first_fetch_is_no_look_and_one_without_an_answer_is_in_vain() -> None:
    """At a first fetch, everything is unknown, so it isn't a poll."""
    looking = SourcePoller(memory_book())
    first = PollResult(FEED, 1, ok=True, is_list=True, is_refetch=False, links=[5, 6], new=2)
    looking.on_polls([first], 0.0)
    looking.on_polls([first._replace(is_refetch=True, links=[7], new=1)], DAY_S)
    looking.on_polls([PollResult(FEED, 1, ok=False, is_list=False, is_refetch=True)], 2 * DAY_S)
    assert looking.counts.get(FEED) == SourceCount(2, 1, 1)
    (source,) = looking.list_yields(2 * DAY_S)
    assert (source.id, source.counts) == (FEED, SourceCount(2, 1, 1))
    assert 0 < source.low < source.an_hour < source.high
    assert SourcePoller(memory_book()).list_yields(0.0) == []


def test_a_reason_explains_the_decision_of_the_policy() -> None:
    """The loss from waiting is compared with what a poll must be worth, and a chosen source waits for its host."""
    looking = SourcePoller(memory_book())
    for day in range(9):
        shown = [100 + number for number in range(day + 1)]
        looking.on_polls(
            [PollResult(FEED, 1, ok=True, is_list=True, is_refetch=day > 0, links=shown, new=1)], day * DAY_S
        )
    assert looking.choose(50.0, 1, 9 * DAY_S) == []
    (answer,) = looking.explain([FEED, HOME], 9 * DAY_S).values()
    assert "24.0 h after the last poll" in answer
    assert answer.endswith("a poll must be worth 50")
    assert looking.choose(0.001, 1, 9 * DAY_S) == [FEED]
    assert "waiting for its host" in looking.explain([FEED], 9 * DAY_S)[FEED]


@given(st.lists(st.integers(0, 400), min_size=1, max_size=60), st.floats(0.0, 1e-3))
def test_polls_are_a_share_of_requests_or_the_floor(requests: list[int], floor_per_s: float) -> None:
    """For any requests, polls never exceed their share plus the minimum, plus one at the start."""
    allowance, polls, made = PollAllowance(), 0, 0
    for hour, count in enumerate(requests):
        allowance.add_requests(count + made)
        made = allowance.advance(hour * HOUR_S, floor_per_s)
        allowance.take(made)
        polls += made
    assert polls <= 1.0 + EARNED * sum(requests) + floor_per_s * HOUR_S * len(requests) + 1e-6


def test_what_requests_earn_is_spread_evenly_over_a_day() -> None:
    """After a first crawl, polls are spread evenly over a day, then end; this survives a restart."""
    allowance = PollAllowance()
    allowance.add_requests(round(48 / EARNED))
    polls = []
    for hour in range(26):
        polls.append(allowance.advance(hour * HOUR_S, 0.0))
        allowance.take(polls[-1])
        allowance.add_requests(polls[-1])
        if hour == 12:
            assert PollAllowance.from_json(allowance.to_json()).advance(hour * HOUR_S, 0.0) == 1
    assert polls[0] == 1
    assert set(polls[1:24]) == {2}
    assert polls[25] == 0


def test_without_a_price_no_more_lists_are_polled_than_requests_earn() -> None:
    """Although each of forty lists shows five new links at every poll."""
    looking, store = SourcePoller(memory_book()), memory_book()
    schedule = PollSchedule(looking, store, 600.0, IdleRefresh(rules_for("https://a.test/"), lambda _: 1.0))

    def report(ids: Sequence[int], now_s: float) -> None:
        links = {id_: [id_ * 10**6 + int(now_s) + number for number in range(5)] for id_ in ids}
        usual = PollResult(FEED, 1, ok=True, is_list=True, is_refetch=now_s > 0, new=5)
        looking.on_polls([usual._replace(id=id_, host=id_ % 4, links=links[id_]) for id_ in ids], now_s)

    report(range(40), 0.0)
    looking.allowance.add_requests(round(240 / EARNED))
    polls = 0
    for now_s in range(300, 86_400, 300):
        chosen = schedule.choose(None, float(now_s))
        report(chosen, float(now_s))
        looking.allowance.add_requests(len(chosen))
        polls += len(chosen)
    assert 200 < polls <= 241


def test_a_feed_without_end_is_no_good_source() -> None:
    """URLs held back as traps do not count as found: polls that find nothing else are wasted."""
    home, feed = "https://a.test/", "https://a.test/feed"

    def endless(now_s: float) -> Served:
        links = "".join(f'<entry><link href="/day/{int(now_s)}{n}"/></entry>' for n in range(10))
        body = f'<feed xmlns="http://www.w3.org/2005/Atom">{links}</feed>'
        return Reply(200, (("content-type", "application/atom+xml"),), body.encode())

    class Calendar(MemoryWeb):
        """Every day has a page, and all of them have the same text."""

        def reply(self, url: str, now_s: float) -> Served:
            return page(title="Calendar") if "/day/" in url else super().reply(url, now_s)

    web = Calendar({home: page("/feed"), feed: endless})
    rules = rules_for(home, recrawl=True, refresh="nutch")
    drive = Drive(web, rules, schedule=Schedule(recrawl=True, sources=Fixed(interval_s=60.0))).begin()
    id_ = drive.run(HOUR_S).pages()[feed].id
    counts = drive.keeper.refresher.poller.counts
    early = counts.get(id_)
    drive.run(HOUR_S)
    assert counts.get(id_).polls > early.polls
    assert counts.get(id_).found == early.found
