"""RPC between command line or console and a running coordinator: requests and responses as plain values.

``RequestHandler.handle`` dispatches by verb; the verb ``order`` goes on to ``executor.execute_command``. A response
leaves after the commit that follows it, so "done" can be relied on. Results of commands are committed with them, by the
command's id: a client without a response in time can read the result there, or send the command again. An invalid
request gets an ``error`` in words; it never ends the coordinator.
"""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import signature
from math import inf

from msgspec import ValidationError

from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.net.ipc import Request
from vedette.adapters.url_store.store import QueuePosition
from vedette.discover.urls.scope import find_refusal, find_site
from vedette.engine.coordinator.coordinator import Coordinator
from vedette.engine.coordinator.status import count_waits, explain_host, find_next_try_s, list_hosts
from vedette.engine.messages import FetchReport
from vedette.engine.ports import PageRow, UrlState
from vedette.engine.scheduling.polling import SourcePoller
from vedette.engine.scheduling.refresh import RefreshScheduler
from vedette.engine.scheduling.spending import FETCH_KINDS
from vedette.engine.search.hidden import is_in_domains
from vedette.errors import SiteError, VedetteError
from vedette.fetch.robots.state import UNKNOWN, RobotsStatus, describe_state
from vedette.model import Refusal, is_robots_url, origin_of
from vedette.runtime.commands.executor import changes_sites, execute_command
from vedette.runtime.commands.setting_commands import load_rules
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.runtime.push.coordinator import PushHandler
from vedette.web.commands.commands import AddSite, FetchNow, RetryFailed, command_from_json

Response = dict[str, object]

RATE_WINDOW_S = 60.0
RATE_STEP_S = 1.0
MAX_QUEUE_HOSTS = 1000


@dataclass(slots=True)
class _RateMeter:
    """Meter of the crawl's pages per second of wall time over the last minute, for the RPC status response."""

    points: deque[tuple[float, int]] = field(default_factory=deque)

    def measure(self, wall_s: float, pages: int) -> float | None:
        if not self.points or wall_s - self.points[-1][0] >= RATE_STEP_S:
            self.points.append((wall_s, pages))
        while len(self.points) > 2 and wall_s - self.points[1][0] >= RATE_WINDOW_S:
            self.points.popleft()
        since_s, before = self.points[0]
        return (pages - before) / (wall_s - since_s) if wall_s - since_s >= RATE_STEP_S else None


class RequestHandler:
    """Handler of RPC requests in the running coordinator."""

    def __init__(self, settings: RuntimeSettings, state: State, coordinator: Coordinator, push: PushHandler) -> None:
        self._settings = settings
        self._state = state
        self._coordinator = coordinator
        self._started_s = settings.clock.wall_now()
        self._rate = _RateMeter()
        self._robots_bodies: dict[str, bytes | None] = {}
        self.push = push
        self.stop_requested = False
        self.sites_changed = False
        self.recalled_hosts: tuple[str, ...] = ()
        self.after_command: Callable[[float], object] = lambda _now_s: None
        self.after_report: Callable[[int, FetchReport], object] = lambda _worker, _report: None
        self.ending: str | None = None
        self.trouble = ""
        self._handlers: dict[str, Callable[..., Response]] = {
            "status": self._get_status,
            "stop": self._stop,
            "explain": self._explain_url,
            "fetch": self._fetch_now,
            "fetched": self._list_fetched,
            "order": self._execute,
            "push": self.push.handle,
        }

    def handle(self, request: Request, now_s: float) -> Response:
        """Handle an RPC request: dispatch it by its verb, and return the response or an error in words."""
        if request.verb not in self._handlers:
            return {
                "error": f'the running vedette does not know "{request.verb}": it is older than this one; restart it'
            }
        store = self._state.store
        if request.id and (stored := store.find_answer(request.id)) is not None:
            return stored
        handle = self._handlers[request.verb]
        try:
            signature(handle).bind(now_s, **request.arguments)
        except TypeError as error:
            return {"error": f"the running vedette does not understand the request ({error}): restart it"}
        try:
            answer = handle(now_s, **request.arguments)
        except VedetteError as error:
            answer = {"error": str(error)}
        except ValidationError as error:
            answer = {"error": f"the running vedette cannot read the request ({error}): restart it"}
        if request.id:
            store.save_answer(request.id, answer, self._settings.clock.wall_now())
        return answer

    def add_verb(self, verb: str, handle: Callable[..., Response]) -> None:
        """Add a verb that only some coordinators have."""
        self._handlers[verb] = handle

    def reload_rules(self, now_s: float) -> None:
        """Reload sites and settings from the state, so that coordinator and fetchers apply them."""
        rules = load_rules(self._settings, self._state)
        self.recalled_hosts = self._coordinator.apply_rules(rules, self._state.urls.host_names_with_work(), now_s)
        self.sites_changed = True

    def _stop(self, _now_s: float) -> Response:
        self.stop_requested = True
        self.ending = self.ending or "stopped"
        return {}

    def _get_status(self, now_s: float) -> Response:
        wall_s = self._settings.clock.wall_now()
        queue, queue_hosts = list_hosts(self._coordinator.host_table, now_s, MAX_QUEUE_HOSTS)
        return {
            "ending": self.ending,
            "now_s": now_s,
            "trouble": self.trouble,
            "running_s": wall_s - self._started_s,
            "pages_per_s": self._rate.measure(wall_s, self._coordinator.tally.pages),
            **collect_stats(self._coordinator, now_s),
            "queue": [row._asdict() for row in queue],
            "queue_hosts": queue_hosts,
        }

    def _explain_url(self, now_s: float, url: str) -> Response:
        """Return a normalized URL's live state in the coordinator, and when its host may be fetched."""
        id_ = int(self._state.urls.find_ids([url])[0])
        wait, ready_s = explain_host(self._coordinator.host_table, origin_of(url).host, now_s)
        place = {**self._get_url_state(id_), "source": self._get_source(id_, now_s)} if id_ else {}
        worth, price = (
            self._coordinator.selector.estimate_first_worth(id_, url)
            if place.get("standing") == "waiting"
            else (None, None)
        )
        first: Response = {"first_worth": worth, "price": price}
        return {"now_s": now_s, "id": id_, "host_wait": wait, "host_ready_s": ready_s, **place, **first}

    def _get_source(self, id_: int, now_s: float) -> Response | None:
        """Return the coordinator's live estimates of a discovery source; None if it is none.

        They are on disk minutes later.
        """
        poller = self._coordinator.refresher.poller
        summary = poller.summarize_source(id_, now_s)
        return {"told": summary._asdict(), "reason": poller.explain([id_], now_s)[id_]} if summary else None

    def _get_url_state(self, id_: int) -> Response:
        standing = self._state.urls.find_state(id_)
        if isinstance(standing, QueuePosition):
            return {"standing": "waiting", "front": standing.front, "ahead": standing.ahead}
        return {"standing": standing.name.lower() if isinstance(standing, UrlState) else "leased"}

    def _fetch_now(self, now_s: float, urls: list[str]) -> Response:
        """Request URLs to be fetched next by the coordinator; all of them or none."""
        files = [url for url in urls if is_robots_url(url)]
        spelt = [self._normalize(url) for url in urls if url not in files]
        results = {url: self._request_robots(url) for url in files}
        before = [self._state.store.get_page(int(id_)) is not None for id_ in self._state.urls.find_ids(spelt)]
        ids = self._coordinator.request_urls(spelt, now_s)
        pages = [url for url in urls if url not in files]
        rows = zip(pages, spelt, ids, before, strict=True)
        results |= {url: {"url": url, "known_as": own, "id": id_, "had": had} for url, own, id_, had in rows}
        return {"now_s": now_s, "urls": [results[url] for url in urls]}

    def _request_robots(self, url: str) -> Response:
        """Request a robots.txt to be fetched again; its URL is its id, since it is no page."""
        origin = origin_of(url)
        if not self._coordinator.host_table.sites.find_by_host(origin.host):
            raise SiteError(f'{url} does not belong to any active site; for a list, run "vedette sites list"')
        copy = self._coordinator.robots.get(origin, UNKNOWN).last_good
        self._robots_bodies[url] = copy.body if copy else None
        self._coordinator.request_robots(origin)
        return {"url": url, "known_as": url, "id": url, "had": copy is not None}

    def _normalize(self, url: str) -> str:
        """Normalize a requested URL by its site; raise if no active site covers it."""
        rules = self._coordinator.rules
        if is_in_domains(origin_of(url).host, rules.blocked):
            raise SiteError(f"{url} is {Refusal.BLOCKED}: remove the block first")
        if (own := self._coordinator.normalize_url(url)) is not None:
            if not self._coordinator.shard.owns(own):
                raise SiteError(f"{url} belongs to another shard of the cluster: use the data folder of that shard")
            return own
        paused = find_site(url, rules.paused)
        if paused is not None:
            raise SiteError(
                f'{url} belongs to {paused.start}, which is paused: run "vedette sites resume {paused.start}"'
            )
        why = find_refusal(url, rules.sites)
        raise SiteError(f'{url} is {why}; add a site with "vedette sites add {origin_of(url)}/"')

    def _list_fetched(self, now_s: float, ids: list[int | str]) -> Response:
        rows = [
            self._get_robots_result(id_, now_s) if isinstance(id_, str) else self._get_fetch_result(id_, now_s)
            for id_ in ids
        ]
        return {"now_s": now_s, "urls": rows}

    def _get_robots_result(self, url: str, now_s: float) -> Response:
        """Return the progress of a robots.txt that an RPC client requested."""
        origin = origin_of(url)
        is_pending = origin in self._coordinator.host_table.get(origin.host).robots_pending
        state, words = self._coordinator.robots.get(origin, UNKNOWN), ""
        reply: Response = {"id": url, "wished": is_pending, "standing": "waiting"}
        if is_pending or url not in self._robots_bodies:
            return {**reply, "why": explain_host(self._coordinator.host_table, origin.host, now_s)[0]}
        words = describe_state(state, now_s)
        if state.status is RobotsStatus.WAITING:
            return {**reply, "standing": "failed", "why": words}
        body = state.last_good.body if state.last_good else b""
        about = {"changed": body != self._robots_bodies[url], "location": "", "title": words, "body_bytes": len(body)}
        return {**reply, "standing": "fetched", "status": 200 if state.last_good else 404, **about}

    def _get_fetch_result(self, id_: int, now_s: float) -> Response:
        """Return the progress of a URL that an RPC client requested and waits for."""
        host = self._coordinator.get_request_host(id_)
        reply: Response = {"id": id_, "wished": host is not None, **self._get_url_state(id_)}
        page, note = self._state.store.get_page(id_), self._state.store.get_note(id_)
        if reply["standing"] == "fetched" and page is not None:
            return {**reply, **_describe_page(page)}
        if reply["standing"] in {"refused", "failed"} and note is not None:
            return {**reply, "why": note[0]}
        return {**reply, "why": explain_host(self._coordinator.host_table, host, now_s)[0] if host else ""}

    def _execute(self, now_s: float, order: dict[str, object], who: str) -> Response:
        """Execute an operator's command in the coordinator, and reload the rules if it changes them."""
        command = command_from_json(order)
        is_of_sites = changes_sites(command, self._state)
        if isinstance(command, FetchNow):
            self._fetch_now(now_s, list(command.urls))
        done = execute_command(command, self._state, now_s, who, self._coordinator.rules.delay_s)
        if is_of_sites:
            self.reload_rules(now_s)
        self.after_command(now_s)
        if isinstance(command, RetryFailed):
            self._coordinator.host_table.retry(self._state.urls.host_names_with_work(), command.target)
        if isinstance(command, AddSite) and command.asked_s is not None:
            hosts = self._coordinator.host_table
            hosts.rest(hosts.get(origin_of(command.site.start).host), command.asked_s)
        return {"done": done.words, "action": done.action}


def _describe_page(page: PageRow) -> Response:
    return {
        "status": page.status,
        "title": page.title,
        "changed": page.changed_s == page.fetched_s,
        "location": page.location,
        "body_bytes": page.body_bytes,
    }


def collect_stats(coordinator: Coordinator, now_s: float) -> Response:
    """Collect the coordinator's crawl statistics for the RPC status response, as plain numbers."""
    tally = coordinator.tally
    counts = coordinator.urls.get_counts()
    retries = coordinator.store.count_retries()
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
        "hosts": len(coordinator.hosts),
        "hosts_waiting": count_waits(coordinator.host_table, now_s),
        "statuses": {str(status): tally.statuses[status] for status in sorted(tally.statuses)},
        "failures": {why: tally.failures[why] for why in sorted(tally.failures)},
        "refusals": {str(why): tally.refusals[why] for why in sorted(tally.refusals)},
        "hosts_in_trouble": {host.name: host.trouble for host in coordinator.hosts.values() if host.trouble},
        "next_try_s": _or_none(find_next_try_s(coordinator.host_table)),
        "retries": {"urls": retries.urls, "next_s": _or_none(retries.next_s)},
        "refresh": collect_refresh_stats(coordinator.refresher),
        "discovery": collect_discovery_stats(coordinator.refresher.poller),
        "budget": collect_budget_stats(coordinator, now_s),
    }


def _or_none(at_s: float) -> float | None:
    return at_s if at_s < inf else None


def collect_budget_stats(coordinator: Coordinator, now_s: float) -> Response:
    """Collect fetch budget statistics for the RPC status: today's fetches by kind, and URLs below the price."""
    kinds, budget_per_s = Counter[str](), coordinator.rules.budget_per_s
    for each in coordinator.spending.get_today(now_s).sites.values():
        kinds.update({kind: int(spent.fetches) for kind, spent in each.items()})
    return {
        "per_s": budget_per_s or None,
        "fetches": sum(spent.fetches for spent in coordinator.spending.all_time.values()),
        "today": {kind: kinds[kind] for kind in FETCH_KINDS if kinds[kind]},
        "held_back": coordinator.first_fetches.below_price.summarize(now_s).urls if budget_per_s else 0,
    }


def collect_discovery_stats(poller: SourcePoller) -> Response:
    """Collect discovery polling statistics for the RPC status; decaying sums of about the last day."""
    counts = poller.counts
    return {
        "sources": len(poller),
        "looks": counts.polls,
        "found": counts.found,
        "wasted": counts.wasted,
        "wasted_share": counts.wasted_share,
    }


def collect_refresh_stats(refresher: RefreshScheduler) -> Response:
    """Collect refresh statistics for the RPC status; decaying sums of about the last day, None if unknown.

    ``expected`` and ``found`` are changes by tenths of the forecast probability, ``counted`` the refreshes.
    """
    forecast = refresher.forecast
    return {
        "policy": refresher.policy,
        "price": refresher.price,
        "refreshes": forecast.refreshes,
        "wasted": forecast.wasted,
        "wasted_share": forecast.wasted_share,
        "expected_share": forecast.expected_share,
        "found_share": forecast.found_share,
        "counted": list(forecast.count),
        "expected": list(forecast.expected),
        "found": list(forecast.found),
        "current_share": refresher.freshness.share,
        "judged": refresher.freshness.judged,
        "viewed_share": refresher.freshness.viewed,
        "change_loss": refresher.loss.share,
        "quality": refresher.quality,
    }
