"""Collect everything that explains a URL: state, robots.txt, host, and decisions with their rules.

They are plain values for console and command line; ``web.console.explain.url_text`` puts them into words. Their names
are stable, since ``vedette explain --json`` prints them.
"""

from collections.abc import Callable, Sequence
from math import inf, isfinite
from pathlib import Path
from typing import Any, NamedTuple

from vedette.adapters.crawl_store.reader import StateReader, UrlRow, open_state_reader
from vedette.adapters.crawl_store.search_store import RuleRow
from vedette.adapters.crawl_store.store import SiteRow
from vedette.adapters.net.ipc import ChannelClosed, Request
from vedette.discover.push.promises import describe_promise
from vedette.discover.urls.normalize import explain_normalize, normalize
from vedette.discover.urls.scope import find_refusal, find_site
from vedette.engine.ports import PageRow
from vedette.engine.scheduling.idle_refresh import explain_idle_wait
from vedette.engine.scheduling.schedule import Schedule, is_source
from vedette.engine.search.hidden import is_in_domains
from vedette.fetch.robots import state as robots_state
from vedette.model import Site, origin_of
from vedette.runtime.explain.content import collect_content, collect_duplicate, collect_rendering, collect_trap_hold
from vedette.runtime.explain.decisions import (
    collect_budget,
    collect_first_fetch,
    collect_polling,
    collect_ranking,
    collect_refresh,
)

JsonObject = dict[str, Any]
AskCoordinator = Callable[[Request], JsonObject | None]

_VERDICTS = {
    robots_state.UrlAllowed: "allowed",
    robots_state.UrlDisallowed: "disallowed",
    robots_state.RobotsNeeded: "ask",
    robots_state.RobotsWait: "wait",
}


def collect_explanation(url: str, folder: Path, schedule: Schedule, ask: AskCoordinator, now_s: float) -> JsonObject:
    """Collect the whole explanation of a URL. ``ask`` queries the coordinator; it returns None if none runs.

    ``now_s`` is the time to use without a coordinator. One that raises ``ChannelClosed`` is busy: the rest is
    explained without it.
    """
    with open_state_reader(folder) as reader:
        rows = reader.store.list_sites()
        row = _find_site(url, rows)
        known_as = normalize(url, row.site) if row else url
        live, is_busy = _ask_live(ask, Request("explain", {"url": known_as}))
        facts = _UrlCollector(reader, folder, schedule, live, live["now_s"] if live else now_s)
        return {
            "url": url,
            "known_as": known_as,
            "running": live is not None,
            "busy": is_busy,
            "now_s": facts.now_s,
            "steps": [step.rule for step in explain_normalize(url, row.site)] if row else [],
            "site": _describe_site(row) if row else None,
            "refusal": None if row else str(find_refusal(url, [each.site for each in rows])),
            **facts.collect(known_as, row.site if row else None),
        }


def _ask_live(ask: AskCoordinator, request: Request) -> tuple[JsonObject | None, bool]:
    """Query the coordinator for its live state of a URL; return the answer, and whether it was too busy for one."""
    try:
        return ask(request), False
    except ChannelClosed:
        return None, True


class _UrlCollector(NamedTuple):
    """Collector of a URL's explanation from a data folder at one moment, with its coordinator's live answer."""

    reader: StateReader
    folder: Path
    schedule: Schedule
    live: JsonObject | None
    now_s: float

    def collect(self, url: str, site: Site | None) -> JsonObject:
        """Collect the explanation of a normalized URL."""
        reader, live = self.reader, self.live
        row = reader.get_url(live["id"]) if live else reader.find_url(url)
        page = reader.store.get_page(row.id) if row else None
        place = _describe_url(row, live, reader) if row else None
        refresh = collect_refresh(page.id, site, reader, self.now_s) if page else None
        source = live.get("source") if live else None
        look = collect_polling(page.id, reader, self.now_s, source) if page else None
        decisions = {"refresh": refresh, "look": look}
        return {
            "robots": _describe_robots(url, site, reader, self.now_s),
            "host": _describe_host(url, live, reader),
            "known": place,
            "page": _describe_page(page, self._find_due_rule(url, page, refresh, look, site)) if page else None,
            "refresh": refresh,
            "look": look,
            "budget": collect_budget(url, page, site, decisions, reader, self.now_s) if site else None,
            "first": collect_first_fetch(row.id, url, row.depth, self.folder, live) if row and not page else None,
            "rendering": collect_rendering(url, page, site, reader, self.folder) if site else None,
            **collect_content(page, site, reader, self.folder, self.now_s),
            "held": collect_trap_hold(row.id, place["why"], reader) if row and place and place["why"] else None,
            "spared": collect_duplicate(url, site, reader) if page is None else None,
            "ranking": collect_ranking(page.id, url, self.folder, self.now_s) if page else None,
            "hidden": [rule._asdict() for rule in reader.store.list_search_rules() if _hides(rule, url)],
        }

    def _find_due_rule(
        self, url: str, page: PageRow, refresh: JsonObject | None, look: JsonObject | None, site: Site | None
    ) -> str:
        """Return the rule that sets when a page is due: promise, idle time, polling, refresh policy, fixed interval.

        Lists are fetched again only by polling; any other source when the refresh policy says, if not before.
        """
        promise, idle = describe_promise(site, url) if site else "", explain_idle_wait(self.reader.store, url, page)
        rules = (look, refresh) if is_source(url, page.kind) else (refresh, look)
        reasons = (promise, idle, *(each["reason"] for each in rules if each))
        return next(filter(None, reasons), "") or self.schedule.reason(url, page)


def _hides(rule: RuleRow, url: str) -> bool:
    """Check whether an operator's rule hides a URL from search results, for all queries or for one."""
    if rule.kind == "block":
        return is_in_domains(origin_of(url).host, frozenset({rule.value}))
    if rule.kind == "conceal" and rule.value.endswith("*"):
        return url.startswith(rule.value[:-1])
    return rule.kind in {"conceal", "hide"} and rule.value == url


def _find_site(url: str, rows: Sequence[SiteRow]) -> SiteRow | None:
    """Find the stored site that covers the explained URL, active sites before paused ones."""
    for paused in (False, True):
        site = find_site(url, [row.site for row in rows if row.paused is paused])
        if site is not None:
            return next(row for row in rows if row.site.start == site.start)
    return None


def _describe_site(row: SiteRow) -> JsonObject:
    site = row.site
    return {
        "start": site.start,
        "scope": site.scope,
        "paused": row.paused,
        "change": site.change,
        "overrule": site.overrule,
    }


def _describe_robots(url: str, site: Site | None, reader: StateReader, now_s: float) -> JsonObject:
    origin = origin_of(url)
    state = reader.store.get_robots(origin) or robots_state.UNKNOWN
    verdict = robots_state.check_url(state, url, now_s)
    # An expired file decides nothing, but it is the best guess at the next copy.
    line = state.rules.check(url).line
    return {
        "url": origin.robots_url,
        "ignored": site is not None and site.ignore_robots,
        "verdict": _VERDICTS[type(verdict)],
        "line": line,
        "state": robots_state.describe_state(state, now_s),
        "crawl_delay_s": state.crawl_delay_s,
    }


def _describe_host(url: str, live: JsonObject | None, reader: StateReader) -> JsonObject:
    name = origin_of(url).host
    observed = reader.observers.find_host(name)
    who = {"observer": observed.observer if observed else "", "observer_why": observed.why if observed else ""}
    if live:
        return {"name": name, "wait": live["host_wait"], "ready_s": live["host_ready_s"], **who}
    row = reader.find_host(name)
    return {"name": name, "wait": row.trouble if row else "", "ready_s": row.ready_s if row else 0.0, **who}


def _describe_url(row: UrlRow, live: JsonObject | None, reader: StateReader) -> JsonObject:
    note = reader.store.get_note(row.id)
    place = live or _describe_state(row, reader)
    ended = place["standing"] in {"refused", "failed"}
    return {
        "found_s": row.found_s,
        "depth": row.depth,
        "standing": place["standing"],
        "front": place.get("front"),
        "ahead": place.get("ahead"),
        "why": note[0] if note and ended else None,
        "ended_s": note[1] if note and ended else None,
        "copy_lost": note[0] if note and not ended else None,
        "retry_s": _find_retry_s(row.id, reader) if place["standing"] == "failed" else None,
    }


def _find_retry_s(id_: int, reader: StateReader) -> float | None:
    """Return when a failed URL is retried; None if it was given up."""
    failed, page = reader.store.get_failure(id_), reader.store.get_page(id_)
    times = (failed.due_s if failed else inf, page.due_s if page else inf)
    return min(times) if isfinite(min(times)) else None


def _describe_state(row: UrlRow, reader: StateReader) -> JsonObject:
    fate = reader.find_fate(row.id)
    if fate is not None:
        return {"standing": fate.name.lower()}
    return {"standing": "leased"} if reader.is_leased(row.id) else {"standing": "waiting", "front": row.front}


def _describe_page(page: PageRow, rule: str) -> JsonObject:
    place = page.place
    return {
        "status": page.status,
        "kind": page.kind,
        "title": page.title,
        "fetched_s": page.fetched_s,
        "changed_s": page.changed_s,
        "bytes": page.body_bytes,
        "location": page.location,
        "due_s": page.due_s if isfinite(page.due_s) else None,
        "rule": rule,
        "archived": {"file": place.file, "offset": place.offset, "length": place.length} if place else None,
    }
