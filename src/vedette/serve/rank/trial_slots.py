"""Trial slots in search results: which little-known results are tried, where, and with which probability.

All rows are ranked by their own worth; a slot only ever raises a row. Candidates are the rows whose worth would be
higher with information value, best first, with random order among ties. Each slot goes to one of them: at the position
of that worth, none before ``first``, none with more views than are informative, and none beyond the first page. A row
without a slot stays in place. So a trial costs the others at most one position per slot, and no row loses by being a
candidate.

The probabilities are exact. Slots have fixed positions regardless of who wins them, so the position of a row that won
none follows from how many of the winners were ranked before it, which is a sum of hypergeometric numbers.
"""

from collections.abc import Iterator
from math import comb
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats, Ints
from vedette.serve.rank.explore.randomized_lists import best_first
from vedette.serve.rank.explore.slot_allocation import CROWD_VIEW_SHARE, FIRST_PAGE, MANY_EQUALS, Bools, TrialSlots


class TrialList(NamedTuple):
    """Result rows in order, the probability of each at its position, and which of them are trials."""

    rows: Ints
    propensities: Floats
    is_tried: Bools


class _Lottery(NamedTuple):
    """Trial slots (positions from 0) drawn at random, and the candidates: positions in the order without trials."""

    slots: list[int]
    entrants: Ints


class TrialPlan(NamedTuple):
    """A ranking with trial slots to be drawn: rows by their own worth, and the lotteries for slots."""

    order: Ints
    lots: list[_Lottery]

    def draw(self, rng: np.random.Generator) -> TrialList:
        """Draw one list, with the probability of each row at its place."""
        if not self.lots:
            return TrialList(self.order, np.ones(len(self.order)), np.zeros(len(self.order), bool))
        return _assign_slots(self.order, self.lots, rng)

    def draw_at_ranks(self, ranks: Ints, rng: np.random.Generator) -> Ints:
        """Draw the row at each rank (from 1), each from a separate list (``RandomizedList``)."""
        return np.array([self._draw_at(rank - 1, rng) for rank in ranks.tolist()], np.int64)

    def _draw_at(self, place: int, rng: np.random.Generator) -> int:
        winners: list[int] = []
        slots_before = 0
        for lot in self.lots:
            if place in lot.slots:
                return int(self.order[lot.entrants[rng.integers(len(lot.entrants))]])
            winners += lot.entrants[rng.choice(len(lot.entrants), len(lot.slots), replace=False)].tolist()
            slots_before += sum(slot < place for slot in lot.slots)
        # The rows without a slot fill the other positions in their order.
        at = place - slots_before
        for winner in sorted(winners):
            at += winner <= at
        return int(self.order[at])


def plan_trial_list(own: Floats, tried: Floats, wanted: Floats, seats: TrialSlots) -> TrialPlan:
    """Plan a ranking by ``own`` worth, with trial slots for rows whose ``tried`` worth is larger.

    ``wanted`` are the views that are useful for each row. Equal ``tried`` worths are drawn at random; equal ``own``
    worths keep their order.

    >>> own, tried = np.array([5.0, 4.0, 3.0, 2.0]), np.array([5.0, 4.0, 3.0, 4.5])
    >>> plan_trial_list(own, tried, np.ones(4), TrialSlots(first=2)).draw(np.random.default_rng(1)).rows.tolist()
    [0, 3, 1, 2]
    """
    order = best_first(own)
    return TrialPlan(order, _build_lotteries(own[order], tried[order], wanted[order], seats))


def _build_lotteries(own: Floats, tried: Floats, wanted: Floats, seats: TrialSlots) -> list[_Lottery]:
    """Build the lotteries for trial slots by their candidates; all arrays are in the order of ``own``."""
    length = min(FIRST_PAGE, len(own))
    lots: list[_Lottery] = []
    taken, left = seats.first - 2, seats.most  # the last position that was assigned
    # A row that would not come before the last of the first page gets no slot, and that is nearly every row.
    is_able = (tried > own) & (tried >= own[length - 1]) if length else np.zeros(0, bool)
    is_able[: seats.first] = False
    candidates = np.flatnonzero(is_able)
    if not len(candidates):
        return lots
    views = seats.views_by_place(len(own)).tolist()
    for among in _group_equals(candidates, tried):
        # How many have a higher own worth than each of these would have.
        start = max(taken + 1, int(np.count_nonzero(own[:length] > tried[among[0]])))
        if not left or start >= length:  # later ones are worth less
            break
        use = float(wanted[among[0]]) * len(among) * (CROWD_VIEW_SHARE if len(among) >= MANY_EQUALS else 1.0)
        found = _find_open_slots(start, use, views[:length], min(left, len(among)))
        lot = _limit_to_raised(found, np.sort(among))
        if lot.slots:
            lots.append(lot)
            taken, left = lot.slots[-1], left - len(lot.slots)
    return lots


def _group_equals(candidates: Ints, tried: Floats) -> Iterator[Ints]:
    """Yield groups of trial candidates with equal worth, best first."""
    by_worth = candidates[best_first(tried[candidates])]
    worth = tried[by_worth]
    begin = 0
    for end in [*(np.flatnonzero(worth[1:] != worth[:-1]) + 1).tolist(), len(worth)]:
        yield by_worth[begin:end]
        begin = end


def _find_open_slots(start: int, use: float, views: list[float], most: int) -> list[int]:
    """Find the positions from ``start`` on whose views do not exceed what a trial can use."""
    found: list[int] = []
    for place in range(start, len(views)):
        if len(found) == most:
            break
        if views[place] <= use:
            found.append(place)
            use -= views[place]
    return found


def _limit_to_raised(found: list[int], among: Ints) -> _Lottery:
    """Limit trial slots to those that raise at least one candidate each."""
    for count in range(len(found), 0, -1):
        raised = among[among > found[count - 1]]
        if len(raised) >= count:
            return _Lottery(found[:count], raised)
    return _Lottery([], among)


def _assign_slots(order: Ints, lots: list[_Lottery], rng: np.random.Generator) -> TrialList:
    length = len(order)
    by_place, is_tried, chance = np.full(length, -1), np.zeros(length, bool), np.ones(length)
    winners: list[int] = []
    for lot in lots:
        won = rng.permutation(lot.entrants)[: len(lot.slots)]
        by_place[lot.slots], is_tried[lot.slots], chance[lot.slots] = won, True, 1.0 / len(lot.entrants)
        winners += won.tolist()
    is_other = np.ones(length, bool)
    is_other[winners] = False
    others = np.flatnonzero(is_other)
    by_place[~is_tried], chance[~is_tried] = others, _stay_chances(length, lots, winners)[others]
    return TrialList(order[by_place], chance, is_tried)


def _stay_chances(length: int, lots: list[_Lottery], winners: list[int]) -> Floats:
    """Compute, for each row without a trial slot, the probability that it lost and kept its position.

    Before the first candidate no row moves, and after the last one every row moves, regardless of who wins.
    """
    able = np.concatenate([lot.entrants for lot in lots])
    begin, end = int(able.min()), int(able.max()) + 1
    within = [_Lottery(lot.slots, lot.entrants - begin) for lot in lots]
    chance = np.ones(length)
    chance[begin:end] = _stay_chances_within(end - begin, within, [winner - begin for winner in winners])
    return chance


def _stay_chances_within(length: int, lots: list[_Lottery], winners: list[int]) -> Floats:
    stays, parts = np.ones(length), [np.ones(length)]
    for lot in lots:
        is_in = np.zeros(length)
        is_in[lot.entrants] = 1.0
        before = is_in.cumsum() - is_in
        others = len(lot.entrants) - is_in  # of the draw, without the row itself
        stays *= 1.0 - is_in * (len(lot.slots) / len(lot.entrants))
        parts = _convolve(parts, _hypergeometric(before, others, len(lot.slots)))
    is_winner = np.zeros(length, np.int64)
    is_winner[winners] = 1
    return np.asarray(stays * np.choose(is_winner.cumsum() - is_winner, parts))


def _convolve(parts: list[Floats], others: list[Floats]) -> list[Floats]:
    """Convolve the distributions of two independent counts."""
    if len(parts) == 1:
        return others
    found = [np.zeros(len(parts[0])) for _ in range(len(parts) + len(others) - 1)]
    for one, part in enumerate(parts):
        for two, other in enumerate(others):
            found[one + two] += part * other
    return found


def _hypergeometric(before: Floats, others: Floats, draws: int) -> list[Floats]:
    """Compute the hypergeometric probability of 0, 1 … hits among ``before`` in ``draws`` draws.

    >>> [part.tolist() for part in _hypergeometric(np.array([1.0]), np.array([4.0]), 2)]
    [[0.5], [0.5], [0.0]]
    """
    hits, misses, all_ = (_falling_factorials(each, draws) for each in (before, others - before, others))
    ways = 1.0 / np.maximum(all_[draws], 1.0)
    return [comb(draws, hit) * ways * hits[hit] * misses[draws - hit] for hit in range(draws + 1)]


def _falling_factorials(count: Floats, most: int) -> list[Floats]:
    """Compute the falling factorials 1, n, n (n - 1) … for trial slot draws."""
    found = [np.ones(len(count))]
    for drawn in range(most):
        found.append(found[-1] * np.maximum(count - drawn, 0.0))
    return found
