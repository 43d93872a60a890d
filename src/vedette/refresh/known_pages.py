"""What is known of pages that were fetched: the batch that refresh policies judge, and what they may remember."""

from dataclasses import dataclass, field, fields

import numpy as np
import numpy.typing as npt

from vedette.policy import Floats, Ints

Bools = npt.NDArray[np.bool_]
# What a column says where nobody filled it.
_DEFAULTS = {"section": 0, "site": 0, "gone": False, "cost": 1.0}


def _empty_ints() -> Ints:
    return np.zeros(0, np.int64)


def _empty_floats() -> Floats:
    return np.zeros(0)


def _empty_bools() -> Bools:
    return np.zeros(0, np.bool_)


@dataclass(frozen=True, slots=True)
class KnownPages:
    """Columns of equal length, one row per known page; all of them speak of its latest fetch that brought an answer.

    A policy may remember something of each page, as an array with one element per page; ``place`` says which element
    is this page's. Whoever keeps the array may hand over all of it, or only the elements of the pages in question with
    places 0, 1, 2 … : a batch then costs what the batch is large, however many pages are known.

        kept[pages] = policy.observe(kept[pages], batch_with_places_0_to_n, now)

    ``changed`` says whether the fetch found another content than the one before, and means nothing where
    ``first_fetch`` is set. ``modified_s`` is when the page last changed as far as is known: the server's word where it
    gives one, else the fetch that found the change; NaN where nothing is known. Failed fetches are no observations:
    when to try again is for the retry rules to say.

    The other columns may be left out, and say then that nothing is known. ``before_s`` is when the fetch before the
    latest was made (NaN at the first): ``changed`` speaks of the time between both. ``section`` and ``site`` are the
    groups that a page belongs to, by their rows in ``Memory.groups``; row 0 is the group of everything. ``gone`` says
    that the fetch found no page any more. ``cost`` is what a fetch of it costs, 1 for an ordinary one. NaN stands for
    unknown in these: ``gain`` is the change in search quality that the fetch brought, ``views`` how often people are
    shown the page (as a share of all results that are looked at), ``share`` the part of its text that was new,
    ``born_s`` when it was first seen, ``words`` how long it is, ``links`` how many pages link to it. ``signal_s`` is
    when something (a sitemap, a feed, a ping) last said that it has changed; NaN where nothing did after the fetch.
    """

    place: Ints
    last_fetch_s: Floats
    changed: Bools
    first_fetch: Bools
    modified_s: Floats
    before_s: Floats = field(default_factory=_empty_floats)
    section: Ints = field(default_factory=_empty_ints)
    site: Ints = field(default_factory=_empty_ints)
    gone: Bools = field(default_factory=_empty_bools)
    cost: Floats = field(default_factory=_empty_floats)
    gain: Floats = field(default_factory=_empty_floats)
    views: Floats = field(default_factory=_empty_floats)
    share: Floats = field(default_factory=_empty_floats)
    born_s: Floats = field(default_factory=_empty_floats)
    words: Floats = field(default_factory=_empty_floats)
    links: Floats = field(default_factory=_empty_floats)
    signal_s: Floats = field(default_factory=_empty_floats)

    def __post_init__(self) -> None:
        for column in fields(self)[5:]:
            values = getattr(self, column.name)
            if len(values) != len(self.place):
                neutral = np.full(len(self.place), _DEFAULTS.get(column.name, np.nan), values.dtype)
                object.__setattr__(self, column.name, neutral)

    def __len__(self) -> int:
        return len(self.place)

    def select(self, rows: Ints | Bools) -> "KnownPages":
        """Some rows, with the places that they have."""
        return KnownPages(*(getattr(self, column.name)[rows] for column in fields(self)))


@dataclass(frozen=True, slots=True)
class Memory:
    """What a policy remembers: a row of numbers for each page, and one for each group of pages.

    It is what a policy with more than one number per page takes and gives as its state. Rows are zero until the policy
    writes them. As with any array per page, whoever keeps it may hand over the rows of the pages in question only,
    with places 0, 1, 2 … ; groups are few, and are always handed over as they are. A policy never writes to what it was
    given: ``grow_for`` makes copies.

    >>> memory = Memory.empty(page_width=2, group_width=3)
    >>> memory.pages.shape, memory.groups.shape
    ((0, 2), (1, 3))
    """

    pages: Floats
    groups: Floats

    @classmethod
    def empty(cls, page_width: int, group_width: int) -> "Memory":
        """Of no page, and of the group of everything, which has seen nothing."""
        return cls(np.zeros((0, page_width)), np.zeros((1, group_width)))

    def grow_for(self, batch: KnownPages) -> "Memory":
        """A copy with rows for all pages and groups of a batch."""
        return Memory(
            _grow_rows(self.pages, int(batch.place.max(initial=-1)) + 1),
            _grow_rows(self.groups, int(max(batch.section.max(initial=0), batch.site.max(initial=0))) + 1),
        )

    def ensure_rows(self, batch: KnownPages) -> "Memory":
        """The same for reading: itself, where it has rows for all pages and groups of a batch."""
        groups = max(int(batch.section.max(initial=0)), int(batch.site.max(initial=0)))
        enough = int(batch.place.max(initial=-1)) < len(self.pages) and groups < len(self.groups)
        return self if enough else self.grow_for(batch)


def _grow_rows(rows: Floats, count: int) -> Floats:
    grown = np.zeros((max(len(rows), count), rows.shape[1]))
    grown[: len(rows)] = rows
    return grown
