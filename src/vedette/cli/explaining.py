"""What ``vedette explain`` does: one URL, everything that was decided of it, and by which rule.

Facts are gathered as plain values, which ``--json`` prints as they are; the words are made of nothing else.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from vedette.cli.asking import ask, folder_of, hint, web_url
from vedette.cli.page_reading import (
    held_facts,
    held_lines,
    reading_facts,
    reading_lines,
    spared_facts,
    spared_lines,
)
from vedette.cli.words import ago, bytes_in_words, plain, roughly
from vedette.config import load
from vedette.discover.normalize import explain as steps_of
from vedette.discover.normalize import normalize
from vedette.discover.scope import refusal, site_of
from vedette.edges.book import SiteRow
from vedette.edges.state_view import StateView, UrlRow, open_view
from vedette.facts import Refusal, Site, origin_of
from vedette.fetch import robots_state
from vedette.live.commands import Call
from vedette.refresh.policies.fixed import Fixed
from vedette.ring.ports import PageRow
from vedette.ring.schedule import Schedule

__all__ = ["explain_url"]

Told = dict[str, Any]


def explain_url(options: argparse.Namespace) -> int:
    """Look it up, and say."""
    folder = folder_of(options)
    url = web_url(options.url)
    with open_view(folder) as view:
        told = _facts(url, view, folder, _schedule(options))
    print(json.dumps(told) if options.json else "\n".join(_lines(told, options)))
    return 0


def _schedule(options: argparse.Namespace) -> Schedule:
    path = options.config or (Path("vedette.toml") if Path("vedette.toml").exists() else None)
    return Schedule(recrawl=True, sources=Fixed(interval_s=load(path).crawl.source_interval_s))


def _facts(url: str, view: StateView, folder: Path, schedule: Schedule) -> Told:
    rows = view.book.sites()
    row = _row_of(url, rows)
    known_as = normalize(url, row.site) if row else url
    live = ask(folder, Call("explain", {"url": known_as}))
    now_s = live["now_s"] if live else time.time()
    known = view.url_by_id(live["id"]) if live else view.url(known_as)
    page = view.book.page_of(known.id) if known else None
    site = row.site if row else None
    place = _known(known, live, view) if known else None
    return {
        "url": url,
        "known_as": known_as,
        "running": live is not None,
        "now_s": now_s,
        "steps": [step.rule for step in steps_of(url, row.site)] if row else [],
        "site": _site(row) if row else None,
        "refusal": None if row else str(refusal(url, [each.site for each in rows])),
        "robots": _robots(known_as, site, view, now_s),
        "host": _host(known_as, live, view),
        "known": place,
        "page": _page(known_as, page, schedule),
        **reading_facts(page, site, view, folder, now_s),
        "held": held_facts(known.id, place["why"], view) if known and place and place["why"] else None,
        "spared": spared_facts(known_as, site, view) if page is None else None,
    }


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


def _page(url: str, page: PageRow | None, schedule: Schedule) -> Told | None:
    if page is None:
        return None
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
        "rule": schedule.reason(url, page),
        "archived": {"file": place.file, "offset": place.offset, "length": place.length} if place else None,
    }


def _lines(told: Told, options: argparse.Namespace) -> Iterator[str]:
    yield told["known_as"]
    if told["steps"]:
        yield f"Typed     {told['url']}; changed by: {', '.join(told['steps'])}"
    yield f"Site      {_site_words(told)}"
    yield f"robots    {_robots_words(told['robots'])}"
    if told["known"] is None:
        yield from _unknown(told, options)
        return
    if told["page"] is not None:
        yield f"Fetched   {_page_words(told['page'], told['now_s'])}"
        yield from reading_lines(told, options)
    yield _next_words(told, options)
    yield from _thrift_words(told, options)
    if told["page"] is not None and told["page"]["archived"]:
        place = told["page"]["archived"]
        yield f"Archived  warc/{place['file']}, {bytes_in_words(place['length'])} from byte {place['offset']}"
    elif told["page"] is not None and told["known"]["copy_lost"]:
        yield f"Archived  no: {told['known']['copy_lost']}"


def _thrift_words(told: Told, options: argparse.Namespace) -> Iterator[str]:
    """Of what was refused because too little is expected of it: until when, and how to have it all the same."""
    if told["site"] is None:
        return
    if told["held"] is not None:
        yield from held_lines(told, options)
    elif (told["known"]["why"] or "").startswith(Refusal.COPY):
        yield from spared_lines(told, options)


def _unknown(told: Told, options: argparse.Namespace) -> Iterator[str]:
    if told["spared"] is not None:
        yield f"Known     no, and links to it are read as links to another page: {Refusal.COPY}"
        yield from spared_lines(told, options)
        return
    yield "Known     no: no page that was fetched links to it, and no sitemap or feed names it"
    if told["robots"]["verdict"] == "disallowed" and not told["robots"]["ignored"]:
        yield "Next      never, as long as its robots.txt disallows it"
    elif told["site"] is not None:
        yield f"Next      never by itself; {hint('fetch ' + told['known_as'], options)} fetches it now"


def _site_words(told: Told) -> str:
    site = told["site"]
    if site is None:
        return f'none: {told["refusal"]}; "vedette sites add SITE" adds one'
    paused = f"; paused, so nothing of it is fetched: vedette sites resume {site['start']}" if site["paused"] else ""
    return f"{site['start']} (scope {site['scope']}){paused}"


def _robots_words(robots: Told) -> str:
    if robots["ignored"]:
        return f"ignored, as you confirmed the site as your own; {robots['url']}"
    by = f' by "{plain(robots["line"])}"' if robots["line"] else ", as no rule speaks of it"
    said = {"allowed": f"allowed{by}. ", "disallowed": f"disallowed{by}. "}.get(robots["verdict"], "")
    delay_s = robots["crawl_delay_s"]
    return f"{said}{robots['state']}{f' It asks for {delay_s:g} s between requests.' if delay_s else ''}"


def _page_words(page: Told, now_s: float) -> str:
    title = f'"{plain(page["title"])}", ' if page["title"] else ""
    leads = f", leads to {plain(page['location'])}" if page["location"] else ""
    if page["changed_s"] == page["fetched_s"]:
        change = "new or changed then"
    else:
        change = f"unchanged since {ago(page['changed_s'], now_s)}"
    size = bytes_in_words(page["bytes"])
    return f"{ago(page['fetched_s'], now_s)}: status {page['status']}, {title}{size}, {change}{leads}"


def _next_words(told: Told, options: argparse.Namespace) -> str:
    known, now_s = told["known"], told["now_s"]
    if known["standing"] == "waiting":
        return f"Waiting   {_waiting_words(told, hint('up', options))}"
    if known["standing"] == "leased":
        return f"Waiting   {_leased_words(told, hint('up', options))}"
    if known["standing"] in {"refused", "failed"}:
        when = f", {ago(known['ended_s'], now_s)}" if known["ended_s"] is not None else ""
        return (
            f"{known['standing'].capitalize():<9} {plain(known['why'] or 'for a reason that was not kept', 400)}{when}"
        )
    due_s = told["page"]["due_s"] if told["page"] else None
    if due_s is None:
        return f"Next      not due; {hint('fetch ' + told['known_as'], options)} fetches it now"
    when = ago(due_s, now_s) if due_s > now_s else "now, as soon as its host may be asked"
    return f"Next      {when} ({told['page']['rule']})"


def _waiting_words(told: Told, go_on: str) -> str:
    known, host = told["known"], told["host"]
    queue = "" if known["front"] is None else f"in front queue {known['front']} of {host['name']}"
    ahead = "" if known["ahead"] is None else f", {known['ahead']} before it there"
    since = "" if told["page"] else f", known for {roughly(told['now_s'] - known['found_s'])}"
    asked = f"; nothing runs now, {go_on} goes on" if not told["running"] else f"; the host: {_host_words(told)}"
    return f"{queue or 'far back in the queue of ' + host['name']}{ahead}{since}{asked}"


def _leased_words(told: Told, go_on: str) -> str:
    if not told["running"]:
        return f"was with a worker when the crawl ended; {go_on} fetches it"
    return f"with a worker, to be fetched as soon as the host may be asked; the host: {_host_words(told)}"


def _host_words(told: Told) -> str:
    host, now_s = told["host"], told["now_s"]
    soon = f", may be asked {ago(host['ready_s'], now_s)}" if host["ready_s"] > now_s + 0.5 else ""
    return f"{host['wait'] or 'ready'}{soon}"
