"""Push signals in the coordinator: URLs that a hub's feed or a ping reports as new or changed.

New URLs are added, as from a feed. Known pages get a change signal, which the refresh policy trusts as far as earlier
ones of its site proved right; and depending on the trust in the source, they are fetched before their due time. The
next fetch, made for any reason, shows whether a signal was right. Signals never take more than a share of what a host's
delays allow, or of the fetch budget.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Literal, NamedTuple

from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.push.push_store import FetchedSignal, PushStore, SignalRow
from vedette.discover.push.credit import SignalTrust, move_due_s
from vedette.engine.coordinator.coordinator import Coordinator
from vedette.engine.coordinator.state import FoundUrl
from vedette.engine.ports import ChangeSignal, LinkOrigin, PageRow
from vedette.model import origin_of
from vedette.runtime.push.promises import get_host_delay_s

MAX_MENTIONS = 10_000
MAX_WAITING = 20_000
MAX_WOKEN = 100
MAX_JUDGED = 500
# The share of a host's allowed requests, and of the fetch budget, that signals may take.
SIGNAL_SHARE = 0.2
BURST = 5.0
MAX_WAIT_S = 86_400.0
SIGNAL_TTL_S = 7 * 86_400.0
# A change found this shortly before its announcement makes the signal late, not false.
GRACE_S = 900.0


class Mention(NamedTuple):
    """A URL that a push source mentions, and its reported change time; None if not given."""

    url: str
    changed_s: float | None = None


class SignalResult(NamedTuple):
    """Result of push signals: number of new URLs, of known pages reported as changed, and of the rest."""

    new: int = 0
    signalled: int = 0
    passed_over: int = 0


@dataclass(slots=True)
class _Bucket:
    """Token bucket that limits how many pages push signals may wake; it refills over time."""

    tokens: float = BURST
    at_s: float = 0.0

    def take(self, rate: float, now_s: float) -> bool:
        self.tokens = min(self.tokens + max(now_s - self.at_s, 0.0) * rate, BURST)
        self.at_s = now_s
        has_token = self.tokens >= 1.0
        self.tokens -= has_token
        return has_token


@dataclass(slots=True)
class SignalHandler:
    """Handle push signals in the coordinator."""

    store: PushStore
    state: State
    coordinator: Coordinator
    _buckets: dict[str, _Bucket] = field(default_factory=dict)
    _total_bucket: _Bucket = field(default_factory=_Bucket)

    def on_signals(
        self, source: str, kind: Literal["feed", "ping"], via: str, mentions: Sequence[Mention], now_s: float
    ) -> SignalResult:
        """Apply the push signals of a source: add new URLs, and signal the known pages that changed.

        Known pages with a date count only if they changed after their last fetch. A feed lists its old entries for
        long, so entries of known pages without a date are ignored.
        """
        dated = self._normalize(mentions)
        credit, urls = self.store.get_credit(source), list(dated)
        ids = self.state.urls.find_ids(urls).tolist()
        fresh = [url for url, id_ in zip(urls, ids, strict=True) if not id_]
        new = self._add_new(fresh, via, credit, now_s)
        self._save_dates(fresh, dated, kind, now_s)
        pages = self.state.store.get_pages([id_ for id_ in ids if id_])
        changed = [
            pages[id_]
            for url, id_ in zip(urls, ids, strict=True)
            if id_ in pages and _is_newer(dated[url], pages[id_], kind, now_s)
        ]
        self.state.store.add_signals([ChangeSignal(page.id, now_s, kind) for page in changed])
        self._save_signals(source, credit, fresh, changed, now_s)
        return SignalResult(new, len(changed), len(mentions) - new - len(changed))

    def step(self, now_s: float) -> None:
        """Judge the push signals of pages that were fetched since, and wake the pages due for a signal."""
        self._judge_signals(now_s)
        self._wake_pages(now_s)

    def _normalize(self, mentions: Sequence[Mention]) -> dict[str, float | None]:
        """Normalize the URLs of push signals, each once; skip those outside all sites."""
        found: dict[str, float | None] = {}
        for mention in mentions[:MAX_MENTIONS]:
            url = self.coordinator.normalize_url(mention.url)
            if url is not None:
                found.setdefault(url, mention.changed_s)
        return found

    def _add_new(self, urls: Sequence[str], via: str, credit: SignalTrust, now_s: float) -> int:
        """Add the new URLs of push signals; those of an untrusted source rank no better than ordinary links."""
        if not urls:
            return 0
        front = 1 if credit.wait_cut == 1.0 else None
        named = FoundUrl("", 1, front=front, source=via, from_list=bool(credit.wait_cut), via=self._get_discovery(via))
        return self.coordinator.admit_links([(urls, named)], now_s).urls

    def _get_discovery(self, via: str) -> LinkOrigin | None:
        """Return how push signals via a fetched page discovered new pages, for alerts; None if it is unknown."""
        id_ = int(self.state.urls.find_ids([via])[0])
        page = self.state.store.get_page(id_) if id_ else None
        return LinkOrigin(id_, "push", page.fetched_s) if page is not None else None

    def _save_dates(
        self, urls: Sequence[str], dated: Mapping[str, float | None], kind: Literal["feed", "ping"], now_s: float
    ) -> None:
        """Save the publication dates that a pushed feed gives for its new entries."""
        ids = self.state.urls.find_ids(urls).tolist() if urls else []
        pairs = [(id_, dated[url]) for id_, url in zip(ids, urls, strict=True) if id_]
        self.state.store.save_births([ChangeSignal(id_, at_s, kind) for id_, at_s in pairs if at_s and at_s <= now_s])

    def _save_signals(
        self, source: str, credit: SignalTrust, fresh: Sequence[str], changed: Sequence[PageRow], now_s: float
    ) -> None:
        new = [id_ for id_ in self.state.urls.find_ids(fresh).tolist() if id_] if fresh else []
        waiting = frozenset(self.store.find_signalled([*new, *(page.id for page in changed)]))
        rows = [SignalRow(id_, source, now_s, is_new=True) for id_ in new if id_ not in waiting]
        for page in changed:
            if page.id not in waiting:
                wake_s = move_due_s(credit, now_s, page.due_s, MAX_WAIT_S)
                rows.append(SignalRow(page.id, source, now_s, inf if wake_s is None else wake_s))
        room = max(MAX_WAITING - self.store.count_signals(source), 0)
        self.store.save_signals(rows[:room])
        self.store.save_credit(source, credit, len(rows[:room]), now_s)

    # checking signals

    def _judge_signals(self, now_s: float) -> None:
        seen = self.store.list_judgeable(MAX_JUDGED)
        credits_: dict[str, SignalTrust] = {}
        for one in seen:
            verdict = _judge_signal(one)
            if verdict is not None:
                credit = credits_.get(one.source) or self.store.get_credit(one.source)
                credits_[one.source] = credit.update(came_true=verdict)
        for source, credit in credits_.items():
            self.store.save_credit(source, credit, 0, 0.0)
        self.store.delete_signals([one.url_id for one in seen])
        self.store.delete_signals_before(now_s - SIGNAL_TTL_S)

    # waking pages

    def _wake_pages(self, now_s: float) -> None:
        woken: dict[int, str] = {}
        for id_, url in self.store.list_due_signals(now_s, MAX_WOKEN):
            if self.coordinator.normalize_url(url) is None:
                self.store.delete_signals([id_])
            elif (wait_s := self._get_wait_s(url, now_s)) > 0:
                self.store.postpone_signals(now_s + wait_s, [id_])
            else:
                woken[id_] = url
        if woken:
            self.coordinator.request_urls(list(woken.values()), now_s)
            self.coordinator.refresher.add_spent(others=len(woken))
            self.store.mark_woken(list(woken))

    def _get_wait_s(self, url: str, now_s: float) -> float:
        """Return how long a host has no capacity for another push-signalled page; if 0, take it."""
        rules, host = self.coordinator.rules, origin_of(url).host
        rate = SIGNAL_SHARE / get_host_delay_s(host, rules.sites, self.coordinator.robots, rules.delay_s)
        if len(self._buckets) > MAX_MENTIONS:
            self._buckets.clear()
        if not self._buckets.setdefault(host, _Bucket(at_s=now_s)).take(rate, now_s):
            return 1.0 / rate
        in_all = SIGNAL_SHARE * rules.budget_per_s
        if in_all and not self._total_bucket.take(in_all, now_s):
            self._buckets[host].tokens += 1.0
            return 1.0 / in_all
        return 0.0


def _is_newer(stated_s: float | None, page: PageRow, kind: str, now_s: float) -> bool:
    """Check whether a push signal says that a known page changed since its fetch, and not in the future."""
    if stated_s is None:
        return kind == "ping"
    return page.fetched_s < stated_s <= now_s + GRACE_S


def _judge_signal(seen: FetchedSignal) -> bool | None:
    """Judge whether a push signal was right; None if that cannot be decided."""
    if seen.is_new:
        return None if 300 <= seen.status < 400 else 200 <= seen.status < 300
    if seen.changed_s > seen.at_s:
        return True
    return None if seen.changed_s >= seen.at_s - GRACE_S else False
