"""Properties of the synthetic web for any number, time and request."""

from functools import cache

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vedette.lab.worlds.synthetic import SyntheticWorld, open_synthetic_world
from vedette.lab.worlds.synthetic.change_times import RHYTHMS, START_S
from vedette.lab.worlds.synthetic.hashing import mix, mix_all
from vedette.lab.worlds.synthetic.page_traits import lifetimes, page_truth
from vedette.lab.worlds.synthetic.sites import Site
from vedette.lab.worlds.synthetic.validators import format_http_date
from vedette.lab.worlds.world import WorldRequest
from vedette.timeutil import DAY_S, parse_date

WORDS = st.integers(0, 2**64 - 1)
NUMBERS = st.integers(0, 20_000)
MOMENTS = st.floats(START_S - 1000 * DAY_S, START_S + 1000 * DAY_S)


@cache
def world() -> SyntheticWorld:
    """One small world for all examples."""
    return open_synthetic_world("small")


def site(index: int) -> Site:
    """Return one of its hosts."""
    sites = list(world().sites.values())
    return sites[index % len(sites)]


TARGETS = st.one_of(
    st.text(max_size=60),
    st.text(max_size=60).map("/".__add__),
    st.sampled_from(
        ["/archive/", "/calendar/", "/browse/", "/members/", "/odd/", "/tag/", "/sitemap-", "/thread/"]
    ).flatmap(lambda head: st.text(max_size=30).map(head.__add__)),
    st.builds("/music/any-page-{}{}".format, st.integers(0, 10**12), st.sampled_from(["", ".html", "?ref=x", "?a=b"])),
)
HOSTS = st.one_of(
    st.integers(0, 23).map(lambda index: site(index).name), st.text(max_size=40), st.just("x.bargain-orchard.test")
)


@settings(max_examples=4 * settings().max_examples, deadline=None)
@example("any", "/" + "&" * 90, None, None, START_S)
@example("any", "/?" + "&=" * 90, None, None, START_S)
@example("any", "/a/\ud800-1?\udfff", "\ud800", "\ud800", START_S)
@example("any", "/browse/" + "a/" * 100_000, None, None, START_S)
@example("any", "/" + "9" * 100_000, None, None, START_S)
@given(HOSTS, TARGETS, st.none() | st.text(max_size=40), st.none() | st.text(max_size=40), MOMENTS)
def test_any_question_gets_a_reply(
    host: str, target: str, if_none_match: str | None, if_modified_since: str | None, now_s: float
) -> None:
    """Whatever a client sends, the reply has a known status, and repeating the request gives the same reply."""
    host = next(iter(world().sites)) if host == "any" else host
    question = WorldRequest(host, target, if_none_match, if_modified_since)
    reply = world().reply(question, now_s)
    assert 200 <= reply.status < 600
    assert reply == world().reply(question, now_s)
    world().classify_url(f"http://{host}{target}")
    world().truth(f"http://{host}{target}")


@given(st.lists(WORDS, min_size=1, max_size=20))
def test_a_hash_is_the_same_for_one_and_for_many(words: list[int]) -> None:
    """Hashing an array gives the same as hashing its elements."""
    assert mix_all(np.array(words, dtype=np.uint64)).tolist() == [mix(word) for word in words]


@settings(deadline=None)
@given(st.integers(0, 23), st.lists(NUMBERS, min_size=1, max_size=30))
def test_lifetimes_are_the_same_for_one_and_for_many(index: int, numbers: list[int]) -> None:
    """Birth, death and move times computed as arrays are exactly those of single pages."""
    arrays = lifetimes(site(index), np.array(numbers))
    for number, born_s, died_s, moved_s in zip(numbers, *(array.tolist() for array in arrays), strict=True):
        truth = page_truth(site(index), number)
        assert (truth.born_s, truth.died_s, truth.moved_s) == (born_s, died_s, moved_s)


@settings(deadline=None)
@given(st.integers(0, 23), NUMBERS, MOMENTS)
def test_born_pages_are_those_born_by_now(index: int, number: int, now_s: float) -> None:
    """A page is among the number born if and only if its birth is not in the future."""
    births = site(index).births
    assert (number < births.count_born(now_s)) == (births.birth_s(number) <= now_s) == births.is_born(number, now_s)


@settings(deadline=None)
@given(st.integers(0, 23), NUMBERS)
def test_a_path_leads_back_to_its_page(index: int, number: int) -> None:
    """A page's URL is read back as that page, before and after a move."""
    truth = page_truth(site(index), number)
    assert world().truth(truth.url) == truth
    assert world().truth(truth.moved_url) == truth


@given(st.sampled_from(sorted(RHYTHMS)), st.floats(-1e9, 1e9))
def test_a_rhythm_can_be_read_backwards(name: str, offset_s: float) -> None:
    """The time at which a clock shows its current value is now."""
    clock = RHYTHMS[name]
    assert abs(clock.offset_s(clock.clock_at(offset_s)) - offset_s) < 1e-3


@given(st.integers(0, 4_000_000_000))
def test_http_dates_are_read_as_written(moment_s: int) -> None:
    """A date is the same after writing and reading it."""
    assert parse_date(format_http_date(moment_s)) == moment_s
