"""``vedette demo``: a made web on loopback, crawled before your eyes; its own access log judges the crawl."""

import argparse
from typing import TYPE_CHECKING

from vedette.cli.options import speed_of
from vedette.errors import UsageError

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser

__all__ = ["add"]

MOST_VISITORS = 5.0
MOST_DAYS = 365

DESCRIPTION = """\
Make a web of a few dozen sites on this machine, serve it on loopback addresses, crawl
it, and search it in the browser. Its time runs faster than ours, pages are born all the
time, and the first page names the latest. A made public searches along with you, so that
there is something to see of searches and clicks. Nothing leaves the machine.

  vedette demo --for 2min

With --days it measures instead: crawlers with different rules for fetching pages again
keep the same web for so many of its days, with the same budget, and are compared.

  vedette demo --days 30 --report

With --births it measures how soon a webhook hears of new pages, against looking at all
pages in turn and against looking at sitemaps alone, with the same budget.

  vedette demo --births
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
        "--speed",
        metavar="X",
        type=speed_of,
        help="how many times as fast its time runs (default: 60; with --days 5000, with --births 200)",
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
    parser.add_argument(
        "--days", metavar="N", type=days_of, help="compare refresh policies over so many days of a small web of its own"
    )
    parser.add_argument(
        "--births",
        action="store_true",
        help="compare ways to look for new pages instead, over so many days (default: 1) after some hours of learning",
    )
    parser.add_argument(
        "--report", metavar="DIR", nargs="?", const=".", help="with --days: write a report there (default: here)"
    )
    parser.add_argument(
        "--json", action="store_true", help="with --days or --births: print one JSON object, and nothing else"
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


def days_of(text: str) -> int:
    """What ``--days`` says."""
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and 1 <= int(text) <= MOST_DAYS):
        raise argparse.ArgumentTypeError(f'"{text}" is no number of days: write 1 to {MOST_DAYS}, such as 30')
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Serve, crawl, show, judge."""
    if options.births:
        options.days = options.days or 1
        if options.report:
            raise UsageError("--births prints what it measured: leave out --report; --json is for programs")
    if options.days is None and (options.report or options.json):
        wanted = "--report" if options.report else "--json"
        raise UsageError(f"{wanted} tells what --days measured: write vedette demo --days 30 {wanted}")
    if options.days is not None and options.duration:
        raise UsageError("the days say how long it takes: leave out --for, or --days and --births")
    if options.days is not None and options.world != options.parser.get_default("world"):
        raise UsageError("what is measured has a web of its own: leave out --world; --seed makes another")
    from vedette.cli.demo.command import demonstrate  # heavy libraries load only when there is something to do

    return demonstrate(options)
