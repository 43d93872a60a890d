"""``vedette up``: add new sites, print where things are served, and run the process tree until it is stopped."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace

from vedette.adapters.crawl_store.data_folder import lock_folder, open_for_write
from vedette.adapters.crawl_store.store import SiteRow
from vedette.cli.commands.crawl import format_summary
from vedette.cli.commands.token import console_lines, ensure_token
from vedette.cli.data_folder import (
    ACTOR,
    apply_configured_sites,
    crawl_settings,
    format_command,
    open_data_folder,
    print_note,
    read_sites,
    take_back_contact,
)
from vedette.cli.options import (
    add_data_options,
    add_fetch_options,
    add_listen_options,
    add_output_options,
    add_scope_options,
)
from vedette.cli.output import format_count
from vedette.cli.progress import Screen
from vedette.errors import UsageError
from vedette.model import Site
from vedette.runtime.commands.executor import execute_command
from vedette.runtime.processes.run import check_serving, check_sites, find_blocked_sites, run_to_end
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.web.commands.commands import AddSite
from vedette.web.server import bind

DESCRIPTION = """\
Add the given sites, if they are new, then crawl all sites in the data folder,
keep them fresh, and serve the search page, the console and the API.
Press Ctrl-C to stop; run the same command again to continue. Use
"vedette sites" to change sites while it runs.

  vedette up https://example.org/ --contact me@example.org
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and options of ``vedette up``."""
    parser.add_argument("sites", metavar="SITE", nargs="*", help="a site to add: an http(s) URL or a host name")
    add_scope_options(parser)
    add_fetch_options(parser)
    add_listen_options(parser, "address of the search page, console and API; empty for none (default: 127.0.0.1:8080)")
    add_data_options(parser)
    add_output_options(parser, "print one JSON object at the end and nothing else")
    parser.add_argument("--quiet", action="store_true", help="do not show progress")


def run(options: argparse.Namespace) -> int:
    """Run ``vedette up``: add new sites, crawl and serve, show progress and print a summary."""
    settings = replace(crawl_settings(options), forever=True)
    check_serving(settings.config)
    named = read_sites(options)
    listen = options.listen if options.listen is not None else settings.config.serve.listen
    if settings.folder.exists():
        lock_folder(settings.folder).close()
    take_back_contact(options)
    apply_configured_sites(options)
    rows = open_data_folder(options).site_rows()
    if not rows and not named and not listen:
        raise UsageError(
            f'{settings.folder} has no sites yet: pass one, such as "vedette up https://example.org/", or add one with '
            '"vedette sites add"'
        )
    new = _select_new_sites(named, rows)
    check_sites(replace(settings, sites=new), print_note)
    sys.stderr.writelines(f"vedette: {words}\n" for words in find_blocked_sites(settings, rows))
    listener = bind(listen) if listen else None
    _add_sites(settings, new)
    settings = replace(settings, listener=listener)
    token = ensure_token(settings) if listener else ""
    lock = lock_folder(settings.folder)  # before anyone reads that it runs, and sends a command
    quiet = options.quiet or options.json
    if not options.json:
        print(
            _format_welcome(
                options, settings, [*rows, *(SiteRow(site, paused=False, added_s=0.0) for site in new)], token
            ),
            flush=True,
        )
    with Screen(f"{format_count(len(rows) + len(new), 'site')}", quiet=quiet, note="Ctrl-C to stop") as screen:
        numbers = run_to_end(settings, screen.update, on_note=print_note, lock=lock)
    if options.json:
        print(json.dumps({"data": str(settings.folder), **numbers}))
    else:
        print(format_summary(numbers))
        print(f"The data is in {settings.folder}.\nContinue with  {format_command('up', options)}")
    return 0


def search_address(settings: RuntimeSettings) -> str:
    """Return the address at which ``vedette up`` serves the search page to a browser."""
    assert settings.listener is not None
    host, port = settings.listener.getsockname()[:2]
    return settings.config.serve.address or f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def _select_new_sites(sites: Sequence[Site], rows: Sequence[SiteRow]) -> tuple[Site, ...]:
    """Select the sites of the ``vedette up`` command line that are not added yet; others keep their settings."""
    existing = [row.site.start for row in rows]
    return tuple({site.start: site for site in sites if site.start not in existing}.values())


def _add_sites(settings: RuntimeSettings, new: Sequence[Site]) -> None:
    if new:
        now_s = settings.clock.now()
        with open_for_write(settings.folder, settings.clock.wall_now()) as state:
            for site in new:
                execute_command(AddSite(site), state, now_s, ACTOR, settings.config.crawl.delay_s)


def _format_welcome(options: argparse.Namespace, settings: RuntimeSettings, rows: Sequence[SiteRow], token: str) -> str:
    paused = [row.site.start for row in rows if row.paused]
    starts = [row.site.start for row in rows if not row.paused]
    more = f" and {len(starts) - 3} more" if len(starts) > 3 else ""
    lines = [
        f"Data    {settings.folder}",
        f"Search  {search_address(settings)}" if settings.listener else "Search  not served: serve.listen is empty",
        *(
            console_lines(search_address(settings), token, format_command("token new", options))
            if settings.listener
            else ()
        ),
        f"Sites   {', '.join(starts[:3])}{more}" if starts else f"Sites   {_describe_no_sites(paused)}",
        "Stop    Ctrl-C",
        f"Try     {format_command('search WORDS', options)}",
        f"        {format_command('status', options)}",
        f"        {format_command('explain URL', options)}",
    ]
    if paused:
        line = f"Paused  {', '.join(paused[:3])}; to resume: {format_command('sites resume SITE', options)}"
        lines.insert(lines.index("Stop    Ctrl-C"), line)
    return "\n".join([*lines, ""])


def _describe_no_sites(paused: Sequence[str]) -> str:
    return "all paused" if paused else "none yet: add the first one in the console"
