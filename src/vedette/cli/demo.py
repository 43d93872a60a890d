"""``vedette demo``: a made web on loopback, crawled before your eyes; its own access log judges the crawl."""

import argparse
from typing import TYPE_CHECKING

from vedette.cli.options import speed_of

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser

__all__ = ["add"]

MOST_VISITORS = 5.0

DESCRIPTION = """\
Make a web of a few dozen sites on this machine, serve it on loopback addresses, crawl
it, and search it in the browser. Its time runs faster than ours, pages are born all the
time, and the first page names the latest. A made public searches along with you, so that
there is something to see of searches and clicks. Nothing leaves the machine.

  vedette demo --for 2min
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its options."""
    parser = verbs.add_parser("demo", help="crawl and search a made web on this machine", description=DESCRIPTION)
    parser.add_argument(
        "--for", dest="duration", metavar="TIME", help="end after this time, such as 120s (default: with Ctrl-C)"
    )
    parser.add_argument(
        "--world", metavar="made:SIZE", default="made:small", help="tiny, small, medium or large (default: made:small)"
    )
    parser.add_argument(
        "--port", type=int, default=8080, help="where the search page is served, 0 for any that is free (default: 8080)"
    )
    parser.add_argument("--seed", type=int, default=1, help="another number is another web (default: 1)")
    parser.add_argument(
        "--speed", metavar="X", type=speed_of, default=60.0, help="how many times as fast its time runs (default: 60)"
    )
    parser.add_argument(
        "--visitors",
        metavar="N",
        type=visitors_of,
        default=2.0,
        help="how many searches a second a made public makes, at most 5; 0 for none (default: 2)",
    )
    parser.add_argument(
        "--data", metavar="DIR", help="keep the data in this new folder (default: thrown away at the end)"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument("--debug", action="store_true", help="show where an error comes from")
    parser.set_defaults(run=run, parser=parser)


def visitors_of(text: str) -> float:
    """What ``--visitors`` says: searches a second of our time."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= MOST_VISITORS:
        raise argparse.ArgumentTypeError(f'"{text}" is no number of searches a second: write 0 to {MOST_VISITORS:g}')
    return number


def run(options: argparse.Namespace) -> int:
    """Serve, crawl, show, judge."""
    from vedette.cli.demonstrating import demonstrate  # heavy libraries load only when there is something to do

    return demonstrate(options)
