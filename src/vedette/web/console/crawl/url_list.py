"""The console's Pages page: the list of URLs behind a count, of one site or of all, by their state.

Every count in the list of sites and among the queue's errors links here. There may be millions of URLs, so each page
says how far it searched, and the next one continues from there.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from vedette.adapters.crawl_store.url_list import URL_KINDS, ListedUrl, UrlFilter, UrlKind
from vedette.errors import VedetteError
from vedette.web.commands.commands import RetryFailed
from vedette.web.console.ports.sites import SiteService
from vedette.web.console.ui.forms import Problems, parse_number
from vedette.web.console.ui.layout import ConsoleShell, read_form
from vedette.web.console.ui.tables import csv_response
from vedette.web.formatting import sentence, stamp

PAGE_URL: Final = "/console/pages"
ROWS: Final = 50
MAX_CSV_ROWS: Final = 10_000
MAX_LENGTH: Final = 2000
MAX_PART_LENGTH: Final = 200
KIND_LABELS: Final[dict[UrlKind, str]] = {
    "all": "All known URLs",
    "kept": "Stored pages",
    "script": "Need JavaScript",
    "moved": "Redirects",
    "errors": "Errors",
    "failed": "No response",
    "refused": "Excluded",
    "new": "Waiting for first fetch",
}
_TITLES: Final = ("URL", "Status", "Title", "Fetched", "Next fetch", "Reason", "Noted")


def build_pages_url(kind: UrlKind = "all", why: str = "", site: str = "") -> str:
    """Build the console URL of the URL list behind a count.

    >>> build_pages_url("errors", "404"), build_pages_url(site="https://example.org/")
    ('/console/pages?what=errors&why=404', '/console/pages?site=https%3A%2F%2Fexample.org%2F')
    """
    params = {"site": site, "what": kind if kind != "all" else "", "why": why}
    query = urlencode({name: value for name, value in params.items() if value}, errors="replace")
    return f"{PAGE_URL}?{query}" if query else PAGE_URL


class _ListQuery(NamedTuple):
    """The query parameters of a console URL list: site, state, reason and position."""

    site: str
    kind: UrlKind
    why: str
    part: str
    after: int

    def build_url(self, **changes: str) -> str:
        """Build the URL of the URL list with some parameters changed, at its first page unless one is given."""
        params = {"site": self.site, "what": self.kind, "why": self.why, "part": self.part, **changes}
        return f"{PAGE_URL}?{urlencode({name: value for name, value in params.items() if value}, errors='replace')}"


@dataclass(frozen=True, slots=True)
class UrlListPage:
    """The console's URL list page (Pages)."""

    shell: ConsoleShell
    sites: SiteService

    def retry(self, request: Request) -> Response:
        """Retry the failed URLs of the list now: those of a site, of a reason, or all."""
        form = read_form(request)
        site, why = form.get("site", "")[:MAX_LENGTH], form.get("why", "")[:MAX_LENGTH]
        try:
            return self.shell.run_command(request, RetryFailed(site, why), build_pages_url("failed", site=site))
        except VedetteError as error:
            return self.show(request, {"form": sentence(str(error))})

    def show(self, request: Request, problems: Problems | None = None) -> Response:
        """Show a page of the URL list for the request's filters, or export all of its rows as CSV."""
        query = _parse_query(request)
        stored = self.sites.find_site(query.site) if query.site else None
        if query.site and stored is None:
            return self.shell.not_found_page(
                request, message="This site does not exist. It may have been removed, or the name is misspelled."
            )
        is_file = bool(request.query_params.get("csv"))
        which = UrlFilter(stored.site if stored else None, query.kind, query.why, query.part)
        seen = self.sites.list_urls(which, query.after, MAX_CSV_ROWS if is_file else ROWS)
        if is_file:
            return csv_response("pages", _TITLES, [_csv_row(row) for row in seen.rows])
        start = query.after if seen.start is None else seen.start
        return self.shell.render_page(
            "pages.html",
            request,
            here="sites",
            title="Pages",
            choice=query,
            seen=seen,
            first=start + 1,
            last=start + seen.scanned,
            ways=[(KIND_LABELS[kind], query.build_url(what=kind, why=""), kind == query.kind) for kind in URL_KINDS],
            words=KIND_LABELS[query.kind],
            more=query.build_url(after=str(seen.after)) if seen.after is not None else "",
            again=query.build_url() if query.after else "",
            without_why=query.build_url(why=""),
            csv=query.build_url(after=str(query.after or ""), csv="1"),
            problems=problems or {},
        )


def _parse_query(request: Request) -> _ListQuery:
    """Parse the query parameters of the URL list; invalid ones are ignored."""
    typed = request.query_params
    kind = next((each for each in URL_KINDS if each == typed.get("what", "")), URL_KINDS[0])
    return _ListQuery(
        typed.get("site", "")[:MAX_LENGTH],
        kind,
        typed.get("why", "")[:MAX_LENGTH] if kind in {"errors", "failed", "refused"} else "",
        typed.get("part", "")[:MAX_PART_LENGTH].strip(),
        parse_number(typed.get("after", "")) or 0,
    )


def _csv_row(row: ListedUrl) -> list[str | int | float | None]:
    times = [None if at_s is None else stamp(at_s) for at_s in (row.fetched_s, row.due_s, row.noted_s)]
    return [row.url, row.status, row.title, times[0], times[1], row.why, times[2]]
