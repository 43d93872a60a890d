"""What ``vedette sites …`` does: through the keeper where one runs, else on the held folder; each action is logged."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vedette.adapters.crawl_store.reader import open_view
from vedette.adapters.crawl_store.unlisted_host_store import StrangerRow, left_out
from vedette.adapters.net.dns import look_up
from vedette.cli.data_folder import folder_of, hint, ordered, sentence
from vedette.cli.inner_verbs import add_inner
from vedette.cli.options import add_scope
from vedette.cli.output import counted, plain
from vedette.config.site_settings import changes_of, checked, read_sites, settings_in_words, site_of_text, write_sites
from vedette.discover.urls.scope import read_site
from vedette.errors import SiteError, UsageError
from vedette.model import Failure, Site, origin_of
from vedette.web.commands.commands import AddSite, ImportSites, Order, PauseSite, RemoveSite, SetSite

__all__ = ["VERBS", "VERBS_SITES", "add"]

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser


OWNED = "I-OWN-THIS-SITE"  # as ``config.site_text`` reads it, which is too heavy to load for a help text
MOST_OFFERED = 1000

DESCRIPTION = """\
The sites of a data folder and their settings. Changes hold at once where "vedette up"
runs, and from the next start on where nothing does.

  vedette sites add https://example.org/docs/ --scope prefix --delay 2s
  vedette sites set https://example.org/docs/ delay=5s hours=22:00-06:00
  vedette sites set https://example.org/docs/ change=text overrule=trap,spam
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb, its verbs and their options."""
    sites = verbs.add_parser("sites", help="what is crawled, and how", description=DESCRIPTION)
    sites.set_defaults(run=_say_what, parser=sites)
    inner = sites.add_subparsers(metavar="VERB", parser_class=type(sites))
    _verb(inner, "list", "all sites, with the pages known and kept")
    _add_add(inner)
    _add_set(inner)
    for name, purpose in (
        ("pause", "ask nothing more of a site, until it is resumed"),
        ("resume", "go on with a paused site"),
    ):
        _named(_verb(inner, name, purpose))
    remove = _verb(inner, "remove", "crawl a site no more; its pages stay")
    _named(remove)
    remove.add_argument("--with-pages", action="store_true", help="forget its pages, too")
    _verb(inner, "export", "write all sites as TOML, for import")
    _verb(inner, "import", "add or change sites from a file that export wrote").add_argument(
        "file", metavar="FILE", type=Path, help="TOML with one [[site]] table a site; - for standard input"
    )
    add_inner(inner, "offered", "hosts that pages link to and that no site takes", "offering").add_argument(
        "--limit", metavar="N", type=_limit, default=20, help="how many (default: 20)"
    )


def _add_add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    parser = _verb(verbs, "add", "crawl one more site")
    _named(parser)
    add_scope(parser)
    parser.add_argument("--delay", metavar="TIME", help="pause after each answer of its host, such as 2s")
    parser.add_argument("--hours", metavar="SPANS", help="only at these times (UTC), such as 22:00-06:00")
    parser.add_argument("--bytes-per-s", metavar="SIZE", help="no more than this on average, such as 100kB")
    parser.add_argument("--allow-private", action="store_true", help="its hosts may lie at private addresses")
    parser.add_argument(
        "--ignore-robots", metavar=OWNED, help=f"do not obey its robots.txt; you confirm it by writing {OWNED}"
    )
    parser.add_argument(
        "--secrets", metavar="PLACE", help="env:NAME or file:PATH with headers that are sent to this site only"
    )
    parser.add_argument(
        "--change",
        metavar="RULE",
        help="what counts as a change of a page: bytes, text, main (its main text, the default) or links",
    )
    parser.add_argument(
        "--overrule",
        metavar="NAMES",
        help="judgements that you do not share: some of trap, copy, missing, script, empty, thin, spam, with commas",
    )
    parser.add_argument(
        "--readers",
        metavar="NAMES",
        help="who may find its pages where they are fetched with secrets: names of keys or users, with commas; * for "
        "everybody who has a name",
    )
    parser.add_argument(
        "--share", metavar="PART", help="its part of crawl.budget, such as 20%%; more only where nobody else takes it"
    )
    parser.add_argument(
        "--promise",
        metavar="PLACE=TIME",
        action="append",
        help="fetch this source at least so often, whatever it costs, such as /news=15min (may be repeated)",
    )


def _add_set(verbs: "argparse._SubParsersAction[Parser]") -> None:
    parser = _verb(verbs, "set", "change settings of a site")
    _named(parser)
    parser.add_argument(
        "changes",
        metavar="KEY=VALUE",
        nargs="+",
        help="such as delay=5s; nothing after = takes a setting back; include, exclude, drop_parameters and promise "
        "may be repeated",
    )


def _verb(verbs: "argparse._SubParsersAction[Parser]", name: str, purpose: str) -> "Parser":
    return add_inner(verbs, name, purpose, "siting")


def _named(parser: "Parser") -> None:
    parser.add_argument("site", metavar="SITE", help="an http(s) URL or a host name, as it was added")


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and 1 <= int(text) <= MOST_OFFERED):
        raise argparse.ArgumentTypeError(f"write a whole number from 1 to {MOST_OFFERED}")
    return int(text)


def _say_what(_: argparse.Namespace) -> int:
    raise UsageError("say list, add, set, pause, resume, remove, export, import or offered; see vedette sites --help")


def _offered(options: argparse.Namespace) -> int:
    with open_view(folder_of(options)) as view:
        sites = [row.site for row in view.book.sites()]
        rows = view.book.strangers(options.limit, left_out(sites, view.book.search_rules()))
    if options.json:
        print(json.dumps({"offered": [{**row._asdict(), "add": _add(row, options)} for row in rows]}))
        return 0
    for row in rows:
        linked = f"{counted(row.pages, 'page')} of {counted(row.domains, 'domain')}"
        print(f"{row.host}   linked from {linked}, such as {plain(row.example)}\n    {_add(row, options)}")
    if not rows:
        print("No pages link to hosts that no site takes, as far as they were fetched.")
    return 0


def _add(row: StrangerRow, options: argparse.Namespace) -> str:
    return hint(f"sites add https://{row.host}/", options)


VERBS: Mapping[str, Callable[[argparse.Namespace], int]] = {"offered": _offered}


Told = dict[str, Any]

_TYPED = (
    *("delay", "hours", "bytes_per_s", "ignore_robots", "secrets"),
    *("change", "overrule", "readers", "share", "promise"),
)
_CHECKED = frozenset({"scope", "include", "exclude", "change", "overrule"})


def _list(options: argparse.Namespace) -> int:
    with open_view(folder_of(options)) as view:
        rows = view.book.sites()
        counts = view.site_counts(rows)
    if options.json:
        sites = [
            {**_as_json(row.site, paused=row.paused), "known": count.known, "pages": count.pages}
            for row, count in zip(rows, counts, strict=True)
        ]
        print(json.dumps({"sites": sites}))
        return 0
    for row, count in zip(rows, counts, strict=True):
        numbers = f"{counted(count.pages, 'page')} of {counted(count.known, 'known URL')}"
        print(f"{row.site.start}   {'paused, ' if row.paused else ''}{numbers}   {settings_in_words(row.site)}")
    if not rows:
        print(f"No sites yet: {hint('sites add SITE', options)} adds one.")
    return 0


def _add_sites(options: argparse.Namespace) -> int:
    settings: dict[str, object] = {"scope": options.scope, "include": options.include, "exclude": options.exclude}
    settings["allow_private"] = options.allow_private
    typed = {key: getattr(options, key) for key in _TYPED}
    site = site_of_text(options.site, {**settings, **{key: value for key, value in typed.items() if value is not None}})
    told = _ordered(options, AddSite(site))
    preview = _preview(site)
    if options.json:
        print(json.dumps({**told, **preview, "site": _as_json(site, paused=False)}))
        return 0
    print(f"Added     {site.start} ({settings_in_words(site)})")
    print(f"Takes     {preview['takes']}")
    print(f"Host      {preview['host']}: {preview['addresses']}")
    ignored = "ignored, as you confirmed the site as your own; " if site.ignore_robots else ""
    print(f"robots    {ignored}{preview['robots']}")
    print(f"Undo      {hint('sites remove ' + site.start, options)}")
    if not told["running"]:
        print(f"Start     {hint('up', options)}")
    return 0


def _preview(site: Site) -> Told:
    origin = origin_of(site.start)
    found = look_up(origin.host)
    if found.failure is Failure.NAME:
        addresses = "no such name, as far as the resolver knows; check the spelling"
    else:
        addresses = ", ".join(found.addresses) or "the resolver does not answer"
    return {"takes": _takes(site), "host": origin.host, "addresses": addresses, "robots": origin.robots_url}


def _takes(site: Site) -> str:
    origin = origin_of(site.start)
    if site.scope == "prefix":
        return f"URLs that begin with {site.start.partition('?')[0].rpartition('/')[0]}/"
    return f"all URLs of {origin.host}" + (" and the hosts of its registered domain" if site.scope == "domain" else "")


def _set(options: argparse.Namespace) -> int:
    start, changes = read_site(options.site).start, changes_of(options.changes)
    fields: Any = {key: value for key, value in changes.items() if key in _CHECKED}
    checked(Site(start, **fields))
    return _said(options, _ordered(options, SetSite(start, changes, " ".join(options.changes))))


def _pause(options: argparse.Namespace) -> int:
    return _said(options, _ordered(options, PauseSite(read_site(options.site).start, paused=True)))


def _resume(options: argparse.Namespace) -> int:
    return _said(options, _ordered(options, PauseSite(read_site(options.site).start, paused=False)))


def _remove(options: argparse.Namespace) -> int:
    order = RemoveSite(read_site(options.site).start, with_pages=options.with_pages)
    return _said(options, _ordered(options, order))


def _export(options: argparse.Namespace) -> int:
    with open_view(folder_of(options)) as view:
        rows = view.book.sites()
    if options.json:
        print(json.dumps({"sites": [_as_json(row.site, paused=row.paused) for row in rows]}))
    else:
        print(write_sites((row.site, row.paused) for row in rows), end="")
    return 0


def _import(options: argparse.Namespace) -> int:
    sites = read_sites(_read(options.file), str(options.file))
    if not sites:
        raise UsageError(f"{options.file}: holds no site: write one [[site]] table a site")
    return _said(options, _ordered(options, ImportSites(sites)))


def _read(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UsageError(f"{file}: no such file; name one that export wrote") from None
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise UsageError(f"{file}: cannot be read ({reason}); name a file that export wrote") from None


def _ordered(options: argparse.Namespace, order: Order) -> Told:
    """Carry an order out, where it holds at once or else from the next start on."""
    folder = folder_of(options)
    if not (folder / "state.db").exists() and not isinstance(order, AddSite | ImportSites):
        raise SiteError(f'{folder} has no sites yet: "vedette sites add SITE" adds one; --data names another folder')
    return ordered(options, order)


def _said(options: argparse.Namespace, told: Told) -> int:
    print(json.dumps(told) if options.json else sentence(told, options))
    return 0


def _as_json(site: Site, *, paused: bool) -> Told:
    return {
        "start": site.start,
        "scope": site.scope,
        "include": site.include,
        "exclude": site.exclude,
        "sort_parameters": site.sort_parameters,
        "drop_parameters": site.drop_parameters,
        "delay_s": site.delay_s,
        "hours": site.hours,
        "bytes_per_s": site.bytes_per_s,
        "ignore_robots": site.ignore_robots,
        "allow_private": site.allow_private,
        "secrets": site.secrets,
        "change": site.change,
        "overrule": site.overrule,
        "readers": site.readers,
        "share": site.share,
        "paused": paused,
    }


VERBS_SITES: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "list": _list,
    "add": _add_sites,
    "set": _set,
    "pause": _pause,
    "resume": _resume,
    "remove": _remove,
    "export": _export,
    "import": _import,
}
