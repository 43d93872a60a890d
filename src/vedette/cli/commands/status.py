"""What ``vedette status`` does: numbers from the running keeper where there is one, all else from the state on disk."""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vedette.adapters.crawl_store.reader import StateView, open_view
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.page_table import PageTable
from vedette.cli.data_folder import ask, folder_of, hint
from vedette.cli.options import add_folder, add_output
from vedette.cli.output import ago, amount, bytes_in_words, counted, kinds, plain, roughly
from vedette.runtime.commands.rpc import Call
from vedette.runtime.search.reputation_store import read_told, status_words
from vedette.web.console.ports.monitoring import KIND_WORDS

__all__ = ["add", "show_status"]

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser


DESCRIPTION = """\
How the crawl of a data folder stands: pages, queue, hosts that wait and why, errors by
kind, sites, archive. When nothing runs, what the folder holds.

  vedette status --data vedette-data
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its options."""
    parser = verbs.add_parser("status", help="how a crawl stands", description=DESCRIPTION)
    add_folder(parser)
    add_output(parser)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Look, and say."""
    return show_status(options)


Told = dict[str, Any]


def show_status(options: argparse.Namespace) -> int:
    """Look, and say."""
    folder = folder_of(options)
    with open_view(folder) as view:
        running = ask(folder, Call("status"))
        told = {"data": str(folder), "running": running is not None, **_on_disk(view, running), "now": running}
        told["index"] = _index(folder, view)
        told["ranking"] = status_words(read_told(Generations(folder).folder), _now_s(told))
    if options.json:
        print(json.dumps(told))
    else:
        print("\n".join(_lines(told, options)))
    return 0


def _on_disk(view: StateView, running: Told | None) -> Told:
    failures, refusals = view.mishaps()
    mishap, archive, rows, reading = view.last_mishap(), view.archive(), view.book.sites(), view.reading()
    return {
        "pages": view.pages(),
        "urls_known": running["urls_known"] if running else view.known(),
        "urls_waiting": running["urls_waiting"] if running else view.waiting(),
        "urls_out": running["urls_out"] if running else view.leased(),
        "hosts_in_trouble": running["hosts_in_trouble"] if running else view.troubles(),
        "failures": dict(failures),
        "refusals": dict(refusals),
        "reading": {"copies": reading.copies, "objected": reading.objected, "held": reading.held},
        "sites": [
            {"site": row.site.start, "paused": row.paused, "known": count.known, "pages": count.pages}
            for row, count in zip(rows, view.site_counts(rows), strict=True)
        ],
        "archive": {"files": archive.files, "bytes": archive.size_bytes},
        "last_error": {"url": mishap.url, "why": mishap.why, "at_s": mishap.at_s} if mishap else None,
    }


def _index(folder: Path, view: StateView) -> Told:
    generations = Generations(folder)
    current = generations.current()
    pages = len(PageTable(current).indexed) if current else 0
    return {"pages": pages, "waiting": view.news_after(generations.taken() or 0)}


def _lines(told: Told, options: argparse.Namespace) -> Iterator[str]:
    now: Told | None = told["now"]
    if now is None:
        yield f"Nothing runs on {told['data']}; it holds what follows. {hint('up', options)} goes on."
    else:
        yield f"Running on {told['data']} for {roughly(now['running_s'])}."
        if now["trouble"]:
            yield f"Waiting   {plain(now['trouble'])}"
    yield f"Pages     {amount(told['pages'])} kept{_pace(now) if now else ''}"
    yield (
        f"Queue     {counted(told['urls_waiting'], 'URL')} waiting, {amount(told['urls_out'])} with workers, "
        f"{amount(told['urls_known'])} known"
    )
    if now:
        yield f"Hosts     {kinds(now['hosts_waiting'], most=6) or 'nothing to ask any of them for'}"
        yield from _budget(now)
    index = told["index"]
    waiting = f", {amount(index['waiting'])} wait to be looked at" if index["waiting"] else ""
    yield f"Index     {counted(index['pages'], 'page')} can be found{waiting}"
    if told["ranking"]:
        yield f"Results   {told['ranking']}"
    yield from _reading(told["reading"])
    yield from _troubles(told)
    yield from _sites(told["sites"])
    archive = told["archive"]
    yield f"Archive   {bytes_in_words(archive['bytes'])} in {counted(archive['files'], 'file')}"


def _budget(now: Told) -> Iterator[str]:
    """Where today's fetches went; a keeper of an earlier version does not tell."""
    budget = now.get("budget")
    if not budget or not budget["today"]:
        return
    words = {KIND_WORDS[kind]: count for kind, count in budget["today"].items()}
    yield f"Fetches   today: {kinds(words, most=6)}"
    if budget["per_s"]:
        price = now["refresh"]["price"]
        at = f" at a price of {price:.3g}" if price is not None else ""
        held = f"; {counted(budget['held_back'], 'URL')} not worth that of late" if budget["held_back"] else ""
        yield f"Budget    {_rate(budget['per_s'])}{at}{held}"


def _rate(per_s: float) -> str:
    """A budget as people say it.

    >>> _rate(2.0), _rate(100 / 86_400)
    ('2 fetches a second', '100 fetches a day')
    """
    return f"{per_s:g} fetches a second" if per_s >= 1 else f"{per_s * 86_400:.0f} fetches a day"


def _pace(now: Told) -> str:
    rate = "" if now["pages_per_s"] is None else f", {now['pages_per_s']:.1f} a second of late"
    return f"; {amount(now['pages'])} fetched since the start, {amount(now['unchanged'])} of them unchanged{rate}"


def _reading(reading: Told) -> Iterator[str]:
    """What came of reading: what there was not, is not said."""
    said = {
        "copies of other pages": reading["copies"],
        "pages with something against indexing": reading["objected"],
        "held back as traps": reading["held"],
    }
    if any(said.values()):
        yield f"Reading   {kinds({what: count for what, count in said.items() if count})}"


def _troubles(told: Told) -> Iterator[str]:
    troubles: dict[str, str] = told["hosts_in_trouble"]
    for number, (host, why) in enumerate(sorted(troubles.items())[:5]):
        yield f"{'' if number else 'Trouble':<9} {host}: {plain(why)}"
    if len(troubles) > 5:
        yield f"{'':<9} and {counted(len(troubles) - 5, 'more host')}"
    if told["failures"]:
        yield f"Failed    {kinds(told['failures'])}"
    if told["refusals"]:
        yield f"Refused   {kinds(told['refusals'])}"
    if told["last_error"]:
        error = told["last_error"]
        yield f"Last      {error['url']} failed {ago(error['at_s'], _now_s(told))}: {plain(error['why'])}"


def _now_s(told: Told) -> float:
    return float(told["now"]["now_s"]) if told["now"] else time.time()


def _sites(sites: list[Told]) -> Iterator[str]:
    for number, site in enumerate(sites[:20]):
        counts = f"{counted(site['pages'], 'page')} of {counted(site['known'], 'known URL')}"
        yield f"{'' if number else 'Sites':<9} {site['site']}   {counts}{', paused' if site['paused'] else ''}"
    if not sites:
        yield 'Sites     none; "vedette sites add SITE" adds one'
    if len(sites) > 20:
        yield f"{'':<9} and {amount(len(sites) - 20)} more: vedette sites list"
