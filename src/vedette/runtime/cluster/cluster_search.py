"""Search over all shards of a cluster, for pages, API and MCP. Each gateway has one."""

import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

from vedette.adapters.clock import Clock
from vedette.adapters.crawl_store.search_store import UserKeyRow
from vedette.adapters.crawl_store.status_file import FailingProcess
from vedette.engine.search.gateway import Gateway, join_id, split_id
from vedette.errors import VedetteError
from vedette.model import Site, origin_of, partition_of
from vedette.runtime.cluster.remote_shards import RemoteShards
from vedette.runtime.processes.throttle import CachedValue
from vedette.runtime.search.reputation_store import ReputationFile, load_ranking_status
from vedette.runtime.search.result_cache import ResultCache, normalize_request
from vedette.runtime.search.searcher import MAX_NEWEST, MAX_SITES
from vedette.serve.slate import SearchRequest, SearchResult, Slate
from vedette.web.console.ports.monitoring import RankingReport, RuntimeSettings
from vedette.web.ports import CachedCopy, FacetCount, IndexOverview

T = TypeVar("T")
CACHE_TTL_S = 1.0
RESULTS_TTL_S = 5.0
SETTINGS_EVERY_S = 2.0
MAX_OVERVIEWS = 64


class BackgroundValue(Generic[T]):
    """A value that is regularly loaded in the background, so that no search waits for it."""

    def __init__(self, load: Callable[[], T], first: T, every_s: float) -> None:
        self._load, self._value, self._every_s = load, first, every_s
        threading.Thread(target=self._reload_forever, daemon=True).start()

    def get(self) -> T:
        """Return the value that was loaded last."""
        return self._value

    def _reload_forever(self) -> None:
        while True:
            with suppress(VedetteError):  # the last one is used until it can be loaded
                self._value = self._load()
            time.sleep(self._every_s)  # nothing signals that it has changed


class ClusterSearch:
    """A ``web.ports.SearchService`` over all shards.

    ``find_shard`` returns the shard that owns a partition. The folder ``learned`` contains what was learned from
    clicks. ``get_settings`` returns the runtime settings.
    """

    def __init__(
        self,
        shards: RemoteShards,
        find_shard: Callable[[int], int],
        clock: Clock,
        learned: Path,
        get_settings: Callable[[], RuntimeSettings],
    ) -> None:
        self._shards, self._find_shard, self._clock, self._learned = shards, find_shard, clock, learned
        self._reputation = ReputationFile(learned)
        self._settings = BackgroundValue(get_settings, RuntimeSettings(learn=False), SETTINGS_EVERY_S)
        self._gateway = Gateway(shards, secrets.token_hex(8))
        self._results, self._cleared_s = ResultCache(), float("-inf")
        self._sites, self._keys = CachedValue[tuple[Site, ...]](CACHE_TTL_S), CachedValue[list[UserKeyRow]](CACHE_TTL_S)
        self._overviews: dict[tuple[str, ...], CachedValue[IndexOverview]] = {}

    def search(self, wish: SearchRequest) -> Slate:
        """Search all shards; repeated searches share their results for a few seconds."""
        now_s, settings = self._clock.now(), self._settings.get()
        has_changed = self._reputation.refresh()
        if has_changed or not 0 <= now_s - self._cleared_s < RESULTS_TTL_S * self._clock.speed:
            self._results.clear()
            self._cleared_s = now_s
        self._gateway.reputation = self._reputation.reputation if settings.learn else None
        wish = wish._replace(audience=wish.audience._replace(promotion=settings.promotion or wish.audience.promotion))
        equal = normalize_request(wish, is_learned=self._gateway.reputation is not None)
        slate = self._results.find(equal, now_s)
        if slate is None:
            slate = self._gateway.search(wish, now_s)
            self._results.add(equal, slate, now_s)
        return slate._replace(request=wish)

    def suggest(self, typed: str, most: int, site: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
        """Suggest completions of a query: first those that most shards suggest, then the best of each shard."""
        replies = self._ask_all("suggest", typed, most, site, allowed)
        ranks: Counter[str] = Counter()
        for words in replies.values():
            ranks.update({text: most - place for place, text in enumerate(words)})
        return tuple(text for text, _ in ranks.most_common(most))

    def get_overview(self, allowed: tuple[str, ...]) -> IndexOverview:
        """Return the numbers of all shards combined; the median age is the weighted mean of the shards' medians."""
        if len(self._overviews) >= MAX_OVERVIEWS:
            self._overviews.clear()
        kept = self._overviews.setdefault(allowed, CachedValue[IndexOverview](CACHE_TTL_S))
        return kept.get(lambda: self._load_overview(allowed))

    def _load_overview(self, allowed: tuple[str, ...]) -> IndexOverview:
        found: dict[int, IndexOverview] = self._ask_all("get_overview", allowed)
        every = list(found.values())
        pages = sum(one.pages for one in every)
        newest = [
            page._replace(id=join_id(shard, page.id)) for shard, one in found.items() for page in one.newest_pages
        ]
        present = {site.value for one in every for site in one.sites}
        return IndexOverview(
            pages,
            _sum_facets((one.sites for one in every), MAX_SITES),
            _sum_facets((one.kinds for one in every), MAX_SITES),
            _sum_facets((one.languages for one in every), MAX_SITES),
            max((one.newest_s for one in every), default=0.0),
            sum(one.median_age_s * one.pages for one in every) / max(pages, 1),
            sum(origin_of(site.start).host not in present for site in self.list_sites() if not site.secrets),
            tuple(sorted(newest, key=lambda page: -page.born_s)[:MAX_NEWEST]),
        )

    def find_copy(self, id_: int, allowed: tuple[str, ...]) -> CachedCopy | None:
        """Find the cached copy of a page in its shard."""
        shard, own = split_id(id_)
        found: CachedCopy | None = self._ask_one(shard, "find_copy", own, allowed)
        return found

    def find_page(self, url: str, allowed: tuple[str, ...]) -> int | None:
        """Find a searchable page by its URL in the shard that owns its host."""
        shard = self._find_shard(partition_of(origin_of(url).host))
        id_: int | None = self._ask_one(shard, "find_page", url, allowed)
        return None if id_ is None else join_id(shard, id_)

    def find_similar(self, id_: int, allowed: tuple[str, ...]) -> tuple[SearchResult, ...]:
        """Find the pages in a page's duplicate group, in its own shard."""
        shard, own = split_id(id_)
        found: tuple[SearchResult, ...] = self._ask_one(shard, "find_similar", own, allowed) or ()
        return tuple(page._replace(id=join_id(shard, page.id)) for page in found)

    def list_sites(self) -> tuple[Site, ...]:
        """List the sites of all shards; each shard knows all of them."""
        return self._sites.get(lambda: tuple(_merge_lists(self._ask_all("list_sites"), lambda site: site.start)))

    def list_keys(self) -> list[UserKeyRow]:
        """List the user keys that all responding shards have: a key that one of them has revoked is not valid."""
        return self._keys.get(self._load_keys)

    def _load_keys(self) -> list[UserKeyRow]:
        found: dict[int, list[UserKeyRow]] = self._ask_all("list_keys")
        valid = [{row.digest: row for row in rows if row.revoked_s is None} for rows in found.values()]
        return [row for digest, row in valid[0].items() if all(digest in rows for rows in valid)] if valid else []

    def get_incomplete_reason(self) -> str:
        """Return why results may be incomplete: a shard does not respond or is still being indexed."""
        replies: dict[int, str] = self._ask_all("get_incomplete_reason")
        silent = len(self._shards.numbers) - len(replies)
        if silent:
            return f"{silent} of {len(self._shards.numbers)} parts of the index do not respond"
        return next((reason for reason in replies.values() if reason), "")

    def list_failing(self) -> tuple[FailingProcess, ...]:
        """List the processes of all shards that keep failing."""
        return tuple(one for reply in self._ask_all("list_failing").values() for one in reply)

    def count_exceeded(self) -> int:
        """Count the addresses and domains that reached the daily request limit in any shard."""
        return sum(self._ask_all("count_exceeded").values())

    def ranking(self) -> RankingReport | None:
        """The ranking status of learning from clicks, from the searches and clicks of all gateways."""
        return load_ranking_status(self._learned)

    def now_s(self) -> float:
        """Return the current world time, for search."""
        return self._clock.now()

    def _ask_all(self, verb: str, *arguments: object) -> dict[int, Any]:
        return self._shards.ask(verb, dict.fromkeys(self._shards.numbers, arguments))

    def _ask_one(self, shard: int, verb: str, *arguments: object) -> Any:  # noqa: ANN401 - of the verb's type
        return self._shards.ask(verb, {shard: arguments}).get(shard)


def _sum_facets(each: Iterable[Sequence[FacetCount]], most: int) -> tuple[FacetCount, ...]:
    counts: Counter[str] = Counter()
    for facets in each:
        counts.update({facet.value: facet.pages for facet in facets})
    return tuple(FacetCount(value, pages) for value, pages in counts.most_common(most))


def _merge_lists(replies: Mapping[int, Iterable[T]], key: Callable[[T], object]) -> list[T]:
    """Merge the lists of shards in order, without duplicates."""
    return list({key(item): item for shard in sorted(replies) for item in replies[shard]}.values())
