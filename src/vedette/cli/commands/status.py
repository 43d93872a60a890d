"""``vedette status``: print the status of a crawl from what is on disk; it never waits for the coordinator."""

import argparse
import json
import sys
import textwrap
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

from vedette.adapters.crawl_store.reader import StateReader, open_state_reader
from vedette.adapters.crawl_store.request_budget import ExceededLimit, read_exceeded
from vedette.adapters.crawl_store.status_file import FailingProcess, LiveStatus, read_failing, read_live_status
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.page_table import PageTable
from vedette.cli.data_folder import data_folder, format_command, load_config
from vedette.cli.options import add_data_options, add_output_options
from vedette.cli.output import (
    format_bytes,
    format_count,
    format_counts,
    format_number,
    format_relative_time,
    format_rough_duration,
    sanitize,
)
from vedette.model import Failure
from vedette.runtime.search.meaning import describe_meaning
from vedette.runtime.search.reputation_store import describe_ranking, load_ranking_status
from vedette.web.console.ports.monitoring import KIND_LABELS, UNTRUSTED_ADVICE
from vedette.web.console.ui.scales import format_worth

DESCRIPTION = """\
Show the state of a crawl: pages, queue, waiting hosts and why they are
waiting, errors by kind, sites and archive. If no crawl is running, show what
is in the data folder. If the crawler is busy, show the last known numbers and
how old they are.

  vedette status --data vedette-data
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and options of ``vedette status``."""
    add_data_options(parser)
    add_output_options(parser)


Status = dict[str, Any]
MAX_HELD_SITES = 3
MAX_LIMITS = 3


def run(options: argparse.Namespace) -> int:
    """Run ``vedette status``: print the status of the crawl in a data folder."""
    folder = data_folder(options)
    with open_state_reader(folder) as view:
        live = read_live_status(folder)
        now = {**live.numbers, "age_s": live.age_s} if live and live.numbers else None
        status = {"data": str(folder), "running": live is not None, **_read_state(view, now), "now": now}
        status["failing"] = [one._asdict() for one in read_failing(folder)] if live else []
        status["exceeded"] = [one._asdict() for one in read_exceeded(folder)] if live else []
        status["index"] = _read_index(folder, view)
        status["meaning"] = describe_meaning(Generations(folder).folder, load_config(options).serve.embedding_model)
        status["ranking"] = describe_ranking(load_ranking_status(Generations(folder).folder), _world_now_s(status))
    print(json.dumps(status) if options.json else "\n".join(map(_wrap, _status_lines(status, options, live))))
    return 0


def _wrap(line: str) -> str:
    """Wrap a line of ``vedette status`` on a terminal, under its text; a URL is never broken."""
    if not sys.stdout.isatty():
        return line
    width = get_terminal_size().columns
    return textwrap.fill(line, width, subsequent_indent=" " * 10, break_long_words=False, break_on_hyphens=False)


def _read_state(view: StateReader, running: Status | None) -> Status:
    failures, refusals = view.count_failures()
    retries = view.store.count_retries()
    mishap, archive = view.find_last_failure(), view.measure_archive()
    rows, reading = view.store.list_sites(), view.count_content()
    counts = view.count_sites([row.site for row in rows])
    return {
        "pages": view.count_pages(),
        "urls_known": running["urls_known"] if running else view.count_known(),
        "urls_waiting": running["urls_waiting"] if running else view.count_waiting(),
        "urls_out": running["urls_out"] if running else view.count_leased(),
        "hosts_in_trouble": running["hosts_in_trouble"] if running else view.list_troubled_hosts(),
        "failures": dict(failures),
        "retries": {"urls": retries.urls, "next_s": retries.next_s if retries.urls else None},
        "refusals": dict(refusals),
        "reading": asdict(reading),
        "held": [one._asdict() for one in view.summarize_held([row.site for row in rows])] if reading.held else [],
        "sites": [
            {"site": row.site.start, "paused": row.paused, "known": count.known, "pages": count.pages}
            for row, count in zip(rows, counts.values(), strict=True)
        ],
        "archive": {"files": archive.files, "bytes": archive.size_bytes},
        "last_error": {"url": mishap.url, "why": mishap.why, "at_s": mishap.at_s} if mishap else None,
    }


def _read_index(folder: Path, view: StateReader) -> Status:
    generations = Generations(folder)
    current = generations.current()
    pages = len(PageTable(current).indexed) if current else 0
    return {"pages": pages, "waiting": view.count_unindexed(generations.min_indexed_seq() or 0)}


def _status_lines(status: Status, options: argparse.Namespace, live: LiveStatus | None) -> Iterator[str]:
    now: Status | None = status["now"]
    if live is None:
        yield f"No crawl is running on {status['data']}. To continue: {format_command('up', options)}"
    elif now is None:
        yield f"Running on {status['data']}, just started."
    else:
        yield f"Running on {status['data']} for {format_rough_duration(now['running_s'] + now['age_s'])}."
        if live.is_late:
            yield f"Busy      queue and hosts as of {format_rough_duration(now['age_s'])} ago, the rest is current"
        if now["trouble"]:
            yield f"Waiting   {sanitize(now['trouble'])}"
    for one in status["failing"]:
        yield f"Failing   {sanitize(str(FailingProcess(**one)))}"
    for one in status["exceeded"][:MAX_LIMITS]:
        yield f"Limit     {sanitize(str(ExceededLimit(**one)))}; {format_count(one['refused'], 'request')} not sent"
    yield f"Pages     {format_number(status['pages'])} stored{_format_pace(now) if now else ''}"
    waiting, out = format_count(status["urls_waiting"], "URL"), format_number(status["urls_out"])
    yield f"Queue     {waiting} waiting, {out} assigned, {format_number(status['urls_known'])} known"
    if now:
        yield f"Hosts     {format_counts(now['hosts_waiting'], most=6) or 'nothing to fetch'}"
        yield from _budget_lines(now)
    index = status["index"]
    behind = f", {format_number(index['waiting'])} waiting to be indexed" if index["waiting"] else ""
    yield f"Index     {format_count(index['pages'], 'page')}{behind}"
    yield from _quality_lines(now)
    if status["ranking"]:
        yield f"Results   {status['ranking']}"
    yield f"Meaning   {sanitize(status['meaning'])}"
    yield from _content_lines(status["reading"])
    has_budget = bool(now and now.get("budget") and now["budget"]["per_s"])
    yield from _held_lines(status["held"], options, has_budget=has_budget)
    yield from _trouble_lines(status, options)
    yield from _site_lines(status["sites"])
    archive = status["archive"]
    yield f"Archive   {format_bytes(archive['bytes'])} in {format_count(archive['files'], 'file')}"


def _quality_lines(now: Status | None) -> Iterator[str]:
    """Yield the ``vedette status`` line on the estimated search quality; none before it was estimated."""
    refresh = now["refresh"] if now else {}
    if refresh.get("quality") is not None:
        quality = f"{refresh['quality']:.1%} of the search quality with only current copies, estimated"
        yield f"Quality   {quality}; {refresh['viewed_share']:.0%} of views go to current pages"


def _budget_lines(now: Status) -> Iterator[str]:
    """Yield the ``vedette status`` lines on today's fetch budget; none from a coordinator of an older version."""
    budget = now.get("budget")
    if not budget or not budget["today"]:
        return
    words = {KIND_LABELS[kind]: count for kind, count in budget["today"].items()}
    yield f"Fetches   today: {format_counts(words, most=6)}"
    if budget["per_s"]:
        price = now["refresh"]["price"]
        at = f" at a price of {format_worth(price)}" if price is not None else ""
        held = (
            f"; {format_count(budget['held_back'], 'URL')} recently not worth the price" if budget["held_back"] else ""
        )
        yield f"Budget    {_format_rate(budget['per_s'])}{at}{held}"


def _format_rate(per_s: float) -> str:
    """Format a fetch budget for ``vedette status``, per second or per day.

    >>> _format_rate(2.0), _format_rate(100 / 86_400)
    ('2 fetches per second', '100 fetches per day')
    """
    return f"{per_s:g} fetches per second" if per_s >= 1 else f"{per_s * 86_400:.0f} fetches per day"


def _format_pace(now: Status) -> str:
    rate = "" if now["pages_per_s"] is None else f", {now['pages_per_s']:.1f}/s recently"
    pages, unchanged = format_number(now["pages"]), format_number(now["unchanged"])
    return f"; {pages} fetched since the start, {unchanged} unchanged{rate}"


def _content_lines(reading: Status) -> Iterator[str]:
    """Yield the ``vedette status`` lines on content extraction: the results of parsing the fetched pages."""
    counts = {
        "copies of other pages": reading["copies"],
        "pages with objections to indexing": reading["objected"],
        "pages that need JavaScript": reading["need_script"],
    }
    if any(counts.values()):
        yield f"Reading   {format_counts({what: count for what, count in counts.items() if count})}"


def _held_lines(held: list[Status], options: argparse.Namespace, *, has_budget: bool) -> Iterator[str]:
    """Yield the ``vedette status`` lines on URLs that are held back as traps, and how to fetch them."""
    if not held:
        return
    urls, real = sum(one["urls"] for one in held), sum(one["real"] for one in held)
    looks = "looks like a real page" if real == 1 else "look like real pages"
    later = "" if has_budget or not real else ", fetched when their hosts have nothing else to do"
    yield f"Held back {format_count(urls, 'URL')}, {format_number(real)} {looks}{later}"
    for one in [one for one in held if one["real"] and one["start"]][:MAX_HELD_SITES]:
        command = format_command(f"sites set {one['start']} overrule=trap", options)
        yield f'{"":<9} to fetch them now: "{command}"'


def _trouble_lines(status: Status, options: argparse.Namespace) -> Iterator[str]:
    troubles: dict[str, str] = status["hosts_in_trouble"]
    for number, (host, why) in enumerate(sorted(troubles.items())[:5]):
        yield f"{'' if number else 'Trouble':<9} {host}: {sanitize(why)}"
    if len(troubles) > 5:
        yield f"{'':<9} and {format_count(len(troubles) - 5, 'more host')}"
    if any(Failure.TLS in why for why in troubles.values()):
        yield f"{'':<9} {UNTRUSTED_ADVICE}"
    if status["failures"]:
        yield f"Failed    {format_counts(status['failures'])}"
        yield f"{'':<9} {_describe_retries(status, options)}"
    if status["refusals"]:
        yield f"Refused   {format_counts(status['refusals'])}"
    if status["last_error"]:
        error = status["last_error"]
        when = format_relative_time(error["at_s"], _world_now_s(status))
        yield f"Last      {error['url']} failed {when}: {sanitize(error['why'])}"


def _describe_retries(status: Status, options: argparse.Namespace) -> str:
    """Describe for ``vedette status`` when failed URLs are retried."""
    retries, now_s = status["retries"], _world_now_s(status)
    at_once = f"to retry now: {format_command('retry', options)}"
    if not retries["urls"]:
        return at_once
    first = format_relative_time(max(retries["next_s"], now_s), now_s)
    return f"{format_count(retries['urls'], 'URL')} to retry, the first {first}; {at_once}"


def _world_now_s(status: Status) -> float:
    return float(status["now"]["now_s"]) if status["now"] else time.time()


def _site_lines(sites: list[Status]) -> Iterator[str]:
    for number, site in enumerate(sites[:20]):
        counts = f"{format_count(site['pages'], 'page')} of {format_count(site['known'], 'known URL')}"
        yield f"{'' if number else 'Sites':<9} {site['site']}   {counts}{', paused' if site['paused'] else ''}"
    if not sites:
        yield 'Sites     none; to add one: "vedette sites add SITE"'
    if len(sites) > 20:
        yield f"{'':<9} and {format_number(len(sites) - 20)} more: vedette sites list"
