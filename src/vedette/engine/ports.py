"""Ports of the coordinator: the frontier of known URLs, and the store of all else that it knows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from vedette.engine.messages import ArchiveLocation, Content, Kind
from vedette.fetch.robots.state import RobotsState
from vedette.model import Origin
from vedette.parse.change.comparison import StoredVersion

Ids = npt.NDArray[np.uint32]
Outlinks = tuple[Sequence[str], Sequence[str]]
"""URLs, and what the page calls each; no names at all where nobody knows them."""
SignalKind = Literal["sitemap", "feed", "ping"]


class UrlState(IntEnum):
    """What became of a URL."""

    FETCHED = 1
    REFUSED = 2
    FAILED = 3


@dataclass(frozen=True, slots=True)
class LinkBatch:
    """Links by the batch: URLs as ``discover`` writes them, the hosts' ids, links from a start, front queues."""

    urls: Sequence[str]
    hosts: Sequence[int]
    depths: Sequence[int]
    priorities: Sequence[int]


class LeasedUrl(NamedTuple):
    """A URL that one worker may fetch now, and the probability with which its front queue was drawn."""

    id: int
    host: int
    url: str
    depth: int
    propensity: float


@dataclass(frozen=True, slots=True)
class UrlCounts:
    """How many URLs are known, and where they stand."""

    known: int
    waiting: int
    leased: int
    fetched: int
    refused: int
    failed: int


class UrlFrontier(Protocol):
    """The known URLs: told in batches, leased out host by host, acknowledged."""

    def intern_hosts(self, names: Sequence[str]) -> list[int]:
        """The id of each host; unseen ones get the next."""

    def add(self, told: LinkBatch, found_s: float) -> Ids:
        """Take note of links; the ids of those that were unknown, which wait from now on."""

    def find_unknown(self, urls: Sequence[str]) -> list[int]:
        """Take note that URLs were named; the places in the list of those that are unknown and must be added."""

    def find_ids(self, urls: Sequence[str]) -> Ids:
        """The id of each URL, 0 where unknown."""

    def count_inlinks(self, ids: Ids) -> npt.NDArray[np.uint8]:
        """How often each URL was told, up to 255 times."""

    def count_waiting(self, host: int) -> int:
        """How many URLs of a host wait."""

    def get_counts(self) -> UrlCounts:
        """Numbers for people."""

    def lease(
        self, hosts: Sequence[int], worker: int, until_s: float, rng: np.random.Generator | None = None
    ) -> list[LeasedUrl]:
        """One URL for each time that a host is named, as far as there are any."""

    def acknowledge(self, ids: Iterable[int], fate: UrlState, worker: int) -> Ids:
        """These URLs have ended; those that the worker had leased."""

    def release_leases(self, ids: Iterable[int], worker: int) -> Ids:
        """These URLs wait again, unfetched."""

    def requeue(self, ids: Iterable[int], priority: int) -> Ids:
        """These URLs, which have ended, wait again; those that did so."""

    def move_to_front(self, ids: Iterable[int]) -> Ids:
        """Those of these URLs that wait come next when their host is asked; which ones."""

    def get_queue(self, host: int) -> tuple[Ids, npt.NDArray[np.uint8]]:
        """Who waits for a host, in order, and in which front queue; but for those in the best one."""

    def set_queue(self, host: int, ids: Ids, fronts: npt.NDArray[np.int64]) -> None:
        """The same URLs in this order, in these front queues."""


class PageRow(NamedTuple):
    """What is kept of the latest answer for a URL, and when it is to be fetched again."""

    id: int
    host: int
    status: int
    kind: Kind
    fetched_s: float
    changed_s: float
    title: str
    content_type: str
    etag: str
    last_modified: str
    digest: str
    payload_digest: str
    location: str
    body_bytes: int
    place: ArchiveLocation | None
    interval_s: float
    due_s: float


@dataclass(frozen=True, slots=True)
class DuePage:
    """A known page whose time has come."""

    id: int
    host: str


class RefreshState(NamedTuple):
    """What refreshing a page goes by, besides its row: facts, what its latest fetch brought, and a policy's memory.

    ``before_s`` is when the fetch before the latest was made, None where the latest was the first; ``memory`` is empty
    where no policy remembers anything. ``gain`` and ``views`` are None where they were not measured. ``links`` is how
    often pages named it, ``signal_s`` when something last said that it has changed.
    """

    id: int
    found_s: float
    words: int | None = None
    share: float | None = None
    before_s: float | None = None
    gain: float | None = None
    views: float | None = None
    links: int | None = None
    signal_s: float | None = None
    memory: bytes = b""


class KnownPage(NamedTuple):
    """A page at hand, as it is looked at to say when it is due."""

    url: str
    page: PageRow
    state: RefreshState


class FetchGain(NamedTuple):
    """What a fetch of a page turned out to have brought, and how often people are shown the page since.

    None stands for nothing that was measured.
    """

    page: int
    fetched_s: float
    gain: float | None
    views: float | None


class ChangeSignal(NamedTuple):
    """Something said that a page, by its id, changed at a time."""

    page: int
    at_s: float
    kind: SignalKind


class HostRow(NamedTuple):
    """What was last known of a host's pauses."""

    name: str
    ready_s: float
    failure_streak: int
    trouble: str


class UnlistedLink(NamedTuple):
    """A page that was fetched for the first time links to a host that no site takes."""

    host: str
    page: str
    at_s: float


class LinkOrigin(NamedTuple):
    """How a URL was come upon: the page that named it, what kind of page that is, and when that was looked at before.

    ``before_s`` is None where the page was seen for the first time.
    """

    source: int
    how: str
    before_s: float | None = None


class Discovery(NamedTuple):
    """A URL that nobody here had seen, and that was new where it was found: on which page, and of what kind that is.

    ``steps`` counts pages from one that was looked at again: 0 for a link on it, 1 for a link on a page found there.
    """

    id: int
    source: int
    how: str
    steps: int


class FirstCrawl(NamedTuple):
    """How a host's first crawl goes: by which rules (a number), since when these hold, and whether it is over."""

    host: int
    rules: int
    since_s: float
    over: bool = False


class ContentRow(NamedTuple):
    """A page with content: its group of copies, named after its first member, and what versions are compared by."""

    id: int
    group: int
    baseline: StoredVersion


class BandIndex(Protocol):
    """The banding index over all pages."""

    def match_or_add(self, ids: Ids, bands: npt.NDArray[np.uint64]) -> Ids:
        """Who first had each band of each page, 0 where nobody had; those are remembered."""


class CrawlStore(Protocol):
    """Pages and what they say, groups of copies, robots.txt copies, hosts and notes."""

    def save_pages(self, pages: Sequence[tuple[PageRow, Outlinks | None]]) -> None:
        """The latest answers for URLs, each with its links; without links where those at hand still hold."""

    def get_pages(self, ids: Sequence[int]) -> Mapping[int, PageRow]:
        """What is at hand of these URLs, where something is."""

    def save_contents(self, contents: Sequence[tuple[int, int, Content]]) -> None:
        """What pages say: the id of each, its group of copies, and its content."""

    def get_contents(self, ids: Iterable[int]) -> Mapping[int, ContentRow]:
        """What is at hand of what these pages say, where something is."""

    def get_group_members(self, group: int, most: int) -> Sequence[tuple[int, str, str]]:
        """Id, URL and declared canonical of the members of a group of copies, the oldest first."""

    def get_canonical(self, group: int) -> int:
        """The page that stands for a group; 0 where none was chosen."""

    def save_canonical(self, group: int, canonical: int, why: str, members: int) -> None:
        """Who stands for a group from now on, and why."""

    def rename_group(self, group: int) -> int:
        """The page that gave a group its name left it: the next one does, and all others follow; 0 where none is."""

    def get_renamed_groups(self, groups: Sequence[int]) -> list[int]:
        """The groups that these became, where the page that gave one its name left it."""

    def dissolve_group(self, group: int) -> None:
        """Nobody stands for a group any more, as it is none."""

    def get_urls(self, ids: Iterable[int]) -> Mapping[int, str]:
        """The URLs of these ids."""

    def hold_urls(self, held: Sequence[tuple[int, int, str]]) -> None:
        """URLs that are held back: id, host, and what each waits for."""

    def release_urls(self, host: int, place: str, most: int) -> Sequence[int]:
        """So many of those that wait for this; they are no longer held."""

    def add_unlisted_links(self, links: Sequence[UnlistedLink]) -> None:
        """Hosts that no site takes are linked to: they are counted, and never fetched."""

    def add_note(self, id_: int, why: str, at_s: float) -> None:
        """Why a URL was refused or could not be fetched."""

    def save_robots(self, origin: Origin, state: RobotsState) -> None:
        """What is now known of an origin's robots.txt."""

    def save_hosts(self, hosts: Sequence[HostRow]) -> None:
        """When hosts may be asked again."""

    def postpone(self, id_: int, due_s: float) -> None:
        """A page at hand, if it is, is due then; nothing else is known of it that was not."""

    def get_due(self, now_s: float, most: int) -> Sequence[DuePage]:
        """Known pages whose time has come and that are not waiting yet, the most overdue first."""

    def save_due_times(self, times: Sequence[tuple[int, float]]) -> None:
        """Pages at hand are due at other times."""

    def get_refresh_states(self, ids: Sequence[int]) -> Mapping[int, RefreshState]:
        """What refreshing goes by, of URLs that are known; pages or not."""

    def get_known_pages(self, ids: Sequence[int]) -> Sequence[KnownPage]:
        """Those of these pages that are at hand."""

    def scan_known_pages(self, id_: int, most: int) -> Sequence[KnownPage]:
        """The next so many pages after an id that can be had: their answer was good, and nothing is noted of them."""

    def add_signals(self, signals: Sequence[ChangeSignal]) -> Sequence[int]:
        """Something said that pages have changed; the ids of those of which that is news: it was after their fetch."""

    def get_gone_pages(self, ids: Sequence[int]) -> Sequence[KnownPage]:
        """Those of these URLs whose latest answer was that there is no page, or that it has moved."""

    def get_links(self, id_: int) -> Sequence[str]:
        """Where a page's links lead, as it was last kept."""

    def save_refresh_states(self, rows: Sequence[RefreshState]) -> None:
        """What is remembered of pages from now on."""

    def delete_refresh_states(self, ids: Sequence[int]) -> None:
        """Nothing is, from now on."""

    def count_refresh_states(self) -> int:
        """Of how many pages something is remembered."""

    def get_groups(self) -> Sequence[tuple[str, bytes]]:
        """Groups of pages by name, in the order in which they were first kept, and what is remembered of each."""

    def save_groups(self, rows: Sequence[tuple[str, bytes]]) -> None:
        """What is remembered of groups from now on."""

    def delete_groups(self) -> None:
        """Nothing is, from now on."""

    def get_discoveries(self, ids: Sequence[int]) -> Mapping[int, Discovery]:
        """Those of these URLs that were news."""

    def save_discoveries(self, finds: Sequence[Discovery]) -> None:
        """URLs that are news."""

    def save_births(self, said: Sequence[ChangeSignal]) -> None:
        """What lists say of the dates of URLs that were just found; of those that are no news nothing is kept."""

    def get_first_crawls(self) -> Sequence[FirstCrawl]:
        """How the first crawls of all hosts go."""

    def save_first_crawls(self, rows: Sequence[FirstCrawl]) -> None:
        """How some of them go from now on."""

    def get_alert_places(self) -> Sequence[str]:
        """Hosts and paths at which somebody waits for new pages, each once; ``*`` is everywhere."""

    def get_value(self, what: str) -> str | None:
        """A fact about the whole."""

    def set_value(self, what: str, value: str) -> None:
        """Set it."""
