"""``vedette fetch URL…``: request URLs from the running coordinator, or a temporary one, and wait for the results."""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vedette.adapters.crawl_store.reader import open_state_reader
from vedette.adapters.crawl_store.store import SiteRow
from vedette.adapters.net.ipc import Request
from vedette.cli.data_folder import crawl_settings, execute, format_done, open_cluster, print_note
from vedette.cli.options import (
    add_cluster_option,
    add_data_options,
    add_fetch_options,
    add_output_options,
    add_patience_option,
)
from vedette.cli.output import format_bytes, sanitize
from vedette.config import parse_duration
from vedette.discover.urls.scope import SiteIndex, find_refusal, find_site
from vedette.errors import SiteError, StoreError, UsageError, VedetteError
from vedette.model import is_robots_url, origin_of
from vedette.runtime.commands.client import call_coordinator, call_starting_coordinator
from vedette.runtime.processes.run import find_blocked_sites, run_to_end
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.web.commands.commands import FetchNow
from vedette.web.commands.rule_text import parse_web_url

if TYPE_CHECKING:
    from vedette.runtime.cluster.client import ClusterClient

DESCRIPTION = """\
Fetch pages now: each goes to the front of its host's queue and is fetched as
soon as the host's delay allows. If "vedette up" is running, it fetches them;
otherwise, this command does. You can also fetch a robots.txt file: pages that
it now allows are fetched, and pages that it now disallows are removed from the
index when they are next due.

  vedette fetch https://example.org/news/ https://example.org/about
  vedette fetch https://example.org/robots.txt
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and options of ``vedette fetch``."""
    parser.add_argument("urls", metavar="URL", nargs="+", help="an http(s) URL on a site in the data folder")
    parser.add_argument("--no-wait", action="store_true", help="do not wait for the results")
    add_patience_option(parser, "how long to wait for hosts that are still busy")
    add_fetch_options(parser)
    add_data_options(parser)
    add_cluster_option(parser)
    add_output_options(parser)


POLL_INTERVAL_S = 0.1
CLUSTER_POLL_INTERVAL_S = 0.5
COORDINATOR_TIMEOUT_S = 30.0

UrlStatus = dict[str, Any]


def run(options: argparse.Namespace) -> int:
    """Run ``vedette fetch``: request the URLs, wait for them and print the results."""
    if (cluster := open_cluster(options)) is not None:
        return _fetch_in_cluster(options, cluster)
    settings = crawl_settings(options)
    urls = list(dict.fromkeys(parse_web_url(text) for text in options.urls))
    wish = _FetchRequest(settings.folder, urls, parse_duration(options.patience))
    running = wish.submit(call_starting_coordinator)
    if options.no_wait:
        return _print_submitted(options, wish, running=running)
    if running:
        wish.wait()
    else:
        _run_temporary_tree(settings, wish)
    results = wish.results()
    print(json.dumps({"urls": results}) if options.json else "\n".join(map(_format_result, results)))
    return 0 if all(one["standing"] == "fetched" for one in results) else 1


def _fetch_in_cluster(options: argparse.Namespace, cluster: "ClusterClient") -> int:
    """Request URLs from the shards that own their hosts, and wait until each was fetched again."""
    urls = tuple(dict.fromkeys(parse_web_url(text) for text in options.urls))
    before = {url: cluster.sites.explain_url(url) for url in urls}
    started_s = time.monotonic()
    done = execute(options, FetchNow(urls))
    if options.no_wait:
        print(json.dumps(done) if options.json else format_done(done))
        return 0
    results: dict[str, UrlStatus] = {}
    until_s = started_s + parse_duration(options.patience)
    while len(results) < len(urls) and time.monotonic() < until_s:
        time.sleep(CLUSTER_POLL_INTERVAL_S)  # shards respond, but do not call back
        for url in (url for url in urls if url not in results):
            info = cluster.sites.explain_url(url)
            if _has_new_outcome(before[url], info):
                results[url] = _build_result(url, before[url], info, time.monotonic() - started_s)
    for url in (url for url in urls if url not in results):
        row = {"standing": "waiting", "why": "it is still waiting for its host"}
        results[url] = {"url": url, "known_as": before[url]["known_as"], "seconds": time.monotonic() - started_s, **row}
    rows = [results[url] for url in urls]
    print(json.dumps({"urls": rows}) if options.json else "\n".join(map(_format_result, rows)))
    return 0 if all(row["standing"] == "fetched" for row in rows) else 1


def _has_new_outcome(before: UrlStatus, info: UrlStatus) -> bool:
    """Check whether a URL was fetched, or has failed, since it was explained before."""
    state = info["known"] or {}
    if state.get("standing") in {"refused", "failed"}:
        return bool(state.get("ended_s") != (before["known"] or {}).get("ended_s"))
    return bool(info["page"] and info["page"]["fetched_s"] != (before["page"] or {}).get("fetched_s"))


def _build_result(url: str, before: UrlStatus, info: UrlStatus, seconds: float) -> UrlStatus:
    """Build what is printed of a fetched URL from its explanations before and after."""
    state, page = info["known"], info["page"]
    row = {"url": url, "known_as": info["known_as"], "had": before["page"] is not None, "seconds": round(seconds, 2)}
    if state["standing"] in {"refused", "failed"} or page is None:
        return {**row, "standing": state["standing"], "why": state["why"]}
    about = {name: page[name] for name in ("status", "title", "location")}
    changed = page["changed_s"] == page["fetched_s"]
    return {**row, "standing": "fetched", **about, "changed": changed, "body_bytes": page["bytes"]}


@dataclass(slots=True)
class _FetchRequest:
    """The URLs that ``vedette fetch`` waits for, with their statuses; submitted again if a coordinator dies."""

    folder: Path
    urls: list[str]
    patience_s: float
    started_s: float = field(default_factory=time.monotonic)
    last_answer_s: float = field(default_factory=time.monotonic)
    requested: list[UrlStatus] = field(default_factory=list)
    statuses: dict[int | str, UrlStatus] = field(default_factory=dict)

    def submit(self, call: Callable[[Path, Request], dict[str, Any] | None] = call_coordinator) -> bool:
        """Submit the URLs of ``vedette fetch`` to the coordinator; return whether a coordinator is running."""
        reply = call(self.folder, Request("fetch", {"urls": self.urls}))
        if reply is not None:
            had = {one["id"]: one["had"] for one in self.requested}
            self.requested = [{**one, "had": had.get(one["id"], one["had"])} for one in reply["urls"]]
        return reply is not None

    def poll(self) -> bool:
        """Poll the coordinator for the requested URLs; return whether all are fetched or patience has run out."""
        statuses = self._query_statuses()
        elapsed_s = time.monotonic() - self.started_s
        lost = False
        for one in statuses:
            ended = not one["wished"] and one["standing"] not in {"waiting", "leased"}
            lost = lost or not (one["wished"] or ended)
            if not self._has_ended(one["id"]):
                self.statuses[one["id"]] = {**one, "ended": ended, "seconds": round(elapsed_s, 2)}
        if lost:
            self.submit()
        deserted = time.monotonic() - self.last_answer_s > COORDINATOR_TIMEOUT_S
        return deserted or elapsed_s > self.patience_s or all(self._has_ended(one["id"]) for one in self.requested)

    def _query_statuses(self) -> list[UrlStatus]:
        """Query the coordinator for the statuses of the requested URLs; none while it is down and restarting."""
        try:
            reply = call_coordinator(self.folder, Request("fetched", {"ids": [one["id"] for one in self.requested]}))
        except StoreError:
            return []
        if reply is None:
            return []
        self.last_answer_s = time.monotonic()
        statuses: list[UrlStatus] = reply["urls"]
        return statuses

    def wait(self) -> None:
        """Wait until all URLs of ``vedette fetch`` are fetched, or patience runs out."""
        while not self.poll():
            time.sleep(POLL_INTERVAL_S)  # the coordinator responds, but does not call back

    def results(self) -> list[UrlStatus]:
        """Return the result of each URL of ``vedette fetch``, in the order of the command line."""
        nothing = {"standing": "waiting", "seconds": 0.0, "why": "the crawl ended"}
        rows = [{**one, **self.statuses.get(one["id"], nothing)} for one in self.requested]
        return [{key: value for key, value in row.items() if key not in {"wished", "ended", "id"}} for row in rows]

    def _has_ended(self, id_: int | str) -> bool:
        return bool(self.statuses.get(id_, {}).get("ended"))


def _print_submitted(options: argparse.Namespace, wish: _FetchRequest, *, running: bool) -> int:
    if not running:
        raise UsageError('--no-wait needs a running crawl: drop it, or start "vedette up" first')
    rows = [{"url": one["url"], "known_as": one["known_as"]} for one in wish.requested]
    print(json.dumps({"urls": rows}) if options.json else "\n".join(f"queued: {row['known_as']}" for row in rows))
    return 0


def _run_temporary_tree(settings: RuntimeSettings, wish: _FetchRequest) -> None:
    """Run a temporary process tree that fetches only the URLs of one ``vedette fetch``."""
    with open_state_reader(settings.folder) as view:
        rows = view.store.list_sites()
    starts = {_find_site_row(url, rows).site.start for url in wish.urls}
    settings = replace(settings, forever=True, only_requested=True)
    trouble = find_blocked_sites(settings, [row for row in rows if row.site.start in starts])
    if trouble:
        raise UsageError(trouble[0])
    tree = _TemporaryTree(settings.folder, wish)
    run_to_end(settings, tree.on_status, on_note=print_note)
    if tree.error is not None:
        raise tree.error


def _find_site_row(url: str, rows: Sequence[SiteRow]) -> SiteRow:
    """Find the site whose scope covers a URL to fetch; raise a ``UsageError`` if there is none."""
    active = [row.site for row in rows if not row.paused]
    site = find_site(url, active)
    if site is None and is_robots_url(url):
        site = next(iter(SiteIndex(active).find_by_host(origin_of(url).host)), None)
    if site is not None:
        return next(row for row in rows if row.site.start == site.start)
    paused = find_site(url, [row.site for row in rows])
    if paused is not None:
        raise SiteError(f'{url} belongs to {paused.start}, which is paused: run "vedette sites resume {paused.start}"')
    why = find_refusal(url, [row.site for row in rows])
    raise SiteError(f'{url} is {why}; add a site with "vedette sites add {origin_of(url)}/"')


@dataclass(slots=True)
class _TemporaryTree:
    """A process tree started by ``vedette fetch`` for some URLs, and stopped once they are fetched."""

    folder: Path
    request: _FetchRequest
    error: VedetteError | None = None
    done: bool = False

    def on_status(self, _: object) -> None:
        """Check on the requested URLs at each status of the temporary tree, and stop it when they are done."""
        if not self.done:
            try:
                self.done = self._advance()
            except VedetteError as error:
                self.error, self.done = error, True
        if self.done:
            with suppress(VedetteError):  # it is exiting already
                call_coordinator(self.folder, Request("stop"))

    def _advance(self) -> bool:
        if self.request.requested:
            return self.request.poll()
        self.request.submit()
        return False


def _format_result(one: UrlStatus) -> str:
    seconds = f"{one['seconds']:.1f} s"
    if one["standing"] != "fetched":
        standing = "not yet" if one["standing"] in {"waiting", "leased"} else one["standing"]
        return f"{standing:<8}  {seconds:>7}  {one['known_as']}  {sanitize(one.get('why') or '')}".rstrip()
    change = "changed" if one["changed"] else "same"
    about = f"redirects to {sanitize(one['location'])}" if one["location"] else sanitize(one["title"])
    kind, size = change if one["had"] else "new", format_bytes(one["body_bytes"])
    return f"{one['status']} {kind:<7}  {seconds:>7}  {one['known_as']}  {size}  {about}".rstrip()
