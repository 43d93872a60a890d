"""The console's Overview page: how the crawl and the index are doing, and what needs attention."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from vedette.adapters.crawl_store.reader import HeldCounts
from vedette.model import Failure, origin_of
from vedette.web.console.crawl.url_list import build_pages_url
from vedette.web.console.ports.monitoring import UNTRUSTED_ADVICE, CrawlStatus, Monitoring
from vedette.web.console.ui.layout import ConsoleShell
from vedette.web.console.ui.scales import format_percent
from vedette.web.console.ui.time_series import (
    CHART_POINTS,
    build_range_links,
    describe_trend,
    parse_time_range,
    render_series,
)
from vedette.web.formatting import age, counted, host_name, number, sentence
from vedette.web.ports import SearchService

LATEST_ACTIONS = 5
UNINDEXED_WARNING = 1000  # some always wait for a second
HOSTS_SHOWN = 3
SITES_SHOWN = 3
MAX_REASON_LENGTH = 100
CHARTS = ("quality", "pages", "coverage", "median_age_s")


class HealthWarning(NamedTuple):
    """A health warning on the console's Overview page, with what to do about it.

    ``fetch_site`` is the site whose held-back URLs a button fetches. ``is_note`` says that nothing need be done.
    """

    what: str
    do: str
    address: str = ""
    link: str = ""
    fetch_site: str = ""
    is_note: bool = False


class QualityHeadline(NamedTuple):
    """The estimated search quality at the top of the Overview page, and its origin in plain words."""

    share: str
    why: str


def describe_quality(latest: Mapping[str, float]) -> QualityHeadline | None:
    """Describe the estimated search quality for the Overview page; None before it was estimated.

    >>> latest = {"quality": 0.9835, "views_current_share": 0.934, "change_loss": 0.25}
    >>> describe_quality(latest).why
    '93% of views go to pages that are probably up to date. A view of an outdated page loses 25% of its value.'
    """
    quality = latest.get("quality")
    if quality is None:
        return None
    viewed, lost = latest.get("views_current_share"), latest.get("change_loss")
    why = sentence(f"{format_percent(viewed)} of views go to pages that are probably up to date.")
    loss = f" A view of an outdated page loses {format_percent(lost)} of its value." if lost is not None else ""
    return QualityHeadline(f"{min(100 * quality, 99.9 if quality < 1 else 100.0):.1f}%", why + loss)


def describe_age(crawl: CrawlStatus) -> str:
    """Describe how old the numbers of a busy coordinator are, for the Overview and Queue pages."""
    return f"The numbers are {age(crawl.age_s, is_precise=True)} old." if crawl.is_running else "No numbers yet."


def find_warnings(crawl: CrawlStatus, behind: str) -> list[HealthWarning]:
    """Find the health warnings for the Overview page, most severe first.

    ``behind`` is why the index is incomplete.
    """
    found = []
    if crawl.is_busy:
        what = "The crawler is starting, stopping or busy, so these are the last known numbers."
        found.append(HealthWarning(what, f"{describe_age(crawl)} Reload to update."))
    elif not crawl.is_running:
        found.append(HealthWarning("The crawler is not running.", 'Start it with "vedette up".'))
    for process in crawl.failing:
        cure = "It is restarted at increasing intervals. For details, see the error log of vedette up."
        found.append(HealthWarning(sentence(str(process)), cure))
    for limit in crawl.exceeded[:HOSTS_SHOWN]:
        cure = "Requests continue tomorrow. Delays should prevent this: check them before you raise crawl.daily_limit."
        found.append(HealthWarning(sentence(str(limit)), cure, "/console/queue", "Queue"))
    if crawl.trouble:
        found.append(
            HealthWarning(sentence(crawl.trouble), "Check what takes up space.", "/console/storage", "Storage")
        )
    if behind or crawl.unindexed >= UNINDEXED_WARNING:
        why = behind or f"{counted(crawl.unindexed, 'page')} waiting to be indexed"
        found.append(HealthWarning(f"Search results are incomplete: {why}.", "The index catches up on its own."))
    if crawl.failures.get(Failure.ADDRESS):
        what = "Some hosts are not fetched because their addresses are not allowed."
        cure = "Public addresses need a contact; allow private addresses in the site's settings."
        found.append(HealthWarning(what, cure, "/console/sites?sort=-error#contact", "Sites and contact"))
    if crawl.in_trouble:
        found.append(_build_host_warning(crawl))
    if crawl.need_script:
        lack = "lacks" if crawl.need_script == 1 else "lack"
        what = f"{counted(crawl.need_script, 'page')} {lack} text or links without JavaScript."
        found.append(
            HealthWarning(what, "Only the text they do have is searchable.", build_pages_url("script"), "Pages")
        )
    held = [one for one in crawl.held if one.real and one.start][:SITES_SHOWN]
    return found + [_build_held_warning(one, has_budget=crawl.has_budget) for one in held]


def _build_held_warning(held: HeldCounts, *, has_budget: bool) -> HealthWarning:
    looks = f"{number(held.real)} {'is probably a real page' if held.real == 1 else 'are probably real pages'}"
    if held.real == held.urls > 1:
        looks = "all of them are probably real pages"
    host = host_name(origin_of(held.start).host)
    are = "is" if held.urls == 1 else "are"
    what = f"{counted(held.urls, 'URL')} of {host} {are} held back; {looks}."
    they = "It is" if held.urls == 1 else "They are"
    when = "only fetched if you ask for it" if has_budget else "fetched when the host has nothing else to do"
    return HealthWarning(what, f"{they} {when}.", fetch_site=held.start, is_note=not has_budget)


def _build_host_warning(crawl: CrawlStatus) -> HealthWarning:
    named = [
        f"{host_name(host)} ({why[:MAX_REASON_LENGTH]})" for host, why in list(crawl.in_trouble.items())[:HOSTS_SHOWN]
    ]
    rest = len(crawl.in_trouble) - len(named)
    more = f" and {counted(rest, 'more host')}" if rest else ""
    is_one = len(crawl.in_trouble) == 1
    what = f"{counted(len(crawl.in_trouble), 'host')} cannot be fetched completely: {', '.join(named)}{more}."
    cure = f"Vedette retries {'it' if is_one else 'them'} at growing intervals."
    if any(Failure.TLS in why for why in crawl.in_trouble.values()):
        cure += f" {UNTRUSTED_ADVICE}"
    return HealthWarning(what, cure, "/console/queue?sort=why", "Queue")


@dataclass(frozen=True, slots=True)
class OverviewPage:
    """The console's Overview page."""

    shell: ConsoleShell
    monitoring: Monitoring
    search: SearchService

    async def show(self, request: Request) -> Response:
        """Show an overview of the crawl: charts, health warnings and the latest operator actions.

        The search index is queried here, and not in another thread: it belongs to the event loop's thread.
        """
        private = tuple(site.start for site in self.search.list_sites() if site.secrets)  # the operator may see all
        found, behind = self.search.get_overview(private).pages, self.search.get_incomplete_reason()
        return await run_in_threadpool(self._render, request, found, behind)

    def _render(self, request: Request, found: int, behind: str) -> Response:
        over, now_s, crawl = parse_time_range(request), self.shell.now_s(), self.monitoring.get_crawl_status()
        latest = dict(self.monitoring.get_latest_values())
        pages = self.monitoring.load_series("pages", now_s - over.span_s, CHART_POINTS)
        return self.shell.render_page(
            "overview.html",
            request,
            here="overview",
            title="Overview",
            crawl=crawl,
            latest=latest,
            quality=describe_quality(latest),
            trend=describe_trend(pages, "n", over),
            charts=[render_series(self.monitoring, name, over, now_s) for name in CHARTS],
            pages=found,
            troubles=find_warnings(crawl, behind),
            actions=self.shell.admin.list_actions(LATEST_ACTIONS),
            ways=build_range_links(request),
        )
