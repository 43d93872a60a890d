"""Simulated visitors: they follow their habits, one seed is one population, and hostile responses do no harm."""

from collections import Counter
from collections.abc import Callable
from dataclasses import astuple
from ipaddress import IPv4Address
from itertools import islice, pairwise, takewhile
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.lab.visitors.habits import EMPTY_PAGE, Action, Click, Habits, Hit, ResultPage, Search, View
from vedette.lab.visitors.population import (
    Appeal,
    Arrival,
    VisitorPopulation,
    examination_probabilities,
    simulate_reading,
    word_overlap,
)
from vedette.lab.visitors.queries import Interests, misspell
from vedette.lab.visitors.traffic import parse_results
from vedette.lab.worlds.synthetic.change_times import START_S
from vedette.lab.worlds.synthetic.sites import loopback_address
from vedette.lab.worlds.synthetic.topics import TOPICS, TOWNS
from vedette.learn.bot_filter import check_request
from vedette.policy import rng_for

HOUR_S, DAY_S = 3600.0, 86_400.0
LONGEST_QUERY = 2000  # what the search page takes

SEEDS = st.integers(0, 2**32)
MOMENTS = st.floats(0, 400 * DAY_S).map(lambda since_s: START_S + since_s)
CHANCES = st.floats(0, 1)
APPEALS = st.lists(st.builds(Appeal, CHANCES, CHANCES), max_size=12)
HITS = st.builds(Hit, st.integers(1, 2**60), st.text(max_size=30), st.text(max_size=60))
FINDS = st.builds(
    ResultPage, st.sampled_from(["", "s1"]), st.lists(HITS, max_size=5).map(tuple), st.text(max_size=20), st.booleans()
)

Answering = Callable[[Search], ResultPage]


def deeds(public: VisitorPopulation, arrival: Arrival, answering: Answering) -> list[Action]:
    """Return the actions of a visit to a server that responds this way."""
    visit = public.simulate_visit(arrival)
    done: list[Action] = []
    found: ResultPage | None = None
    while True:
        try:
            deed = next(visit) if found is None else visit.send(found)
        except StopIteration:
            return done
        done.append(deed)
        found = answering(deed) if isinstance(deed, Search) else EMPTY_PAGE


def fitting(ask: Search) -> ResultPage:
    """Return ten results; every other one has the query as its title."""
    titles = [ask.query if place % 2 else "Another thing" for place in range(10)]
    hits = tuple(Hit(place + 1, f"http://{place}.test/{ask.page}", title) for place, title in enumerate(titles))
    return ResultPage("slate", hits, has_next=True)


@given(SEEDS, st.integers(0, 10**6), MOMENTS)
def test_the_same_seed_is_the_same_public(seed: int, number: int, at_s: float) -> None:
    """Arrivals and actions follow from the seed and the responses."""
    arrival = Arrival(number, at_s)
    assert VisitorPopulation(seed).person_for(arrival) == VisitorPopulation(seed).person_for(arrival)
    assert deeds(VisitorPopulation(seed), arrival, fitting) == deeds(VisitorPopulation(seed), arrival, fitting)
    assert list(islice(VisitorPopulation(seed).arrivals(at_s, 0.1), 5)) == list(
        islice(VisitorPopulation(seed).arrivals(at_s, 0.1), 5)
    )


def test_another_seed_is_another_public() -> None:
    """Two seeds do not search for the same things."""
    asked = [
        [deeds(VisitorPopulation(seed), Arrival(number, START_S), fitting)[0] for number in range(50)]
        for seed in (1, 2)
    ]
    assert asked[0] != asked[1]


@given(APPEALS, CHANCES)
def test_each_place_is_looked_at_no_more_often_than_the_one_before(appeals: list[Appeal], perseverance: float) -> None:
    """The first position is always examined; after it, the probability only decreases."""
    chances = examination_probabilities(appeals, perseverance)
    assert len(chances) == len(appeals)
    assert chances[:1] in ([], [1.0])
    assert all(later <= before for before, later in pairwise(chances))


@given(st.lists(CHANCES, max_size=12), CHANCES)
def test_where_nobody_is_ever_content_only_the_place_counts(lures: list[float], perseverance: float) -> None:
    """If no one is ever satisfied, this is the position-based model, regardless of clicks."""
    expected = [perseverance**place for place in range(len(lures))]
    assert examination_probabilities([Appeal(lure, 0.0) for lure in lures], perseverance) == pytest.approx(expected)


def test_what_is_read_follows_what_is_said_of_reading() -> None:
    """Over many visits, each position is examined and clicked as often as its stated probability."""
    appeals = [Appeal(0.2, 0.9), Appeal(0.7, 0.5), Appeal(0.4, 0.3), Appeal(0.6, 0.8)]
    rng, times = rng_for(1, "test"), 10_000
    readings = [simulate_reading(appeals, 0.8, rng) for _ in range(times)]
    for place, chance in enumerate(examination_probabilities(appeals, 0.8)):
        looked = sum(reading.examined > place for reading in readings) / times
        opened = sum(place in reading.opened for reading in readings) / times
        assert looked == pytest.approx(chance, abs=0.02)
        assert opened == pytest.approx(chance * appeals[place].attraction, abs=0.02)


@given(APPEALS, CHANCES, SEEDS)
def test_a_reading_is_possible(appeals: list[Appeal], perseverance: float, seed: int) -> None:
    """Only examined results are clicked, from top to bottom, and only a clicked page satisfies a visitor."""
    reading = simulate_reading(appeals, perseverance, rng_for(seed, "test"))
    assert list(reading.opened) == sorted(set(reading.opened))
    assert all(place < reading.examined for place in reading.opened)
    assert not reading.satisfied or reading.opened[-1] == reading.examined - 1


@given(SEEDS, st.integers(0, 10**6), MOMENTS, st.lists(FINDS, min_size=1, max_size=4))
def test_whatever_is_answered_a_visit_ends_and_asks_in_words(
    seed: int, number: int, at_s: float, finds: list[ResultPage]
) -> None:
    """Queries are valid text, pauses are times, and every visit ends."""
    turn = iter(finds * 10)
    done = deeds(VisitorPopulation(seed), Arrival(number, at_s), lambda _: next(turn))
    asks = [deed for deed in done if isinstance(deed, Search)]
    assert 1 <= len(asks) <= 10
    assert all(ask.page >= 1 and 0 < len(ask.query) <= LONGEST_QUERY for ask in asks)
    assert all(isfinite(deed.after_s) and deed.after_s >= 0 for deed in done)


def test_only_what_was_shown_is_seen_or_opened() -> None:
    """A slate is viewed right after its search; an opened result is among its results."""
    public = VisitorPopulation(3)
    for number in range(200):
        done = deeds(public, Arrival(number, START_S), fitting)
        assert {deed.slate for deed in done if isinstance(deed, View | Click)} <= {"slate"}
        assert all(1 <= deed.page <= 10 for deed in done if isinstance(deed, Click))
        if not public.person_for(Arrival(number, START_S)).is_robot:
            assert all(isinstance(done[at + 1], View) for at, deed in enumerate(done) if isinstance(deed, Search))


def test_titles_with_the_words_are_opened_more_often() -> None:
    """Of results examined about equally often, those that match the need are opened far more often."""
    public, opened = VisitorPopulation(1), Counter[int]()
    for number in range(600):
        arrival = Arrival(number, START_S)
        if not public.person_for(arrival).is_robot:
            opened.update(deed.page % 2 for deed in deeds(public, arrival, fitting) if isinstance(deed, Click))
    assert opened[0] > 4 * opened[1] > 0


def test_words_count_in_any_form_and_order() -> None:
    """What a title shares with a need is a share of the need."""
    assert word_overlap("how to paint ferries", "Painted ferry: how to") == 1.0
    assert word_overlap("ferry", "Sea walls") == word_overlap("", "Sea walls") == 0.0


@given(SEEDS)
def test_visits_come_in_order_and_as_often_as_is_said(seed: int) -> None:
    """Over some days, the number of visits matches the rate, within chance."""
    per_s, days = 0.001, 5
    coming = takewhile(
        lambda arrival: arrival.at_s < START_S + days * DAY_S, VisitorPopulation(seed).arrivals(START_S, per_s)
    )
    times = [arrival.at_s for arrival in coming]
    expected = per_s * days * DAY_S
    assert times == sorted(times)
    assert abs(len(times) - expected) < 6 * expected**0.5


def test_days_have_a_rhythm() -> None:
    """More visitors come around the busiest hour than twelve hours later, and no hour has none."""
    habits = Habits(swing=0.5, busiest_hour=16.0)
    coming = islice(VisitorPopulation(1, habits).arrivals(START_S, 0.01), 10_000)
    hours = Counter(int(arrival.at_s % DAY_S // HOUR_S) for arrival in coming)
    busy, quiet = hours[15] + hours[16], hours[3] + hours[4]
    assert 2 < busy / quiet < 4.5
    assert len(hours) == 24


@given(SEEDS, MOMENTS)
def test_topics_drift_slowly(seed: int, at_s: float) -> None:
    """All shares are valid; within an hour, hardly anything changes, within days, something does."""
    interests = Interests(seed, Habits(), TOPICS)
    now, soon = interests.popularity(at_s), interests.popularity(at_s + HOUR_S)
    assert now.sum() == pytest.approx(1)
    assert (now > 0).all()
    assert abs(now - soon).max() < 0.05
    assert max(abs(now - interests.popularity(at_s + days * DAY_S)).max() for days in (1, 2, 3)) > 0.005


@given(SEEDS, MOMENTS)
def test_fashions_fade(seed: int, at_s: float) -> None:
    """Trends never take more than half, have begun, and are smaller an hour later."""
    interests = Interests(seed, Habits(), TOPICS)
    now = interests.active_trends(at_s)
    assert sum(fashion.share for fashion in now) <= 0.5 + 1e-9
    assert all(fashion.since_s <= at_s for fashion in now)
    later = {fashion.since_s: fashion.share for fashion in interests.active_trends(at_s + HOUR_S)}
    assert all(later.get(fashion.since_s, 0.0) < fashion.share for fashion in now)


def test_a_fashion_is_asked_for() -> None:
    """At some time of a day there is a trend; its topic is then searched as often as its share."""
    interests = Interests(5, Habits(), TOPICS)
    at_s = next(at for hour in range(24) if interests.active_trends(at := START_S + hour * HOUR_S))
    fashion, rng, times = interests.active_trends(at_s)[0], rng_for(1, "test"), 2000
    asked = sum(interests.draw_need(person, at_s, rng) == fashion.need for person in range(times)) / times
    assert asked == pytest.approx(fashion.share, abs=0.04)


def test_a_few_wishes_are_most_of_all_and_most_wishes_are_rare() -> None:
    """Popularity has a head and a long tail: some queries are frequent, and some occur once."""
    interests, rng = Interests(1, Habits(), TOPICS), rng_for(1, "test")
    asked = Counter(interests.draw_need(person, START_S, rng) for person in range(1500))
    assert asked.most_common(1)[0][1] > 15
    assert sum(count == 1 for count in asked.values()) > 100


def test_what_is_wanted_is_what_the_synthetic_web_writes_about() -> None:
    """Needs consist of words of its topics, towns and titles; made-up needs contain none of its words."""
    phrases = [phrase for topic in TOPICS for words in astuple(topic)[2:] for phrase in words]
    known = {word[:3].lower() for phrase in (*phrases, *TOWNS, "how to") for word in phrase.split()}
    rng, vocabulary = rng_for(1, "test"), " ".join(phrases)
    real, vain = (Interests(1, Habits(invented_rate=share, trend_chance=0.0), TOPICS) for share in (0.0, 1.0))
    assert all(word[:3] in known for person in range(300) for word in real.draw_need(person, START_S, rng).split())
    assert not any(vain.draw_need(person, START_S, rng) in vocabulary for person in range(20))


@given(st.text(max_size=40), SEEDS)
def test_a_slip_of_the_finger_is_small(query: str, seed: int) -> None:
    """A typo keeps the number of words and roughly their length."""
    slipped = misspell(query, rng_for(seed, "test"))
    assert len(slipped.split()) == len(query.split())
    assert abs(len(slipped) - len(" ".join(query.split()))) <= 1 or slipped == query


def test_people_pass_for_people_and_robots_for_robots() -> None:
    """A few visitors are robots and identify themselves; no one else looks like one."""
    people = [VisitorPopulation(1).person_for(Arrival(number, START_S)) for number in range(2000)]
    assert all(bool(check_request(person.agent, {})) == person.is_robot for person in people)
    assert 0.01 < sum(person.is_robot for person in people) / len(people) < 0.1


def test_everybody_has_an_address_of_their_own() -> None:
    """Addresses are on loopback, the same at each visit, and not used by any host of a synthetic web."""
    people = {
        person.number: person for person in (VisitorPopulation(1).person_for(Arrival(n, START_S)) for n in range(3000))
    }
    addresses = {person.address for person in people.values()}
    assert len(addresses) == len(people) > 300
    assert all(IPv4Address(address).is_loopback for address in addresses)
    assert not addresses & {loopback_address(seed, index) for seed in range(300) for index in range(50)}


@given(
    st.text(max_size=300)
    | st.lists(
        st.sampled_from(
            [
                '<a class="title" data-page="',
                "9" * 30,
                '" href="',
                "?q=",
                ">",
                "</a>",
                '<p class="meant">',
                "x",
                "<ol data-slate=",
                "<!--",
                "<![CDATA[",
                "&#x110000;",
                "//[",
            ]
        )
    ).map("".join)
)
def test_whatever_page_is_served_it_is_read(html: str) -> None:
    """No page makes parsing fail; results without a number are ignored."""
    found = parse_results(html)
    assert all(0 <= hit.page < 10**18 for hit in found.hits)
