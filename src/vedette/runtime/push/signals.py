"""What becomes of signals: URLs that a feed's hub or a ping says are new or have changed, in the hands of the keeper.

New URLs are found, as from a feed. Known pages get a signal, which the refresh policy believes as far as its site's
proved right; and as far as the credit of the source goes, they are fetched sooner than their time. Whether a signal was
right is judged by the next fetch, whoever wanted it. Signals never take more than a share of what a host's pauses
allow, or of the fetch budget.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Literal, NamedTuple

from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.push.push_store import PushBook, Seen, SignalRow
from vedette.discover.push.credit import Credit, moved_s
from vedette.engine.coordinator.coordinator import Keeper
from vedette.engine.coordinator.state import Named
from vedette.engine.ports import PageRow, Signal, Way
from vedette.model import origin_of
from vedette.runtime.push.promises import pause_s

__all__ = ["Announced", "Heard", "Mention", "Signalling"]

Announced = Callable[[Sequence[str], Named, float], int]
"""``Keeper.announced``: unseen URLs with what they have in common; how many those were."""

MOST_AT_ONCE = 10_000
MOST_WAITING = 20_000
MOST_WOKEN = 100
MOST_JUDGED = 500
# Of the requests that a host's pauses allow, and of the fetch budget, signals may take so much.
SHARE = 0.2
BURST = 5.0
LONGEST_WAIT_S = 86_400.0
FORGOTTEN_S = 7 * 86_400.0
# A change that was found so short before it was announced makes the signal late, not false.
LATE_S = 900.0


class Mention(NamedTuple):
    """A URL that a source names, and when it says that it changed; None where it does not say."""

    url: str
    changed_s: float | None = None


class Heard(NamedTuple):
    """What came of signals: URLs that were new, known pages that were said to have changed, and the rest."""

    new: int = 0
    signalled: int = 0
    passed_over: int = 0


@dataclass(slots=True)
class _Bucket:
    """How many signalled pages may still be woken now; it fills as time goes by."""

    left: float = BURST
    at_s: float = 0.0

    def take(self, rate: float, now_s: float) -> bool:
        self.left = min(self.left + max(now_s - self.at_s, 0.0) * rate, BURST)
        self.at_s = now_s
        taken = self.left >= 1.0
        self.left -= taken
        return taken


@dataclass(slots=True)
class Signalling:
    """Signals, at work in the keeper."""

    book: PushBook
    state: State
    keeper: Keeper
    announced: Announced
    _buckets: dict[str, _Bucket] = field(default_factory=dict)
    _all: _Bucket = field(default_factory=_Bucket)

    def heard(
        self, source: str, kind: Literal["feed", "ping"], via: str, said: Sequence[Mention], now_s: float
    ) -> Heard:
        """A source named URLs. Of known pages that it dates, only those count that changed after their last fetch.

        A feed names its old entries for long, so of those that it does not date nothing follows.
        """
        dated = self._sited(said)
        credit, urls = self.book.credit_of(source), list(dated)
        ids = self.state.urls.find(urls).tolist()
        fresh = [url for url, id_ in zip(urls, ids, strict=True) if not id_]
        new = self._found(fresh, via, credit, now_s)
        self._date(fresh, dated, kind, now_s)
        pages = self.state.book.copies([id_ for id_ in ids if id_])
        changed = [
            pages[id_]
            for url, id_ in zip(urls, ids, strict=True)
            if id_ in pages and _is_news(dated[url], pages[id_], kind, now_s)
        ]
        self.state.book.signal([Signal(page.id, now_s, kind) for page in changed])
        self._keep(source, credit, fresh, changed, now_s)
        return Heard(new, len(changed), len(said) - new - len(changed))

    def step(self, now_s: float) -> None:
        """Judge what was fetched since it was signalled, and wake what is to be fetched for a signal."""
        self._judge(now_s)
        self._wake(now_s)

    def _sited(self, said: Sequence[Mention]) -> dict[str, float | None]:
        """URLs in the spelling of their sites, each once; what no site takes is passed over."""
        found: dict[str, float | None] = {}
        for mention in said[:MOST_AT_ONCE]:
            url = self.keeper.sited(mention.url)
            if url is not None:
                found.setdefault(url, mention.changed_s)
        return found

    def _found(self, urls: Sequence[str], via: str, credit: Credit, now_s: float) -> int:
        """A source without credit is no better than a link that stands somewhere."""
        if not urls:
            return 0
        front = 1 if credit.pull == 1.0 else None
        named = Named("", 1, front=front, source=via, vouched=bool(credit.pull), found=self._way(via))
        return self.announced(urls, named, now_s)

    def _way(self, via: str) -> Way | None:
        """How what is told here was found, so that those who watch hear of it; ``via`` was fetched, or nobody knows."""
        id_ = int(self.state.urls.find([via])[0])
        page = self.state.book.page_of(id_) if id_ else None
        return Way(id_, "push", page.fetched_s) if page is not None else None

    def _date(
        self, urls: Sequence[str], dated: Mapping[str, float | None], kind: Literal["feed", "ping"], now_s: float
    ) -> None:
        """What a feed says of when its new entries were made."""
        ids = self.state.urls.find(urls).tolist() if urls else []
        pairs = [(id_, dated[url]) for id_, url in zip(ids, urls, strict=True) if id_]
        self.state.book.keep_births([Signal(id_, at_s, kind) for id_, at_s in pairs if at_s and at_s <= now_s])

    def _keep(
        self, source: str, credit: Credit, fresh: Sequence[str], changed: Sequence[PageRow], now_s: float
    ) -> None:
        new = [id_ for id_ in self.state.urls.find(fresh).tolist() if id_] if fresh else []
        waiting = frozenset(self.book.signalled([*new, *(page.id for page in changed)]))
        rows = [SignalRow(id_, source, now_s, is_new=True) for id_ in new if id_ not in waiting]
        for page in changed:
            if page.id not in waiting:
                wake_s = moved_s(credit, now_s, page.due_s, LONGEST_WAIT_S)
                rows.append(SignalRow(page.id, source, now_s, inf if wake_s is None else wake_s))
        room = max(MOST_WAITING - self.book.signal_count(source), 0)
        self.book.keep_signals(rows[:room])
        self.book.keep_credit(source, credit, len(rows[:room]), now_s)

    # whether they were right

    def _judge(self, now_s: float) -> None:
        seen = self.book.judgeable(MOST_JUDGED)
        credits_: dict[str, Credit] = {}
        for one in seen:
            verdict = _verdict(one)
            if verdict is not None:
                credit = credits_.get(one.source) or self.book.credit_of(one.source)
                credits_[one.source] = credit.after(came_true=verdict)
        for source, credit in credits_.items():
            self.book.keep_credit(source, credit, 0, 0.0)
        self.book.drop_signals([one.url_id for one in seen])
        self.book.drop_signals_before(now_s - FORGOTTEN_S)

    # and when it is found out

    def _wake(self, now_s: float) -> None:
        woken: dict[int, str] = {}
        for id_, url in self.book.to_wake(now_s, MOST_WOKEN):
            if self.keeper.sited(url) is None:
                self.book.drop_signals([id_])
            elif (wait_s := self._wait_s(url, now_s)) > 0:
                self.book.wake_later(now_s + wait_s, [id_])
            else:
                woken[id_] = url
        if woken:
            self.keeper.wish(list(woken.values()), now_s)
            self.keeper.refreshing.spent(others=len(woken))
            self.book.woken(list(woken))

    def _wait_s(self, url: str, now_s: float) -> float:
        """How long a host has no room for another signalled page; 0 where it has, which is taken then."""
        rules, host = self.keeper.rules, origin_of(url).host
        rate = SHARE / pause_s(host, rules.sites, self.keeper.robots, rules.delay_s)
        if len(self._buckets) > MOST_AT_ONCE:
            self._buckets.clear()
        if not self._buckets.setdefault(host, _Bucket(at_s=now_s)).take(rate, now_s):
            return 1.0 / rate
        in_all = SHARE * rules.budget_per_s
        if in_all and not self._all.take(in_all, now_s):
            self._buckets[host].left += 1.0
            return 1.0 / in_all
        return 0.0


def _is_news(said_s: float | None, page: PageRow, kind: str, now_s: float) -> bool:
    """Whether a known page is said to have changed since it was fetched; nobody knows of tomorrow's changes."""
    if said_s is None:
        return kind == "ping"
    return page.fetched_s < said_s <= now_s + LATE_S


def _verdict(seen: Seen) -> bool | None:
    """Whether a signal came true; None where nobody can say."""
    if seen.is_new:
        return None if 300 <= seen.status < 400 else 200 <= seen.status < 300
    if seen.changed_s > seen.at_s:
        return True
    return None if seen.changed_s >= seen.at_s - LATE_S else False
