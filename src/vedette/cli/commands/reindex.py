"""``vedette reindex``: build the index anew from state and archive, while the old one serves."""

import argparse
import json
import time
from typing import TYPE_CHECKING

from vedette.cli.options import add_data_options, add_output_options

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser


DESCRIPTION = """\
Build the index anew from what is kept. The old one serves until the new one is complete,
so this may be done while "vedette up" runs, and may be interrupted.

  vedette reindex
"""


def add_command(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its options."""
    parser = verbs.add_parser("reindex", help="build the index anew", description=DESCRIPTION)
    add_data_options(parser)
    add_output_options(parser)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Build, show how far it is, say what came of it."""
    from vedette.adapters.clock import start_clock
    from vedette.adapters.crawl_store.reader import open_state_reader
    from vedette.cli.data_folder import data_folder
    from vedette.cli.output import format_count, format_duration
    from vedette.cli.progress import ProgressLine
    from vedette.runtime.indexing.indexer import rebuild

    folder = data_folder(options)
    with open_state_reader(folder):  # a folder without a crawl is told in words, and stays as it is
        started_s = time.perf_counter()
    with ProgressLine("indexed", quiet=options.json) as gauge:
        pages = rebuild(folder, start_clock(time.time(), 1.0), gauge.update)
    took_s = time.perf_counter() - started_s
    if options.json:
        print(json.dumps({"pages": pages, "seconds": round(took_s, 3)}))
    else:
        print(
            f"{format_count(pages, 'page')} can be found; it took {format_duration(took_s) if took_s >= 1 else 'less than a second'}."
        )
    return 0
