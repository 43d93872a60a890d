"""One URL, everything that was decided of it, and by which rule: plain values for command line and console.

The names of the values stay, since ``vedette explain --json`` prints them as they are.
"""

from collections.abc import Callable, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from vedette.adapters.crawl_store.reader import StateView, UrlRow, open_view
from vedette.adapters.crawl_store.search_store import RuleRow
from vedette.adapters.crawl_store.store import SiteRow
from vedette.discover.push.promises import promised_words
from vedette.discover.urls.normalize import explain as steps_of
from vedette.discover.urls.normalize import normalize
from vedette.discover.urls.scope import refusal, site_of
from vedette.engine.ports import PageRow
from vedette.engine.scheduling.schedule import Schedule
from vedette.engine.search.hidden import lies_in
from vedette.fetch.robots import state as robots_state
from vedette.model import Site, origin_of
from vedette.runtime.commands.rpc import Call
from vedette.runtime.explain.decisions import budget_facts, first_facts, look_facts, rank_facts, refresh_facts
from vedette.runtime.explain.page import held_facts, reading_facts, spared_facts

__all__ = ["Ask", "explained"]

Told = dict[str, Any]
Ask = Callable[[Call], Told | None]


def explained(url: str, folder: Path, schedule: Schedule, ask: Ask, now_s: float) -> Told:
    """All that is known of a URL. ``ask`` puts a question to the keeper; it gives None where none runs.

    ``now_s`` is the time where no keeper tells it.
    """
    with open_view(folder) as view:
        rows = view.book.sites()
        row = _row_of(url, rows)
        known_as = normalize(url, row.site) if row else url
        live = ask(Call("explain", {"url": known_as}))
        facts = _Facts(view, folder, schedule, live, live["now_s"] if live else now_s)
        return {
            "url": url,
            "known_as": known_as,
            "running": live is not None,
            "now_s": facts.now_s,
            "steps": [step.rule for step in steps_of(url, row.site)] if row else [],
            "site": _site(row) if row else None,
            "refusal": None if row else str(refusal(url, [each.site for each in rows])),
            **facts.of(known_as, row.site if row else None),
        }


class _Facts(NamedTuple):
    """A folder that is asked about a URL, at one moment, and what its keeper told of it."""

    view: StateView
    folder: Path
    schedule: Schedule
    live: Told | None
    now_s: float

    def of(self, url: str, site: Site | None) -> Told:
        """What is known of a URL under the spelling of its site."""
        view, live = self.view, self.live
        known = view.url_by_id(live["id"]) if live else view.url(url)
        page = view.book.page_of(known.id) if known else None
        place = _known(known, live, view) if known else None
        refresh = refresh_facts(page.id, site, view, self.now_s) if page else None
        source = live.get("source") if live else None
        look = look_facts(page.id, view, self.schedule, self.now_s, source) if page else None
        said = {"refresh": refresh, "look": look}
        return {
            "robots": _robots(url, site, view, self.now_s),
            "host": _host(url, live, view),
            "known": place,
            "page": _page(page, self._rule(url, page, refresh, look, site)) if page else None,
            "refresh": refresh,
            "look": look,
            "budget": budget_facts(url, page, site, said, view, self.now_s) if site else None,
            "first": self._first(url, known, page),
            **reading_facts(page, site, view, self.folder, self.now_s),
            "held": held_facts(known.id, place["why"], view) if known and place and place["why"] else None,
            "spared": spared_facts(url, site, view) if page is None else None,
            "ranking": rank_facts(page.id, url, self.folder, self.now_s) if page else None,
            "hidden": [rule._asdict() for rule in view.book.search_rules() if _hides(rule, url)],
        }

    def _first(self, url: str, known: UrlRow | None, page: PageRow | None) -> Told | None:
        """What a first fetch would bring; nothing where there was one, or it is not known."""
        if known is None or page is not None:
            return None
        return first_facts(known.id, url, known.depth, self.folder, self.live)

    def _rule(self, url: str, page: PageRow, refresh: Told | None, look: Told | None, site: Site | None) -> str:
        """What says when the page is due: a promise, a look for new links, a judgement of its changes, or a pace."""
        said = (promised_words(site, url) if site else "", *(each["reason"] for each in (look, refresh) if each))
        return next(filter(None, said), "") or self.schedule.reason(url, page)


def _hides(rule: RuleRow, url: str) -> bool:
    """Whether a rule of the operator keeps a URL from being found, by all queries or by one."""
    if rule.kind == "block":
        return lies_in(origin_of(url).host, frozenset({rule.value}))
    if rule.kind == "conceal" and rule.value.endswith("*"):
        return url.startswith(rule.value[:-1])
    return rule.kind in {"conceal", "hide"} and rule.value == url


def _row_of(url: str, rows: Sequence[SiteRow]) -> SiteRow | None:
    """The row of the site that takes the URL; one that is not paused before one that is."""
    for paused in (False, True):
        site = site_of(url, [row.site for row in rows if row.paused is paused])
        if site is not None:
            return next(row for row in rows if row.site.start == site.start)
    return None


def _site(row: SiteRow) -> Told:
    site = row.site
    return {
        "start": site.start,
        "scope": site.scope,
        "paused": row.paused,
        "change": site.change,
        "overrule": site.overrule,
    }


def _robots(url: str, site: Site | None, view: StateView, now_s: float) -> Told:
    origin = origin_of(url)
    state = view.book.robots_of(origin) or robots_state.UNKNOWN
    verdict = robots_state.verdict(state, url, now_s)
    # What ran out decides nothing, but it is the best guess at what the next copy will say.
    line = state.rules.verdict(url).line
    return {
        "url": origin.robots_url,
        "ignored": site is not None and site.ignore_robots,
        "verdict": type(verdict).__name__.lower(),
        "line": line,
        "state": robots_state.explain(state, now_s),
        "crawl_delay_s": state.crawl_delay_s,
    }


def _host(url: str, live: Told | None, view: StateView) -> Told:
    name = origin_of(url).host
    if live:
        return {"name": name, "wait": live["host_wait"], "ready_s": live["host_ready_s"]}
    row = view.host(name)
    return {"name": name, "wait": row.trouble if row else "", "ready_s": row.ready_s if row else 0.0}


def _known(row: UrlRow, live: Told | None, view: StateView) -> Told:
    note = view.book.note_of(row.id)
    place = live or _standing(row, view)
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
    }


def _standing(row: UrlRow, view: StateView) -> Told:
    fate = view.fate(row.id)
    if fate is not None:
        return {"standing": fate.name.lower()}
    return {"standing": "leased"} if view.is_leased(row.id) else {"standing": "waiting", "front": row.front}


def _page(page: PageRow, rule: str) -> Told:
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
