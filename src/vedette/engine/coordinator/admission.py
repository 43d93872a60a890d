"""URLs that were found, or wished for: the unseen ones get an id, a place to wait, and an account of who named them."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate

from vedette.engine.coordinator.hosts import HostTable
from vedette.engine.coordinator.newness import NoveltyDetector
from vedette.engine.coordinator.state import FoundUrl
from vedette.engine.coordinator.trap_filter import TrapFilter
from vedette.engine.coordinator.url_states import UrlStates
from vedette.engine.ports import UrlFrontier
from vedette.engine.scheduling.poll_results import PollTracker
from vedette.engine.scheduling.url_selection import UrlSelector
from vedette.model import origin_of


class Admission:
    """What becomes of URLs that belong to a site, each in its site's spelling."""

    def __init__(
        self,
        hosts: HostTable,
        urls: UrlFrontier,
        chooser: UrlSelector,
        looks: PollTracker,
        newness: NoveltyDetector,
        fates: UrlStates,
        thrift: TrapFilter,
    ) -> None:
        self._hosts = hosts
        self._urls = urls
        self._selector = chooser
        self._polls = looks
        self._novelty = newness
        self._url_states = fates
        self._trap_filter = thrift

    def admit(self, named: Sequence[tuple[Sequence[str], FoundUrl]], now_s: float) -> int:
        """URLs with what they have in common: all that a report named at once, since each batch has its price.

        Most of it is known. The unseen ones wait from now on; how many those were.
        """
        everything = [url for urls, _ in named for url in urls]
        ends = list(accumulate(len(urls) for urls, _ in named))
        fresh = [
            named[bisect_right(ends, place)][1]._replace(url=everything[place])
            for place in self._find_unknown(everything, [one.is_refetch for urls, one in named for _ in urls])
        ]
        if not fresh:
            return 0
        self._polls.count_new([one for one in fresh if not (one.is_refetch and self._is_filtered(one.url))])
        origins = [origin_of(one.url) for one in fresh]
        ids = self._urls.intern_hosts([origin.host for origin in origins])
        new = self._urls.add(self._selector.build_link_batch(fresh, ids), now_s).tolist()
        if any(one.hops for one in fresh) or self._novelty.can_be_new(ids, now_s):
            found = dict(zip(self._urls.find_ids([one.url for one in fresh]).tolist(), fresh, strict=True))
            self._url_states.hops.update({id_: found[id_].hops for id_ in new if found[id_].hops})
            hosts = {one.url: host for one, host in zip(fresh, ids, strict=True)}
            news = self._novelty.detect({id_: found[id_] for id_ in new}, hosts, now_s)
            self._prioritize({id_: found[id_].url for id_ in news})
        for one in fresh:
            self._trap_filter.add_url(one.url, one.source, is_named=one.from_list)
        for origin, id_ in dict(zip(origins, ids, strict=True)).items():
            host = self._hosts.get_or_add(origin.host, id_)
            host.origins[origin] = None
            host.paused_until_s = 0.0
            self._hosts.enqueue(host)
        return len(new)

    def _is_filtered(self, url: str) -> bool:
        """Whether a URL would not be fetched: a list without end brings nothing, however much it names."""
        site = self._hosts.sites.find_site(url)
        return site is not None and self._trap_filter.judge(url, site) is not None

    def request(self, urls: Sequence[str]) -> list[int]:
        """Somebody waits for these URLs, which are known: they come next when their host may be asked. Their ids."""
        ids: list[int] = self._urls.find_ids(urls).tolist()
        self._urls.requeue(ids, priority=0)
        self._urls.move_to_front(ids)
        for url, id_ in zip(urls, ids, strict=True):
            origin = origin_of(url)
            host = self._url_states.requested[id_] = self._hosts.get(origin.host)
            host.origins[origin] = None
            host.requested[id_] = None
            host.paused_until_s = 0.0
            self._hosts.requeue(host)
        return ids

    def _prioritize(self, news: Mapping[int, str]) -> None:
        """What is new on the web comes before what is known, or has been waiting for long."""
        self._urls.move_to_front(news)
        for id_, url in news.items():
            host = self._hosts.get(origin_of(url).host)
            host.new_urls[id_] = None
            if self._hosts.budget is not None:
                self._hosts.budget.prioritize(host)

    def _find_unknown(self, urls: Sequence[str], again: Sequence[bool]) -> list[int]:
        """The places of those that are unknown. What a page links to is counted once, not each time it is fetched."""
        if not any(again):
            return self._urls.find_unknown(urls)
        counted = [place for place, is_again in enumerate(again) if not is_again]
        others = [place for place, is_again in enumerate(again) if is_again]
        unknown = [counted[place] for place in self._urls.find_unknown([urls[place] for place in counted])]
        ids = self._urls.find_ids([urls[place] for place in others]).tolist()
        return sorted(unknown + [place for place, id_ in zip(others, ids, strict=True) if not id_])
