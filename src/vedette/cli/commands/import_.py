"""``vedette import urls|warc FILE…``: what others know or fetched, taken into a data folder."""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from vedette.cli.options import add_data_options, add_output_options
from vedette.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from vedette.cli.arguments import Parser
    from vedette.runtime.commands.importer import Importer, ImportSummary


STANDARD_INPUT = Path("-")

URLS_HELP = """\
Read files with one URL a line ("-" for standard input). Those that belong to a site of
the folder become known and wait to be fetched. Nothing else may use the folder meanwhile.

  vedette import urls list.txt
"""

WARC_HELP = """\
Read WARC files, also damaged ones. Answers whose URL belongs to a site of the folder
become pages as if they had been fetched then. What cannot be used is named. Nothing else
may use the folder meanwhile.

  vedette import warc crawl-2026.warc.gz
"""


def add_command(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb, its verbs and their options."""
    parser = verbs.add_parser("import", help="take in URLs or pages from files")
    parser.set_defaults(run=_require_subcommand, parser=parser)
    inner = parser.add_subparsers(metavar="VERB", parser_class=type(parser))
    for name, purpose, text, run in (
        ("urls", "URLs, one a line", URLS_HELP, _import_urls),
        ("warc", "pages from WARC files", WARC_HELP, _import_warc),
    ):
        verb = inner.add_parser(name, help=purpose, description=text)
        verb.add_argument("files", metavar="FILE", nargs="+", type=Path, help="what to read")
        add_data_options(verb)
        add_output_options(verb)
        verb.set_defaults(run=run, parser=verb)


def _require_subcommand(_: argparse.Namespace) -> int:
    raise UsageError("say what to import: urls or warc; see vedette import --help")


def _import_urls(options: argparse.Namespace) -> int:
    return _run_import(options, _import_url_file)


def _import_warc(options: argparse.Namespace) -> int:
    return _run_import(options, lambda importer, path: importer.import_warc(path))


def _import_url_file(importer: "Importer", path: Path) -> None:
    if path == STANDARD_INPUT:
        importer.import_urls(sys.stdin)
        return
    with path.open(encoding="utf-8", errors="replace") as lines:
        importer.import_urls(lines)


def _run_import(options: argparse.Namespace, take: "Callable[[Importer, Path], None]") -> int:
    from vedette import __version__
    from vedette.adapters.crawl_store.data_folder import check_format, explain_errors
    from vedette.cli.data_folder import data_folder
    from vedette.fetch.request import PRODUCT
    from vedette.runtime.commands.importer import Importer
    from vedette.runtime.commands.offline import open_for_write

    _check_readable(options.files)
    folder = data_folder(options)
    if check_format(folder) is None:
        raise UsageError(f'{folder} is no data folder yet: "vedette sites add" makes one and names a site')
    with explain_errors(folder), open_for_write(folder, time.time()) as state:
        importer = Importer(state, f"{PRODUCT}/{__version__}", time.time(), _max_page_bytes(options))
        for path in options.files:
            take(importer, path)
        importer.close()
    return _print_summary(importer.summary, as_json=options.json)


def _check_readable(files: list[Path]) -> None:
    """Before anything is changed."""
    for path in files:
        try:
            if path != STANDARD_INPUT:
                path.open("rb").close()
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}; name a file that can be read") from None


def _max_page_bytes(options: argparse.Namespace) -> int:
    from vedette.config import load

    path = options.config or (Path("vedette.toml") if Path("vedette.toml").exists() else None)
    return load(path).crawl.max_page_bytes


def _print_summary(told: "ImportSummary", *, as_json: bool) -> int:
    from vedette.cli.output import format_count, format_counts, format_number

    for words in told.damage:
        print(words, file=sys.stderr)
    if told.damage_count > len(told.damage):
        print(f"and {format_number(told.damage_count - len(told.damage))} more that could not be used", file=sys.stderr)
    if as_json:
        numbers = {"pages": told.pages, "urls": told.urls, "damaged": told.damage_count}
        print(json.dumps({**numbers, "passed_over": dict(sorted(told.skipped.items())), "damage": told.damage}))
    else:
        print(f"{format_count(told.pages, 'page')} taken in, {format_count(told.urls, 'URL')} new.")
        if told.skipped:
            print(f"Passed over: {format_counts(told.skipped)}.")
    return 1 if told.damage_count and not told.pages + told.urls else 0
