"""What if everybody had got another order? Told from the searches of readers who got theirs by lot.

A decision is what one reader of a day was shown, the reward how much the searches of that reader succeeded: each as
much as the result that was liked best. Orders are dealt by the mark of the day (``reader_groups``), so the chance of
each is known, and the estimates of ``off_policy`` hold whatever people are like. Readers are the unit, since searches
of one person are alike.

The model of the doubly robust estimate expects that a result is liked as often as it is looked at at its place, and as
others liked it for the query: those of the other half of the readers, so that no reader is foretold by what that
reader did. An order that was not shown is told from the results that were: those behind them are not in the record.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from vedette.decide import Floats, Ints
from vedette.learn.impressions import Bools, Impressions
from vedette.learn.off_policy import Decisions, Estimate, doubly_robust, ips, snips
from vedette.learn.reader_groups import ALL, CHANCES, PLAIN, UNTRIED, group_of

__all__ = ["OtherOrder", "other_orders"]

WEIGHT = 5.0  # looks that what is liked in general counts for
MOST_POINTS = 3.0  # that quality adds or takes away, as where results are ordered


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


def other_orders(seen: Impressions, among: Bools, is_tried: Bools, examined: Floats) -> tuple[OtherOrder, ...]:
    """Each order that readers got by lot, had all got it; ``among`` says which rows count.

    Where nothing was tried, those who might have been shown such pages and those who might not had the same order.
    """
    rows = np.flatnonzero(among & (seen.visitor < len(seen.marks)) & (seen.place < len(examined)))
    if not len(rows):
        return ()
    readers, reader = np.unique(seen.visitor[rows], return_inverse=True)
    group = [group_of(seen.marks[visitor]) for visitor in readers.tolist()]
    scene = _Scene.of(seen, rows, reader, examined)
    orders: Mapping[str, tuple[Floats, Sequence[str]]] = {
        PLAIN: (scene.plain, (PLAIN,)),
        UNTRIED: (scene.learned, (UNTRIED,)),
        ALL: (np.where(np.array(group)[reader] == ALL, -scene.place.astype(np.float64), scene.learned), (ALL,)),
    }
    if not is_tried[rows].any():
        orders = {PLAIN: orders[PLAIN], ALL: (scene.learned, (UNTRIED, ALL))}
    return tuple(_told(name, scene, group, key, got) for name, (key, got) in orders.items())


class _Scene(NamedTuple):
    """Rows that count: whose they are, which search, where they stood, what was made of them, and what is expected.

    ``plain`` and ``learned`` are what rows would be ordered by, largest first.
    """

    reader: Ints
    slate: Ints
    place: Ints
    liked: Floats
    attraction: Floats
    examined: Floats
    plain: Floats
    learned: Floats

    @classmethod
    def of(cls, seen: Impressions, rows: Ints, reader: Ints, examined: Floats) -> "_Scene":
        _, slate = np.unique(seen.slate[rows], return_inverse=True)
        place, liked = seen.place[rows], seen.liked[rows]
        attraction, general = _attraction(
            np.column_stack([seen.group[rows], seen.page[rows]]), reader % 2, liked, examined[place]
        )
        plain = seen.score[rows] - seen.points[rows]
        believed = np.clip(np.log(attraction / general), -MOST_POINTS, MOST_POINTS)
        # Who was shown relevance alone has no points in the record; there it is what others made of the page.
        is_plain = np.bincount(slate, seen.points[rows] != 0.0)[slate] == 0
        return cls(
            reader,
            slate,
            place,
            liked,
            attraction,
            examined,
            plain,
            plain + np.where(is_plain, believed, seen.points[rows]),
        )

    def success(self, place: Ints) -> Floats:
        """How probably each search brings something that is liked, with its results at these places."""
        missed = np.log1p(-np.minimum(self.examined[place] * self.attraction, 1 - 1e-9))
        return np.asarray(-np.expm1(np.bincount(self.slate, missed)))

    def placed(self, key: Floats) -> Ints:
        """Where each result of its search would stand; equals stay as they stood."""
        order = np.lexsort((self.place, -key, self.slate))
        firsts = np.searchsorted(self.slate[order], np.arange(int(self.slate.max()) + 1))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order)) - firsts[self.slate[order]]
        return np.minimum(place, len(self.examined) - 1)

    def by_reader(self, of_slate: Floats) -> Floats:
        """The mean over the searches of each reader."""
        owner = np.zeros(len(of_slate), np.int64)
        owner[self.slate] = self.reader
        return np.asarray(np.bincount(owner, of_slate) / np.bincount(owner))


def _attraction(pairs: Ints, half: Ints, liked: Floats, looked: Floats) -> tuple[Floats, float]:
    """How often each result is liked when it is looked at, by the readers of the other half; and so in general."""
    _, pair = np.unique(pairs, axis=0, return_inverse=True)
    key = 2 * pair.ravel() + (1 - half)  # the half that is asked about this row
    source = 2 * pair.ravel() + half
    length = int(max(key.max(), source.max())) + 1
    likes, looks = np.bincount(source, liked, length), np.bincount(source, np.maximum(looked, liked), length)
    general = float(liked.sum() + 1.0) / float(np.maximum(looked, liked).sum() + 2.0)
    return np.asarray((likes[key] + WEIGHT * general) / (looks[key] + WEIGHT)), general


def _told(name: str, scene: _Scene, group: Sequence[str], key: Floats, got: Sequence[str]) -> OtherOrder:
    best = np.zeros(int(scene.slate.max()) + 1)
    np.maximum.at(best, scene.slate, scene.liked)
    is_got = np.array([each in got for each in group])
    chance = sum(CHANCES[each] for each in got)
    log = Decisions(
        np.where(is_got, chance, 1.0),
        is_got.astype(np.float64),
        scene.by_reader(best),
        scene.by_reader(scene.success(scene.place)),
        scene.by_reader(scene.success(scene.placed(key))),
    )
    return OtherOrder(name, int(is_got.sum()), len(group), ips(log), snips(log), doubly_robust(log))
