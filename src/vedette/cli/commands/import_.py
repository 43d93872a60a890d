"""``vedette import urls|warc FILE…``: what others know or fetched, taken into a data folder."""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from vedette.cli.options import add_folder, add_output
from vedette.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from vedette.cli.arguments import Parser
    from vedette.runtime.commands.importer import Imported, Importer

__all__ = ["add"]

STANDARD_INPUT = Path("-")

URLS = """\
Read files with one URL a line ("-" for standard input). Those that belong to a site of
the folder become known and wait to be fetched. Nothing else may use the folder meanwhile.

  vedette import urls list.txt
"""

WARC = """\
Read WARC files, also damaged ones. Answers whose URL belongs to a site of the folder
become pages as if they had been fetched then. What cannot be used is named. Nothing else
may use the folder meanwhile.

  vedette import warc crawl-2026.warc.gz
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb, its verbs and their options."""
    parser = verbs.add_parser("import", help="take in URLs or pages from files")
    parser.set_defaults(run=_say_what, parser=parser)
    inner = parser.add_subparsers(metavar="VERB", parser_class=type(parser))
    for name, purpose, text, run in (
        ("urls", "URLs, one a line", URLS, _import_urls),
        ("warc", "pages from WARC files", WARC, _import_warc),
    ):
        verb = inner.add_parser(name, help=purpose, description=text)
        verb.add_argument("files", metavar="FILE", nargs="+", type=Path, help="what to read")
        add_folder(verb)
        add_output(verb)
        verb.set_defaults(run=run, parser=verb)


def _say_what(_: argparse.Namespace) -> int:
    raise UsageError("say what to import: urls or warc; see vedette import --help")


def _import_urls(options: argparse.Namespace) -> int:
    return _import(options, _take_urls)


def _import_warc(options: argparse.Namespace) -> int:
    return _import(options, lambda importer, path: importer.take_warc(path))


def _take_urls(importer: "Importer", path: Path) -> None:
    if path == STANDARD_INPUT:
        importer.take_urls(sys.stdin)
        return
    with path.open(encoding="utf-8", errors="replace") as lines:
        importer.take_urls(lines)


def _import(options: argparse.Namespace, take: "Callable[[Importer, Path], None]") -> int:
    from vedette import __version__
    from vedette.adapters.crawl_store.data_folder import check_format, said_plainly
    from vedette.cli.data_folder import folder_of
    from vedette.fetch.request import PRODUCT
    from vedette.runtime.commands.importer import Importer
    from vedette.runtime.commands.offline import written

    _check_readable(options.files)
    folder = folder_of(options)
    if check_format(folder) is None:
        raise UsageError(f'{folder} is no data folder yet: "vedette sites add" makes one and names a site')
    with said_plainly(folder), written(folder, time.time()) as state:
        importer = Importer(state, f"{PRODUCT}/{__version__}", time.time(), _limit_bytes(options))
        for path in options.files:
            take(importer, path)
        importer.close()
    return _say(importer.told, as_json=options.json)


def _check_readable(files: list[Path]) -> None:
    """Before anything is changed."""
    for path in files:
        try:
            if path != STANDARD_INPUT:
                path.open("rb").close()
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}; name a file that can be read") from None


def _limit_bytes(options: argparse.Namespace) -> int:
    from vedette.config import load

    path = options.config or (Path("vedette.toml") if Path("vedette.toml").exists() else None)
    return load(path).crawl.max_page_bytes


def _say(told: "Imported", *, as_json: bool) -> int:
    from vedette.cli.output import amount, counted, kinds

    for words in told.damage:
        print(words, file=sys.stderr)
    if told.damaged > len(told.damage):
        print(f"and {amount(told.damaged - len(told.damage))} more that could not be used", file=sys.stderr)
    if as_json:
        numbers = {"pages": told.pages, "urls": told.urls, "damaged": told.damaged}
        print(json.dumps({**numbers, "passed_over": dict(sorted(told.passed_over.items())), "damage": told.damage}))
    else:
        print(f"{counted(told.pages, 'page')} taken in, {counted(told.urls, 'URL')} new.")
        if told.passed_over:
            print(f"Passed over: {kinds(told.passed_over)}.")
    return 1 if told.damaged and not told.pages + told.urls else 0
