"""What looks came to, source by source and in all; and why a source is looked at when it is."""

from functools import partial
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.memory_web import Drive, MemoryWeb, Reply, Served, memory_book, page, rules_for

from vedette.engine.ports import PageRow
from vedette.engine.scheduling.forecast import HALF_LIFE_S
from vedette.engine.scheduling.polling import (
    MAX_INTERVAL_S,
    PollCounts,
    PollResult,
    SourceCount,
    SourcePoller,
    explain_poll_time,
)
from vedette.engine.scheduling.schedule import Schedule
from vedette.refresh.policies.fixed import Fixed

HOUR_S, DAY_S = 3_600.0, 86_400.0
FEED, HOME = 1, 2
looks = st.lists(st.tuples(st.sampled_from([FEED, HOME]), st.integers(0, 5)), max_size=30)


def row(fetched_s: float, due_s: float) -> PageRow:
    """A page at hand, fetched and due then."""
    texts = ("",) * 7
    return PageRow(1, 1, 200, "feed", fetched_s, fetched_s, *texts, 0, None, DAY_S, due_s)


@given(looks)
def test_every_look_is_counted_once(made: list[tuple[int, int]]) -> None:
    """All looks at one moment: the sums are those of the sources, and survive being written down."""
    counts = PollCounts()
    for id_, new in made:
        counts.add(id_, new=new, now_s=50.0)
    each = [counts.get(id_) for id_ in (FEED, HOME)]
    assert sum(one.polls for one in each) == counts.polls == len(made)
    assert sum(one.found for one in each) == counts.found == sum(new for _, new in made)
    assert sum(one.wasted for one in each) == counts.wasted == sum(new == 0 for _, new in made)
    assert PollCounts.from_json(counts.to_json()) == counts


def test_sums_fade_and_those_of_sources_do_not() -> None:
    """A day later a look counts half."""
    counts = PollCounts()
    counts.add(FEED, new=0, now_s=0.0)
    counts.add(FEED, new=1, now_s=HALF_LIFE_S)
    assert counts.polls == pytest.approx(1.5)
    assert counts.wasted_share == pytest.approx(0.5 / 1.5)
    assert counts.get(FEED) == SourceCount(2, 1, 1)


@pytest.mark.parametrize("text", ["{", "[]", "null", '{"sums": [1, 2], "sources": {}}', '{"sums": [NaN, 0, 0, 0]}'])
def test_what_makes_no_sense_counts_as_nothing(text: str) -> None:
    """A damaged row begins anew."""
    assert PollCounts.from_json(text) == PollCounts()


def test_a_first_fetch_is_no_look_and_one_without_an_answer_is_in_vain() -> None:
    """At a first fetch everything is unknown."""
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


def test_a_reason_says_which_rule_has_the_next_look() -> None:
    """A fixed pace has its own words; a price, the longest wait and a look that is on its way have these."""
    fixed_s = 600.0
    of_list = partial(explain_poll_time, look_s=inf, is_list=True, fixed_s=fixed_s)
    assert of_list(row(0.0, fixed_s)) == ""
    assert "price" in of_list(row(0.0, 4000.0))
    assert "once a day" in of_list(row(0.0, MAX_INTERVAL_S))
    assert "waits" in of_list(row(0.0, inf))
    assert explain_poll_time(row(0.0, 4000.0), 9000.0, is_list=False, fixed_s=fixed_s) == ""
    assert "price" in explain_poll_time(row(0.0, 4000.0), 4000.0, is_list=False, fixed_s=fixed_s)


def test_a_feed_without_end_is_no_good_source() -> None:
    """What is held back as a trap is not found: looks that name nothing else are in vain."""
    home, feed = "https://a.test/", "https://a.test/feed"

    def endless(now_s: float) -> Served:
        links = "".join(f'<entry><link href="/day/{int(now_s)}{n}"/></entry>' for n in range(10))
        body = f'<feed xmlns="http://www.w3.org/2005/Atom">{links}</feed>'
        return Reply(200, (("content-type", "application/atom+xml"),), body.encode())

    class Calendar(MemoryWeb):
        """Every day has a page, and all of them say the same."""

        def reply(self, url: str, now_s: float) -> Served:
            return page(title="Calendar") if "/day/" in url else super().reply(url, now_s)

    web = Calendar({home: page("/feed"), feed: endless})
    rules = rules_for(home, recrawl=True, refresh="nutch")
    drive = Drive(web, rules, schedule=Schedule(recrawl=True, sources=Fixed(interval_s=600.0))).begin()
    id_ = drive.run(2 * HOUR_S).pages()[feed].id
    counts = drive.keeper.refresher.poller.counts
    early = counts.get(id_)
    drive.run(2 * HOUR_S)
    assert counts.get(id_).polls >= early.polls + 10
    assert counts.get(id_).found == early.found
