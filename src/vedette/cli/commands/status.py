"""``vedette status``: print the status of a crawl, from the running coordinator or else from the state on disk."""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vedette.adapters.crawl_store.reader import StateReader, open_state_reader
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.page_table import PageTable
from vedette.cli.data_folder import data_folder, format_command
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
from vedette.runtime.commands.client import call_coordinator
from vedette.runtime.commands.rpc import Request
from vedette.runtime.search.reputation_store import describe_ranking, load_ranking_status
from vedette.web.console.ports.monitoring import KIND_LABELS

DESCRIPTION = """\
How the crawl of a data folder stands: pages, queue, hosts that wait and why, errors by
kind, sites, archive. When nothing runs, what the folder holds.

  vedette status --data vedette-data
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and options of ``vedette status``."""
    add_data_options(parser)
    add_output_options(parser)


Status = dict[str, Any]


def run(options: argparse.Namespace) -> int:
    """Run ``vedette status``: print the status of the crawl in a data folder."""
    folder = data_folder(options)
    with open_state_reader(folder) as view:
        running = call_coordinator(folder, Request("status"))
        told = {"data": str(folder), "running": running is not None, **_read_state(view, running), "now": running}
        told["index"] = _read_index(folder, view)
        told["ranking"] = describe_ranking(load_ranking_status(Generations(folder).folder), _world_now_s(told))
    print(json.dumps(told) if options.json else "\n".join(_status_lines(told, options)))
    return 0


def _read_state(view: StateReader, running: Status | None) -> Status:
    failures, refusals = view.count_failures()
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
        "refusals": dict(refusals),
        "reading": {"copies": reading.copies, "objected": reading.objected, "held": reading.held},
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


def _status_lines(told: Status, options: argparse.Namespace) -> Iterator[str]:
    now: Status | None = told["now"]
    if now is None:
        yield f"Nothing runs on {told['data']}; it holds what follows. {format_command('up', options)} goes on."
    else:
        yield f"Running on {told['data']} for {format_rough_duration(now['running_s'])}."
        if now["trouble"]:
            yield f"Waiting   {sanitize(now['trouble'])}"
    yield f"Pages     {format_number(told['pages'])} kept{_format_pace(now) if now else ''}"
    waiting, out = format_count(told["urls_waiting"], "URL"), format_number(told["urls_out"])
    yield f"Queue     {waiting} waiting, {out} with workers, {format_number(told['urls_known'])} known"
    if now:
        yield f"Hosts     {format_counts(now['hosts_waiting'], most=6) or 'nothing to ask any of them for'}"
        yield from _budget_lines(now)
    index = told["index"]
    behind = f", {format_number(index['waiting'])} wait to be looked at" if index["waiting"] else ""
    yield f"Index     {format_count(index['pages'], 'page')} can be found{behind}"
    if told["ranking"]:
        yield f"Results   {told['ranking']}"
    yield from _content_lines(told["reading"])
    yield from _trouble_lines(told)
    yield from _site_lines(told["sites"])
    archive = told["archive"]
    yield f"Archive   {format_bytes(archive['bytes'])} in {format_count(archive['files'], 'file')}"


def _budget_lines(now: Status) -> Iterator[str]:
    """Yield the ``vedette status`` lines on today's fetch budget; none from a coordinator of an older version."""
    budget = now.get("budget")
    if not budget or not budget["today"]:
        return
    words = {KIND_LABELS[kind]: count for kind, count in budget["today"].items()}
    yield f"Fetches   today: {format_counts(words, most=6)}"
    if budget["per_s"]:
        price = now["refresh"]["price"]
        at = f" at a price of {price:.3g}" if price is not None else ""
        held = f"; {format_count(budget['held_back'], 'URL')} not worth that of late" if budget["held_back"] else ""
        yield f"Budget    {_format_rate(budget['per_s'])}{at}{held}"


def _format_rate(per_s: float) -> str:
    """Format a fetch budget for ``vedette status``, per second or per day.

    >>> _format_rate(2.0), _format_rate(100 / 86_400)
    ('2 fetches a second', '100 fetches a day')
    """
    return f"{per_s:g} fetches a second" if per_s >= 1 else f"{per_s * 86_400:.0f} fetches a day"


def _format_pace(now: Status) -> str:
    rate = "" if now["pages_per_s"] is None else f", {now['pages_per_s']:.1f} a second of late"
    pages, unchanged = format_number(now["pages"]), format_number(now["unchanged"])
    return f"; {pages} fetched since the start, {unchanged} of them unchanged{rate}"


def _content_lines(reading: Status) -> Iterator[str]:
    """Yield the ``vedette status`` lines on content extraction: what came of parsing the fetched pages."""
    said = {
        "copies of other pages": reading["copies"],
        "pages with something against indexing": reading["objected"],
        "held back as traps": reading["held"],
    }
    if any(said.values()):
        yield f"Reading   {format_counts({what: count for what, count in said.items() if count})}"


def _trouble_lines(told: Status) -> Iterator[str]:
    troubles: dict[str, str] = told["hosts_in_trouble"]
    for number, (host, why) in enumerate(sorted(troubles.items())[:5]):
        yield f"{'' if number else 'Trouble':<9} {host}: {sanitize(why)}"
    if len(troubles) > 5:
        yield f"{'':<9} and {format_count(len(troubles) - 5, 'more host')}"
    if told["failures"]:
        yield f"Failed    {format_counts(told['failures'])}"
    if told["refusals"]:
        yield f"Refused   {format_counts(told['refusals'])}"
    if told["last_error"]:
        error = told["last_error"]
        when = format_relative_time(error["at_s"], _world_now_s(told))
        yield f"Last      {error['url']} failed {when}: {sanitize(error['why'])}"


def _world_now_s(told: Status) -> float:
    return float(told["now"]["now_s"]) if told["now"] else time.time()


def _site_lines(sites: list[Status]) -> Iterator[str]:
    for number, site in enumerate(sites[:20]):
        counts = f"{format_count(site['pages'], 'page')} of {format_count(site['known'], 'known URL')}"
        yield f"{'' if number else 'Sites':<9} {site['site']}   {counts}{', paused' if site['paused'] else ''}"
    if not sites:
        yield 'Sites     none; "vedette sites add SITE" adds one'
    if len(sites) > 20:
        yield f"{'':<9} and {format_number(len(sites) - 20)} more: vedette sites list"
