"""Batches of fetched pages that refresh policies decide on, their groups, and the memory of those policies.

Pages that change alike are grouped into *sections* of a site, by the first folders of their URLs.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.model import section_of, site_of
from vedette.policy import Floats, Ints

Bools = npt.NDArray[np.bool_]
# The default of omitted columns.
_DEFAULTS = {"section": 0, "site": 0, "gone": False, "cost": 1.0, "busy_hours": 0, "busy_factor": 1.0}


def _empty_ints() -> Ints:
    return np.zeros(0, np.int64)


def _empty_floats() -> Floats:
    return np.zeros(0)


def _empty_bools() -> Bools:
    return np.zeros(0, np.bool_)


@dataclass(frozen=True, slots=True)
class KnownPages:
    """A batch of fetched pages: columns of equal length, one row per page, about its latest successful fetch.

    A policy may store something for each page, as an array with one element per page; ``place`` is the index of this
    page's element. The owner of the array may pass all of it, or only the elements of the batch with places 0, 1, 2 … :
    then the cost depends only on the batch, however many pages are known.

        kept[pages] = policy.observe(kept[pages], batch_with_places_0_to_n, now)

    ``changed`` says whether the fetch found different content than the previous one, and is undefined if
    ``first_fetch`` is set. ``modified_s`` is when the page last changed as far as known: the server's date if it gives
    one, else the fetch that found the change; NaN if unknown. Failed fetches are not observations: the retry rules
    decide when to try again.

    The other columns may be omitted, which means unknown. ``before_s`` is the time of the fetch before the latest (NaN
    at the first): ``changed`` refers to the time between both. ``section`` and ``site`` are the groups of a page, by
    their rows in ``Memory.groups``; row 0 is the global group. ``gone`` means that the fetch found the page gone.
    ``cost`` is the cost of fetching it, 1 for an ordinary page. In these columns NaN means unknown: ``gain`` is the
    change in search quality due to the fetch, ``views`` how often people see the page (as a share of all result views),
    ``share`` the share of its text that was new, ``born_s`` when it was first seen, ``words`` its length, ``links`` how
    many pages link to it. ``signal_s`` is when something (a sitemap, a feed, a ping) last announced a change; NaN if
    nothing did after the fetch. ``heard_s`` is the last time a source of the site was read: later announcements are
    unknown. In ``busy_hours`` (a bit for each hour of the day in UTC) a fetch costs ``busy_factor`` times as much;
    ``cost`` is that of the other hours.
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
    heard_s: Floats = field(default_factory=_empty_floats)
    busy_hours: Ints = field(default_factory=_empty_ints)
    busy_factor: Floats = field(default_factory=_empty_floats)

    def __post_init__(self) -> None:
        for column in fields(self)[5:]:
            values = getattr(self, column.name)
            if len(values) != len(self.place):
                neutral = np.full(len(self.place), _DEFAULTS.get(column.name, np.nan), values.dtype)
                object.__setattr__(self, column.name, neutral)

    def __len__(self) -> int:
        return len(self.place)

    def select(self, rows: Ints | Bools) -> "KnownPages":
        """Select some rows of the batch of known pages; their places stay the same."""
        return KnownPages(*(getattr(self, column.name)[rows] for column in fields(self)))


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of a refresh policy: a row of numbers for each page, and one for each group of pages.

    A policy with more than one number per page takes and returns it as its state. Rows are zero until the policy writes
    them. As with any array per page, the owner may pass only the rows of the batch, with places 0, 1, 2 … ; groups are
    few, and are always passed in full. A policy never writes to the memory it was given: ``grow_for`` makes copies.

    >>> memory = Memory.empty(page_width=2, group_width=3)
    >>> memory.pages.shape, memory.groups.shape
    ((0, 2), (1, 3))
    """

    pages: Floats
    groups: Floats

    @classmethod
    def empty(cls, page_width: int, group_width: int) -> "Memory":
        """Create an empty refresh memory, without pages and with a zero row for the global group."""
        return cls(np.zeros((0, page_width)), np.zeros((1, group_width)))

    def grow_for(self, batch: KnownPages) -> "Memory":
        """Return a copy of the refresh memory with rows for all pages and groups of a batch."""
        return Memory(
            _grow_rows(self.pages, int(batch.place.max(initial=-1)) + 1),
            _grow_rows(self.groups, int(max(batch.section.max(initial=0), batch.site.max(initial=0))) + 1),
        )

    def ensure_rows(self, batch: KnownPages) -> "Memory":
        """Return a refresh memory for reading that has rows for all pages and groups of a batch."""
        groups = max(int(batch.section.max(initial=0)), int(batch.site.max(initial=0)))
        enough = int(batch.place.max(initial=-1)) < len(self.pages) and groups < len(self.groups)
        return self if enough else self.grow_for(batch)


def _grow_rows(rows: Floats, count: int) -> Floats:
    grown = np.zeros((max(len(rows), count), rows.shape[1]))
    grown[: len(rows)] = rows
    return grown


class Groups(NamedTuple):
    """Section and site group numbers of each page, and the name of each group; group 0 is global."""

    section: Ints
    site: Ints
    names: tuple[str, ...]


def groups_of(urls: Iterable[str]) -> Groups:
    """Assign section and site groups to a list of page URLs, numbered in order of appearance.

    >>> groups_of(["https://a.example/x/1", "https://a.example/2"])
    Groups(section=array([2, 1]), site=array([1, 1]), names=('', 'https://a.example/', 'https://a.example/x/'))
    """
    rows: dict[str, int] = {"": 0}
    # Pages of one folder have the same groups, and a million pages have few folders.
    folders: dict[str, tuple[int, int]] = {}
    found: list[tuple[int, int]] = []
    for url in urls:
        folder = url.partition("?")[0].rpartition("/")[0]
        if folder not in folders:
            site = rows.setdefault(site_of(url), len(rows))
            folders[folder] = rows.setdefault(section_of(url), len(rows)), site
        found.append(folders[folder])
    section, site_rows = np.array(found, np.int64).reshape(-1, 2).T
    return Groups(section, site_rows, tuple(rows))
