"""Where old pages lead, and how few of them lead to all new ones."""

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.histories import P, V, web

from vedette.lab.baselines.greedy_cover import compute_greedy_cover
from vedette.lab.runs.discovery.arrivals import (
    Backlinks,
    CoverSets,
    Interval,
    compute_cover_sets,
    jaccard_overlaps,
    number_hosts,
)
from vedette.lab.worlds.history import History

STEP = Interval(0.0, 10.0)


def reach_of(history: History, step: Interval = STEP) -> list[CoverSets]:
    """Return the coverage of each site's old pages, counting all new pages."""
    arrivals = Backlinks.from_history(history).find_arrivals(step)
    return compute_cover_sets(arrivals, np.arange(len(arrivals.new)), history.site)


def figure_3_1() -> History:
    """Return old p1, p2, p3 (0, 1, 2) and new p4 to p7 (3 to 6): p1 -> p4, p5; p3 -> p5; p4 -> p6, p7."""
    return web([
        P([V(0.0), V(5.0, (3, 4))]),
        P([V(0.0)]),
        P([V(0.0), V(5.0, (4,))]),
        P([V(5.0, (5, 6))]),
        P([V(5.0)]),
        P([V(5.0)]),
        P([V(5.0)]),
    ])  # fmt: skip


def test_figure_3_1_is_covered_by_its_first_page_alone() -> None:
    """Fetching p1 leads to all four new pages, to two of them through p4: the overhead is one quarter."""
    (reach,) = reach_of(figure_3_1())
    cover = compute_greedy_cover(reach.cover_bits)
    assert reach.old_pages[list(cover.rows)].tolist() == [0]
    assert len(cover.rows) / sum(cover.gains) == 1 / 4
    assert (reach.item_count, reach.orphans, reach.direct) == (4, 0, 2)


def test_figure_3_1_has_one_pair_that_overlaps() -> None:
    """p1 leads to four new pages and p3 to one of these; p2 leads to none."""
    (reach,) = reach_of(figure_3_1())
    assert list(jaccard_overlaps(reach.cover_bits)) == [(1 / 4, 1)]


def test_paths_lead_over_new_pages_only() -> None:
    """A new page behind an old one is found by that old one, not by those that link to it."""
    history = web([P([V(0.0, (1,))]), P([V(0.0), V(5.0, (2,))]), P([V(5.0)])])
    (reach,) = reach_of(history)
    assert reach.old_pages.tolist() == [1]


def test_rings_of_new_pages_are_found_by_whoever_leads_to_one() -> None:
    """If new pages link in a circle, with one after it, all are found from the one that an old page links to."""
    history = web([P([V(0.0), V(5.0, (2,))]), P([V(5.0, (2,))]), P([V(5.0, (3,))]), P([V(5.0, (1, 4))]), P([V(5.0)])])
    (reach,) = reach_of(history)
    assert [bits.bit_count() for bits in reach.cover_bits] == [4]


def test_links_that_are_gone_lead_nowhere() -> None:
    """Only the content at the snapshot counts: anything in between is not seen."""
    history = web([P([V(0.0), V(3.0, (1,)), V(6.0)]), P([V(3.0)])])
    (reach,) = reach_of(history)
    assert (len(reach.old_pages), reach.orphans) == (0, 1)


def test_pages_that_died_in_between_are_not_new() -> None:
    """A page that appeared and died between two snapshots is in neither."""
    history = web([P([V(0.0, (1,))]), P([V(3.0)], died_s=6.0)])
    assert reach_of(history) == []


def test_a_page_that_comes_back_is_not_new() -> None:
    """A URL that was there before is known, so its second life needs no discovery."""
    history = web([P([V(0.0, (1, 2))]), P([V(0.0)], died_s=2.0, url="/a"), P([V(5.0)], url="/a")])
    assert reach_of(history) == []


def test_sites_are_covered_apart() -> None:
    """Links between sites are ignored, so a page that is only linked from another site is an orphan."""
    history = web([P([V(0.0), V(5.0, (1, 2))]), P([V(5.0)]), P([V(5.0)], site=1)])
    here, there = reach_of(history)
    assert (here.group, len(here.cover_bits), here.orphans) == (0, 1, 0)
    assert (there.group, len(there.cover_bits), there.orphans) == (1, 0, 1)


def test_a_host_is_one_site_whatever_its_folders() -> None:
    """A history may call folders sites, but links between them stay on the host."""
    history = web(
        [P([V(0.0)], 0, url="https://a/x/"), P([V(0.0)], 1, url="https://a/y/"), P([V(0.0)], 2, url="https://b")]
    )
    assert number_hosts(history).tolist() == [0, 0, 1]


def test_pages_that_do_not_count_still_lead_on() -> None:
    """Without waves, a page from a wave is not counted, but its links are followed."""
    history = web([P([V(0.0), V(5.0, (1,))]), P([V(5.0, (2,))]), P([V(5.0)])])
    arrivals = Backlinks.from_history(history).find_arrivals(STEP)
    (reach,) = compute_cover_sets(arrivals, np.array([-1, 0]), history.site)
    assert (reach.cover_bits, reach.item_count, reach.direct) == ((1,), 1, 0)


def test_greedy_takes_no_more_than_it_may() -> None:
    """A budget of k takes k pages; the published algorithm, with |C| <= k, would take one more."""
    sets = [0b111, 0b11000, 0b100000]
    assert [len(compute_greedy_cover(sets, most=k).rows) for k in range(5)] == [0, 1, 2, 3, 3]


SETS = st.lists(st.integers(0, 255), max_size=9)


@given(SETS)
def test_greedy_covers_all_that_can_be_covered(sets: list[int]) -> None:
    """The cover reaches what all sets together reach, every pick adds something, and gains never increase."""
    cover = compute_greedy_cover(sets)
    everything, covered = 0, 0
    for bits in sets:
        everything |= bits
    for row, gain in zip(cover.rows, cover.gains, strict=True):
        assert gain == (sets[row] & ~covered).bit_count() > 0
        covered |= sets[row]
    assert covered == everything
    assert list(cover.gains) == sorted(cover.gains, reverse=True)


@given(SETS)
def test_greedy_is_what_weighing_every_row_again_gives(sets: list[int]) -> None:
    """The lazy heap picks the same rows as trying all of them each time: the first one of equals."""
    covered = 0
    rows: list[int] = []
    while any(bits & ~covered for bits in sets):
        rows.append(max(range(len(sets)), key=lambda row: (sets[row] & ~covered).bit_count()))
        covered |= sets[rows[-1]]
    assert list(compute_greedy_cover(sets).rows) == rows


@given(SETS, st.integers(1, 3))
def test_greedy_finds_most_of_what_the_best_choice_finds(sets: list[int], k: int) -> None:
    """With k pages, it finds at least 1 - 1/e of what the best k pages find."""
    best = 0
    for chosen in combinations(sets, min(k, len(sets))):
        union = 0
        for bits in chosen:
            union |= bits
        best = max(best, union.bit_count())
    assert compute_greedy_cover(sets, most=k).count_found(k) >= (1 - np.exp(-1)) * best


@given(SETS)
def test_overlaps_are_those_of_all_pairs(sets: list[int]) -> None:
    """Grouping equal sets gives the same pairs as comparing all of them."""
    some = [bits for bits in sets if bits]
    plain = [(one & other).bit_count() / (one | other).bit_count() for one, other in combinations(some, 2)]
    grouped = [value for value, times in jaccard_overlaps(sets) for _ in range(times)]
    assert sorted(grouped) == sorted(plain)


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=30))
def test_cover_sets_are_those_of_a_plain_walk(links: list[tuple[int, int]]) -> None:
    """On any small web, an old page covers what a walk over new pages reaches."""
    out: list[list[int]] = [sorted({b for a, b in links if a == page}) for page in range(12)]
    old = [P([V(0.0), V(5.0, tuple(out[page]))]) for page in range(5)]
    history = web([*old, *(P([V(5.0, tuple(out[page]))]) for page in range(5, 12))])
    (reach,) = reach_of(history)
    covered = dict(zip(reach.old_pages.tolist(), reach.cover_bits, strict=True))
    for page in range(5):
        met: list[int] = []
        ahead = [target for target in out[page] if target >= 5]
        while ahead:
            target = ahead.pop()
            if target not in met:
                met.append(target)
                ahead += [onward for onward in out[target] if onward >= 5]
        assert covered.get(page, 0) == sum(1 << (target - 5) for target in met)
