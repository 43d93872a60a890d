"""How long links stay, told by whether what looks brought is still there at later ones.

When a look brings new links, each is shared out among kinds of life by what was expected of each kind. Later looks know
better: what stays is rather of a long life, what is gone was rather of a short one,

    there:  q_c  proportional to  q_c e^(-dt / tau_c)        gone:  q_c  proportional to  q_c (1 - e^(-dt / tau_c))

and what was counted for each kind is put right by the difference. A few links of each source stand for all of them.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vedette.discover.polling.rhythm import HOUR_S
from vedette.discover.polling.sources import Sources
from vedette.policy import Floats, Ints

__all__ = ["Awaited", "corrected", "with_new"]

# So many links of a source are followed, and at most so many of one look, so that some are followed to their end.
FOLLOWED, OF_A_LOOK = 16, 12


@dataclass(frozen=True, slots=True)
class Awaited:
    """By place: links that are followed (-1 where none), for how many links each stands, and its kinds of life."""

    link: Ints
    weight: Floats
    kind: Floats

    @classmethod
    def none(cls, kinds: int, places: int = 0) -> "Awaited":
        """Nothing is followed at so many sources."""
        shape = (places, FOLLOWED)
        return cls(np.full(shape, -1, np.int64), np.zeros(shape), np.zeros((*shape, kinds)))

    def reaching(self, places: int) -> "Awaited":
        """A copy that has an element for so many places, and may be written to."""
        more = Awaited.none(self.kind.shape[2], max(places - len(self.link), 0))
        link = np.concatenate([self.link, more.link])
        return Awaited(link, np.concatenate([self.weight, more.weight]), np.concatenate([self.kind, more.kind]))


def corrected(
    awaited: Awaited, batch: Sources, rows: Ints, since_s: Floats, now: float, lives_h: Floats
) -> tuple[Awaited, Floats]:
    """What is followed from now on, and what to add to the links of each kind, now that it is seen what stayed."""
    place = batch.place[rows]
    link, weight, kind = awaited.link[place], awaited.weight[place], awaited.kind[place]
    there = _there(link, batch, rows)
    staying = np.exp(-((now - since_s) / HOUR_S)[:, None] / lives_h)[:, None]
    told = _shares(kind * np.where(there[..., None], staying, 1.0 - staying))
    change: Floats = np.einsum("ij,ijc->ic", np.where(link >= 0, weight, 0.0), told - kind)
    after = awaited.reaching(len(awaited.link))
    after.link[place], after.kind[place] = np.where(there, link, -1), told
    return after, change


def with_new(awaited: Awaited, batch: Sources, rows: Ints, kind: Floats, counted: Floats) -> Awaited:
    """What these rows brought, which ``counted`` for so many, is followed from now on, shared out by ``kind``."""
    new = _first_new(batch, rows)
    place = batch.place[rows]
    known = (new >= 0).sum(axis=1)
    each = np.broadcast_to((counted / np.maximum(known, 1))[:, None], new.shape)
    kinds = np.broadcast_to(_shares(kind)[:, None], (*new.shape, kind.shape[1]))
    link = np.concatenate([new, awaited.link[place]], axis=1)
    weight = np.concatenate([each, awaited.weight[place]], axis=1)
    shares = np.concatenate([kinds, awaited.kind[place]], axis=1)
    order = np.argsort(link < 0, axis=1, kind="stable")[:, :FOLLOWED]
    line = np.arange(len(rows))[:, None]
    after = awaited.reaching(len(awaited.link))
    after.link[place], after.weight[place], after.kind[place] = (
        link[line, order],
        weight[line, order],
        shares[line, order],
    )
    return after


def _first_new(batch: Sources, rows: Ints) -> Ints:
    """The first new links of each row, -1 where there are fewer."""
    line = np.full(len(batch), -1, np.int64)
    line[rows] = np.arange(len(rows))
    row = np.repeat(np.arange(len(batch)), np.diff(batch.shown_start))
    counted = np.concatenate([[0], np.cumsum(batch.shown_new)])
    nth = counted[:-1] - counted[batch.shown_start[:-1]][row]
    some = batch.shown_new & (line[row] >= 0) & (nth < OF_A_LOOK)
    first = np.full((len(rows), OF_A_LOOK), -1, np.int64)
    first[line[row[some]], nth[some]] = batch.shown[some]
    return first


def _there(link: Ints, batch: Sources, rows: Ints) -> npt.NDArray[np.bool_]:
    """Which of the links of each row the look showed again."""
    size = int(max(batch.shown.max(initial=-1), link.max(initial=-1))) + 2
    shown = np.repeat(np.arange(len(batch)), np.diff(batch.shown_start)) * size + batch.shown
    there: npt.NDArray[np.bool_] = np.isin(rows[:, None] * size + link, shown) & (link >= 0)
    return there


def _shares(amount: Floats) -> Floats:
    shares: Floats = amount / np.maximum(amount.sum(axis=-1, keepdims=True), 1e-12)
    return shares
