"""URLs that were found, or wished for: the unseen ones get an id, a place to wait, and an account of who named them."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate

from vedette.engine.coordinator.hosts import Hosts
from vedette.engine.coordinator.newness import Newness
from vedette.engine.coordinator.state import Named
from vedette.engine.coordinator.trap_filter import Thrift
from vedette.engine.coordinator.url_states import Fates
from vedette.engine.ports import Urls
from vedette.engine.scheduling.poll_results import Looks
from vedette.engine.scheduling.url_selection import Chooser
from vedette.model import origin_of

__all__ = ["Finds"]


class Finds:
    """What becomes of URLs that belong to a site, each in its site's spelling."""

    def __init__(
        self,
        hosts: Hosts,
        urls: Urls,
        chooser: Chooser,
        looks: Looks,
        newness: Newness,
        fates: Fates,
        thrift: Thrift,
    ) -> None:
        self._hosts = hosts
        self._urls = urls
        self._chooser = chooser
        self._looks = looks
        self._newness = newness
        self._fates = fates
        self._thrift = thrift

    def named(self, named: Sequence[tuple[Sequence[str], Named]], now_s: float) -> int:
        """URLs with what they have in common: all that a report named at once, since each batch has its price.

        Most of it is known. The unseen ones wait from now on; how many those were.
        """
        everything = [url for urls, _ in named for url in urls]
        ends = list(accumulate(len(urls) for urls, _ in named))
        fresh = [
            named[bisect_right(ends, place)][1]._replace(url=everything[place])
            for place in self._unknown(everything, [one.again for urls, one in named for _ in urls])
        ]
        if not fresh:
            return 0
        self._looks.found([one for one in fresh if not (one.again and self._is_spared(one.url))])
        origins = [origin_of(one.url) for one in fresh]
        ids = self._urls.host_ids([origin.host for origin in origins])
        new = self._urls.add(self._chooser.told(fresh, ids), now_s).tolist()
        if any(one.hops for one in fresh) or self._newness.is_likely(ids, now_s):
            found = dict(zip(self._urls.find([one.url for one in fresh]).tolist(), fresh, strict=True))
            self._fates.hops.update({id_: found[id_].hops for id_ in new if found[id_].hops})
            hosts = {one.url: host for one, host in zip(fresh, ids, strict=True)}
            news = self._newness.found({id_: found[id_] for id_ in new}, hosts, now_s)
            self._hasten({id_: found[id_].url for id_ in news})
        for one in fresh:
            self._thrift.found(one.url, one.source, is_named=one.vouched)
        for origin, id_ in dict(zip(origins, ids, strict=True)).items():
            host = self._hosts.known(origin.host, id_)
            host.origins[origin] = None
            host.paused_s = 0.0
            self._hosts.enqueue(host)
        return len(new)

    def _is_spared(self, url: str) -> bool:
        """Whether a URL would not be fetched: a list without end brings nothing, however much it names."""
        site = self._hosts.sites.site_of(url)
        return site is not None and self._thrift.judged(url, site) is not None

    def wish(self, urls: Sequence[str]) -> list[int]:
        """Somebody waits for these URLs, which are known: they come next when their host may be asked. Their ids."""
        ids: list[int] = self._urls.find(urls).tolist()
        self._urls.again(ids, priority=0)
        self._urls.first(ids)
        for url, id_ in zip(urls, ids, strict=True):
            origin = origin_of(url)
            host = self._fates.wished[id_] = self._hosts.get(origin.host)
            host.origins[origin] = None
            host.wishes[id_] = None
            host.paused_s = 0.0
            self._hosts.requeue(host)
        return ids

    def _hasten(self, news: Mapping[int, str]) -> None:
        """What is new on the web comes before what is known, or has been waiting for long."""
        self._urls.first(news)
        for id_, url in news.items():
            host = self._hosts.get(origin_of(url).host)
            host.news[id_] = None
            if self._hosts.budget is not None:
                self._hosts.budget.hasten(host)

    def _unknown(self, urls: Sequence[str], again: Sequence[bool]) -> list[int]:
        """The places of those that are unknown. What a page links to is counted once, not each time it is fetched."""
        if not any(again):
            return self._urls.unknown(urls)
        counted = [place for place, is_again in enumerate(again) if not is_again]
        others = [place for place, is_again in enumerate(again) if is_again]
        unknown = [counted[place] for place in self._urls.unknown([urls[place] for place in counted])]
        ids = self._urls.find([urls[place] for place in others]).tolist()
        return sorted(unknown + [place for place, id_ in zip(others, ids, strict=True) if not id_])
