"""``vedette backup DIR``: a consistent copy of a data folder, taken while it is in use."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from vedette.cli.options import add_folder, add_output

if TYPE_CHECKING:
    from vedette.adapters.files.backup import Copied
    from vedette.cli.arguments import Parser

__all__ = ["add", "say"]

DESCRIPTION = """\
Copy the data folder to DIR, which must not exist yet. A crawl may go on meanwhile: DIR
has everything that was committed at one moment. When it is interrupted there is no DIR.
Archive files are linked rather than copied where both are on one file system.

  vedette backup backups/monday
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its options."""
    parser = verbs.add_parser("backup", help="copy the data folder, also while it is in use", description=DESCRIPTION)
    parser.add_argument("to", metavar="DIR", type=Path, help="a folder that does not exist yet")
    add_folder(parser)
    add_output(parser)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Copy, show how far it is, sum up."""
    from vedette.adapters.files.backup import back_up
    from vedette.cli.data_folder import folder_of
    from vedette.cli.progress import Gauge

    with Gauge("state", quiet=options.json) as gauge:
        copied = back_up(folder_of(options), options.to, gauge.look_at)
    return say(copied, options.to, as_json=options.json)


def say(copied: "Copied", to: Path, *, as_json: bool) -> int:
    """What was copied; exit code 1 where something was missing already."""
    from vedette.cli.output import bytes_in_words, counted

    for words in copied.missing:
        print(f"missing: {words}", file=sys.stderr)
    if as_json:
        numbers = {"pages": copied.pages, "files": copied.files, "linked": copied.linked, "bytes": copied.size_bytes}
        print(json.dumps({"folder": str(to), **numbers, "missing": list(copied.missing)}))
    else:
        files = f"{counted(copied.files, 'archive file')}, {copied.linked} of them linked"
        print(f"{counted(copied.pages, 'page')}, {files}, {bytes_in_words(copied.size_bytes)}, in {to}.")
    return 1 if copied.missing else 0
