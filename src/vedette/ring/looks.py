"""Looks at sources, as the keeper sees them: what each result showed that nobody knew, and when to look again.

A look is an ordinary fetch. What it brought is known when its links were named, so due times are set again then. Where
the operator set no budget there is nothing to be thrifty with, and lists come round at their fixed pace.
"""

from collections import Counter
from collections.abc import Sequence

from vedette.ring.hosts import Hosts
from vedette.ring.kept import Named
from vedette.ring.looking import MOST_LINKS, Looked
from vedette.ring.orders import Fetched, Result
from vedette.ring.ports import Book, Urls
from vedette.ring.refreshing import Refreshing
from vedette.ring.schedule import is_good, is_source

__all__ = ["Looks"]

# However little a list brings, it is looked at once a day.
LONGEST_S = 86_400.0
SAME = 304


class Looks:
    """Counts what is found by the page that named it, until the report that it came with is through."""

    def __init__(self, hosts: Hosts, urls: Urls, book: Book, refreshing: Refreshing) -> None:
        self._hosts, self._urls, self._book, self._refreshing = hosts, urls, book, refreshing
        self._new: Counter[str] = Counter()

    def found(self, fresh: Sequence[Named]) -> None:
        """These URLs were unknown until now."""
        self._new.update(one.source for one in fresh if one.source)

    def ended(self, results: Sequence[Result], now_s: float) -> None:
        """All links of these results were named: learn from those that were looks, and say when to look again."""
        new, self._new = self._new, Counter()
        looks = [self._look(result, new) for result in results if result.errand.robots_of is None]
        lists = {look.id for look in looks if look.is_list}
        looking, price = self._refreshing.looking, self._refreshing.price
        sources = looking.came(looks, now_s)
        times = looking.due_s([id_ for id_ in sources if self._refreshing.is_thrifty or id_ not in lists], price, now_s)
        rows = self._book.copies(list(times))
        self._book.keep_due(
            [
                (id_, min(at_s, now_s + LONGEST_S) if id_ in lists else min(at_s, rows[id_].due_s))
                for id_, at_s in times.items()
                if id_ in rows and is_good(rows[id_].status)
            ]
        )

    def _look(self, result: Result, new: Counter[str]) -> Looked:
        errand = result.errand
        host = self._hosts.get(errand.host).id
        again = errand.copy is not None
        if not isinstance(result, Fetched) or not (is_good(result.status) or result.status == SAME):
            return Looked(errand.id, host, ok=False, is_list=False, again=again)
        is_list = is_source(errand.url, result.kind)
        count = new[errand.url]
        matters = is_list or count or self._refreshing.looking.is_source(errand.id)
        links = self._urls.find(result.links[:MOST_LINKS]).tolist() if matters and result.links else []
        known = [id_ for id_ in links if id_]
        return Looked(errand.id, host, ok=True, is_list=is_list, again=again, links=known, new=count)
