"""Which queries are measured at refreshes: those whose results still improve."""

from dataclasses import replace

import numpy as np

from vedette.engine.search.needy_queries import MIN_CHANGES, MIN_QUERIES, QueryNeeds, select_needy_queries
from vedette.index.features import Slot
from vedette.index.quality.curves import ScoreCurve
from vedette.index.quality.query_curves import QueryCurves
from vedette.index.quality.watched_queries import WatchedQuery, build_watched

WORDS = 5 * MIN_QUERIES
NUMBERS = np.arange(WORDS, dtype=np.uint64)
WATCHED = build_watched([(WatchedQuery.of_word(Slot((number,), (1.0,), 1.0)), 1.0 / WORDS) for number in range(WORDS)])
WATCHED = replace(WATCHED, prints=NUMBERS)
MANY = int(4000 * MIN_CHANGES)


def curves() -> QueryCurves:
    """Return words searched equally often; the first half has good results, the second half poor ones."""
    scores = np.where(np.arange(WORDS) < WORDS // 2, 0.8, 0.2)
    table = ScoreCurve(np.repeat([[1.0], [20.0]], WORDS, axis=1), np.stack([scores, np.zeros(WORDS)]))
    return QueryCurves(WATCHED, np.ones(WORDS), table, table)


def needs_of(gained: np.ndarray[tuple[int], np.dtype[np.float64]], changes: float = 4 * MIN_CHANGES) -> QueryNeeds:
    """Return this many changes, and their gains for each word."""
    return QueryNeeds.empty().add_gains(NUMBERS, gained, int(changes))


def test_before_enough_is_measured_all_words_are_watched() -> None:
    """The same is true if nothing ever improved, because then nothing is known."""
    assert len(select_needy_queries(curves(), QueryNeeds.empty())) == WORDS
    assert len(select_needy_queries(curves(), needs_of(np.ones(WORDS), MIN_CHANGES / 2))) == WORDS
    assert len(select_needy_queries(curves(), needs_of(np.zeros(WORDS)))) == WORDS


def test_words_that_improve_are_kept_and_the_others_are_left_out() -> None:
    """If a tenth of the words has all gains, those are kept, with few others."""
    gained = np.where(NUMBERS % 10 == 0, 1.0, 0.0)
    chosen = select_needy_queries(curves(), needs_of(gained, MANY))
    assert set(NUMBERS[gained > 0].tolist()) <= set(chosen.tolist())
    assert len(chosen) < WORDS / 2


def test_a_word_that_was_never_measured_is_judged_by_its_like() -> None:
    """Among unmeasured words, those with poor results are needier if such words gained more."""
    poor = np.arange(WORDS) >= WORDS // 2
    known = NUMBERS % 2 == 0
    needs = QueryNeeds.empty().add_gains(NUMBERS[known], np.where(poor, 5.0, 0.001)[known], MANY)
    unmeasured = [word for word in select_needy_queries(curves(), needs).tolist() if not known[word]]
    assert len(unmeasured) > MIN_QUERIES / 4
    assert np.mean(poor[unmeasured]) > 0.9


def test_evidence_against_a_word_decays() -> None:
    """Evidence without new measurements decays, until a word is judged like similar ones."""
    gained = np.where(NUMBERS % 10 == 0, 1.0, 0.0)
    needs = needs_of(gained, MANY)
    chosen = select_needy_queries(curves(), needs)
    left_out = np.setdiff1d(NUMBERS, chosen)
    for _ in range(40):
        # Those that are watched go on as before; of the others nothing is heard.
        needs = needs.decay().add_gains(NUMBERS[chosen], gained[chosen], MANY)
    assert np.isin(left_out, select_needy_queries(curves(), needs)).any()
