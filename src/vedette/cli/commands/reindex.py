"""``vedette reindex``: build the index again from state and archive, while the old one serves."""

import argparse
import json
import time

from vedette.adapters.clock import start_clock
from vedette.cli.data_folder import crawled_folder
from vedette.cli.options import add_data_options, add_output_options
from vedette.cli.output import format_count, format_duration
from vedette.cli.progress import ProgressLine
from vedette.runtime.indexing.indexer import rebuild

DESCRIPTION = """\
Rebuild the index from the state and the archive. The old index answers
searches until the new one is complete, so you can run this command while
"vedette up" is running, and you can safely interrupt it.

  vedette reindex
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``vedette reindex``."""
    add_data_options(parser)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run ``vedette reindex``: build the search index, show progress and print a summary."""
    folder, started_s = crawled_folder(options), time.perf_counter()
    with ProgressLine("indexed", quiet=options.json) as progress:
        pages = rebuild(folder, start_clock(time.time(), 1.0), progress.update)
    took_s = time.perf_counter() - started_s
    if options.json:
        print(json.dumps({"pages": pages, "seconds": round(took_s, 3)}))
    else:
        took = format_duration(took_s) if took_s >= 1 else "less than a second"
        print(f"{format_count(pages, 'page')} indexed in {took}.")
    return 0
