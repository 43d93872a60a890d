"""``vedette backup DIR``: a consistent copy of a data folder, taken while it is in use."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from vedette.cli.options import add_data_options, add_output_options

if TYPE_CHECKING:
    from vedette.adapters.files.backup import BackupResult
    from vedette.cli.arguments import Parser


DESCRIPTION = """\
Copy the data folder to DIR, which must not exist yet. A crawl may go on meanwhile: DIR
has everything that was committed at one moment. When it is interrupted there is no DIR.
Archive files are linked rather than copied where both are on one file system.

  vedette backup backups/monday
"""


def add_command(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its options."""
    parser = verbs.add_parser("backup", help="copy the data folder, also while it is in use", description=DESCRIPTION)
    parser.add_argument("to", metavar="DIR", type=Path, help="a folder that does not exist yet")
    add_data_options(parser)
    add_output_options(parser)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Copy, show how far it is, sum up."""
    from vedette.adapters.files.backup import create_backup
    from vedette.cli.data_folder import data_folder
    from vedette.cli.progress import ProgressLine

    with ProgressLine("state", quiet=options.json) as gauge:
        copied = create_backup(data_folder(options), options.to, gauge.update_part)
    return print_summary(copied, options.to, as_json=options.json)


def print_summary(copied: "BackupResult", to: Path, *, as_json: bool) -> int:
    """What was copied; exit code 1 where something was missing already."""
    from vedette.cli.output import format_bytes, format_count

    for words in copied.missing:
        print(f"missing: {words}", file=sys.stderr)
    if as_json:
        numbers = {"pages": copied.pages, "files": copied.files, "linked": copied.linked, "bytes": copied.size_bytes}
        print(json.dumps({"folder": str(to), **numbers, "missing": list(copied.missing)}))
    else:
        files = f"{format_count(copied.files, 'archive file')}, {copied.linked} of them linked"
        print(f"{format_count(copied.pages, 'page')}, {files}, {format_bytes(copied.size_bytes)}, in {to}.")
    return 1 if copied.missing else 0
