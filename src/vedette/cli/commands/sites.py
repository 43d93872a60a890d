"""``vedette sites …``: manage the sites of a data folder and their settings; each change is logged."""

import argparse
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from vedette.adapters.crawl_store.reader import SiteCount, open_state_reader
from vedette.adapters.crawl_store.unlisted_host_store import UnlistedHostRow, build_host_filter
from vedette.adapters.net.dns import resolve_host
from vedette.cli.data_folder import (
    data_folder,
    execute,
    execute_and_print,
    format_command,
    open_cluster,
    read_exported_file,
)
from vedette.cli.options import (
    Subparsers,
    add_cluster_options,
    add_folder_subcommand,
    add_scope_options,
    add_subcommands,
    require_subcommand,
)
from vedette.cli.output import format_count, sanitize
from vedette.config.site_settings import (
    OWNERSHIP_PHRASE,
    describe_settings,
    format_sites,
    parse_changes,
    parse_sites,
    site_of_text,
    validate_site,
)
from vedette.discover.urls.scope import read_site
from vedette.errors import SiteError, UsageError
from vedette.model import Failure, Site, origin_of
from vedette.web.commands.commands import AddSite, Command, ImportSites, PauseSite, RemoveSite, SetSite
from vedette.web.console.ports.sites import UnlistedHost

MAX_OFFERED = 1000

DESCRIPTION = """\
Manage the sites in a data folder and their settings. A running "vedette up"
applies changes immediately; otherwise they take effect when you start it.

  vedette sites add https://example.org/docs/ --scope prefix --delay 2s
  vedette sites set https://example.org/docs/ delay=5s hours=22:00-06:00
  vedette sites set https://example.org/docs/ change=text overrule=trap,spam
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of ``vedette sites`` and their options."""
    inner = add_subcommands(parser)
    add_folder_subcommand(inner, "list", "list all sites with their numbers of pages and known URLs", _list)
    _add_parser_for_add(inner)
    _add_set_command(inner)
    for name, purpose in (
        ("pause", "stop fetching from a site until you resume it"),
        ("resume", "resume a paused site"),
    ):
        _add_site_argument(add_folder_subcommand(inner, name, purpose, partial(_pause, paused=name == "pause")))
    remove = add_folder_subcommand(inner, "remove", "stop crawling a site but keep its pages", _remove)
    _add_site_argument(remove)
    remove.add_argument("--with-pages", action="store_true", help="also delete the site's pages")
    add_folder_subcommand(inner, "export", "write all sites as TOML, for import", _export)
    load = add_folder_subcommand(inner, "import", "add or update sites from a file written by export", _import)
    load.add_argument(
        "file", metavar="FILE", type=Path, help="a TOML file with one [[site]] table per site, or - for standard input"
    )
    purpose = "list hosts that your pages link to but that are not part of any site"
    offered = add_folder_subcommand(inner, "offered", purpose, _list_unlisted_hosts)
    offered.add_argument("--limit", metavar="N", type=_parse_limit, default=20, help="list at most N (default: 20)")
    add_cluster_options(inner)


run = require_subcommand


def _add_parser_for_add(inner: Subparsers) -> None:
    parser = add_folder_subcommand(inner, "add", "add a site", _add)
    _add_site_argument(parser)
    add_scope_options(parser)
    parser.add_argument(
        "--delay", metavar="TIME", help="how long to pause after each response from the site's hosts, such as 2s"
    )
    parser.add_argument("--hours", metavar="SPANS", help="fetch only at these times (UTC), such as 22:00-06:00")
    parser.add_argument(
        "--busy-hours",
        metavar="SPANS",
        help="hours (UTC) when fetching costs more, and by what factor, such as 08:00-18:00x3",
    )
    parser.add_argument("--bytes-per-s", metavar="SIZE", help="average bandwidth limit per second, such as 100kB")
    parser.add_argument("--allow-private", action="store_true", help="allow private addresses for the site's hosts")
    parser.add_argument(
        "--ignore-robots",
        metavar=OWNERSHIP_PHRASE,
        help=f"ignore the site's robots.txt; pass {OWNERSHIP_PHRASE} to confirm that you own it",
    )
    parser.add_argument(
        "--secrets",
        metavar="PLACE",
        help="where to read headers that are only sent to this site: env:NAME or file:PATH",
    )
    parser.add_argument(
        "--change",
        metavar="RULE",
        help="what counts as a change to a page: queries (the default), main, text, bytes or links",
    )
    parser.add_argument(
        "--overrule",
        metavar="NAMES",
        help="comma-separated automatic judgments to ignore: trap, copy, missing, script, empty, thin, spam",
    )
    parser.add_argument(
        "--readers",
        metavar="NAMES",
        help="who can find the site's pages if they are fetched with credentials: key or user names, separated by "
        "commas, or * for any signed-in user",
    )
    parser.add_argument(
        "--share",
        metavar="PART",
        help="the site's share of crawl.budget, such as 20%%; it gets more only if other sites leave some unused",
    )
    parser.add_argument(
        "--promise",
        metavar="PLACE=TIME",
        action="append",
        help="fetch this source at least this often, regardless of cost, such as /news=15min (may be repeated)",
    )
    parser.add_argument(
        "--sitemap",
        metavar="URL",
        action="append",
        help="a sitemap not listed in the site's robots.txt, such as /news-sitemap.xml (may be repeated)",
    )
    parser.add_argument(
        "--render",
        metavar="WHEN",
        help="render the site's pages in a browser: auto (the default: pages that look empty), always or never",
    )
    parser.add_argument(
        "--render-from",
        metavar="HOSTS",
        help="comma-separated list of other hosts that rendered pages may load from",
    )


def _add_set_command(inner: Subparsers) -> None:
    parser = add_folder_subcommand(inner, "set", "change settings of a site", _set)
    _add_site_argument(parser)
    parser.add_argument(
        "changes",
        metavar="KEY=VALUE",
        nargs="+",
        help="a setting and its new value, such as delay=5s; an empty value restores the default. include, exclude, "
        "drop_parameters, promise and sitemap may be repeated",
    )


def _add_site_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("site", metavar="SITE", help="an http(s) URL or a host name")


def _parse_limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= MAX_OFFERED):
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 to {MAX_OFFERED}")
    return int(text)


def _list_unlisted_hosts(options: argparse.Namespace) -> int:
    rows = _load_unlisted_hosts(options)
    if options.json:
        print(json.dumps({"offered": [{**row._asdict(), "add": _add_site_command(row, options)} for row in rows]}))
        return 0
    for row in rows:
        linked = f"{format_count(row.pages, 'page')} of {format_count(row.domains, 'domain')}"
        print(f"{row.host}   linked from {linked}, such as {sanitize(row.example)}")
        print(f"    {_add_site_command(row, options)}")
    if not rows:
        print("No fetched pages link to hosts outside your sites.")
    return 0


def _load_unlisted_hosts(options: argparse.Namespace) -> Sequence[UnlistedHostRow | UnlistedHost]:
    if (cluster := open_cluster(options)) is not None:
        return cluster.sites.list_unlisted_hosts(options.limit)
    with open_state_reader(data_folder(options)) as view:
        sites = [row.site for row in view.store.list_sites()]
        return view.store.list_unlisted_hosts(options.limit, build_host_filter(sites, view.store.list_search_rules()))


def _load_sites(options: argparse.Namespace) -> list[tuple[Site, bool, SiteCount]]:
    """Load the sites, whether each is paused, and its numbers of pages and known URLs."""
    if (cluster := open_cluster(options)) is not None:
        lines = cluster.sites.list_sites()
        cluster.check_complete()
        return [(line.site, line.paused, SiteCount(known=line.known, pages=line.pages)) for line in lines]
    with open_state_reader(data_folder(options)) as view:
        rows = view.store.list_sites()
        counts = view.count_sites([row.site for row in rows])
    return [(row.site, row.paused, counts[row.site.start]) for row in rows]


def _add_site_command(row: UnlistedHostRow | UnlistedHost, options: argparse.Namespace) -> str:
    return format_command(f"sites add https://{row.host}/", options)


_SITE_OPTIONS = (
    *("delay", "hours", "busy_hours", "bytes_per_s", "ignore_robots", "secrets"),
    *("change", "overrule", "readers", "share", "promise", "sitemap", "render", "render_from"),
)
_VALIDATED_KEYS = frozenset({"scope", "include", "exclude", "change", "overrule"})


def _list(options: argparse.Namespace) -> int:
    rows = _load_sites(options)
    if options.json:
        sites = [
            {**_site_to_dict(site, paused=paused), "known": count.known, "pages": count.pages}
            for site, paused, count in rows
        ]
        print(json.dumps({"sites": sites}))
        return 0
    for site, paused, count in rows:
        numbers = f"{format_count(count.pages, 'page')} of {format_count(count.known, 'known URL')}"
        print(f"{site.start}   {'paused, ' if paused else ''}{numbers}   {describe_settings(site)}")
    if not rows:
        print(f"No sites yet. To add one: {format_command('sites add SITE', options)}")
    return 0


def _add(options: argparse.Namespace) -> int:
    settings: dict[str, object] = {"scope": options.scope, "include": options.include, "exclude": options.exclude}
    settings["allow_private"] = options.allow_private
    typed = {key: getattr(options, key) for key in _SITE_OPTIONS}
    site = site_of_text(options.site, {**settings, **{key: value for key, value in typed.items() if value is not None}})
    done = execute(options, AddSite(site))
    preview = _preview_site(site)
    if options.json:
        print(json.dumps({**done, **preview, "site": _site_to_dict(site, paused=False)}))
        return 0
    print(f"Added     {site.start} ({describe_settings(site)})")
    print(f"Covers    {preview['takes']}")
    print(f"Host      {preview['host']}: {preview['addresses']}")
    ignored = "ignored, because you confirmed that you own the site; " if site.ignore_robots else ""
    print(f"robots    {ignored}{preview['robots']}")
    print(f"Undo      {format_command('sites remove ' + site.start, options)}")
    if not done["running"]:
        print(f"Start     {format_command('up', options)}")
    return 0


def _preview_site(site: Site) -> dict[str, Any]:
    origin = origin_of(site.start)
    found = resolve_host(origin.host)
    if found.failure is Failure.NAME:
        addresses = "the host name does not resolve; check the spelling"
    else:
        addresses = ", ".join(found.addresses) or "the DNS resolver does not respond"
    return {"takes": _describe_scope(site), "host": origin.host, "addresses": addresses, "robots": origin.robots_url}


def _describe_scope(site: Site) -> str:
    origin = origin_of(site.start)
    if site.scope == "prefix":
        return f"URLs that start with {site.start.partition('?')[0].rpartition('/')[0]}/"
    return f"all URLs on {origin.host}" + (
        " and the other hosts of its registered domain" if site.scope == "domain" else ""
    )


def _set(options: argparse.Namespace) -> int:
    start, changes = read_site(options.site).start, parse_changes(options.changes)
    fields: Any = {key: value for key, value in changes.items() if key in _VALIDATED_KEYS}
    validate_site(Site(start, **fields))
    return _execute_and_print(options, SetSite(start, changes, " ".join(options.changes)))


def _pause(options: argparse.Namespace, *, paused: bool) -> int:
    return _execute_and_print(options, PauseSite(read_site(options.site).start, paused=paused))


def _remove(options: argparse.Namespace) -> int:
    return _execute_and_print(options, RemoveSite(read_site(options.site).start, with_pages=options.with_pages))


def _export(options: argparse.Namespace) -> int:
    rows = [(site, paused) for site, paused, _ in _load_sites(options)]
    if options.json:
        print(json.dumps({"sites": [_site_to_dict(site, paused=paused) for site, paused in rows]}))
    else:
        print(format_sites(rows), end="")
    return 0


def _import(options: argparse.Namespace) -> int:
    sites = parse_sites(read_exported_file(options.file), str(options.file))
    if not sites:
        raise UsageError(f"{options.file} contains no sites: add one [[site]] table per site")
    return _execute_and_print(options, ImportSites(sites))


def _execute_and_print(options: argparse.Namespace, command: Command) -> int:
    folder = data_folder(options)
    if not options.cluster and not (folder / "state.db").exists() and not isinstance(command, ImportSites):
        raise SiteError(
            f'{folder} has no sites yet: add one with "vedette sites add SITE", or choose another folder with --data'
        )
    return execute_and_print(options, command)


def _site_to_dict(site: Site, *, paused: bool) -> dict[str, Any]:
    return {
        "start": site.start,
        "scope": site.scope,
        "include": site.include,
        "exclude": site.exclude,
        "sort_parameters": site.sort_parameters,
        "drop_parameters": site.drop_parameters,
        "delay_s": site.delay_s,
        "hours": site.hours,
        "busy_hours": site.busy_hours,
        "bytes_per_s": site.bytes_per_s,
        "ignore_robots": site.ignore_robots,
        "allow_private": site.allow_private,
        "secrets": site.secrets,
        "change": site.change,
        "overrule": site.overrule,
        "readers": site.readers,
        "share": site.share,
        "sitemap": site.sitemap,
        "render": site.render,
        "render_from": site.render_from,
        "paused": paused,
    }
