"""Ports of the coordinator: the frontier of known URLs, the crawl store, and the records that they hold."""

from collections.abc import Container, Iterable, Mapping, Sequence
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
"""URLs with the page's anchor text for each; the texts are empty if unknown."""
SignalKind = Literal["sitemap", "feed", "ping"]


class UrlState(IntEnum):
    """Final state of a URL in the frontier port: fetched, refused, failed."""

    FETCHED = 1
    REFUSED = 2
    FAILED = 3


@dataclass(frozen=True, slots=True)
class LinkBatch:
    """A batch of links for the frontier port: normalized URLs, host ids, depths, front queues."""

    urls: Sequence[str]
    hosts: Sequence[int]
    depths: Sequence[int]
    priorities: Sequence[int]


class LeasedUrl(NamedTuple):
    """A URL leased from the frontier port to one fetcher, and the propensity of its front queue."""

    id: int
    host: int
    url: str
    depth: int
    propensity: float


@dataclass(frozen=True, slots=True)
class UrlCounts:
    """Number of URLs in each state, from the frontier port."""

    known: int
    waiting: int
    leased: int
    fetched: int
    refused: int
    failed: int


class UrlFrontier(Protocol):
    """Frontier port of the coordinator: known URLs, added in batches, leased by host, acknowledged."""

    def intern_hosts(self, names: Sequence[str]) -> list[int]:
        """Frontier port of the coordinator: return the id of each host; unseen ones get the next."""

    def add(self, batch: LinkBatch, found_s: float) -> Ids:
        """Frontier port of the coordinator: add links; return the ids of those that were unknown and are now queued."""

    def find_unknown(self, urls: Sequence[str]) -> list[int]:
        """Frontier port: count mentions of URLs; return the positions of those that must be added."""

    def find_ids(self, urls: Sequence[str]) -> Ids:
        """Frontier port of the coordinator: return the id of each URL, 0 if unknown."""

    def count_inlinks(self, ids: Ids) -> npt.NDArray[np.uint8]:
        """Frontier port of the coordinator: return how often each URL was mentioned, up to 255."""

    def count_waiting(self, host: int) -> int:
        """Frontier port of the coordinator: count the waiting URLs of a host."""

    def get_counts(self) -> UrlCounts:
        """Frontier port of the coordinator: return the number of URLs in each state."""

    def lease(
        self, hosts: Sequence[int], worker: int, until_s: float, rng: np.random.Generator | None = None
    ) -> list[LeasedUrl]:
        """Frontier port of the coordinator: lease one URL for each mention of a host, as far as any are waiting."""

    def acknowledge(self, ids: Iterable[int], fate: UrlState, worker: int) -> Ids:
        """Frontier port of the coordinator: finish leased URLs; return those that the fetcher had leased."""

    def release_leases(self, ids: Iterable[int], worker: int) -> Ids:
        """Frontier port of the coordinator: requeue leased URLs unfetched."""

    def requeue(self, ids: Iterable[int], priority: int) -> Ids:
        """Frontier port of the coordinator: requeue finished URLs; return those that were finished."""

    def move_to_front(self, ids: Iterable[int]) -> Ids:
        """Frontier port: move waiting URLs to the front of their host's queue; return which were moved."""

    def get_queue(self, host: int) -> tuple[Ids, npt.NDArray[np.uint8]]:
        """Frontier port: return a host's waiting URLs in order with front queues, except the best queue."""

    def set_queue(self, host: int, ids: Ids, fronts: npt.NDArray[np.int64]) -> None:
        """Frontier port of the coordinator: reorder a host's waiting URLs in these front queues."""


class PageRow(NamedTuple):
    """Row of the crawl store port: the latest response for a URL, and when it is due again."""

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
    """A known page of the crawl store port that is due for a refresh."""

    id: int
    host: str


class FailedUrl(NamedTuple):
    """A URL of the crawl store port without a response: failed rounds, since when, and the time of the next retry.

    A round is a few attempts in a row. ``due_s`` is infinity while the URL is queued, and after it was given up.
    """

    id: int
    rounds: int
    since_s: float
    due_s: float


class RetryCounts(NamedTuple):
    """How many failed URLs of the crawl store port will be retried, and when the first retry is due."""

    urls: int
    next_s: float


class RefreshState(NamedTuple):
    """Refresh state of a page in the crawl store port: facts, result of its latest fetch, policy memory.

    ``before_s`` is the time of the fetch before the latest one, None if the latest was the first. ``memory`` is empty
    for policies without state. ``gain`` and ``views`` are None if they were not measured. ``links`` is how often other
    pages linked to the page, ``signal_s`` when a sitemap or feed last reported a change.
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
    """A stored page of the crawl store port with its refresh state, for computing due times."""

    url: str
    page: PageRow
    state: RefreshState


class FetchGain(NamedTuple):
    """Measured search gain of a fetch, and the page's views since then, for the coordinator's ports.

    None means not measured.

    None means not measured.
    """

    page: int
    fetched_s: float
    gain: float | None
    views: float | None


class ChangeSignal(NamedTuple):
    """A change signal for the crawl store port: a page id and the time of a reported change."""

    page: int
    at_s: float
    kind: SignalKind


class HostRow(NamedTuple):
    """Row of the crawl store port: last known delays of a host."""

    name: str
    ready_s: float
    failure_streak: int
    trouble: str


class UnlistedLink(NamedTuple):
    """A link to an unlisted host from a page fetched for the first time, for the crawl store port."""

    host: str
    page: str
    at_s: float


class LinkOrigin(NamedTuple):
    """Origin of a found URL: the linking page, its kind, and when that page was fetched before.

    ``before_s`` is None if the page was fetched for the first time. A page of another shard has the id 0; ``steps``
    then is how far it is from a refetched page, if it is new on the web.
    """

    source: int
    how: str
    before_s: float | None = None
    steps: int | None = None


class Discovery(NamedTuple):
    """A discovery in the crawl store port: a URL that is new on the web, and the page that linked to it.

    ``steps`` is the distance from a refetched page: 0 for a link on it, 1 for a link on a page found there.
    """

    id: int
    source: int
    how: str
    steps: int


class FirstCrawl(NamedTuple):
    """State of a host's first crawl in the crawl store port: scope hash, start time, whether it has finished."""

    host: int
    rules: int
    since_s: float
    over: bool = False


class ContentRow(NamedTuple):
    """Row of the crawl store port: a page's content, its duplicate group, baseline, identity and last change.

    ``needs_script`` means that text or links are missing without JavaScript.
    """

    id: int
    group: int
    baseline: StoredVersion
    identity: bytes = b""
    modified_s: float | None = None
    needs_script: bool = False


class BandIndex(Protocol):
    """Port to the MinHash banding index over all pages, for the coordinator's duplicate detection."""

    def match_or_add(self, ids: Ids, bands: npt.NDArray[np.uint64]) -> Ids:
        """Port of duplicate detection: return the first page of each MinHash band, 0 for none; add the missing ones."""


class CrawlStore(Protocol):
    """Crawl store port of the coordinator: pages, contents, duplicate groups, robots.txt, hosts, notes."""

    def save_pages(
        self, pages: Sequence[tuple[PageRow, Outlinks | None]], with_content: Container[int] = frozenset()
    ) -> None:
        """Crawl store port: save the latest responses with their links; None keeps the stored links.

        The contents of ``with_content`` are saved next; that queues them for the index.
        """

    def get_pages(self, ids: Sequence[int]) -> Mapping[int, PageRow]:
        """Crawl store port of the coordinator: return the stored pages among these URLs, by id."""

    def save_contents(self, contents: Sequence[tuple[int, int, Content]]) -> None:
        """Crawl store port of the coordinator: save page contents, each with its duplicate group."""

    def get_contents(self, ids: Iterable[int]) -> Mapping[int, ContentRow]:
        """Crawl store port of the coordinator: return the stored contents of these pages."""

    def get_group_members(self, group: int, most: int) -> Sequence[tuple[int, str, str]]:
        """Crawl store port: return id, URL and declared canonical of a duplicate group's members, oldest first.

        Pages that are gone are left out.
        """

    def get_canonical(self, group: int) -> int:
        """Crawl store port of the coordinator: return a duplicate group's canonical page; 0 if none."""

    def save_canonical(self, group: int, canonical: int, why: str, members: int) -> None:
        """Crawl store port of the coordinator: save a duplicate group's canonical page, and why."""

    def rename_group(self, group: int) -> int:
        """Crawl store port: rename a duplicate group whose first member left; return the new name, or 0."""

    def get_renamed_groups(self, groups: Sequence[int]) -> list[int]:
        """Crawl store port of the coordinator: return the duplicate groups that these were renamed to."""

    def dissolve_group(self, group: int) -> None:
        """Crawl store port of the coordinator: dissolve a duplicate group, so it has no canonical page."""

    def get_urls(self, ids: Iterable[int]) -> Mapping[int, str]:
        """Crawl store port of the coordinator: return the URLs of these ids."""

    def hold_urls(self, held: Sequence[tuple[int, int, str]]) -> None:
        """Crawl store port of the coordinator: hold URLs back: id, host, and the pattern each waits for."""

    def release_urls(self, host: int, place: str, most: int) -> Sequence[int]:
        """Crawl store port of the coordinator: release some of the URLs held back for a pattern."""

    def add_unlisted_links(self, links: Sequence[UnlistedLink]) -> None:
        """Crawl store port: count links to unlisted hosts, which are never fetched."""

    def add_note(self, id_: int, why: str, at_s: float) -> None:
        """Crawl store port of the coordinator: note why a URL was refused or could not be fetched."""

    def list_pages(self, host: int, first: int, last: int) -> Sequence[tuple[int, str]]:
        """Crawl store port: return the id and URL of the stored pages of a host in a range of ids."""

    def take_refused(self, host: int, why: str, first: int, last: int) -> Sequence[int]:
        """Crawl store port: take URLs of a host and a range of ids that were refused for a reason."""

    def delete_url_data(self, ids: Sequence[int], *, pages: bool) -> None:
        """Crawl store port: delete the notes of URLs, and with ``pages`` everything stored about them."""

    def get_failure(self, id_: int) -> FailedUrl | None:
        """Crawl store port of the coordinator: return the failed rounds of a URL since its last response."""

    def save_failure(self, row: FailedUrl) -> None:
        """Crawl store port of the coordinator: save when a failed URL will be retried."""

    def take_due_retries(self, now_s: float, most: int) -> Sequence[DuePage]:
        """Crawl store port: return failed URLs that are due for a retry, without their notes."""

    def count_retries(self) -> RetryCounts:
        """Crawl store port of the coordinator: count the failed URLs that will be retried."""

    def save_robots(self, origin: Origin, state: RobotsState) -> None:
        """Crawl store port of the coordinator: save an origin's robots.txt state."""

    def save_hosts(self, hosts: Sequence[HostRow]) -> None:
        """Crawl store port of the coordinator: save when hosts may be requested again."""

    def postpone(self, id_: int, due_s: float) -> None:
        """Crawl store port of the coordinator: set when a page is due, if it is stored."""

    def get_due(self, now_s: float, most: int) -> Sequence[DuePage]:
        """Crawl store port: return known pages that are due and not queued yet, most overdue first."""

    def save_due_times(self, times: Sequence[tuple[int, float]]) -> None:
        """Crawl store port of the coordinator: save new due times of stored pages."""

    def get_refresh_states(self, ids: Sequence[int]) -> Mapping[int, RefreshState]:
        """Crawl store port of the coordinator: return the refresh states of known URLs, pages or not."""

    def get_known_pages(self, ids: Sequence[int]) -> Sequence[KnownPage]:
        """Crawl store port of the coordinator: return the stored pages among these URLs."""

    def scan_known_pages(self, id_: int, most: int) -> Sequence[KnownPage]:
        """Crawl store port: return the next good pages after an id: status 2xx, without a note."""

    def add_signals(self, signals: Sequence[ChangeSignal]) -> Sequence[int]:
        """Crawl store port: save change signals; return the ids whose signal is later than their last fetch."""

    def get_gone_pages(self, ids: Sequence[int]) -> Sequence[KnownPage]:
        """Crawl store port of the coordinator: return which of these URLs are gone or have moved."""

    def get_links(self, id_: int) -> Sequence[str]:
        """Crawl store port of the coordinator: return the stored links of a page."""

    def save_refresh_states(self, rows: Sequence[RefreshState]) -> None:
        """Crawl store port of the coordinator: save the refresh states of pages."""

    def delete_refresh_states(self, ids: Sequence[int]) -> None:
        """Crawl store port of the coordinator: delete the refresh states of pages."""

    def count_refresh_states(self) -> int:
        """Crawl store port of the coordinator: count the pages that have a refresh state."""

    def get_groups(self) -> Sequence[tuple[str, bytes]]:
        """Crawl store port: return the refresh memory of page groups by name, in the order first saved."""

    def save_groups(self, rows: Sequence[tuple[str, bytes]]) -> None:
        """Crawl store port of the coordinator: save the refresh memory of page groups."""

    def delete_groups(self) -> None:
        """Crawl store port of the coordinator: delete the refresh memory of all page groups."""

    def get_discoveries(self, ids: Sequence[int]) -> Mapping[int, Discovery]:
        """Crawl store port of the coordinator: return the discoveries among these URLs."""

    def save_discoveries(self, finds: Sequence[Discovery]) -> None:
        """Crawl store port of the coordinator: save URLs that are new on the web as discoveries."""

    def save_births(self, births: Sequence[ChangeSignal]) -> None:
        """Crawl store port: save the publication dates that lists give for discoveries; ignore other URLs."""

    def get_first_crawls(self) -> Sequence[FirstCrawl]:
        """Crawl store port of the coordinator: return the state of each host's first crawl."""

    def save_first_crawls(self, rows: Sequence[FirstCrawl]) -> None:
        """Crawl store port of the coordinator: save the state of some first crawls."""

    def get_alert_places(self) -> Sequence[str]:
        """Crawl store port: return the hosts and paths that alerts watch, each once; ``*`` is everywhere."""

    def get_value(self, what: str) -> str | None:
        """Crawl store port of the coordinator: return a named value of the data folder."""

    def set_value(self, what: str, value: str) -> None:
        """Crawl store port of the coordinator: set a named value of the data folder."""
