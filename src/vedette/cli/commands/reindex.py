"""``vedette reindex``: build the index anew from state and archive, while the old one serves."""

import argparse
import json
import time
from typing import TYPE_CHECKING

from vedette.cli.options import add_folder, add_output

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser

__all__ = ["add"]

DESCRIPTION = """\
Build the index anew from what is kept. The old one serves until the new one is complete,
so this may be done while "vedette up" runs, and may be interrupted.

  vedette reindex
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its options."""
    parser = verbs.add_parser("reindex", help="build the index anew", description=DESCRIPTION)
    add_folder(parser)
    add_output(parser)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Build, show how far it is, say what came of it."""
    from vedette.adapters.clock import start_clock
    from vedette.adapters.crawl_store.reader import open_view
    from vedette.cli.data_folder import folder_of
    from vedette.cli.output import counted, span
    from vedette.cli.progress import Gauge
    from vedette.runtime.indexing.indexer import rebuild

    folder = folder_of(options)
    with open_view(folder):  # a folder without a crawl is told in words, and stays as it is
        started_s = time.perf_counter()
    with Gauge("indexed", quiet=options.json) as gauge:
        pages = rebuild(folder, start_clock(time.time(), 1.0), gauge.look)
    took_s = time.perf_counter() - started_s
    if options.json:
        print(json.dumps({"pages": pages, "seconds": round(took_s, 3)}))
    else:
        print(
            f"{counted(pages, 'page')} can be found; it took {span(took_s) if took_s >= 1 else 'less than a second'}."
        )
    return 0
