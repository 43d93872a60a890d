"""``vedette export urls|warc``: write known URLs or archived pages for other programs, also during a crawl."""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from vedette.adapters.archive.export import export_latest, export_urls_json, export_urls_text, export_warc
from vedette.cli.data_folder import data_folder
from vedette.cli.options import (
    add_data_options,
    add_output_options,
    add_subcommand,
    add_subcommands,
    require_subcommand,
)
from vedette.cli.output import format_bytes, format_count
from vedette.cli.progress import ProgressLine
from vedette.errors import StoreError, UsageError
from vedette.fetch.request import PRODUCT

URLS_HELP = """\
Write every known URL, one per line, in the order they were found. With --json,
write one object per line with the URL's state and when it was fetched.

  vedette export urls --json --to urls.jsonl
"""

WARC_HELP = """\
Write the archive as one WARC file: everything in it, or only the latest version
of each page.

  vedette export warc --latest --to pages.warc.gz
"""

DESCRIPTION = "Export URLs or pages for use in other programs."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``vedette export`` and their options."""
    inner = add_subcommands(parser)
    urls = add_subcommand(inner, "urls", "all known URLs", _export_urls, URLS_HELP)
    _add_target(urls)
    add_output_options(urls, "write one JSON object per line, with details about each URL")
    warc = add_subcommand(inner, "warc", "the archive, as one WARC file", _export_warc, WARC_HELP)
    warc.add_argument("--latest", action="store_true", help="only the latest version of each page")
    _add_target(warc)
    add_output_options(warc)


run = require_subcommand


def _add_target(parser: argparse.ArgumentParser) -> None:
    add_data_options(parser)
    parser.add_argument("--to", metavar="FILE", type=Path, help="the output file (default: standard output)")


def _export_urls(options: argparse.Namespace) -> int:
    write = export_urls_json if options.json else export_urls_text
    with _open_target(options.to) as out:
        for line in write(data_folder(options)):
            out.write(line.encode())
    return 0


def _export_warc(options: argparse.Namespace) -> int:
    if options.to is None and (sys.stdout.isatty() or options.json):
        raise UsageError("a WARC file is binary: write it to a file with --to FILE.warc.gz")
    folder = data_folder(options)
    with ProgressLine("exported", quiet=options.json) as progress, _open_target(options.to) as out:
        if options.latest:
            done = export_latest(folder, out, PRODUCT, time.time(), progress.update)
        else:
            done = export_warc(folder, out, progress.update)
    what = format_count(done.records, "page" if options.latest else "file")
    for words in done.missing:
        print(f"missing: {words}", file=sys.stderr)
    if options.json:
        print(json.dumps({"records": done.records, "bytes": done.size_bytes, "missing": list(done.missing)}))
    elif options.to is not None:
        print(f"{what}, {format_bytes(done.size_bytes)} in {options.to}.")
    return 1 if done.missing else 0


@contextmanager
def _open_target(path: Path | None) -> Iterator[BinaryIO]:
    """Open the target of ``vedette export``: standard output, or a file that is renamed into place once complete."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if path.exists():
        raise UsageError(f"{path} already exists: choose another file")
    draft = path.with_name(f"{path.name}.partial")
    try:
        with draft.open("wb") as file:
            yield file
        draft.rename(path)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}; choose a writable file") from error
    finally:
        draft.unlink(missing_ok=True)
