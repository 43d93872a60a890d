"""The history of a site as cycles of discovery: at each snapshot, which known pages lead to what is new?

The setting of Pandey08, chapter 3. Known pages are those of the snapshot before, whether or not anybody has found them;
a look at one brings the new pages that it leads to, over new pages too (``arrivals``). One that died since fails. What
was new at a snapshot is known at the next. Hosts are apart, orphans left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from vedette.discover.polling.look_book import Brought, LookBook
from vedette.discover.polling.sources import Sources
from vedette.lab.runs.discovery.arrivals import Backlinks, Reach, hosts_of, reaches, steps_of
from vedette.lab.worlds.history import PAGE, History
from vedette.policy import Ints

__all__ = ["Cycle", "Looks", "cycles_of"]


@dataclass(frozen=True, slots=True)
class Cycle:
    """A host at a snapshot.

    ``known`` are its pages, by their numbers, and ``there`` says which still answer. ``leads`` has those that lead to
    anything new, with a bit for each new page, ``new`` counts these pages, and ``first`` is the number of the first:
    no two cycles share one.
    """

    now_s: float
    known: Ints
    there: np.ndarray[tuple[int], np.dtype[np.bool_]]
    leads: dict[int, int]
    new: int
    first: int

    def found_by(self, pages: Ints) -> list[int]:
        """How many new pages the first 1, 2, … of these pages lead to."""
        found = 0
        counts = []
        for page in pages.tolist():
            found |= self.leads.get(page, 0)
            counts.append(found.bit_count())
        return counts

    def brought(self, pages: Ints) -> Brought:
        """What looks at these known pages bring; all that they lead to is new."""
        leading = np.flatnonzero(np.isin(pages, list(self.leads)))
        targets = {bits: _places(bits) + self.first for bits in dict.fromkeys(self.leads.values())}
        shown = [targets[self.leads[page]] for page in pages[leading].tolist()]
        many = np.zeros(len(pages), np.int64)
        many[leading] = [len(each) for each in shown]
        start = np.concatenate([[0], np.cumsum(many)]).astype(np.int64)
        target = np.concatenate([np.zeros(0, np.int64), *shown])
        ok = self.there[np.searchsorted(self.known, pages)]
        return Brought(pages, ok, start, target, np.ones(len(target), bool))


def _places(bits: int) -> Ints:
    """The places of the bits that are set.

    >>> _places(0b1010).tolist()
    [1, 3]
    """
    raw = np.frombuffer(bits.to_bytes((bits.bit_length() + 7) // 8, "little"), np.uint8)
    return np.flatnonzero(np.unpackbits(raw, bitorder="little"))


def cycles_of(history: History, begin_s: float, end_s: float, every_s: float) -> list[list[Cycle]]:
    """The cycles of each host in which anything new could ever be found, whether or not something is new at them."""
    backlinks, host = Backlinks.of(history), hosts_of(history)
    hosts: dict[int, list[Cycle]] = {number: [] for number in range(int(host.max(initial=-1)) + 1)}
    by_host = [np.flatnonzero((host == number) & (history.kind == PAGE)) for number in hosts]
    first = 0
    for step in steps_of(begin_s, end_s, every_s):
        arrivals = backlinks.arrivals(step)
        found = {reach.group: reach for reach in reaches(arrivals, np.arange(len(arrivals.new)), host)}
        for number, pages in enumerate(by_host):
            known = pages[(history.born_s[pages] <= step.before_s) & (step.before_s < history.died_s[pages])]
            leads = _leads(found[number], known) if number in found else {}
            new = _union(leads).bit_count()
            hosts[number].append(Cycle(step.now_s, known, step.now_s < history.died_s[known], leads, new, first))
            first += len(arrivals.new)
    return [cycles for cycles in hosts.values() if any(cycle.new for cycle in cycles)]


def _leads(reach: Reach, known: Ints) -> dict[int, int]:
    """What known pages lead to; one that was away at the last snapshot and is back is not known."""
    rows = np.flatnonzero(np.isin(reach.old, known))
    return {int(reach.old[row]): reach.sets[row] for row in rows.tolist()}


def _union(leads: dict[int, int]) -> int:
    found = 0
    for bits in leads.values():
        found |= bits
    return found


class Looks:
    """What is told of the pages of one host: a book of all looks, by which the batches of policies are made."""

    def __init__(self, cycles: Sequence[Cycle]) -> None:
        pages = max((int(cycle.known.max(initial=-1)) for cycle in cycles), default=-1) + 1
        self._book = LookBook(np.zeros(pages, np.int64))

    def options(self, cycle: Cycle) -> Sources:
        """The known pages, to choose from."""
        return _rows(self._book.options(), cycle.known)

    def tell(self, cycle: Cycle, pages: Ints) -> Sources:
        """What looks at these pages brought, to learn from."""
        return self._book.enter(cycle.brought(pages), cycle.now_s)


def _rows(every: Sources, rows: Ints) -> Sources:
    columns = {
        name: getattr(every, name)[rows]
        for name in ("place", "host", "last_look_s", "failures", "looks", "found", "links", "look_s", "yields")
    }
    return replace(every, **columns, shown_start=np.zeros(len(rows) + 1, np.int64))
