"""What ``vedette up`` does: adds what is new, says where things are, and runs the tree until somebody says stop."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vedette.adapters.crawl_store.data_folder import hold
from vedette.adapters.crawl_store.reader import open_view
from vedette.adapters.crawl_store.store import SiteRow
from vedette.cli.commands.crawl import check, run_tree, settings_of, summary
from vedette.cli.commands.token import console_lines, first_token
from vedette.cli.data_folder import WHO, check_known, hint
from vedette.cli.options import add_asking, add_folder, add_output, add_scope
from vedette.cli.output import counted
from vedette.cli.progress import Screen
from vedette.errors import UsageError
from vedette.model import Site
from vedette.runtime.commands.executor import carry_out
from vedette.runtime.commands.offline import written
from vedette.runtime.processes.settings import LiveSettings
from vedette.web.commands.commands import AddSite
from vedette.web.server import bind

__all__ = ["add", "serve"]

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser


DESCRIPTION = """\
Add the sites that you name, if they are new, and keep all sites of the data folder
fresh and findable: fetch what is new, fetch again what may have changed, serve search
pages and an API. Ends with Ctrl-C; the same command goes on where it stopped. "vedette sites" changes sites meanwhile.

  vedette up https://example.org/ --contact me@example.org
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its options."""
    parser = verbs.add_parser("up", help="keep sites fresh until Ctrl-C", description=DESCRIPTION)
    parser.add_argument("sites", metavar="SITE", nargs="*", help="an http(s) URL or a host name, to be added")
    add_scope(parser)
    add_asking(parser)
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        help="where pages and API are served, empty for nowhere (default: 127.0.0.1:8080)",
    )
    add_folder(parser)
    add_output(parser, "print one JSON object at the end, and nothing else")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.set_defaults(run=run, parser=parser, pages=None, patience="5min")


def run(options: argparse.Namespace) -> int:
    """Add, serve, show progress, sum up."""
    return serve(options)


def serve(options: argparse.Namespace) -> int:
    """Add, serve, show progress, sum up."""
    named = settings_of(options)
    settings = replace(named, sites=(), forever=True)
    listen = options.listen if options.listen is not None else settings.config.serve.listen
    if settings.folder.exists():
        hold(settings.folder).close()
    rows = _known_sites(settings.folder)
    if not rows and not named.sites and not listen:
        raise UsageError(
            f'{settings.folder} has no sites yet: name one, such as "vedette up https://example.org/", or add it with '
            '"vedette sites add"'
        )
    new = _new(named.sites, rows)
    check(replace(settings, sites=new))
    sys.stderr.writelines(f"vedette: {words}\n" for words in check_known(settings, rows))
    listener = bind(listen) if listen else None
    _add(settings, new)
    settings = replace(settings, listener=listener)
    token = first_token(settings) if listener else ""
    quiet = options.quiet or options.json
    if not options.json:
        print(
            _welcome(options, settings, [*rows, *(SiteRow(site, paused=False, added_s=0.0) for site in new)], token),
            flush=True,
        )
    with Screen(f"{counted(len(rows) + len(new), 'site')}", quiet=quiet, note="Ctrl-C stops") as screen:
        told = run_tree(settings, screen.look)
    if options.json:
        print(json.dumps({"data": str(settings.folder), **told}))
    else:
        print(summary(told))
        print(f"Everything is in {settings.folder}; {hint('up', options)} goes on.")
    return 0


def address_of(settings: LiveSettings) -> str:
    """Where a browser finds the pages."""
    assert settings.listener is not None
    host, port = settings.listener.getsockname()[:2]
    return settings.config.serve.address or f"http://{f'[{host}]' if ':' in host else host}:{port}/"


def _known_sites(folder: Path) -> list[SiteRow]:
    if not (folder / "state.db").exists():
        return []
    with open_view(folder) as view:
        return view.book.sites()


def _new(sites: Sequence[Site], rows: Sequence[SiteRow]) -> tuple[Site, ...]:
    """Those that are not there yet, once each; what is there keeps the settings that it was given."""
    known = [row.site.start for row in rows]
    return tuple({site.start: site for site in sites if site.start not in known}.values())


def _add(settings: LiveSettings, new: Sequence[Site]) -> None:
    if new:
        now_s = settings.clock.now()
        with written(settings.folder, settings.clock.wall()) as state:
            for site in new:
                carry_out(AddSite(site), state, now_s, WHO)


def _welcome(options: argparse.Namespace, settings: LiveSettings, rows: Sequence[SiteRow], token: str) -> str:
    paused = [row.site.start for row in rows if row.paused]
    starts = [row.site.start for row in rows if not row.paused]
    more = f" and {len(starts) - 3} more" if len(starts) > 3 else ""
    lines = [
        f"Data    {settings.folder}",
        f"Search  {address_of(settings)}" if settings.listener else "Search  nowhere: serve.listen is empty",
        *(console_lines(address_of(settings), token, hint("token new", options)) if settings.listener else ()),
        f"Sites   {', '.join(starts[:3])}{more}" if starts else f"Sites   {_no_sites(paused)}",
        "Stop    Ctrl-C",
        f"Try     {hint('search WORDS', options)}",
        f"        {hint('status', options)}",
        f"        {hint('explain URL', options)}",
    ]
    if paused:
        said = f"Paused  {', '.join(paused[:3])}; {hint('sites resume SITE', options)} goes on with it"
        lines.insert(lines.index("Stop    Ctrl-C"), said)
    return "\n".join([*lines, ""])


def _no_sites(paused: Sequence[str]) -> str:
    return "none that is not paused" if paused else "none yet: add the first one in the console"
