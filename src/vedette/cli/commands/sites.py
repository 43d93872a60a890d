"""What ``vedette sites …`` does: through the keeper where one runs, else on the held folder; each action is logged."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from vedette.adapters.crawl_store.reader import open_view
from vedette.adapters.net.dns import look_up
from vedette.cli.data_folder import folder_of, hint
from vedette.cli.ordering import ordered, sentence
from vedette.cli.output import counted
from vedette.config.site_settings import changes_of, checked, read_sites, settings_in_words, site_of_text, write_sites
from vedette.discover.urls.scope import read_site
from vedette.errors import SiteError, UsageError
from vedette.model import Failure, Site, origin_of
from vedette.web.commands.commands import AddSite, ImportSites, Order, PauseSite, RemoveSite, SetSite

__all__ = ["VERBS"]

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


def _add(options: argparse.Namespace) -> int:
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


VERBS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "list": _list,
    "add": _add,
    "set": _set,
    "pause": _pause,
    "resume": _resume,
    "remove": _remove,
    "export": _export,
    "import": _import,
}
