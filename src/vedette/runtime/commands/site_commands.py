"""Execute commands on sites: add, change, pause, remove, import.

A command is checked as a whole before anything is written. Each returns what was done, and the commands that undo it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.crawl_store.reader import StateReader
from vedette.adapters.crawl_store.store import SiteRow
from vedette.adapters.net.renderer import explain_missing_browser
from vedette.discover.urls.scope import SiteIndex, check_scope
from vedette.errors import SiteError
from vedette.model import Overrule, Refusal, Site, origin_of, partition_of
from vedette.runtime.commands.recheck import reindex_pages, requeue_urls
from vedette.suggest import did_you_mean
from vedette.web.commands.commands import AddSite, Command, ImportSites, PauseSite, RemoveSite, SetSite

# What an operator may overrule, and the refusals that this lifts.
OVERRULED_REFUSALS: Mapping[Overrule, Refusal] = {"trap": Refusal.TRAP, "copy": Refusal.COPY}


SiteCommand = AddSite | SetSite | PauseSite | RemoveSite | ImportSites


def execute_site_command(command: SiteCommand, state: State, now_s: float) -> tuple[str, tuple[Command, ...]]:
    """Execute a command on sites in the state; return what was done, and the commands that undo it."""
    rows = {row.site.start: row for row in state.store.list_sites()}
    _check_render(command)
    inverse = _build_inverse(command, rows)
    if isinstance(command, AddSite):
        done = _add_site(command, state, rows, now_s)
    elif isinstance(command, ImportSites):
        done = _import_sites(command, state, rows, now_s)
    elif isinstance(command, RemoveSite):
        done = _remove_site(command, state, rows)
    else:
        done = _change_site(command, state, rows)
    _requeue_in_scope(state)
    old = {start: row.site for start, row in rows.items()}
    done += _requeue_overruled(state, old)
    _reindex_rejudged(state, old)
    return done, inverse


def _check_render(command: SiteCommand) -> None:
    """Refuse to render all pages of a site if there is no browser."""
    sites = [site for site, _ in command.sites] if isinstance(command, ImportSites) else []
    sites += [command.site] if isinstance(command, AddSite) else []
    modes = [site.render for site in sites] + ([command.changes.get("render")] if isinstance(command, SetSite) else [])
    if "always" in modes and (missing := explain_missing_browser()):
        raise SiteError(f"render=always: {missing}")


def _build_inverse(command: SiteCommand, rows: Mapping[str, SiteRow]) -> tuple[Command, ...]:
    """Build the commands that undo a site command; none for one that will be refused."""
    if isinstance(command, ImportSites):
        there = [rows[site.start] for site, _ in command.sites if site.start in rows]
        new = [RemoveSite(site.start, with_pages=True) for site, _ in command.sites if site.start not in rows]
        return (*((ImportSites(tuple((row.site, row.paused) for row in there)),) if there else ()), *new)
    if isinstance(command, AddSite):
        return (RemoveSite(command.site.start, with_pages=True),)
    row = rows.get(command.start)
    if row is None:
        return ()
    if isinstance(command, RemoveSite):
        return (AddSite(row.site, paused=row.paused),)
    if isinstance(command, PauseSite):
        return (PauseSite(command.start, paused=row.paused),)
    before = {field: getattr(row.site, field) for field in command.changes}
    return (SetSite(command.start, before, "settings back"),)


def _add_site(command: AddSite, state: State, rows: Mapping[str, SiteRow], now_s: float) -> str:
    start = command.site.start
    if start in rows:
        raise SiteError(f'{start} already exists: change it with "vedette sites set {start} …"')
    state.store.save_site(SiteRow(command.site, paused=command.paused, added_s=now_s))
    return f"added {start}{_describe_robots_override(command.site)}"


def _import_sites(command: ImportSites, state: State, rows: Mapping[str, SiteRow], now_s: float) -> str:
    for site, paused in command.sites:
        existing = rows.get(site.start)
        state.store.save_site(SiteRow(site, paused, existing.added_s if existing else now_s))
    new = sum(site.start not in rows for site, _ in command.sites)
    owned = "".join(_describe_robots_override(site) for site, _ in command.sites)
    return f"imported {len(command.sites)} ({new} new){owned}"


def _change_site(command: SetSite | PauseSite, state: State, rows: Mapping[str, SiteRow]) -> str:
    row = _find_site(command.start, rows)
    if isinstance(command, PauseSite):
        state.store.save_site(replace(row, paused=command.paused))
        return f"{'paused' if command.paused else 'resumed'} {command.start}"
    changes: Any = command.changes
    site = replace(row.site, **changes)
    state.store.save_site(replace(row, site=site))
    owned = _describe_robots_override(site) if "ignore_robots" in changes else ""
    return f"set {command.typed} of {command.start}{owned}"


def _remove_site(command: RemoveSite, state: State, rows: Mapping[str, SiteRow]) -> str:
    row = _find_site(command.start, rows)
    state.store.delete_site(command.start)
    if not command.with_pages:
        return f"removed {command.start}; its pages are kept"
    others = SiteIndex([other.site for other in rows.values() if other is not row])
    forgotten = _forget_pages(state, row.site, others)
    return f"removed {command.start} and {forgotten} URL{'' if forgotten == 1 else 's'}"


def _forget_pages(state: State, site: Site, others: SiteIndex) -> int:
    """Delete the pages of a removed site that no other site covers.

    URLs stay known, so that ids never change; without a page they are queued, and refused when their turn comes.
    """
    partition = partition_of(origin_of(site.start).host)
    ids = [
        id_
        for id_, url in state.store.iter_partition_urls(partition)
        if check_scope(url, site) is None and others.find_site(url) is None
    ]
    requeue_urls(state, ids, without_pages=True)
    return len(ids)


def _requeue_in_scope(state: State) -> None:
    """Requeue URLs that no site covered before the site command, but one covers now."""
    sites = SiteIndex([row.site for row in state.store.list_sites()])
    noted = state.store.find_urls_by_note(str(Refusal.OUT_OF_SCOPE))
    requeue_urls(state, [id_ for id_, url in noted if sites.find_site(url) is not None])


def _requeue_overruled(state: State, old: Mapping[str, Site]) -> str:
    """Requeue URLs refused by a judgment that their site now overrules; return how many, in words."""
    now = {row.site.start: row.site for row in state.store.list_sites()}
    sites = SiteIndex(list(now.values()))
    ids: list[int] = []
    for name, refusal in OVERRULED_REFUSALS.items():
        gained = {start for start in now if name in now[start].overrule and name not in _get_overrules(start, old)}
        if gained:
            refused = StateReader(state.db).list_refused(refusal)
            ids += [id_ for id_, url in refused if (site := sites.find_site(url)) is not None and site.start in gained]
    requeue_urls(state, ids)
    return f"; {len(ids)} URL{'' if len(ids) == 1 else 's'} queued again" if ids else ""


def _reindex_rejudged(state: State, old: Mapping[str, Site]) -> None:
    """Reindex the pages of each site whose overruled judgments the site command changed."""
    now = {row.site.start: row.site for row in state.store.list_sites()}
    for start, site in {**old, **now}.items():
        if _get_overrules(start, old) != _get_overrules(start, now):
            urls = state.store.iter_partition_urls(partition_of(origin_of(start).host))
            reindex_pages(state, [id_ for id_, url in urls if check_scope(url, site) is None])


def _get_overrules(start: str, sites: Mapping[str, Site]) -> tuple[Overrule, ...]:
    return sites[start].overrule if start in sites else ()


def _find_site(start: str, rows: Mapping[str, SiteRow]) -> SiteRow:
    if start not in rows:
        raise SiteError(f"{start} is not a site in this folder; {_suggest(start, rows)}")
    return rows[start]


def _suggest(start: str, starts: Iterable[str]) -> str:
    return did_you_mean(start, starts, 'for a list, run "vedette sites list"', cutoff=0.75)


def _describe_robots_override(site: Site) -> str:
    return (
        f" (robots.txt of {site.start} is ignored: the operator confirmed owning the site)"
        if site.ignore_robots
        else ""
    )
