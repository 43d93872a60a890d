"""``vedette restore BACKUP``: create a data folder from a backup."""

import argparse
from pathlib import Path

from vedette.adapters.files.backup import restore_backup
from vedette.cli.commands.backup import print_summary
from vedette.cli.data_folder import data_folder
from vedette.cli.options import add_data_options, add_output_options
from vedette.cli.progress import ProgressLine

DESCRIPTION = """\
Create a data folder from a backup. The folder must be empty or not exist yet;
nothing is overwritten. The next "crawl" or "up" continues from there.

  vedette restore backups/monday --data vedette-data
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and options of ``vedette restore``."""
    parser.add_argument("backup", metavar="BACKUP", type=Path, help="a folder written by vedette backup")
    add_data_options(parser)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run ``vedette restore``: copy the backup into a data folder, show progress and print a summary."""
    folder = data_folder(options)
    with ProgressLine("archive files", quiet=options.json) as progress:
        copied = restore_backup(options.backup, folder, progress.update_part)
    return print_summary(copied, folder, as_json=options.json)
