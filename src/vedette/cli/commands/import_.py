"""``vedette import urls|warc FILE…``: import URLs or WARC files of other programs into a data folder."""

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from vedette.adapters.crawl_store.data_folder import check_format, explain_errors, open_for_write
from vedette.cli.data_folder import data_folder, load_config
from vedette.cli.options import (
    add_data_options,
    add_output_options,
    add_subcommand,
    add_subcommands,
    require_subcommand,
)
from vedette.cli.output import format_count, format_counts, format_number
from vedette.errors import UsageError
from vedette.fetch.request import PRODUCT
from vedette.runtime.commands.importer import Importer, ImportSummary
from vedette.version import __version__

STANDARD_INPUT = Path("-")

URLS_HELP = """\
Import files with one URL per line ("-" for standard input). URLs that belong
to a site in the data folder are queued, even if they failed before. Nothing
else can use the data folder during the import.

  vedette import urls list.txt
"""

WARC_HELP = """\
Import WARC files, even damaged ones. Responses whose URL belongs to a site in
the data folder become pages, as if they had been fetched at the recorded time.
Unusable records are listed. Nothing else can use the data folder during the
import.

  vedette import warc crawl-2026.warc.gz
"""

DESCRIPTION = "Import URLs or pages from files."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``vedette import`` and their options."""
    inner = add_subcommands(parser)
    for name, purpose, description, take in (
        ("urls", "URLs, one per line", URLS_HELP, _import_url_file),
        ("warc", "pages from WARC files", WARC_HELP, Importer.import_warc),
    ):
        one = add_subcommand(inner, name, purpose, partial(_run_import, take), description)
        one.add_argument("files", metavar="FILE", nargs="+", type=Path, help="a file to import")
        add_data_options(one)
        add_output_options(one)


run = require_subcommand


def _import_url_file(importer: Importer, path: Path) -> None:
    if path == STANDARD_INPUT:
        importer.import_urls(sys.stdin)
        return
    with path.open(encoding="utf-8", errors="replace") as lines:
        importer.import_urls(lines)


def _run_import(take: Callable[[Importer, Path], None], options: argparse.Namespace) -> int:
    _check_readable(options.files)
    folder = data_folder(options)
    if check_format(folder) is None:
        raise UsageError(f'{folder} is not a data folder; create one by adding a site: run "vedette sites add SITE"')
    with explain_errors(folder), open_for_write(folder, time.time()) as state:
        importer = Importer(state, f"{PRODUCT}/{__version__}", time.time(), load_config(options).crawl.max_page_bytes)
        for path in options.files:
            take(importer, path)
        importer.close()
    return _print_summary(importer.summary, as_json=options.json)


def _check_readable(files: list[Path]) -> None:
    """Refuse unreadable input files of ``vedette import`` before anything is changed."""
    for path in files:
        try:
            if path != STANDARD_INPUT:
                path.open("rb").close()
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}; choose a readable file") from None


def _print_summary(summary: ImportSummary, *, as_json: bool) -> int:
    for words in summary.damage:
        print(words, file=sys.stderr)
    if summary.damage_count > len(summary.damage):
        more = summary.damage_count - len(summary.damage)
        print(f"and {format_number(more)} more unusable records", file=sys.stderr)
    if as_json:
        numbers = {"pages": summary.pages, "urls": summary.urls, "revived": summary.revived}
        numbers["damaged"] = summary.damage_count
        print(json.dumps({**numbers, "passed_over": dict(sorted(summary.skipped.items())), "damage": summary.damage}))
    else:
        again = f", {format_count(summary.revived, 'failed URL')} to retry" if summary.revived else ""
        print(f"{format_count(summary.pages, 'page')} imported, {format_count(summary.urls, 'new URL')}{again}.")
        if summary.skipped:
            print(f"Skipped: {format_counts(summary.skipped)}.")
    return 1 if summary.damage_count and not summary.pages + summary.urls + summary.revived else 0
