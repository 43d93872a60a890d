"""What ``vedette new`` does: reads beside whatever runs on the folder, as the operator, who may see all pages."""

import argparse
import json
import time
from typing import TYPE_CHECKING

from vedette.adapters.alerts.alert_store import Item
from vedette.adapters.crawl_store.reader import open_view
from vedette.cli.data_folder import folder_of, hint
from vedette.cli.options import add_folder, add_output
from vedette.cli.output import plain, span
from vedette.errors import UsageError
from vedette.runtime.alerts.service import FolderNewPages
from vedette.web.api.responses import iso_time
from vedette.web.public.new_page_ports import Batch, how_found, item_as_json

__all__ = ["add", "tell"]

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser


DESCRIPTION = """\
Shows the pages that are new, the oldest first, each once. A site's first crawl is silent;
what is found on it afterwards is new, unless it only moved or says what another page says.

  vedette new --follow
  vedette new --watch harbour --since 4711 --json
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its options."""
    new = verbs.add_parser("new", help="which pages are new", description=DESCRIPTION)
    new.add_argument("--watch", metavar="NAME", default="", help="only what this watch looks for")
    new.add_argument("--since", metavar="CURSOR", help="only what came after this one (default: the latest)")
    new.add_argument("-n", metavar="N", type=int, default=20, help="how many at most (default: 20)")
    new.add_argument("--follow", action="store_true", help="go on with what comes, until Ctrl-C")
    add_folder(new)
    add_output(new, "print one JSON object; with --follow one a page, each on a line")
    new.set_defaults(run=_run, parser=new)


def _run(options: argparse.Namespace) -> int:

    return tell(options)


LOOK_EVERY_S = 0.5
MOST = 1000
MOST_DIGITS = 15


def tell(options: argparse.Namespace) -> int:
    """Show what there is; with ``--follow`` also what comes, until somebody ends it."""
    folder, since = folder_of(options), _cursor(options.since)
    if not 1 <= options.n <= MOST:
        raise UsageError(f"-n {options.n}: write a number from 1 to {MOST}")
    with open_view(folder) as view:  # a folder without a crawl is told in words
        allowed = tuple(row.site.start for row in view.book.sites())
    news = FolderNewPages(folder)
    if options.watch and not news.is_watch(options.watch):
        raise UsageError(f'there is no watch "{options.watch}"; {hint("watch list", options)} shows them')
    batch = _first(news, since, options, allowed)
    if options.follow:
        return _follow(news, batch, options, allowed)
    if options.json:
        items = [item_as_json(item) for item in batch.items]
        print(json.dumps({"items": items, "cursor": str(batch.cursor), "more": batch.more, "missed": batch.missed}))
        return 0
    _say(batch, options)
    if not batch.items:
        print("Nothing is new." if since else "Nothing is new yet: a site's first crawl is silent.")
    elif batch.more:
        print(f"There is more: {hint(f'new --since {batch.cursor}', options)}")
    return 0


def _first(news: FolderNewPages, since: int | None, options: argparse.Namespace, allowed: tuple[str, ...]) -> Batch:
    """What comes first; without a cursor the latest. The end is looked up before, so that nothing falls between."""
    if since is not None:
        return news.after(since, options.n, options.watch, allowed)
    end = news.after(10**MOST_DIGITS, 1, options.watch, allowed).cursor
    latest = news.latest(options.n, options.watch, allowed, end + 1)
    return Batch(latest.items[::-1], end)


def _follow(news: FolderNewPages, batch: Batch, options: argparse.Namespace, allowed: tuple[str, ...]) -> int:
    while True:
        _say(batch, options)
        if not batch.more:
            time.sleep(LOOK_EVERY_S)  # what is new is read from a file, which does not call back
        batch = news.after(batch.cursor, options.n, options.watch, allowed)


def _say(batch: Batch, options: argparse.Namespace) -> None:
    if batch.missed and not options.json:
        print("Some pages after this cursor are not kept any more.", flush=True)
    for item in batch.items:
        print(json.dumps(item_as_json(item)) if options.json else "\n".join(_lines(item)), flush=True)


def _lines(item: Item) -> list[str]:
    since = "told {} after it was first seen" if item.born_s is None else "found {} after its date"
    facts = f"first seen {iso_time(item.found_s)} by {how_found(item)}; {since.format(span(item.delay_s))}"
    about = [plain(item.url, 2048), f"{item.seq} · {facts}", plain(item.snippet.strip(), 300)]
    return [plain(item.title.strip(), 200) or "(no title)", *(f"  {line}" for line in about if line)]


def _cursor(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS):
        raise UsageError(f'--since "{text[:50]}": write the number of a page that was shown, or 0 for all')
    return int(text)
