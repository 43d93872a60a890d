"""``vedette backup DIR``: a consistent copy of a data folder, taken while it is in use."""

import argparse
import json
import sys
from pathlib import Path

from vedette.adapters.files.backup import BackupResult, create_backup
from vedette.cli.data_folder import data_folder
from vedette.cli.options import add_data_options, add_output_options
from vedette.cli.output import format_bytes, format_count
from vedette.cli.progress import ProgressLine

DESCRIPTION = """\
Copy the data folder to DIR, which must not exist yet. The copy is a consistent
snapshot, even while a crawl runs. If the backup is interrupted, DIR is not
created. Archive files are hard-linked instead of copied if both folders are on
the same file system.

  vedette backup backups/monday
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and options of ``vedette backup``."""
    parser.add_argument("to", metavar="DIR", type=Path, help="a folder that does not exist yet")
    add_data_options(parser)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run ``vedette backup``: copy the data folder, show progress and print a summary."""
    with ProgressLine("state", quiet=options.json) as progress:
        copied = create_backup(data_folder(options), options.to, progress.update_part)
    return print_summary(copied, options.to, as_json=options.json)


def print_summary(copied: BackupResult, to: Path, *, as_json: bool) -> int:
    """Print what a backup copied; return exit code 1 if something was missing from the data folder."""
    for words in copied.missing:
        print(f"missing: {words}", file=sys.stderr)
    if as_json:
        numbers = {"pages": copied.pages, "files": copied.files, "linked": copied.linked, "bytes": copied.size_bytes}
        print(json.dumps({"folder": str(to), **numbers, "missing": list(copied.missing)}))
    else:
        files = f"{format_count(copied.files, 'archive file')}, {copied.linked} hard-linked"
        print(f"{format_count(copied.pages, 'page')}, {files}, {format_bytes(copied.size_bytes)} in {to}.")
    return 1 if copied.missing else 0
