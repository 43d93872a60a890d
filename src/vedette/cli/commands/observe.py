"""``vedette observe``: run a remote observer, which fetches for a Vedette elsewhere and reports changes."""

import argparse
import signal
import time
from pathlib import Path

from vedette.adapters.clock import Clock
from vedette.adapters.observers.document_root import parse_watch
from vedette.cli.options import parse_speed
from vedette.fetch.connect_to import parse_override
from vedette.runtime.observers.keys import read_key_file
from vedette.runtime.observers.process import ObserverOptions, ObserverProcess, check_home

DESCRIPTION = """\
Run a remote observer: it fetches pages from nearby sites for a Vedette
elsewhere ("home"), under the same rules, and only reports changes. First add it
at home with "vedette observers add", and assign hosts to it.

  vedette observe --home https://search.example.org/ --key tokyo.key
"""
MEGABYTE = 1 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``vedette observe``."""
    parser.add_argument("--home", metavar="URL", required=True, help="the address of the search page at home")
    parser.add_argument("--key", metavar="FILE", type=Path, required=True, help="the file with this observer's key")
    parser.add_argument(
        "--data", metavar="DIR", default="vedette-observer", help="the observer's folder (default: vedette-observer)"
    )
    parser.add_argument(
        "--spool",
        metavar="MB",
        type=_parse_megabytes,
        default=256,
        help="keep at most this many megabytes of unreported pages (default: 256)",
    )
    parser.add_argument(
        "--copies",
        metavar="MB",
        type=_parse_megabytes,
        default=256,
        help="keep at most this many megabytes of page copies, so that only differences are sent (default: 256)",
    )
    parser.add_argument(
        "--watch",
        metavar="DIR=URL",
        action="append",
        default=[],
        help="a site's document root on this machine; home soon fetches files that change (may be repeated)",
    )
    parser.add_argument("--allow-private", action="store_true", help="also connect to private and loopback addresses")
    parser.add_argument(
        "--ca-file", metavar="FILE", default="", help="additional CA certificates for home and sites (PEM)"
    )
    parser.add_argument(
        "--connect-to",
        metavar="HOST:PORT=ADDR:PORT",
        action="append",
        default=[],
        help="connect to ADDR:PORT instead; * matches any host or port, @FILE reads a file (may be repeated)",
    )
    parser.add_argument(
        "--speed",
        metavar="X",
        type=parse_speed,
        default=1.0,
        help="for a synthetic web: the speed of its clock, as a multiple of real time",
    )
    parser.add_argument("--debug", action="store_true", help="show the full traceback of an error")


def run(options: argparse.Namespace) -> int:
    """Run an observer until Ctrl-C or SIGTERM."""
    from vedette.cli.data_folder import read_detours

    lines = [line for text in options.connect_to for line in read_detours(text)]
    now_s = time.time()
    process = ObserverProcess(
        ObserverOptions(
            check_home(options.home),
            read_key_file(options.key),
            Path(options.data),
            Clock(now_s, now_s, options.speed),
            options.spool * MEGABYTE,
            options.copies * MEGABYTE,
            allow_private=options.allow_private,
            detours=tuple(map(parse_override, lines)),
            ca_file=options.ca_file,
            roots=tuple(map(parse_watch, options.watch)),
        )
    )

    def stop(_number: int, _frame: object) -> None:
        process.is_stopping = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    key, home = process.options.key, process.options.home
    print(f"Observer  {key.name}\nHome      {home}\nData      {options.data}\nStop      Ctrl-C", flush=True)
    try:
        process.run()
    finally:
        process.close()
    return 0


def _parse_megabytes(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 1 << 20):
        raise argparse.ArgumentTypeError(f'"{text[:20]}" is not a size: use whole megabytes, such as 256')
    return int(text)
