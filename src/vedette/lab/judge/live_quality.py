"""Quality of live crawlers on a synthetic web: freshness, search quality and cost, against the truth.

What a crawler *holds* is read from its state periodically (``Snapshot``): which URLs, and the times of its responses.
What it *cost* is in its server's log. What pages contained then, and contain now, is the world's ground truth
(``GroundTruth``). So a crawler reports nothing about its own performance.

    freshness   the share of pages, held and alive, whose copy says what the page says
    quality     Q of Pandey08, eq. 4.5: what people find, as a share of what current copies of the same pages would
                give: what refreshing alone can reach
    unrefreshed the same, had each page been fetched once and never again
    of_all      as quality, as a share of what current copies of all pages would give, found or not. Crawlers that
                find a page some hours apart differ by more here than refreshing makes, so it is separate

All are means over the sampling times. A *refresh* is a fetch of a URL that had a page when it was last fetched. The
other fetches are not the policy's decision: sources (feeds, sitemaps, home pages), robots.txt, new pages, and URLs that
had gone or moved, which are fetched at growing intervals. But all share one budget, so a policy that refreshes more
leaves less for them: when comparing refreshes, compare these, too.

A copy is the body of a response. A server that wrongly says "not modified" leaves the crawler with the old text, and it
is counted that way.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import xxhash

from vedette.engine.messages import Kind
from vedette.engine.scheduling.schedule import is_good, is_source
from vedette.lab.judge.access_log import AccessEntry
from vedette.lab.quality.corpus import load_corpus
from vedette.lab.quality.query_files import select_answerable
from vedette.lab.quality.scoring import build_tfidf
from vedette.lab.quality.search_quality import compute_quality, relative_quality
from vedette.lab.quality.workload import MAX_QUERIES, Workload, build_workload, draw_queries
from vedette.lab.worlds.history import History, Texts
from vedette.lab.worlds.world import World, WorldRequest
from vedette.parse.html.page import parse_page
from vedette.parse.text.charsets import decode_page
from vedette.policy import Ints

# The response of a URL is a pure function of time, so no network is needed. A page is parsed as the crawler does: title
# and main text, as in the index. A rotating box or a new build of the frame is no new version.


NONE = -1


class GroundTruth:
    """Ground truth of a world for the quality judge: the different texts that each URL had, by number."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._texts: dict[str, list[str]] = {}
        self._read: dict[tuple[str, int], int] = {}
        self._seen: dict[tuple[str, float], int] = {}

    def version_at(self, url: str, at_s: float) -> int:
        """Return the number of the text that a URL truly has at a time; -1 if it has no indexable page."""
        if (url, at_s) not in self._seen:
            self._seen[url, at_s] = self._observe(url, at_s)
        return self._seen[url, at_s]

    def _observe(self, url: str, at_s: float) -> int:
        host, _, path = url.partition("://")[2].partition("/")
        reply = self._world.reply(WorldRequest(host, f"/{path}"), at_s)
        kind = next((value for name, value in reply.headers if name == "content-type"), "")
        if reply.status != 200 or not kind.startswith("text/html"):
            return NONE
        place = (url, xxhash.xxh3_64_intdigest(reply.body))
        if place not in self._read:
            self._read[place] = self._number_text(url, _extract_text(reply.body, kind))
        return self._read[place]

    def _number_text(self, url: str, text: str | None) -> int:
        if text is None:
            return NONE
        texts = self._texts.setdefault(url, [])
        if text not in texts:
            texts.append(text)
        return texts.index(text)

    def collect_versions(self, urls: Sequence[str]) -> "Versions":
        """Collect all true text versions of these URLs observed so far."""
        return Versions(urls, [self._texts.get(url, []) for url in urls])


def _extract_text(body: bytes, kind: str) -> str | None:
    """Extract the text that the index would have for a true page; None if the page forbids indexing."""
    page = parse_page(decode_page(body, kind).text)
    if any("noindex" in value for _, value in page.robots_meta):
        return None
    return f"{page.title}\n{page.main or page.text}"


class Versions(Texts):
    """True text versions of some pages in one row, page by page, as the lab's quality measures number them."""

    def __init__(self, urls: Sequence[str], texts: Sequence[Sequence[str]]) -> None:
        self._urls = urls
        self._all = [text for each in texts for text in each]
        self._page = np.repeat(np.arange(len(urls)), [len(each) for each in texts])
        self._first = np.searchsorted(self._page, np.arange(len(urls)))

    def text(self, version: int) -> str:
        """Return the text of a true page version."""
        return self._all[version]

    def to_numbers(self, seen: Iterable[int]) -> Ints:
        """Convert each page's ``GroundTruth.version_at`` text number to a version number; below 0 if there is none."""
        each = np.fromiter(seen, np.int64, len(self._urls))
        return np.where(each >= 0, each + self._first, NONE)

    def build_workload(self, known: Ints, seed: int) -> Workload:
        """Build the query workload for judging live quality: each query is two neighboring words of these versions."""
        history = self._build_history()
        queries = draw_queries(history, known, seed)
        corpus = load_corpus(history, queries.term)
        answerable = select_answerable(queries, corpus)
        most = np.argsort(-answerable.frequency, kind="stable")[:MAX_QUERIES]
        return build_workload(corpus, answerable.select(most), build_tfidf(corpus, known))

    def _build_history(self) -> History:
        """Build a history of the true versions without times, since quality measures provide their own."""
        pages, versions = len(self._urls), len(self._all)
        nowhere = np.full(pages, NONE)
        return History(
            name="seen",
            begin_s=0.0,
            end_s=0.0,
            urls=self._urls,
            site=np.zeros(pages, np.int64),
            kind=np.zeros(pages, np.uint8),
            born_s=np.zeros(pages),
            died_s=np.full(pages, np.inf),
            moved_to=nowhere,
            version_page=self._page,
            version_at_s=np.zeros(versions),
            digest=np.array([xxhash.xxh3_64_intdigest(text.encode()) for text in self._all], np.uint64),
            words=np.zeros(versions, np.int64),
            wave=np.zeros(versions, np.bool_),
            link_start=np.zeros(versions + 1, np.int64),
            link_to=np.zeros(0, np.int64),
            texts=self,
        )


FetchKind = Literal["refresh", "first", "gone", "source", "robots"]
OTHER_KINDS: tuple[FetchKind, ...] = ("first", "gone", "source", "robots")
NOT_MODIFIED = 304


class HeldPage(NamedTuple):
    """A page that a live crawler holds: status and time of its last response, and the kind of URL."""

    status: int
    fetched_s: float
    kind: Kind


Snapshot = Mapping[str, HeldPage]
"""What a crawler holds at a moment, by URL."""


class CrawlerLog(NamedTuple):
    """A live crawler's policy, the pages it held at each sampling time, and its server's access log, by time."""

    policy: str
    snapshots: Sequence[Snapshot]
    entries: Sequence[AccessEntry]


class QualitySample(NamedTuple):
    """A live crawler's freshness and quality at one sampling time, ``day`` days after the start."""

    day: float
    freshness: float
    quality: float
    unrefreshed: float
    of_all: float


@dataclass(frozen=True, slots=True)
class CrawlQuality:
    """Live quality of one crawler's refresh policy: samples over time and fetch counts."""

    policy: str
    samples: tuple[QualitySample, ...]
    refreshes: int
    changed: int
    others: Mapping[FetchKind, int]
    pages: int

    @property
    def freshness(self) -> float:
        """Return the live crawler's mean freshness over all samples."""
        return _mean([look.freshness for look in self.samples])

    @property
    def quality(self) -> float:
        """Return the live crawler's mean search quality over all samples."""
        return _mean([look.quality for look in self.samples])

    @property
    def unrefreshed(self) -> float:
        """Return the mean search quality over all samples, had each page been fetched only once."""
        return _mean([look.unrefreshed for look in self.samples])

    @property
    def of_all(self) -> float:
        """Return the mean search quality relative to current copies of all pages, found or not."""
        return _mean([look.of_all for look in self.samples])

    @property
    def fetches(self) -> int:
        """Return the number of all fetches that the live crawler made."""
        return self.refreshes + sum(self.others.values())

    @property
    def changed_share(self) -> float:
        """Return the share of the live crawler's refreshes that found a changed page."""
        return self.changed / self.refreshes if self.refreshes else 0.0

    @property
    def gain_per_refresh(self) -> float:
        """Return the live quality that refreshing added, per refresh."""
        return (self.quality - self.unrefreshed) / self.refreshes if self.refreshes else 0.0


def measure_runs(
    truth: GroundTruth,
    looks_s: Sequence[float],
    begin_s: float,
    seed: int,
    watched: Sequence[CrawlerLog],
    born: Sequence[str],
) -> list[CrawlQuality]:
    """Measure the live quality of several crawlers over one world at the same times; ``born`` are pages to be found."""
    urls = list(dict.fromkeys([*born, *(url for one in watched for each in one.snapshots for url in each)]))
    live = [[truth.version_at(url, at_s) for url in urls] for at_s in looks_s]
    copies = [_CopyLog(truth, urls, one) for one in watched]
    held = [each.find_held(looks_s) for each in copies]
    costs = [each.count_fetches(begin_s) for each in copies]
    versions = truth.collect_versions(urls)
    live_versions = [versions.to_numbers(each) for each in live]
    workload = versions.build_workload(_first_versions(live_versions), seed)
    runs = []
    for one, pairs, cost in zip(watched, held, costs, strict=True):
        looks = [
            _measure_sample(
                (at_s - begin_s) / 86_400.0, now, versions.to_numbers(own), versions.to_numbers(first), workload
            )
            for at_s, now, (own, first) in zip(looks_s, live_versions, pairs, strict=True)
        ]
        others = {kind: cost.by_kind[kind] for kind in OTHER_KINDS}
        pages = int((versions.to_numbers(pairs[-1][0]) >= 0).sum())
        runs.append(CrawlQuality(one.policy, tuple(looks), cost.by_kind["refresh"], cost.changed, others, pages))
    return runs


def _measure_sample(day: float, live: Ints, held: Ints, first: Ints, workload: Workload) -> QualitySample:
    both = (held >= 0) & (live >= 0)
    freshness = float((held == live)[both].mean()) if both.any() else 1.0
    # Both are compared with the same ideal, that of the pages known to the crawler.
    best = np.where((held >= 0) | (first >= 0), live, NONE)
    ideal = compute_quality(best, best, workload)
    quality, unrefreshed = (compute_quality(each, live, workload) / ideal if ideal else 1.0 for each in (held, first))
    return QualitySample(day, freshness, quality, unrefreshed, relative_quality(held, live, workload))


def _first_versions(live: Sequence[Ints]) -> Ints:
    """Return the first version of each page that the quality judge saw."""
    stacked = np.stack(live)
    seen = stacked >= 0
    ever = seen.any(axis=0)
    first: Ints = stacked[seen.argmax(axis=0), np.arange(stacked.shape[1])][ever]
    return first


class _FetchCounts(NamedTuple):
    """Fetches of a live crawler by kind, and how many refreshes found a change."""

    by_kind: Counter[FetchKind]
    changed: int


class _CopyLog:
    """Copies that one live crawler fetched, by its server's access log, and so the texts it holds."""

    def __init__(self, truth: GroundTruth, urls: Sequence[str], watched: CrawlerLog) -> None:
        self._truth, self._urls, self._watched = truth, urls, watched
        self._brought_s: dict[str, list[float]] = {}
        for entry in watched.entries:
            if entry.whole and is_good(entry.status):
                self._brought_s.setdefault(entry.url, []).append(entry.start_s)

    def find_held(self, looks_s: Sequence[float]) -> list[tuple[list[int], list[int]]]:
        """Find the texts that a live crawler holds at each sampling time, and those had it fetched each page once."""
        return [
            tuple(zip(*(self._find_copy(url, holding.get(url), at_s) for url in self._urls), strict=True))  # type: ignore[misc]  # two columns
            for at_s, holding in zip(looks_s, self._watched.snapshots, strict=True)
        ]

    def _find_copy(self, url: str, held: HeldPage | None, at_s: float) -> tuple[int, int]:
        brought_s = self._brought_s.get(url)
        if held is None or not brought_s:
            return NONE, NONE
        first = self._truth.version_at(url, brought_s[0])
        if not is_good(held.status):
            return NONE, first
        # A state is read slightly after the sampling time: pages fetched meanwhile count as of that time.
        until_s = min(held.fetched_s, at_s)
        return self._truth.version_at(url, brought_s[max(bisect_right(brought_s, until_s) - 1, 0)]), first

    def count_fetches(self, begin_s: float) -> _FetchCounts:
        """Count a live crawler's fetches by kind from a time on."""
        counts: Counter[FetchKind] = Counter()
        changed = 0
        for entry, before in self._iter_with_previous():
            if entry.start_s < begin_s:
                continue
            kind = self._classify(entry, before)
            counts[kind] += 1
            if kind == "refresh" and entry.status != NOT_MODIFIED:
                changed += self._answer_version(entry) != self._previous_version(entry)
        return _FetchCounts(counts, changed)

    def _answer_version(self, entry: AccessEntry) -> int:
        """Return the true text version in a response to the crawler; ``NONE`` if the page is gone."""
        return self._truth.version_at(entry.url, entry.start_s) if is_good(entry.status) else NONE

    def _previous_version(self, entry: AccessEntry) -> int:
        """Return the version of the copy that the crawler held when a response arrived."""
        brought_s = self._brought_s[entry.url]
        return self._truth.version_at(entry.url, brought_s[max(bisect_left(brought_s, entry.start_s) - 1, 0)])

    def _iter_with_previous(self) -> Iterator[tuple[AccessEntry, AccessEntry | None]]:
        """Iterate over answered requests of a crawler's log, each with the previous one for the same URL."""
        last: dict[str, AccessEntry] = {}
        for entry in self._watched.entries:
            if entry.whole and entry.status:
                yield entry, last.get(entry.url)
                last[entry.url] = entry

    def _classify(self, entry: AccessEntry, before: AccessEntry | None) -> FetchKind:
        if entry.target == "/robots.txt":
            return "robots"
        held = self._watched.snapshots[-1].get(entry.url)
        if is_source(entry.url, held.kind if held else "page"):
            return "source"
        if before is None:
            return "first"
        return "refresh" if is_good(before.status) or before.status == NOT_MODIFIED else "gone"


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")
