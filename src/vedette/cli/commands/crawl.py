"""``vedette crawl SITE…``: fetch the pages of sites until nothing is left, with a progress screen and a summary."""

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any

from vedette.api import CrawlOptions
from vedette.cli.data_folder import (
    apply_configured_sites,
    crawl_options,
    format_command,
    open_for_crawl,
    print_note,
    read_sites,
    take_back_contact,
)
from vedette.cli.options import (
    add_data_options,
    add_fetch_options,
    add_output_options,
    add_patience_option,
    add_scope_options,
)
from vedette.cli.output import (
    format_bytes,
    format_count,
    format_counts,
    format_duration,
    format_number,
    format_relative_time,
)
from vedette.cli.progress import Screen
from vedette.errors import UsageError
from vedette.model import Site

DESCRIPTION = """\
Crawl the given sites once, politely: Vedette obeys robots.txt, sends one
request at a time to each host, and pauses after each response. Pages are stored
in the data folder; run the same command again to pick up where it left off.

  vedette crawl https://example.org/docs/ --scope prefix --pages 500 --contact me@example.org
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and options of ``vedette crawl``."""
    parser.add_argument(
        "sites",
        metavar="SITE",
        nargs="*",
        help="an http(s) URL or a host name (default: the sites in vedette.toml)",
    )
    parser.add_argument("--pages", metavar="N", type=_parse_count, help="stop after N pages")
    add_scope_options(parser)
    add_fetch_options(parser)
    add_patience_option(parser, "how long to wait for failing hosts once nothing else is left")
    add_data_options(parser)
    add_output_options(parser, "print one JSON object at the end and nothing else")
    parser.add_argument("--quiet", action="store_true", help="do not show progress")


def _parse_count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is not a number of pages: use a whole number above 0, such as 100')
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Run ``vedette crawl``: crawl the named sites, show progress and print a summary."""
    folder = open_for_crawl(options)
    sites = read_sites(options) or tuple(table.site for table in folder.config.sites if not table.paused)
    if not sites:
        raise UsageError(
            'missing SITE: pass one ("vedette crawl https://example.org/") or add [[site]] tables to vedette.toml'
        )
    take_back_contact(options)
    apply_configured_sites(options)
    note = f"Ctrl-C to stop   {folder.path}"
    with Screen(_format_headline(sites), quiet=options.quiet or options.json, note=note) as screen:
        how: CrawlOptions = {
            **crawl_options(options),
            "max_pages": options.pages,
            "patience": options.patience,
        }
        summary = folder.crawl(*sites, on_status=screen.update, on_note=print_note, **how)
    if options.json:
        print(json.dumps({"data": str(folder.path), **summary.numbers}))
    else:
        print(format_summary(summary.numbers))
        print(f"The data is in {folder.path} (state.db is an SQLite database, warc/ has the pages).")
        if summary.ending != "done":
            print(f"Continue with  {format_command('crawl', options)}")
    return 0 if summary.pages or summary.ending != "stuck" else 1


def _format_headline(sites: Sequence[Site]) -> str:
    first = sites[0].start
    return f"{first} and {len(sites) - 1} more" if len(sites) > 1 else first


def format_summary(numbers: Mapping[str, Any]) -> str:
    """Format the summary of a finished ``vedette crawl`` in a few lines."""
    if "pages" not in numbers:
        return "Nothing was fetched."
    size, hosts = format_bytes(numbers["bytes"]), format_count(numbers["hosts"], "host")
    pages, requests = format_count(numbers["pages"], "different page"), format_count(numbers["requests"], "request")
    robots = f"{format_number(numbers['robots_requests'])} for robots.txt"
    left = format_number(numbers["urls_waiting"]) if numbers["urls_waiting"] else "none"
    lines = [
        f"{pages}, {size}, from {hosts} in {format_duration(numbers['seconds'])} ({requests}, {robots}).",
        f"{format_count(numbers['urls_known'], 'URL')} known, {left} left to fetch.",
    ]
    if numbers["refusals"]:
        lines.append(f"Not fetched: {format_counts(numbers['refusals'])}.")
    if numbers["failures"]:
        lines.append(f"Failed: {format_counts(numbers['failures'])}.")
    retries = numbers.get("retries", {"urls": 0})
    if retries["urls"]:
        lines.append(
            f"{format_count(retries['urls'], 'URL')} will be retried{_format_next_try(retries['next_s'], numbers)}."
        )
    if numbers["ending"] == "stuck":
        named = [f"{name} ({trouble})" for name, trouble in numbers["hosts_in_trouble"].items()]
        when = _format_next_try(numbers["next_try_s"], numbers)
        lines.append(f"Gave up waiting for {', '.join(named[:5])}{' and others' if len(named) > 5 else ''}{when}.")
    return "\n".join(lines)


def _format_next_try(at_s: float | None, numbers: Mapping[str, Any]) -> str:
    """Format when the next try is due, in the summary of ``vedette crawl``; empty if unknown."""
    if at_s is None:
        return ""
    now_s = numbers["now_s"]
    return f"; next try {format_relative_time(at_s, now_s) if at_s >= now_s + 1 else 'is due now'}"
