"""What has gathered on sources since they were last looked at, and is not known from others: links of one an hour."""

from typing import NamedTuple

import numpy as np

from vedette.discover.polling.arrivals import LIVES_H, Arrivals
from vedette.discover.polling.overlap_part import Overlap
from vedette.discover.polling.rhythm import HOUR_S
from vedette.discover.polling.sources import Sources
from vedette.policy import Floats, Ints

__all__ = ["Belief", "gathered"]

# Relatives mostly show the same links as each other, so what each of them covers counts less where there are several.
KINSHIP = 0.6


class Belief(NamedTuple):
    """All that the policy remembers: how links come and go, and who shows the same."""

    arrivals: Arrivals
    overlap: Overlap

    @classmethod
    def none(cls) -> "Belief":
        """Nothing was looked at."""
        return cls(Arrivals.none(), Overlap.none())

    def covering(self, batch: Sources) -> "Belief":
        """The same, with an element for each place of a batch."""
        arrivals = self.arrivals.covering(batch)
        known = len(self.overlap.other) >= len(arrivals)
        return Belief(arrivals, self.overlap if known else self.overlap.reaching(len(arrivals)))


def gathered(belief: Belief, place: Ints, now: float) -> Floats:
    """A_c of each source (see ``arrivals``), a column for each kind of life; more time since a look never lowers it.

    Time since the look is cut where relatives were looked at. What appeared before such a look counts only with the
    part that the relative does not show.
    """
    arrivals, overlap = belief
    since_s = arrivals.since_s(place, now)
    kin, share = overlap.other[place], overlap.share(place)
    cut_s = np.clip(np.where(share > 0, arrivals.looked_s[kin], -np.inf), since_s[:, None], now)
    order = np.argsort(-cut_s, axis=1, kind="stable")
    cut_s, share = (np.take_along_axis(each, order, axis=1) for each in (cut_s, share))
    oldest = _still_there(arrivals.filled[place], since_s, now)
    there = np.repeat(oldest[:, None], cut_s.shape[1], axis=1)
    # Few relatives are looked at in the time in question, and only those cost anything.
    row, column = np.nonzero(cut_s > since_s[:, None])
    at_s = cut_s[row, column]
    there[row, column] = _still_there(arrivals.full_at(arrivals.host[place[row]], at_s), at_s, now)
    newest = arrivals.full_at(arrivals.host[place], np.full(len(place), now))
    kept = np.cumprod(1.0 - share, axis=1) ** KINSHIP
    # The sum over pieces, each with the part kept, telescoped: every look of a relative takes its own part away.
    taken = np.diff(kept, axis=1, prepend=1.0)
    total = newest + np.einsum("ij,ijc->ic", taken, there) - kept[:, -1:] * oldest
    unknown: Floats = np.maximum(total, 0.0)
    return unknown


def _still_there(filled: Floats, at_s: Floats, now: float) -> Floats:
    left: Floats = filled * np.exp(-(now - at_s)[..., None] / (HOUR_S * LIVES_H))
    return left
