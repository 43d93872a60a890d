"""Interpret fetch results in the coordinator: retries, links, change signals, unlisted hosts, yield, polls."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from vedette.discover.urls.duplicate_rules import INDEX_FILES, merge_slashes
from vedette.discover.urls.scope import SiteIndex
from vedette.engine.coordinator.duplicates import Membership
from vedette.engine.coordinator.hosts import HostTable
from vedette.engine.coordinator.state import FoundUrl
from vedette.engine.messages import FetchResult, FetchSuccess, Kind
from vedette.engine.ports import ChangeSignal, CrawlStore, LinkOrigin, PageRow, SignalKind, UnlistedLink, UrlFrontier
from vedette.engine.scheduling.polling import MAX_LINKS, PollResult
from vedette.engine.scheduling.refresh import RefreshScheduler
from vedette.engine.scheduling.schedule import is_good, is_source
from vedette.frontier.pattern_yield import MIN_WORDS, FetchYield
from vedette.model import Failure, origin_of
from vedette.parse.similarity.identity import are_in_other_editions, differ_in_name

# Failures that an immediate retry would not change.
LASTING_FAILURES = frozenset({Failure.TOO_LARGE, Failure.PROTOCOL, Failure.ADDRESS})
LISTS = frozenset({"feed", "sitemap"})
_SIGNAL_KINDS: Mapping[Kind, SignalKind] = {"feed": "feed", "sitemap": "sitemap"}
# A list of links yields as much as a page with this many words.
LIST_WORDS = 300
# A page that shares less of its text with its declared canonical is a different page.
MIN_LIKENESS = 0.5
NOT_MODIFIED = 304
MAX_BIRTH_AGE_S = 30 * 86_400.0

_DIGITS = re.compile(r"[0-9]+")

LinkGroup = tuple[Sequence[str], FoundUrl]


def find_retry(result: FetchResult, max_attempts: int) -> tuple[str, int]:
    """Return why a fetch result does not count, and how many attempts in a row such a page gets."""
    if isinstance(result, FetchSuccess):
        return f"status {result.status}", max_attempts
    return str(result.failure), 1 if result.failure in LASTING_FAILURES else max_attempts


def collect_links(result: FetchSuccess, normalize_url: Callable[[str], str | None]) -> list[LinkGroup]:
    """Collect the links of a fetch result for admission: one level deeper; a redirect keeps its depth."""
    task = result.task
    found: list[LinkGroup] = []
    before_s = task.copy.fetched_s if task.copy else None
    target = normalize_url(result.location) if result.location is not None else None
    if target is not None:
        way = LinkOrigin(task.id, "redirect", before_s)
        found.append(
            ((target,), FoundUrl("", task.depth, task.hops + 1, source=task.url, via=way, cookies=result.cookies))
        )
    way = LinkOrigin(task.id, result.kind, before_s)
    if result.sources:
        found.append((result.sources, FoundUrl("", 0, front=0, source=task.url, from_list=True, via=way)))
    listed, again = result.kind in LISTS, task.copy is not None
    texts = result.content.anchors if result.content is not None and not result.content.private else ()
    deeper = FoundUrl("", task.depth + 1, source=task.url, from_list=listed, via=way, is_refetch=again, texts=texts)
    return [*found, (result.links, deeper)]


def find_relinked(
    results: Sequence[FetchSuccess], rows: Mapping[int, PageRow], urls: UrlFrontier, store: CrawlStore
) -> list[int]:
    """Find gone pages that a list or page in these results links to for the first time."""
    linking = [result for result in results if result.changed and result.links]
    named = list(dict.fromkeys(url for result in linking for url in result.links))
    known = store.get_gone_pages(urls.find_ids(named).tolist()) if named else []
    gone = {one.url: one.page.id for one in known}
    found: list[int] = []
    for result in linking if gone else ():
        links = [url for url in result.links if url in gone]
        before = frozenset(store.get_links(result.task.id) if links and result.task.id in rows else ())
        found += [gone[url] for url in links if url not in before]
    return found


def drop_known(groups: Sequence[LinkGroup], urls: UrlFrontier) -> list[FoundUrl]:
    """Drop links to known URLs before admission; count each page's links once, not at every fetch."""
    everything = [(url, one) for names, one in groups for url in names]
    counted = [place for place, (_, one) in enumerate(everything) if not one.is_refetch]
    others = [place for place, (_, one) in enumerate(everything) if one.is_refetch]
    unknown = [counted[place] for place in urls.find_unknown([everything[place][0] for place in counted])]
    if others:
        ids = urls.find_ids([everything[place][0] for place in others]).tolist()
        unknown = sorted(unknown + [place for place, id_ in zip(others, ids, strict=True) if not id_])
    return [everything[place][1]._replace(url=everything[place][0]) for place in unknown]


def collect_signals(results: Sequence[FetchSuccess], urls: UrlFrontier) -> list[ChangeSignal]:
    """Collect change signals for known pages from the dates in fetched sitemaps and feeds."""
    said: list[ChangeSignal] = []
    for result in results:
        kind = _SIGNAL_KINDS.get(result.kind)
        if result.dates and kind is not None:
            pages = zip(urls.find_ids(result.links).tolist(), result.dates, strict=True)
            said += [ChangeSignal(id_, at_s, kind) for id_, at_s in pages if id_ and at_s is not None]
    return said


def collect_unlisted(
    results: Sequence[FetchSuccess], rows: Mapping[int, PageRow], paused: SiteIndex
) -> list[UnlistedLink]:
    """Collect links to unlisted hosts from first fetches; fetchers do not know the paused sites."""
    return [
        UnlistedLink(host, result.task.url, result.ended_s)
        for result in results
        if result.task.id not in rows
        for host in result.unlisted_hosts
        if not paused.find_by_host(host)
    ]


def build_yield(
    result: FetchSuccess, joined: Membership | None, canonical: str | None, likeness: float | None = None
) -> FetchYield:
    """Build the yield of a first fetch for the trap filter's account of similar pages.

    ``canonical`` is the page's declared canonical within a site, ``likeness`` the share of its text found there, None
    if unknown. A declared canonical alone does not prove that text is repeated: pages two and three of a list often
    name the first. It counts for URLs that differ only in their query, unless the texts differ.
    """
    content, url = result.content, result.task.url
    if result.location is not None:
        return build_redirect_yield(url, result.location, result.status)
    if content is None or joined is None:
        is_list = result.kind in LISTS
        return FetchYield(LIST_WORDS if is_list else 0, result.status, is_free=not is_list)
    original = "" if joined.stands and not joined.is_identical else joined.repeats
    is_free = is_twin(url, original) if original else False
    if joined.has_other_bytes and not is_free and are_numbered(url, original):
        original = ""  # pages that differ in numbers: similar, but no copies
    if canonical and canonical != url and not original:
        is_query = canonical.partition("?")[0] == url.partition("?")[0]
        original, is_free = canonical, not is_query or (likeness is not None and likeness < MIN_LIKENESS)
    words = max(content.words, MIN_WORDS) if joined.is_identical else content.words
    is_similar = joined.is_similar and not is_free
    return FetchYield(words, result.status, bool(original), content.is_missing, is_free=is_free, is_similar=is_similar)


def build_redirect_yield(url: str, location: str, status: int) -> FetchYield:
    """Build the yield of a redirect; it says nothing about similar pages unless it leads away.

    A redirect to another host yields nothing; one to the same path there, or one that drops the query, is a copy.
    """
    path, mark, query = url.partition("?")
    ours, theirs = (origin_of(one).host.removeprefix("www.") for one in (url, location))
    is_mirror = ours != theirs and url.split("/", 3)[3:] == location.split("/", 3)[3:]
    is_copy = is_mirror or (bool(mark) and location.partition("?")[0] == path and query not in location)
    return FetchYield(MIN_WORDS if is_copy else 0, status, is_copy=is_copy, is_free=not is_copy and ours == theirs)


def are_numbered(url: str, other: str) -> bool:
    """Check whether two paths differ only in numbers: rooms, products and tables do; parameters do not count.

    >>> are_numbered("https://a.test/room/12", "https://a.test/room/7"), are_numbered("https://a.test/?p=1", "")
    (True, False)
    """
    return "?" not in url and _DIGITS.sub("#", url) == _DIGITS.sub("#", other)


def is_twin(url: str, original: str) -> bool:
    """Check whether two URLs are a usual pair of copies: by scheme, www, slash, file ending, version or language.

    >>> is_twin("http://www.a.test/x", "https://a.test/x"), is_twin("https://a.test/x?s=1", "https://a.test/x")
    (True, False)
    >>> is_twin("https://a.test/2/x/", "https://a.test/1/x.html")
    True
    """
    ours, theirs = (one.partition("://")[2].removeprefix("www.") for one in (url, original))
    if ours == theirs or "?" in url:
        return ours == theirs
    ours, theirs = (_strip_ending(one) for one in (ours, theirs))
    pair = f"https://{ours}", f"https://{theirs}"
    return ours == theirs or differ_in_name(*pair) or are_in_other_editions(*pair)


def _strip_ending(address: str) -> str:
    """Strip what spellings of one page differ in: double slashes, index file, trailing slash, file extension."""
    folder, _, name = merge_slashes(address).rpartition("/")
    return folder if not name or name in INDEX_FILES else f"{folder}/{name.removesuffix('.html').removesuffix('.htm')}"


class PollTracker:
    """Learn from discovery polls in fetch reports: what each poll found, and when to poll again.

    A poll is an ordinary fetch. Its yield is known once its links are admitted, so the next poll is forecast then.
    """

    def __init__(self, hosts: HostTable, urls: UrlFrontier, store: CrawlStore, refresher: RefreshScheduler) -> None:
        self._hosts, self._urls, self._store, self._refresher = hosts, urls, store, refresher

    def on_report(self, results: Sequence[FetchResult], new: Counter[str], now_s: float) -> None:
        """Learn from the polls of a report whose links were admitted; ``new`` counts unseen URLs by page."""
        self._store.save_births(list(self._collect_births([each for each in results if new[each.task.url]], now_s)))
        pages = [result for result in results if result.task.robots_of is None]
        rows = self._store.get_pages([result.task.id for result in pages])
        costs = self._refresher.estimate_costs(pages).tolist()
        looks = [
            self._build_poll(result, new, rows.get(result.task.id))._replace(cost=cost)
            for result, cost in zip(pages, costs, strict=True)
        ]
        sources = self._refresher.poller.on_polls(looks, now_s)
        times = self._refresher.polls.forecast(self._store.get_known_pages(sources), now_s)
        self._store.save_due_times(list(times.items()))

    def _collect_births(self, results: Sequence[FetchResult], now_s: float) -> Iterator[ChangeSignal]:
        """Collect the publication dates that polled lists give for new URLs; old dates do not count."""
        for result in results:
            if isinstance(result, FetchSuccess) and result.dates and result.kind in {"feed", "sitemap"}:
                ids = self._urls.find_ids(result.links).tolist()
                for id_, at_s in zip(ids, result.dates, strict=True):
                    if id_ and at_s is not None and now_s - MAX_BIRTH_AGE_S <= at_s <= now_s:
                        yield ChangeSignal(id_, at_s, "feed" if result.kind == "feed" else "sitemap")

    def _build_poll(self, result: FetchResult, new: Counter[str], row: PageRow | None) -> PollResult:
        task = result.task
        host = self._hosts.get(task.host).id
        again = task.copy is not None
        if not isinstance(result, FetchSuccess) or not (is_good(result.status) or result.status == NOT_MODIFIED):
            return PollResult(task.id, host, ok=False, is_list=False, is_refetch=again)
        # An unchanged response has no body, and so no kind of its own.
        is_list = is_source(task.url, row.kind if row is not None else result.kind)
        count = new[task.url]
        matters = is_list or count or self._refresher.poller.is_source(task.id)
        # New URLs have the highest ids; the links of a long list are all looked up only if it has some.
        named = result.links if count else result.links[:MAX_LINKS]
        links = self._urls.find_ids(named).tolist() if matters and result.links else []
        known = [id_ for id_ in links if id_]
        if len(known) > MAX_LINKS:
            known = sorted(known, reverse=True)[:MAX_LINKS]
        return PollResult(
            task.id, host, ok=True, is_list=is_list, is_refetch=again, links=known, new=count, is_site_list=is_list
        )
