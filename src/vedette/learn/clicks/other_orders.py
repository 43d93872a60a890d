"""What if everybody had got another order? Told from the searches of readers who got theirs by lot.

A decision is what one reader of a day was shown, the reward how much the searches of that reader succeeded: each as
much as the result that was liked best. Orders are dealt by the mark of the day (``reader_groups``), so the chance of
each is known, and the estimates of ``off_policy`` hold whatever people are like. Readers are the unit, since searches
of one person are alike.

The model of the doubly robust estimate knows how often searches for the same words succeed with each order: those of
the other half of the readers, so that no reader is foretold by what that reader did. It must not look at what this
reader was shown, or what lots decided would be taken for what the order does.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from vedette.learn.clicks.experiment_groups import ALL, CHANCES, PLAIN, UNTRIED, group_of
from vedette.learn.clicks.impressions import Bools, Impressions
from vedette.learn.clicks.off_policy import Decisions, Estimate, doubly_robust, ips, snips
from vedette.policy import Floats, Ints

__all__ = ["OtherOrder", "other_orders"]

WEIGHT = 5.0  # searches that what is usual elsewhere counts for


class OtherOrder(NamedTuple):
    """An order by its name in ``reader_groups``, and the share of searches that it would have brought to success.

    ``readers`` got it, of ``of_readers``.
    """

    name: str
    readers: int
    of_readers: int
    ips: Estimate
    snips: Estimate
    robust: Estimate


def other_orders(seen: Impressions, among: Bools, is_tried: Bools) -> tuple[OtherOrder, ...]:
    """Each order that readers got by lot, had all got it; ``among`` says which rows count.

    Where nothing was tried, those who might have been shown such pages and those who might not had the same order.
    """
    rows = np.flatnonzero(among & (seen.visitor < len(seen.marks)))
    if not len(rows):
        return ()
    orders: Mapping[str, Sequence[str]] = {PLAIN: (PLAIN,), UNTRIED: (UNTRIED,), ALL: (ALL,)}
    if not is_tried[rows].any():
        orders = {PLAIN: (PLAIN,), ALL: (UNTRIED, ALL)}
    searches = _Searches.of(seen, rows, orders)
    return tuple(_told(name, number, searches, got) for number, (name, got) in enumerate(orders.items()))


class _Searches(NamedTuple):
    """A row for each search: its reader, its words and how much it succeeded. By reader: the order, of so many."""

    reader: Ints
    group: Ints
    success: Floats
    order: Ints
    many: int

    @classmethod
    def of(cls, seen: Impressions, rows: Ints, orders: Mapping[str, Sequence[str]]) -> "_Searches":
        _, first, slate = np.unique(seen.slate[rows], return_index=True, return_inverse=True)
        success = np.zeros(len(first))
        np.maximum.at(success, slate, seen.liked[rows])
        readers, reader = np.unique(seen.visitor[rows[first]], return_inverse=True)
        number = {group: at for at, groups in enumerate(orders.values()) for group in groups}
        order = [number[group_of(seen.marks[visitor])] for visitor in readers.tolist()]
        return cls(reader, seen.group[rows[first]], success, np.array(order, np.int64), len(orders))

    def by_reader(self, of_search: Floats) -> Floats:
        """The mean over the searches of each reader."""
        return np.asarray(np.bincount(self.reader, of_search) / np.bincount(self.reader))

    def expected(self, order: Ints) -> Floats:
        """How much each search would succeed with an order, as searches of the other half of the readers did."""
        _, words = np.unique(self.group, return_inverse=True)
        half, got = self.reader % 2, self.order[self.reader]
        usual = _leaning(half, self.success, np.array([float(self.success.mean())] * 2))
        of_words = _leaning(2 * words + half, self.success, np.tile(usual, int(words.max()) + 1))
        by_both = _leaning((2 * words + half) * self.many + got, self.success, np.repeat(of_words, self.many))
        return np.asarray(by_both[(2 * words + 1 - half) * self.many + order])


def _leaning(key: Ints, values: Floats, usual: Floats) -> Floats:
    """The mean of each key, leaning on what is usual."""
    sums, counts = (np.bincount(key, each, len(usual)) for each in (values, np.ones(len(key))))
    return np.asarray((sums + WEIGHT * usual) / (counts + WEIGHT))


def _told(name: str, number: int, searches: _Searches, got: Sequence[str]) -> OtherOrder:
    is_got = searches.order == number
    shown = searches.order[searches.reader]
    log = Decisions(
        np.where(is_got, sum(CHANCES[each] for each in got), 1.0),
        is_got.astype(np.float64),
        searches.by_reader(searches.success),
        searches.by_reader(searches.expected(shown)),
        searches.by_reader(searches.expected(np.full(len(shown), number))),
    )
    return OtherOrder(name, int(is_got.sum()), len(is_got), ips(log), snips(log), doubly_robust(log))
