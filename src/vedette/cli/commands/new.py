"""``vedette new``: list new pages from the data folder, also while it is in use; the operator may see all pages."""

import argparse
import json
import time

from vedette.adapters.alerts.alert_store import AlertItem
from vedette.adapters.crawl_store.reader import open_state_reader
from vedette.cli.data_folder import data_folder, format_command
from vedette.cli.options import add_data_options, add_output_options
from vedette.cli.output import format_duration, sanitize
from vedette.errors import UsageError
from vedette.runtime.alerts.service import FolderNewPages
from vedette.web.api.responses import format_iso_time
from vedette.web.public.new_page_ports import ItemBatch, describe_source, item_to_json

DESCRIPTION = """\
List new pages, oldest first. Pages found during a site's first crawl are not
listed. Pages found later are new unless they have only moved or are copies of
other pages.

  vedette new --follow
  vedette new --watch harbor --since 4711 --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and options of ``vedette new``."""
    parser.add_argument("--watch", metavar="NAME", default="", help="only pages that match this watch")
    parser.add_argument(
        "--since", metavar="CURSOR", help="only pages after the one with this number (default: show the latest)"
    )
    parser.add_argument("-n", metavar="N", type=int, default=20, help="list at most N entries (default: 20)")
    parser.add_argument(
        "--follow", action="store_true", help="keep listing new pages as they arrive until you press Ctrl-C"
    )
    add_data_options(parser)
    add_output_options(parser, "print one JSON object; with --follow, one line per page")


POLL_INTERVAL_S = 0.5
MAX_ITEMS = 1000
MAX_DIGITS = 15


def run(options: argparse.Namespace) -> int:
    """Run ``vedette new``: print the latest new pages; with ``--follow`` also later ones, until it is stopped."""
    folder, since = data_folder(options), _parse_cursor(options.since)
    if not 1 <= options.n <= MAX_ITEMS:
        raise UsageError(f"-n {options.n}: expected a number from 1 to {MAX_ITEMS}")
    with open_state_reader(folder) as view:  # a folder without a crawl is reported in words
        allowed = tuple(row.site.start for row in view.store.list_sites())
    news = FolderNewPages(folder)
    if options.watch and not news.has_alert(options.watch):
        raise UsageError(
            f'there is no watch "{options.watch}"; for a list, run {format_command("watch list", options)}'
        )
    batch = _first_batch(news, since, options, allowed)
    if options.follow:
        return _follow(news, batch, options, allowed)
    if options.json:
        items = [item_to_json(item) for item in batch.items]
        print(json.dumps({"items": items, "cursor": str(batch.cursor), "more": batch.more, "missed": batch.missed}))
        return 0
    _print_batch(batch, options)
    if not batch.items:
        print("No new pages." if since else "No new pages yet: the first crawl of a site reports nothing.")
    elif batch.more:
        print(f"More: {format_command(f'new --since {batch.cursor}', options)}")
    return 0


def _first_batch(
    news: FolderNewPages, since: int | None, options: argparse.Namespace, allowed: tuple[str, ...]
) -> ItemBatch:
    """Return the first batch of new pages to print: those after the cursor, else the latest.

    The end of the list is read before the batch, so that no page is lost between the two.
    """
    if since is not None:
        return news.list_after(since, options.n, options.watch, allowed)
    end = news.list_after(10**MAX_DIGITS, 1, options.watch, allowed).cursor
    latest = news.list_latest(options.n, options.watch, allowed, end + 1)
    return ItemBatch(latest.items[::-1], end)


def _follow(news: FolderNewPages, batch: ItemBatch, options: argparse.Namespace, allowed: tuple[str, ...]) -> int:
    while True:
        _print_batch(batch, options)
        if not batch.more:
            time.sleep(POLL_INTERVAL_S)  # new pages are read from a file, which does not call back
        batch = news.list_after(batch.cursor, options.n, options.watch, allowed)


def _print_batch(batch: ItemBatch, options: argparse.Namespace) -> None:
    if batch.missed and not options.json:
        print("Some pages after this cursor have been deleted.", flush=True)
    for item in batch.items:
        print(json.dumps(item_to_json(item)) if options.json else "\n".join(_item_lines(item)), flush=True)


def _item_lines(item: AlertItem) -> list[str]:
    delay = format_duration(item.delay_s)
    since = f"reported {delay} after it was first seen" if item.born_s is None else f"found {delay} after its date"
    facts = f"first seen {format_iso_time(item.found_s)} by {describe_source(item)}; {since}"
    about = [sanitize(item.url, 2048), f"{item.seq} · {facts}", sanitize(item.snippet.strip(), 300)]
    return [sanitize(item.title.strip(), 200) or "(no title)", *(f"  {line}" for line in about if line)]


def _parse_cursor(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
        raise UsageError(f'--since "{text[:50]}": expected the number of a listed page, or 0 for all')
    return int(text)
