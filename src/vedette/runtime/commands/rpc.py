"""What the command line and the console ask of a running keeper, and what it answers: plain values both ways.

An answer leaves after the commit that follows it, so whoever is told "done" can rely on it. A wrong order is answered
with an ``error`` in words; it never ends the keeper.
"""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal

from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.url_store.store import Waits
from vedette.discover.urls.scope import refusal, site_of
from vedette.engine.coordinator.coordinator import Keeper
from vedette.engine.ports import Fate, PageRow
from vedette.engine.scheduling.polling import Looking
from vedette.engine.scheduling.refresh import Refreshing
from vedette.engine.scheduling.spending import KINDS
from vedette.engine.search.hidden import lies_in
from vedette.errors import SiteError, VedetteError
from vedette.model import Refusal, origin_of
from vedette.runtime.commands.executor import carry_out, changes_sites
from vedette.runtime.commands.setting_commands import rules_of
from vedette.runtime.processes.settings import LiveSettings
from vedette.runtime.push.coordinator import PushKeeping
from vedette.runtime.push.promises import refuse_unkeepable
from vedette.web.commands.ads_commands import MarketOrder
from vedette.web.commands.commands import AddSite, FetchNow, Order

__all__ = ["Call", "Desk", "Verb", "numbers"]

Verb = Literal["status", "stop", "explain", "fetch", "fetched", "hosts", "order", "push"]
Reply = dict[str, object]

RATE_OVER_S = 60.0
RATE_STEP_S = 1.0


@dataclass(frozen=True, slots=True)
class Call:
    """A question or an order."""

    verb: Verb
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Pace:
    """Pages a second of wall time over the last minute; told often enough by whoever shows progress."""

    points: deque[tuple[float, int]] = field(default_factory=deque)

    def at(self, wall_s: float, pages: int) -> float | None:
        if not self.points or wall_s - self.points[-1][0] >= RATE_STEP_S:
            self.points.append((wall_s, pages))
        while len(self.points) > 2 and wall_s - self.points[1][0] >= RATE_OVER_S:
            self.points.popleft()
        since_s, before = self.points[0]
        return (pages - before) / (wall_s - since_s) if wall_s - since_s >= RATE_STEP_S else None


class Desk:
    """Answers calls on behalf of a keeper."""

    def __init__(self, settings: LiveSettings, state: State, keeper: Keeper) -> None:
        self._settings = settings
        self._state = state
        self._keeper = keeper
        self._started_s = settings.clock.wall()
        self._pace = _Pace()
        self.push = PushKeeping(settings, state, keeper, keeper.announced)
        self.stop_asked = False
        self.sites_changed = False
        self.recalled: tuple[str, ...] = ()
        self.ending: str | None = None
        self.trouble = ""
        self._answers: dict[Verb, Callable[..., Reply]] = {
            "status": self._status,
            "stop": self._stop,
            "explain": self._explain,
            "fetch": self._fetch,
            "fetched": self._fetched,
            "hosts": self._hosts,
            "order": self._order,
            "push": self.push.answer,
        }

    def answer(self, call: Call, now_s: float) -> Reply:
        """What is told to whoever called."""
        if call.verb not in self._answers:
            return {
                "error": f'the vedette that runs does not know "{call.verb}": it is older than this one; restart it'
            }
        try:
            return self._answers[call.verb](now_s, **call.arguments)
        except VedetteError as error:
            return {"error": str(error)}

    def sites_are_new(self, now_s: float) -> None:
        """The state's sites or settings have changed: keeper and workers go by them from now on."""
        rules = rules_of(self._settings, self._state)
        self.recalled = self._keeper.ruled(rules, self._state.urls.names_with_work(), now_s)
        self.sites_changed = True

    def _stop(self, _now_s: float) -> Reply:
        self.stop_asked = True
        self.ending = self.ending or "stopped"
        return {}

    def _status(self, now_s: float) -> Reply:
        return {
            "ending": self.ending,
            "now_s": now_s,
            "trouble": self.trouble,
            **self._life(),
            **numbers(self._keeper, now_s),
        }

    def _life(self) -> Reply:
        wall_s = self._settings.clock.wall()
        return {
            "running_s": wall_s - self._started_s,
            "pages_per_s": self._pace.at(wall_s, self._keeper.tally.pages),
        }

    def _explain(self, now_s: float, url: str) -> Reply:
        """Where a URL stands that is given in the spelling of its site, and when its host may be asked."""
        id_ = int(self._state.urls.find([url])[0])
        wait, ready_s = self._keeper.wait_of(origin_of(url).host, now_s)
        place = {**self._standing(id_), "source": self._source(id_, now_s)} if id_ else {}
        worth, price = self._keeper.first_worth(id_, url) if place.get("standing") == "waiting" else (None, None)
        first: Reply = {"first_worth": worth, "price": price}
        return {"now_s": now_s, "id": id_, "host_wait": wait, "host_ready_s": ready_s, **place, **first}

    def _source(self, id_: int, now_s: float) -> Reply | None:
        """What is believed of a source at this moment, on disk minutes later; None where it is none."""
        refreshing = self._keeper.refreshing
        told = refreshing.looking.told(id_, now_s)
        times = refreshing.looking.due_s([id_], refreshing.price, now_s)
        return {"told": told._asdict(), "look_s": times.get(id_, inf)} if told else None

    def _standing(self, id_: int) -> Reply:
        standing = self._state.urls.standing(id_)
        if isinstance(standing, Waits):
            return {"standing": "waiting", "front": standing.front, "ahead": standing.ahead}
        return {"standing": standing.name.lower() if isinstance(standing, Fate) else "leased"}

    def _hosts(self, now_s: float, most: int = 200) -> Reply:
        """Hosts with something to do, those in trouble first."""
        rows, total = self._keeper.host_standings(now_s, most)
        return {"now_s": now_s, "hosts": [row._asdict() for row in rows], "total": total}

    def _fetch(self, now_s: float, urls: list[str]) -> Reply:
        """URLs to be fetched next; all of them or none."""
        spelt = [self._spelt(url) for url in urls]
        before = [self._state.book.page_of(int(id_)) is not None for id_ in self._state.urls.find(spelt)]
        ids = self._keeper.wish(spelt, now_s)
        rows = zip(urls, spelt, ids, before, strict=True)
        return {
            "now_s": now_s,
            "urls": [{"url": url, "known_as": own, "id": id_, "had": had} for url, own, id_, had in rows],
        }

    def _spelt(self, url: str) -> str:
        """The spelling under which a site takes the URL."""
        rules = self._keeper.rules
        if lies_in(origin_of(url).host, rules.blocked):
            raise SiteError(f"{url} is {Refusal.BLOCKED}: take the block back first")
        if (own := self._keeper.sited(url)) is not None:
            return own
        paused = site_of(url, rules.paused)
        if paused is not None:
            raise SiteError(f'{url} belongs to {paused.start}, which is paused: "vedette sites resume {paused.start}"')
        why = refusal(url, rules.sites)
        raise SiteError(f'{url} is {why}: "vedette sites add {origin_of(url)}/" makes it part of one')

    def _fetched(self, now_s: float, ids: list[int]) -> Reply:
        return {"now_s": now_s, "urls": [self._came_of(id_, now_s) for id_ in ids]}

    def _came_of(self, id_: int, now_s: float) -> Reply:
        """How far a URL is that somebody waits for."""
        reply: Reply = {"id": id_, "wished": self._keeper.host_of_wish(id_) is not None, **self._standing(id_)}
        page, note = self._state.book.page_of(id_), self._state.book.note_of(id_)
        if reply["standing"] == "fetched" and page is not None:
            return {**reply, **_page(page)}
        if reply["standing"] in {"refused", "failed"} and note is not None:
            return {**reply, "why": note[0]}
        return {**reply, "why": self._why_not_yet(id_, now_s)}

    def _why_not_yet(self, id_: int, now_s: float) -> str:
        host = self._keeper.host_of_wish(id_)
        return self._keeper.wait_of(host, now_s)[0] if host else ""

    def _order(self, now_s: float, order: Order | MarketOrder, who: str) -> Reply:
        """Carried out as a whole: each order checks what it needs before it writes anything."""
        is_of_sites = changes_sites(order, self._state)
        if isinstance(order, FetchNow):
            self._fetch(now_s, list(order.urls))
        if not isinstance(order, MarketOrder):
            refuse_unkeepable(order, self._state, self._keeper.rules.delay_s)
        done = carry_out(order, self._state, now_s, who)
        if is_of_sites:
            self.sites_are_new(now_s)
        if isinstance(order, AddSite) and order.asked_s is not None:
            self._keeper.rest(origin_of(order.site.start).host, order.asked_s)
        return {"done": done.words, "action": done.action}


def _page(page: PageRow) -> Reply:
    return {
        "status": page.status,
        "title": page.title,
        "changed": page.changed_s == page.fetched_s,
        "location": page.location,
        "body_bytes": page.body_bytes,
    }


def numbers(keeper: Keeper, now_s: float) -> Reply:
    """The state of a crawl as plain numbers."""
    tally = keeper.tally
    counts = keeper.urls.counts()
    return {
        "pages": tally.pages,
        "new_pages": tally.new_pages,
        "unchanged": tally.unchanged,
        "bytes": tally.bytes,
        "requests": tally.requests,
        "robots_requests": tally.robots,
        "redirects": tally.redirects,
        "urls_known": counts.known,
        "urls_waiting": counts.waiting,
        "urls_out": counts.leased,
        "hosts": len(keeper.hosts),
        "hosts_waiting": keeper.waits(now_s),
        "statuses": {str(status): tally.statuses[status] for status in sorted(tally.statuses)},
        "failures": {why: tally.failures[why] for why in sorted(tally.failures)},
        "refusals": {str(why): tally.refusals[why] for why in sorted(tally.refusals)},
        "hosts_in_trouble": {host.name: host.trouble for host in keeper.hosts.values() if host.trouble},
        "refresh": refresh_numbers(keeper.refreshing),
        "discovery": discovery_numbers(keeper.refreshing.looking),
        "budget": budget_numbers(keeper, now_s),
    }


def budget_numbers(keeper: Keeper, now_s: float) -> Reply:
    """Where the fetch budget goes: fetches of today by kind, and how many URLs were not worth the price of late."""
    kinds: Counter[str] = Counter()
    for each in keeper.spending.today(now_s).sites.values():
        kinds.update({kind: int(spent.fetches) for kind, spent in each.items()})
    return {
        "per_s": keeper.rules.budget_per_s or None,
        "fetches": sum(spent.fetches for spent in keeper.spending.ever.values()),
        "today": {kind: kinds[kind] for kind in KINDS if kinds[kind]},
        "held_back": keeper.firsts.held.waiting(now_s).urls if keeper.rules.budget_per_s else 0,
    }


def discovery_numbers(looking: Looking) -> Reply:
    """How looking for new pages goes: sums fade, so that they speak of about the last day."""
    counts = looking.counts
    return {
        "sources": len(looking),
        "looks": counts.looks,
        "found": counts.found,
        "wasted": counts.wasted,
        "wasted_share": counts.wasted_share,
    }


def refresh_numbers(refreshing: Refreshing) -> Reply:
    """How refreshing stands: sums fade, so that they speak of about the last day; None where nothing is known yet.

    ``expected`` and ``found`` are changes by tenths of the chance that was said before, ``counted`` the refreshes.
    """
    forecast = refreshing.forecast
    return {
        "policy": refreshing.policy,
        "price": refreshing.price,
        "refreshes": forecast.refreshes,
        "wasted": forecast.wasted,
        "wasted_share": forecast.wasted_share,
        "expected_share": forecast.expected_share,
        "found_share": forecast.found_share,
        "counted": list(forecast.count),
        "expected": list(forecast.expected),
        "found": list(forecast.found),
    }
