"""The URLs behind the counts: those of a site, or of all, by what became of them.

Every count of the list of sites and of the errors in the queue leads here. There may be millions, so each page says how
far it looked, and the next one goes on from there.
"""

from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.adapters.crawl_store.url_list import KINDS, Kind, ListedUrl, Which
from vedette.model import Site
from vedette.web.console.explain.page import explained_at
from vedette.web.console.ports.sites import SiteDesk
from vedette.web.console.ui.layout import Shell
from vedette.web.console.ui.tables import csv_answer
from vedette.web.formatting import stamp

__all__ = ["HOME", "listed_at", "listing_routes"]

HOME: Final = "/console/pages"
ROWS: Final = 50
MOST_IN_FILE: Final = 10_000
LONGEST: Final = 2000
LONGEST_PART: Final = 200
MOST_DIGITS: Final = 15
WORDS: Final[dict[Kind, str]] = {
    "all": "All known URLs",
    "kept": "Pages kept",
    "moved": "Lead elsewhere",
    "errors": "Answered with an error",
    "failed": "Brought no answer",
    "refused": "Not fetched, for a reason",
    "new": "Wait for their first fetch",
}
_TITLES: Final = ("URL", "Status", "Title", "Fetched", "Next fetch", "Why", "Noted")


def listed_at(kind: Kind = "all", why: str = "", site: str = "") -> str:
    """The address of the rows behind a count.

    >>> listed_at("errors", "404"), listed_at(site="https://example.org/")
    ('/console/pages?what=errors&why=404', '/console/pages?site=https%3A%2F%2Fexample.org%2F')
    """
    asked = {"site": site, "what": kind if kind != "all" else "", "why": why}
    query = urlencode({name: value for name, value in asked.items() if value}, errors="replace")
    return f"{HOME}?{query}" if query else HOME


def listing_routes(shell: Shell, desk: SiteDesk) -> list[Route]:
    """The one page."""
    return [Route("/pages", _Listing(shell, desk).listed)]


class _Asked(NamedTuple):
    """What stands in an address."""

    site: str
    kind: Kind
    why: str
    part: str
    after: int

    def which(self, site: Site | None) -> Which:
        return Which(site, self.kind, self.why, self.part)

    def to(self, **changes: str) -> str:
        """The address with some things changed; the first page of it, unless a place is named."""
        asked = {"site": self.site, "what": self.kind, "why": self.why, "part": self.part, **changes}
        return f"{HOME}?{urlencode({name: value for name, value in asked.items() if value}, errors='replace')}"


@dataclass(frozen=True, slots=True)
class _Listing:
    """The handler, with what it needs."""

    shell: Shell
    desk: SiteDesk

    async def listed(self, request: Request) -> Response:
        """The rows that an address asks for, or all that there are as a file."""
        asked = _asked(request)
        kept = await run_in_threadpool(self.desk.site, asked.site) if asked.site else None
        if asked.site and kept is None:
            return self.shell.nothing_here(request, said="There is no such site any more, or its name was mistyped.")
        is_file = bool(request.query_params.get("csv"))
        which, most = asked.which(kept.site if kept else None), MOST_IN_FILE if is_file else ROWS
        seen = await run_in_threadpool(self.desk.urls, which, asked.after, most)
        if is_file:
            return csv_answer("pages", _TITLES, [_cells(row) for row in seen.rows])
        told: dict[str, Any] = {
            "choice": asked,
            "seen": seen,
            "first": asked.after + 1,
            "last": asked.after + seen.looked_at,
            "ways": [(WORDS[kind], asked.to(what=kind, why=""), kind == asked.kind) for kind in KINDS],
            "words": WORDS[asked.kind],
            "more": asked.to(after=str(seen.after)) if seen.after is not None else "",
            "again": asked.to() if asked.after else "",
            "without_why": asked.to(why=""),
            "csv": asked.to(after=str(asked.after or ""), csv="1"),
            "explained_at": explained_at,
        }
        return self.shell.page("pages.html", request, here="sites", title="Pages", **told)


def _asked(request: Request) -> _Asked:
    """What an address says; what it says wrongly is as if it were not there."""
    typed = request.query_params
    kind = next((each for each in KINDS if each == typed.get("what", "")), KINDS[0])
    after = typed.get("after", "")
    is_id = after.isascii() and after.isdigit() and len(after) <= MOST_DIGITS
    return _Asked(
        typed.get("site", "")[:LONGEST],
        kind,
        typed.get("why", "")[:LONGEST] if kind in {"errors", "failed", "refused"} else "",
        typed.get("part", "")[:LONGEST_PART].strip(),
        int(after) if is_id else 0,
    )


def _cells(row: ListedUrl) -> list[str | int | float | None]:
    times = [None if at_s is None else stamp(at_s) for at_s in (row.fetched_s, row.due_s, row.noted_s)]
    return [row.url, row.status, row.title, times[0], times[1], row.why, times[2]]
