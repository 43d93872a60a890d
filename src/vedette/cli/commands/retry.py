"""``vedette retry [SITE|URL]``: try failed URLs again now; the change is logged."""

import argparse
import json

from vedette.cli.data_folder import execute, format_command, open_cluster, open_data_folder
from vedette.cli.options import add_cluster_option, add_data_options, add_output_options
from vedette.discover.urls.scope import read_site
from vedette.runtime.commands.recheck import NOTHING_FAILED
from vedette.web.commands.commands import RetryFailed

DESCRIPTION = """\
Retry failed pages now: one URL, a whole site, or all of them. Failed pages are
retried automatically, first after an hour and then at increasing intervals of
up to a week. Use this command if you know that the problem has been fixed.
Hosts that could not be reached are tried again now; hosts in back-off stay in
back-off.

  vedette retry
  vedette retry https://example.org/
  vedette retry https://example.org/news/today.html
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and options of ``vedette retry``."""
    parser.add_argument("target", metavar="SITE|URL", nargs="?", help="a site in the data folder, or any URL on it")
    add_data_options(parser)
    add_cluster_option(parser)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run ``vedette retry``: requeue failed URLs, and print how many."""
    done = execute(options, RetryFailed(_find_target(options) if options.target else ""))
    is_none = done["done"] == NOTHING_FAILED
    if done["running"]:
        when = "; hosts that could not be reached are tried again now" if is_none else ""
    else:
        when = "" if is_none else f"; fetched with the next {format_command('up', options)}"
    print(json.dumps(done) if options.json else f"{done['done'][0].upper()}{done['done'][1:]}{when}.")
    return 0


def _find_target(options: argparse.Namespace) -> str:
    """Return the typed URL; a host alone means the site that starts there, whatever its scheme."""
    typed = read_site(options.target).start
    cluster = open_cluster(options)
    rows = open_data_folder(options).site_rows() if cluster is None else cluster.sites.list_sites()
    starts = [row.site.start for row in rows]
    spellings = (typed, typed.replace("https://", "http://", 1))
    return next((start for start in spellings if start in starts), typed)
