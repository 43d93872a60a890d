"""The gain of a page change equals the lab's computation, one query and one page at a time."""

from collections.abc import Callable

import numpy as np
import pytest
from bench.peers.quality_change import delta_q_a
from hypothesis import given
from hypothesis import strategies as st

from vedette.attention import visibility
from vedette.engine.search.answer_scores import AnswerScorer
from vedette.engine.search.ports import PageSignals
from vedette.index.features import Slot, compute_idf
from vedette.index.quality.curves import ScoreCurve, exact_curve, find_ranks, histogram_curve, query_gain, query_gains
from vedette.index.quality.gains import (
    ChangedPages,
    MeasuredGains,
    concatenate_words,
    estimate_word_gains,
    is_unchanged,
    measure_gains,
)
from vedette.index.quality.query_curves import QueryCurveBuilder, QueryCurves, compute_term_idf
from vedette.index.quality.watched_queries import (
    MAX_WORDS,
    NO_WORDS,
    PageWords,
    QueryScores,
    WatchedQueries,
    WatchedQuery,
    build_watched,
    count_naming_words,
    merge_scores,
    weigh_words,
)
from vedette.lab.quality.workload import Workload
from vedette.policy import Floats, rng_for
from vedette.text import hash_word, hash_words

THREE = ("tide", "moon", "sand")
SCORES = st.lists(st.integers(1, 999), min_size=1, max_size=40, unique=True)


def words(body: str, title: str = "", anchors: str = "") -> PageWords:
    """Return the words of a page."""
    fields = [hash_words(text.encode()) for text in (title, "", anchors, "", body)]
    return np.concatenate(fields), tuple(map(len, fields))


def placed(**places: int) -> PageWords:
    """Return a page of six hundred words with each of these words at a place: the earlier, the better it matches."""
    body = ["sand"] * 600
    for word, place in places.items():
        body[place] = word
    return words(" ".join(body))


def watching(*terms: str) -> WatchedQueries:
    """Return these single words, each searched in every search."""
    return build_watched([(WatchedQuery.of_word(Slot((hash_word(term),), (1.0,), 1.0)), 1.0) for term in terms])


def answers(watched: WatchedQueries, pages: list[PageWords]) -> QueryScores:
    """Return how well pages match, by their words alone."""
    return AnswerScorer(watched).score(concatenate_words(pages), PageSignals.neutral(len(pages)))


def measured(curves: QueryCurves, changes: list[tuple[PageWords, PageWords]], importance: float = 0.5) -> MeasuredGains:
    """Return the gain of changes, by their words."""
    old, new = ([change[side] for change in changes] for side in (0, 1))
    scores = merge_scores(answers(curves.watched, old), answers(curves.watched, new), len(curves.watched))
    known = np.array([len(before[0]) > 0 for before in old], np.bool_)
    return measure_gains(curves, scores, ChangedPages(known, np.full(len(changes), importance)))


def curves_of(watched: WatchedQueries, pages: list[PageWords]) -> QueryCurves:
    """The curves of some pages."""
    gathered = QueryCurveBuilder(watched)
    gathered.add(answers(watched, pages), np.full(len(pages), 0.5))
    return gathered.build(len(pages))


def score(watched: WatchedQueries, page: PageWords) -> float:
    """Return how well a page answers the only watched word."""
    found = answers(watched, [page]).score
    return float(found[0]) if len(found) else 0.0


def alone(curve: ScoreCurve, scores: Floats, *, within: bool = False) -> tuple[Floats, Floats]:
    """Return a column of the curve for each pair of neighboring scores: both ranks among others, and the gains."""
    rows = ScoreCurve(*(np.repeat(part[:, None], len(scores) - 1, axis=1) for part in curve))
    r1, r2 = find_ranks(rows, scores[:-1]), find_ranks(rows, scores[1:])
    inside = np.full(len(r1), within) & (scores[:-1] > 0)
    r1, r2 = r1 - inside, r2 - (inside & (scores[1:] <= scores[:-1]))
    return r1, query_gains(rows, r1, r2, scores[1:], inside)


def summed(others: list[int], s1: int, s2: int) -> float:
    """Eq. 4.6 for one query by its definition: two lists of results, each viewed from the top."""

    def viewed(own: int) -> float:
        listed = sorted([(-value, value) for value in others] + ([(-own, s2)] if own else []))
        seen = visibility(np.arange(1, len(listed) + 1))
        return float(np.array([value for _, value in listed]) @ seen)

    return viewed(s2) - viewed(s1)


@given(SCORES, st.data())
def test_with_exact_curves_gains_are_those_of_the_two_lists(others: list[int], data: st.DataObject) -> None:
    """The closed form equals the difference between the lists before and after, and is never negative."""
    free = [0, *(value for value in range(1, 1000) if value not in others)]
    s1, s2 = data.draw(st.sampled_from(free)), data.draw(st.sampled_from(free))
    _, gains = alone(exact_curve(np.array(others, np.float64)), np.array([s1, s2], np.float64))
    assert gains[0] == pytest.approx(summed(others, s1, s2), abs=1e-9)
    assert gains[0] >= -1e-9


@given(SCORES, st.data())
def test_a_page_is_taken_out_of_its_own_way(others: list[int], data: st.DataObject) -> None:
    """A curve that includes the page's old score gives the same result as one without the page."""
    free = [value for value in range(1, 1000) if value not in others]
    s1, s2 = data.draw(st.sampled_from(free)), data.draw(st.sampled_from([0, *free]))
    pair = np.array([s1, s2], np.float64)
    among_others = alone(exact_curve(np.array(others, np.float64)), pair)
    with_itself = alone(exact_curve(np.array([*others, s1], np.float64)), pair, within=True)
    for one, other in zip(among_others, with_itself, strict=True):
        assert one.tolist() == pytest.approx(other.tolist(), abs=1e-9)


@given(SCORES, st.lists(st.floats(0.0, 1100.0), min_size=2, max_size=8))
def test_many_queries_at_once_are_as_one_at_a_time(others: list[int], scores: list[float]) -> None:
    """Each column of a table of curves gives the same rank and gain as its curve alone."""
    curve, asked = histogram_curve(np.array(others, np.float64)), np.array(scores)
    r1, gains = alone(curve, asked)
    assert r1.tolist() == [curve.find_rank(value) for value in scores[:-1]]
    after = [curve.find_rank(value) for value in scores[1:]]
    each = [query_gain(curve, *three) for three in zip(r1.tolist(), after, scores[1:], strict=True)]
    assert gains.tolist() == pytest.approx(each)


@pytest.mark.parametrize("results", [0, 1, 2, 3, 4, 7, 30])
def test_gathered_curves_are_the_histograms_of_the_lab(results: int) -> None:
    """Binning page by page gives the same curve as all scores at once, if each score has its own bin."""
    watched = watching("tide")
    places = (0, 30, 100, 300) if results <= 4 else range(0, 600, 20)
    pages = [placed(tide=place) for place in places[:results]]
    found = curves_of(watched, [*pages, words("moon")]).text
    expected = histogram_curve(np.array([score(watched, page) for page in pages]))
    ranks, scores = found.ranks[:, 0], found.scores[:, 0]
    distinct = np.append(True, np.diff(ranks) > 0)
    tolerance = 0.01 if results > 4 else 1e-12  # a bin may lie across the end of a range
    assert ranks[distinct].tolist() == expected.ranks.tolist()
    assert scores[distinct].tolist() == pytest.approx(expected.scores.tolist(), abs=tolerance)


def test_a_batch_is_measured_as_each_alone_and_by_the_rule_of_the_lab() -> None:
    """New, changed and deleted pages together: each gain is frequency times idf times that of the closed form."""
    watched = watching("tide")
    pages = [placed(tide=place) for place in (30, 100, 300)]
    curves = curves_of(watched, pages)
    changes = [
        (pages[1], placed(tide=0)),
        (NO_WORDS, words("tide", "tide")),
        (pages[0], NO_WORDS),
        (pages[2], words("moon")),
        (NO_WORDS, words("moon")),
    ]
    together = measured(curves, changes)
    each = [measured(curves, [change]) for change in changes]
    assert [column.tolist() for column in together[:3]] == [
        [float(one[column][0]) for one in each] for column in range(3)
    ]
    known = [row for row, change in enumerate(changes) if len(change[0][0])]
    assert together.by_query.tolist() == pytest.approx([sum(float(each[row].by_query[0]) for row in known)])
    assert together.by_query.tolist() == pytest.approx([float(together.gain[known].sum()) / compute_idf(3, 3)])
    for change, gain in zip(changes, together.gain.tolist(), strict=True):
        s1, s2 = score(watched, change[0]), score(watched, change[1])
        listed = [score(watched, page) for page in pages]
        others = exact_curve(np.array([value for value in listed if value != s1]))
        expected = query_gain(others, others.find_rank(s1), others.find_rank(s2), s2)
        assert gain == pytest.approx(expected * compute_idf(3, 3))
    assert together.views.tolist() == pytest.approx([1.0, 1.0, 0.0, 0.0, 0.0])


def build_workload(watched: WatchedQueries, versions: list[PageWords]) -> Workload:
    """Return the lab's own workload: version v is of page v, but the last one is also of page 0.

    All match all words.
    """
    found = [answers(watched, [version]) for version in versions]
    pages, terms = len(versions) - 1, len(watched)
    assert all(len(each.query) == terms for each in found)
    return Workload(
        frequency=watched.frequency,
        slot_start=np.arange(terms + 1) * pages,
        slot_page=np.tile(np.arange(pages), terms),
        slot_query=np.repeat(np.arange(terms), pages),
        match_start=np.arange(len(versions) + 1) * terms,
        match_slot=np.concatenate([each.query * pages + at % pages for at, each in enumerate(found)]),
        match_score=np.concatenate([each.score for each in found]),
    )


@pytest.mark.parametrize(("pages", "curves"), [(3, None), (3, histogram_curve), (25, histogram_curve)])
def test_gains_are_those_of_the_lab(pages: int, curves: Callable[[Floats], ScoreCurve] | None) -> None:
    """One of some pages is replaced or comes first: the sum over words is the lab's ``delta_q_a``, by the same curves.

    With few results, it is exact. With many, curves differ slightly: here they are binned, and contain the page itself.
    """
    rng = rng_for(1, "test/gains")
    places = np.array([0, 30, 100, 300]) if pages == 3 else 12 * np.arange(pages + 1)
    each = zip(rng.permutation(places).tolist(), rng.permutation(places).tolist(), strict=True)
    versions = [placed(tide=tide, moon=1 + moon) for tide, moon in each]
    watched = watching("tide", "moon")
    workload = build_workload(watched, versions)
    weightless = np.ones(len(watched))
    for before in (0, -1):
        local = np.array([before, *range(1, pages)])
        known = [versions[version] for version in local.tolist() if version >= 0]
        made = curves_of(watched, known)._replace(idf=weightless)
        found = measured(made, [(versions[before] if before >= 0 else NO_WORDS, versions[-1])])
        expected = delta_q_a(0, pages, local, workload, curves=curves)
        assert found.gain[0] == pytest.approx(expected, rel=0.15 if pages > 3 else 1e-9)


def test_importance_moves_nothing_unless_a_word_comes_or_goes() -> None:
    """Ordered by importance, a page keeps its rank as long as it has the word."""
    watched = watching("tide")
    page = words("tide sand")
    curves = curves_of(watched, [page, words("tide")])
    found = measured(curves, [(page, words("tide tide tide")), (page, words("sand"))], importance=0.9)
    assert found.by_links[0] == 0.0
    assert found.by_links[1] > 0.0


@given(st.lists(st.sampled_from(THREE), max_size=9), st.lists(st.sampled_from(THREE), max_size=4))
def test_what_stays_the_same_brings_nothing(body: list[str], title: list[str]) -> None:
    """The same words have a gain of exactly 0, and are recognized as the same."""
    page, again = (words(" ".join(body), " ".join(title)) for _ in range(2))
    curves = curves_of(watching("tide", "moon"), [page, words("tide")])
    found = measured(curves, [(page, again)])
    assert is_unchanged(page, again)
    assert (found.gain.tolist(), found.by_links.tolist()) == ([0.0], [0.0])


def test_a_name_given_by_others_raises_a_page() -> None:
    """Anchor texts count like a page's own words."""
    watched = watching("tide")
    page = words("sand " * 300)
    curves = curves_of(watched, [page, words("tide " + "sand " * 300)])
    found = measured(curves, [(page, words("sand " * 300, anchors="tide"))])
    assert found.gain[0] > 0
    assert found.views[0] > 0


def test_nothing_asked_and_nothing_there_are_fine() -> None:
    """Without queries, pages or words, nothing is found and nothing fails."""
    assert len(watching()) == 0
    found = measured(curves_of(watching(), [words("tide")]), [(NO_WORDS, words("tide"))])
    assert [column.tolist() for column in found] == [[0.0], [0.0], [0.0], []]
    assert [len(column) for column in measured(curves_of(watching("tide"), []), [])] == [0, 0, 0, 1]


def test_before_anybody_searches_names_of_pages_are_watched_and_fade_later() -> None:
    """Titles and link texts replace searches until there are real ones; of too many words, the rarest are dropped."""
    named = count_naming_words(concatenate_words([words("sand", "tide table"), words("sand", "tide", "moon")]))
    share = dict(zip(*(column.tolist() for column in weigh_words({}, named, 0.0)), strict=True))
    assert share[hash_word("tide")] == 2 * share[hash_word("moon")] > 0
    assert hash_word("sand") not in share
    numbers, later = weigh_words({hash_word("sand"): 10_000.0}, named, 10_000.0)
    assert later[numbers == hash_word("sand")] > 50 * later.sum() / 51
    numbers, _ = weigh_words({number: float(number) for number in range(1, MAX_WORDS + 100)}, named, 1.0)
    assert len(numbers) == MAX_WORDS
    assert 1 not in numbers


def test_what_a_query_would_gain_is_shared_out_over_its_words() -> None:
    """A matching page gets the query's words: rarer ones are worth more, and other forms count with their weight."""
    low, tide = Slot((7, 8), (1.0, 0.5), 1.0), Slot((5,), (1.0,), 3.0)
    curves = curves_of(build_watched([(WatchedQuery((low, tide), (True, True), 2), 1.0)]), [])
    numbers, gains = estimate_word_gains(curves, 0.5)
    assert numbers.tolist() == [5, 7, 8]
    assert gains.tolist() == pytest.approx([3 * gains[1], gains[1], gains[1] / 2])
    assert gains[0] > 0


def test_idf_is_that_of_ranking() -> None:
    """The same rule applies to all words at once and to each word alone."""
    assert compute_term_idf(np.array([0, 3, 10]), 10).tolist() == pytest.approx(
        [compute_idf(df, 10) for df in (0, 3, 10)]
    )
