"""What ``vedette sites offered`` shows: hosts that pages link to and that no site takes, and how to add each."""

import argparse
import json
from collections.abc import Callable, Mapping

from vedette.adapters.crawl_store.reader import open_view
from vedette.adapters.crawl_store.unlisted_host_store import StrangerRow, left_out
from vedette.cli.data_folder import folder_of, hint
from vedette.cli.output import counted, plain

__all__ = ["VERBS"]


def _offered(options: argparse.Namespace) -> int:
    with open_view(folder_of(options)) as view:
        sites = [row.site for row in view.book.sites()]
        rows = view.book.strangers(options.limit, left_out(sites, view.book.search_rules()))
    if options.json:
        print(json.dumps({"offered": [{**row._asdict(), "add": _add(row, options)} for row in rows]}))
        return 0
    for row in rows:
        linked = f"{counted(row.pages, 'page')} of {counted(row.domains, 'domain')}"
        print(f"{row.host}   linked from {linked}, such as {plain(row.example)}\n    {_add(row, options)}")
    if not rows:
        print("No pages link to hosts that no site takes, as far as they were fetched.")
    return 0


def _add(row: StrangerRow, options: argparse.Namespace) -> str:
    return hint(f"sites add https://{row.host}/", options)


VERBS: Mapping[str, Callable[[argparse.Namespace], int]] = {"offered": _offered}
