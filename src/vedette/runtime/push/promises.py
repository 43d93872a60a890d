"""Promised refresh intervals: each promised source is fetched before its interval ends, whatever its worth.

A promised source is requested as from the command line: it comes next when its host may be requested. So politeness and
robots.txt apply as always, and the price controller of refresh pays for promises first.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from vedette.adapters.crawl_store.data_folder import State
from vedette.config import format_duration
from vedette.discover.push.promises import (
    Promise,
    compute_due_s,
    find_feasible_s,
    find_out_of_scope,
    group_by_host,
    list_promises,
)
from vedette.discover.urls.scope import SiteIndex
from vedette.engine.coordinator.coordinator import Coordinator
from vedette.errors import SiteError
from vedette.fetch.politeness import find_next_open_s, parse_hours
from vedette.fetch.robots.state import RobotsState
from vedette.model import Origin, Site
from vedette.web.commands.commands import AddSite, Command, ImportSites, SetSite


def get_host_delay_s(host: str, sites: Sequence[Site], robots: Mapping[Origin, RobotsState], delay_s: float) -> float:
    """Return the delay between requests to a host: the operator's, or a longer one of its robots.txt."""
    own = [site.delay_s for site in SiteIndex(sites).find_by_host(host) if site.delay_s is not None]
    delays = [state.crawl_delay_s or 0.0 for origin, state in robots.items() if origin.host == host]
    return max(*(own or [delay_s]), *delays, 1e-3)


def get_longest_closed_s(sites: Iterable[Site]) -> float:
    """Return the longest time for which crawl hours close one of these sites, to check promises.

    >>> get_longest_closed_s([Site("https://example.org/", hours="22:00-06:00")]) / 3600
    16.0
    """
    return max((_get_longest_gap_s(site.hours) for site in sites), default=0.0)


def _get_longest_gap_s(hours: str) -> float:
    spans = parse_hours(hours)
    ends = [float(end) for begin, end in spans if begin != end]
    return max((find_next_open_s(spans, end_s) - end_s for end_s in ends), default=0.0)


@dataclass(slots=True)
class PromiseScheduler:
    """Schedule promised refreshes in the coordinator; ``tried_s`` is when each source was last requested."""

    state: State
    coordinator: Coordinator
    tried_s: dict[str, float] = field(default_factory=dict)

    def step(self, now_s: float) -> int:
        """Request the promised sources that are due and return their number."""
        promises = [each for site in self.coordinator.rules.sites if site.promise for each in list_promises(site)]
        if not promises:
            return 0
        fetched_s = self._get_fetch_times(promises)
        due = [each.url for each in promises if self._is_due(each, fetched_s.get(each.url, 0.0), now_s)]
        if due:
            self.coordinator.request_urls(list(dict.fromkeys(due)), now_s)
            self.coordinator.refresher.add_spent(others=len(due))
        self.tried_s = {each.url: self.tried_s.get(each.url, 0.0) for each in promises} | dict.fromkeys(due, now_s)
        return len(due)

    def _get_fetch_times(self, promises: list[Promise]) -> dict[str, float]:
        ids = self.state.urls.find_ids([each.url for each in promises]).tolist()
        rows = self.state.store.get_pages([id_ for id_ in ids if id_])
        return {each.url: rows[id_].fetched_s for each, id_ in zip(promises, ids, strict=True) if id_ in rows}

    def _is_due(self, promise: Promise, fetched_s: float, now_s: float) -> bool:
        last_s = max(fetched_s, self.tried_s.get(promise.url, 0.0))
        return now_s >= compute_due_s(promise, last_s, self._get_delay_s(promise))

    def _get_delay_s(self, promise: Promise) -> float:
        rules, (host,) = self.coordinator.rules, group_by_host([promise])
        return get_host_delay_s(host, rules.sites, self.coordinator.robots, rules.delay_s)


def check_promises(command: Command, state: State, delay_s: float) -> None:
    """Refuse a command whose refresh promises are infeasible under politeness, before anything is written.

    All promises of a host count together, whichever sites made them; crawl hours count as they will be after the
    command. The error says what is feasible.
    """
    before = {row.site.start: row.site for row in state.store.list_sites()}
    changed = _list_changed(command, before)
    if not any(site.promise for site in changed):
        return
    for site in changed:
        if place := find_out_of_scope(site):
            raise SiteError(f"promise: {place[:100]} does not belong to {site.start}: use a URL on this site")
    sites = list({**before, **{site.start: site for site in changed}}.values())
    robots = state.store.load_robots()
    promised = group_by_host([each for site in sites for each in list_promises(site)])
    for host in dict.fromkeys(host for site in changed for host in group_by_host(list(list_promises(site)))):
        pause = get_host_delay_s(host, sites, robots, delay_s)
        closed = get_longest_closed_s(SiteIndex(sites).find_by_host(host))
        shortest_s = find_feasible_s(promised[host], pause, closed)
        if shortest_s is not None:
            raise SiteError(_format_error(host, pause, closed, len(promised[host]), shortest_s))


def _format_error(host: str, pause: float, closed: float, count: int, shortest_s: float) -> str:
    why = f"a pause of {format_duration(round(pause, 3))} between requests"
    if closed:
        why += f", and is closed for {format_duration(closed)} at a time"
    each = "this source" if count == 1 else f"each of {count} sources"
    return f"promise: {host} has {why}, so the shortest interval for {each} is {format_duration(shortest_s)}"


def _list_changed(command: Command, before: dict[str, Site]) -> list[Site]:
    """List the sites as a command would leave them, to check their refresh promises."""
    if isinstance(command, AddSite):
        return [command.site]
    if isinstance(command, ImportSites):
        return [site for site, _ in command.sites]
    if isinstance(command, SetSite) and command.start in before:
        changes = {"promise", "delay_s", "hours"} & set(command.changes)
        return [_apply_changes(before[command.start], command)] if changes else []
    return []


def _apply_changes(site: Site, command: SetSite) -> Site:
    return replace(site, **command.changes)  # type: ignore[arg-type]  # fields of a site, by their names
