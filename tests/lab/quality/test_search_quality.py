"""Quality of a repository (Pandey08, chapter 4).

The example of Table 4.1, scores calculated by hand, and properties.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from bench.peers.quality_change import delta_q_a, delta_q_exact
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.histories import Life, small_history

from vedette.attention import visibility, visibility_sum
from vedette.index.quality.curves import exact_curve, histogram_curve, query_gain
from vedette.lab.bounds.delta_q import compute_slot_gains
from vedette.lab.quality.corpus import load_corpus
from vedette.lab.quality.query_files import build_queries, split_into_terms
from vedette.lab.quality.scoring import BooleanScoring, InLinkScoring, Scoring, build_tfidf, count_in_links
from vedette.lab.quality.search_quality import QualityTracker, compute_quality, ideal_quality, relative_quality
from vedette.lab.quality.workload import TieBreak, Workload, build_workload, compute_slot_scores
from vedette.lab.visitors.queries import zipf_shares
from vedette.policy import Ints, rng_for

NONE = -1
FIRST, SECOND, THIRD = 1.0, 2**-1.5, 3**-1.5  # how likely the results at these ranks are viewed

# Table 4.1: what the web says, then what the search engine has. Pages 0 to 3 are p1 to p4.
P1 = ("New Technology: A new thyroid cancer therapy", "New Technology: A new chipset designed for cell phones")
P2 = ("Seminar: Important traffic laws and rules", "Seminar: Cancer symptoms")
P3 = "Cancer Management: Early tests to detect breast cancer"
P4 = "Cancer association seeking volunteers to help raise awareness"
WEB = np.array([1, 3, 4, NONE])
ENGINE = np.array([0, 2, NONE, 5])


def cancer() -> Workload:
    """The example: old and new versions of p1 and p2, an unknown page p3, a dead page p4, and one query."""
    lives = [Life([(0, P1[1]), (1, P1[0])]), Life([(0, P2[1]), (1, P2[0])]), Life([(1, P3)]), Life([(0, P4)], 1)]
    return build_workload(load_corpus(small_history(lives)), build_queries([("cancer", 1.0)]), BooleanScoring())


def with_live(*pages: int) -> Ints:
    """Return the engine's state after it has fetched these pages."""
    return np.array([WEB[page] if page in pages else ENGINE[page] for page in range(4)])


def test_cancer_example_finds_nothing_as_it_stands() -> None:
    """p2 and p4 are listed but are no longer about cancer; p1 and p3 are, but are not listed: quality 0."""
    assert compute_quality(ENGINE, WEB, cancer()) == 0
    assert ideal_quality(WEB, cancer()) == pytest.approx(FIRST + SECOND)
    assert relative_quality(WEB, WEB, cancer()) == 1


@pytest.mark.parametrize(("ties", "printed"), [(TieBreak.YOUNGER_FIRST, 0.14), (TieBreak.OLDER_FIRST, 0.74)])
def test_cancer_example_by_tie_rule(ties: TieBreak, printed: float) -> None:
    """If p1 is fetched again, three pages are equal.

    It is viewed as the third or the first, depending on the tie rule.
    """
    assert relative_quality(with_live(0), WEB, cancer(), ties) == pytest.approx(printed, abs=0.005)
    assert delta_q_exact(0, ENGINE, WEB, cancer(), ties) == pytest.approx(printed, abs=0.005)


def test_cancer_example_tells_four_discrepancies_apart() -> None:
    """The worth of each of the four fetches, with younger pages first, calculated by hand.

    Alone, only p1 (better than its copy: third of three) and p3 (unknown: second, after the dead p4) gain anything. A
    page worse than its copy (p2) or a dead one (p4) only does harm once something good is after it. With p1 as the
    third, removing p2 makes it second, and removing p4 as well makes it first; then p3 comes before p1.
    """
    best = FIRST + SECOND
    alone = [delta_q_exact(page, ENGINE, WEB, cancer(), TieBreak.YOUNGER_FIRST) for page in range(4)]
    assert alone == pytest.approx([THIRD / best, 0, SECOND / best, 0])
    steps = [
        relative_quality(with_live(*known), WEB, cancer(), TieBreak.YOUNGER_FIRST)
        for known in ((0,), (0, 1), (0, 1, 3))
    ]
    assert steps == pytest.approx([THIRD / best, SECOND / best, FIRST / best])
    assert relative_quality(with_live(0, 1, 2, 3), WEB, cancer(), TieBreak.YOUNGER_FIRST) == 1


def test_undiscovered_pages_can_be_left_out_of_the_ideal() -> None:
    """Of the engine's pages, only p1 is about cancer: once it is first, refreshing cannot improve anything."""
    known = with_live(0, 1, 3)
    assert relative_quality(known, WEB, cancer()) == pytest.approx(FIRST / (FIRST + SECOND))
    assert relative_quality(known, WEB, cancer(), undiscovered=False) == 1


def test_nothing_is_missed_where_nothing_answers() -> None:
    """If no page matches any query, the repository has quality 1."""
    corpus = load_corpus(small_history([Life([(0, "low tide")])]))
    workload = build_workload(corpus, build_queries([("cancer", 1.0), ("?!", 1.0)]), BooleanScoring())
    assert relative_quality(np.array([NONE]), np.array([0]), workload) == 1


def test_text_scores_by_hand() -> None:
    """Two pages have "tide" and one has "low": idf is 1 + ln(2/3) and 1 + ln(2/2) = 1.

    "low tide" is found in the first page, which has four words and "low" twice; idf squared weighs the roots of the
    counts, and the sum is divided by the root of four and by the length of the query.
    """
    corpus = load_corpus(small_history([Life([(0, "Low, low tide today")]), Life([(0, "tide")])]))
    scoring = build_tfidf(corpus, np.array([0, 1]))
    workload = build_workload(corpus, build_queries([("low tide", 1.0)]), scoring)
    tide = 1 + math.log(2 / 3)
    by_hand = (math.sqrt(2) * 1 + tide**2) / (2 * math.sqrt(1 + tide**2))
    assert ideal_quality(np.array([0, 1]), workload) == pytest.approx(by_hand)


def test_in_link_scores_by_hand() -> None:
    """Pages 1 and 2 link to 0, and 0 links to 1: the scores are 3, 2 and 1, and only pages with the word are listed."""
    lives = [Life([(0, "tide")], links=(1,)), Life([(0, "tide")], links=(0,)), Life([(0, "ebb")], links=(0,))]
    history = small_history(lives)
    held = np.arange(3)
    workload = build_workload(
        load_corpus(history), build_queries([("tide", 2.0)]), InLinkScoring(count_in_links(history, held))
    )
    assert ideal_quality(held, workload) == pytest.approx(2.0 * (3 * FIRST + 2 * SECOND))


def test_visibility_sums_are_exact_near_and_close_far() -> None:
    """Sums agree with adding up the terms, even across the end of the table; the published limits would be off."""
    for first, last in ((1, 1), (3, 70), (9_990, 10_010), (10_001, 10_001), (20_000, 50_000)):
        added = math.fsum(rank**-1.5 for rank in range(first, last + 1))
        assert visibility_sum(np.array([first]), np.array([last]))[0] == pytest.approx(added, rel=1e-8)


class Scene(NamedTuple):
    """A synthetic web with copies of any age, and queries of one or two words."""

    workload: Workload
    single: Workload
    versions: tuple[tuple[int, ...], ...]
    local: Ints
    live: Ints


@cache
def made_scene(seed: int, pages: int, scoring: str = "text") -> Scene:
    """Generate pages of a few words out of twelve, each with one to four versions."""
    rng = rng_for(seed, "test/quality")
    words = [f"word{at}" for at in range(12)]
    lives, versions, count = [], [], 0
    for _ in range(pages):
        says = [(float(at), " ".join(rng.choice(words, 6))) for at in range(int(rng.integers(1, 5)))]
        lives.append(Life(says, links=tuple(rng.choice(pages, min(pages, 3), replace=False).tolist())))
        versions.append((NONE, *range(count, count + len(says))))
        count += len(says)
    history = small_history(lives)
    corpus = load_corpus(history)
    live = np.array([one[int(rng.integers(len(one)))] for one in versions])
    local = np.array([one[int(rng.integers(len(one)))] for one in versions])
    kinds: dict[str, Scoring] = {
        "text": build_tfidf(corpus, live),
        "links": InLinkScoring(count_in_links(history, live)),
        "boolean": BooleanScoring(),
    }
    asked = [(" ".join(rng.choice(words, int(rng.integers(1, 3)))), float(rng.integers(1, 9))) for _ in range(15)]
    queries = build_queries(asked)
    build = kinds[scoring]
    single = build_workload(corpus, split_into_terms(queries), build)
    return Scene(build_workload(corpus, queries, build), single, tuple(versions), local, live)


SCENES = st.builds(
    made_scene, st.integers(0, 7), st.sampled_from((1, 4, 11)), st.sampled_from(("text", "links", "boolean"))
)
RULES = st.sampled_from(list(TieBreak))


def by_definition(scene: Scene, ties: TieBreak) -> float:
    """Compute eq. 4.3 query by query and page by page."""
    workload, total = scene.workload, 0.0
    scores = [dict[int, float]() for _ in (0, 1)]
    for side, held in zip(scores, (scene.local, scene.live), strict=True):
        for version in held[held >= 0].tolist():
            for match in range(workload.match_start[version], workload.match_start[version + 1]):
                side[int(workload.match_slot[match])] = float(workload.match_score[match])
    for query in range(workload.queries):
        slots = range(workload.slot_start[query], workload.slot_start[query + 1])
        sign = 1 if ties is TieBreak.OLDER_FIRST else -1
        listed = sorted((-scores[0][slot], sign * slot, slot) for slot in slots if slot in scores[0])
        for rank, (_, _, slot) in enumerate(listed, 1):
            total += workload.frequency[query] * rank**-1.5 * scores[1].get(slot, 0.0)
    return total


@given(SCENES, RULES)
def test_quality_is_what_the_equation_says(scene: Scene, ties: TieBreak) -> None:
    """Computing all queries at once gives the same result as the equation."""
    assert compute_quality(scene.local, scene.live, scene.workload, ties) == pytest.approx(by_definition(scene, ties))


@given(SCENES, RULES, st.booleans())
def test_no_repository_is_better_than_the_ideal(scene: Scene, ties: TieBreak, undiscovered: bool) -> None:  # noqa: FBT001 - drawn, not called
    """The share is between 0 and 1, and is 1 if all copies are current, whatever the tie rule."""
    share = relative_quality(scene.local, scene.live, scene.workload, ties, undiscovered=undiscovered)
    assert 0 <= share <= 1 + 1e-12
    assert relative_quality(scene.live, scene.live, scene.workload, ties) == pytest.approx(1)


@given(SCENES, RULES, st.booleans(), st.data())
def test_a_standing_says_the_same_to_the_last_bit(
    scene: Scene,
    ties: TieBreak,
    undiscovered: bool,  # noqa: FBT001 - drawn, not called
    data: st.DataObject,
) -> None:
    """After any fetches and changes, recomputing only the affected queries equals the whole computation."""
    local, live = scene.local.copy(), scene.live.copy()
    standing = QualityTracker(scene.workload, local, live, ties, undiscovered=undiscovered)
    for _ in range(data.draw(st.integers(1, 4))):
        pages = np.array(data.draw(st.lists(st.integers(0, len(local) - 1), unique=True, max_size=4)), np.int64)
        chosen = [data.draw(st.sampled_from(scene.versions[page])) for page in pages.tolist()]
        side, tell = data.draw(st.sampled_from(((local, standing.update_copies), (live, standing.update_live))))
        side[pages] = chosen
        tell(pages, np.array(chosen, np.int64))
        if data.draw(st.booleans()):
            whole = relative_quality(local, live, scene.workload, ties, undiscovered=undiscovered)
            assert standing.relative_quality() == whole
    assert standing.quality() == compute_quality(local, live, scene.workload, ties)


@given(SCENES, RULES, st.data())
def test_change_in_quality_is_a_difference_of_qualities(scene: Scene, ties: TieBreak, data: st.DataObject) -> None:
    """Eq. 4.6 over the queries that a page affects is the difference of both qualities over all queries."""
    page = data.draw(st.integers(0, len(scene.local) - 1))
    after = scene.local.copy()
    after[page] = scene.live[page]
    qualities = [relative_quality(held, scene.live, scene.workload, ties) for held in (after, scene.local)]
    delta = delta_q_exact(page, scene.local, scene.live, scene.workload, ties)
    assert delta == pytest.approx(qualities[0] - qualities[1], abs=1e-12)


@given(SCENES, RULES)
def test_gains_of_all_pages_at_once_are_those_one_by_one(scene: Scene, ties: TieBreak) -> None:
    """The gain of each outdated page, summed over the positions that it moves, is eq. 4.6 for that page."""
    workload, every = scene.workload, np.arange(scene.workload.queries)
    scores = [compute_slot_scores(workload, held) for held in (scene.local, scene.live)]
    slots, gains = compute_slot_gains(workload, scores[0], scores[1], every, ties)
    weighed = workload.frequency[workload.slot_query[slots]] * gains
    together = np.bincount(workload.slot_page[slots], weighed, len(scene.local))
    alone = [delta_q_exact(page, scene.local, scene.live, workload, ties, 1.0) for page in range(len(scene.local))]
    assert together.tolist() == pytest.approx(alone, abs=1e-9)


@given(SCENES, RULES, st.data())
def test_closed_form_is_exact_where_all_other_copies_are_current(
    scene: Scene, ties: TieBreak, data: st.DataObject
) -> None:
    """It relies on the scores of other copies. If those are current, and queries have one word, it is eq. 4.6."""
    page = data.draw(st.integers(0, len(scene.local) - 1))
    local = scene.live.copy()
    local[page] = scene.local[page]
    best = ideal_quality(scene.live, scene.single)
    exact = delta_q_exact(page, local, scene.live, scene.single, ties) * best
    measured = delta_q_a(page, int(scene.live[page]), local, scene.single, ties)
    assert measured == pytest.approx(exact, abs=1e-9)


@given(SCENES, RULES, st.data())
def test_closed_form_is_never_negative_with_exact_ranks(scene: Scene, ties: TieBreak, data: st.DataObject) -> None:
    """According to the copies, only better pages overtake a page."""
    page = data.draw(st.integers(0, len(scene.local) - 1))
    assert delta_q_a(page, int(scene.live[page]), scene.local, scene.single, ties) >= -1e-9


def test_exact_change_in_quality_can_be_negative() -> None:
    """A page that rises may push down a better one whose copy does not show it.

    Both copies have low scores. Page 0 rises above page 1, which by now would be far better.
    """
    old, new, better = "tide a b c d e f g h", "tide a b c d e f", "tide"
    lives = [Life([(0, old), (1, new)]), Life([(0, f"{new} g"), (1, better)])]
    corpus = load_corpus(small_history(lives))
    workload = build_workload(corpus, build_queries([("tide", 1.0)]), build_tfidf(corpus, np.array([0, 2])))
    assert delta_q_exact(0, np.array([0, 2]), np.array([1, 3]), workload) < 0


def test_closed_form_orders_pages_nearly_as_the_truth_does() -> None:
    """With a third of 200 copies half out of date, both orders of pages by worth are similar.

    For queries with one word, they are very similar. Treating queries with two words as two queries lowers the
    similarity a lot for randomly distributed words, as here; three buckets instead of exact ranks lower it more.
    """
    scene = half_renewed_scene(0)
    pages = np.flatnonzero(scene.local != scene.live).tolist()
    truly, truly_single = (
        [delta_q_exact(page, scene.local, scene.live, asked, best=1.0) for page in pages]
        for asked in (scene.workload, scene.single)
    )
    measured, roughly = (
        [delta_q_a(page, int(scene.live[page]), scene.local, scene.single, curves=curves) for page in pages]
        for curves in (None, histogram_curve)
    )
    assert rank_correlation(truly_single, measured) > 0.8
    assert rank_correlation(truly, measured) > 0.35
    assert rank_correlation(truly, roughly) > 0.15


def half_renewed_scene(seed: int) -> Scene:
    """Generate pages of thirty words by Zipf's law; a change renews half of them, and a third of the copies are old."""
    rng = rng_for(seed, "test/quality/renewed")
    words, chances = [f"word{at}" for at in range(100)], zipf_shares(100, 1.0)
    lives = []
    for _ in range(200):
        old, new = (rng.choice(words, 30, p=chances).tolist() for _ in (0, 1))
        lives.append(Life([(0, " ".join(old)), (1, " ".join(old[:15] + new[15:]))]))
    corpus, live = load_corpus(small_history(lives)), np.arange(200) * 2 + 1
    local = live - (rng.random(200) < 1 / 3)
    asked = [(" ".join(rng.choice(words, int(rng.integers(1, 3)))), float(rng.integers(1, 9))) for _ in range(100)]
    queries, scoring = build_queries(asked), build_tfidf(corpus, live)
    single = build_workload(corpus, split_into_terms(queries), scoring)
    return Scene(build_workload(corpus, queries, scoring), single, (), local, live)


def rank_correlation(one: list[float], other: list[float]) -> float:
    """Compute Spearman's rank correlation, for numbers that are all different."""
    ranks = [np.argsort(np.argsort(side)) for side in (one, other)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


@given(st.lists(st.floats(0.01, 9.0), max_size=40), st.integers(1, 41), st.integers(1, 41), st.floats(0, 9))
def test_gain_of_a_query_is_the_sum_that_it_stands_for(others: list[float], r1: int, r2: int, s2: float) -> None:
    """The closed form over an exact curve equals the sum over ranks, for falling and rising pages."""
    best_first = [*sorted(others, reverse=True), *[0.0] * 41]
    seen = visibility(np.arange(1, 43))
    moved = math.fsum((seen[j - 1] - seen[j]) * best_first[j - 1] for j in range(min(r1, r2), max(r1, r2)))
    expected = (seen[r2 - 1] - seen[r1 - 1]) * s2 + (moved if r1 < r2 else -moved)
    last = len(others) + 1
    if max(r1, r2) <= last:
        assert query_gain(exact_curve(np.array(others)), r1, r2, s2) == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.floats(0.01, 9.0), min_size=1, max_size=200))
def test_histogram_curves_fall(scores: list[float]) -> None:
    """With any number of buckets, a curve begins at rank 1, never rises, and ends with 0 after the last result."""
    curve = histogram_curve(np.array(scores))
    assert (curve.ranks[0], curve.ranks[-1], curve.scores[-1]) == (1, len(scores) + 1, 0)
    assert (np.diff(curve.ranks) > 0).all()
    assert (np.diff(curve.scores) <= 1e-12).all()
