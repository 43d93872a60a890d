"""What ``vedette explain`` does: one URL, everything that was decided of it, and by which rule.

``--json`` prints the plain values of ``live.explaining`` as they are; the words are made of nothing else.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vedette.cli.commands.page_reading import held_lines, reading_lines, spared_lines
from vedette.cli.commands.refresh_words import budget_lines, first_lines, look_lines, rank_lines, refresh_lines
from vedette.cli.data_folder import ask, folder_of, hint
from vedette.cli.output import ago, bytes_in_words, plain, roughly
from vedette.config import load
from vedette.engine.scheduling.schedule import Schedule
from vedette.model import Refusal
from vedette.refresh.policies.fixed import Fixed
from vedette.runtime.explain.url import explained
from vedette.web.commands.commands import Rule
from vedette.web.commands.rule_text import web_url

__all__ = ["explain_url"]

Told = dict[str, Any]


def explain_url(options: argparse.Namespace) -> int:
    """Look it up, and say."""
    folder = folder_of(options)
    told = explained(web_url(options.url), folder, _schedule(options), lambda call: ask(folder, call), time.time())
    print(json.dumps(told) if options.json else "\n".join(_lines(told, options)))
    return 0


def _schedule(options: argparse.Namespace) -> Schedule:
    path = options.config or (Path("vedette.toml") if Path("vedette.toml").exists() else None)
    return Schedule(recrawl=True, sources=Fixed(interval_s=load(path).crawl.source_interval_s))


def _lines(told: Told, options: argparse.Namespace) -> Iterator[str]:
    yield told["known_as"]
    if told["steps"]:
        yield f"Typed     {told['url']}; changed by: {', '.join(told['steps'])}"
    yield f"Site      {_site_words(told)}"
    yield f"robots    {_robots_words(told['robots'])}"
    for rule in told["hidden"]:
        yield f"Hidden    {plain(str(Rule(rule['kind'], rule['query'], rule['value'])), 400)}"
    if told["known"] is None:
        yield from _unknown(told, options)
        return
    if told["page"] is not None:
        yield f"Fetched   {_page_words(told['page'], told['now_s'])}"
        yield from reading_lines(told, options)
    yield from refresh_lines(told["refresh"])
    yield from look_lines(told.get("look"))
    if told["known"]["standing"] in {"waiting", "leased"}:
        yield from first_lines(told.get("first"))
    yield from budget_lines(told["budget"] if told["known"] is not None else None)
    yield _next_words(told, options)
    yield from _thrift_words(told, options)
    yield from rank_lines(told.get("ranking"))
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
