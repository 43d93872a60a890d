"""The console's page on the fetch budget: where it went, at what price, and what came of it."""

from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.web.console.explain.page import explained_at
from vedette.web.console.explain.refresh_text import per_cent, worth
from vedette.web.console.ports.monitoring import KIND_WORDS, BudgetTold, HeldLine, SpentLine, Watch
from vedette.web.console.ui.layout import Shell
from vedette.web.console.ui.scales import said
from vedette.web.console.ui.tables import Column, Table
from vedette.web.console.ui.time_series import Over, chart, over_of, ways

__all__ = ["budgeting_routes", "days_of", "kind_words"]

# How many days the tables speak of, by the name of the time that is looked at: they are counted by days.
_DAYS: Final = {"hour": 1, "day": 2, "month": 31}
_NUMBERS: Final = (
    Column[SpentLine]("fetches", "Fetches", lambda row: row.fetches, is_number=True),
    Column[SpentLine]("share", "Of all", lambda row: row.share, is_number=True),
    Column[SpentLine]("failed", "No good answer", lambda row: row.failed, is_number=True),
    Column[SpentLine]("changed", "New or changed", lambda row: row.changed, is_number=True),
    Column[SpentLine]("found", "New URLs", lambda row: row.found, is_number=True),
    Column[SpentLine]("gain", "Gain a fetch", lambda row: row.gain_per_fetch, is_number=True),
    Column[SpentLine]("measured", "Measured", lambda row: row.measured, is_number=True),
    Column[SpentLine]("seconds", "Connected", lambda row: row.seconds, is_number=True),
    Column[SpentLine]("bytes", "Sent", lambda row: row.bytes, is_number=True),
)
MOST_POINTS: Final = 4_000
OTHER_SITES: Final = "other sites, and none"


def kind_words(row: SpentLine) -> str:
    """What a kind of fetch is called."""
    return KIND_WORDS.get(row.name, row.name)


def site_words(row: SpentLine) -> str:
    """What a site is called."""
    return row.name or OTHER_SITES


def days_of(over: Over) -> int:
    """How many days the tables speak of, today among them."""
    return _DAYS[over.name]


_KINDS: Table[SpentLine] = Table((Column("kind", "What for", kind_words), *_NUMBERS), key="kinds")
_SITES: Table[SpentLine] = Table(
    (Column("site", "Site", site_words), Column("part", "Its share", lambda row: row.part, is_number=True), *_NUMBERS),
    key="sites",
    rows=20,
)
_HELD: Table[HeldLine] = Table(
    (
        Column("url", "URL", lambda row: row.url),
        Column("worth", "Worth", lambda row: row.worth, is_number=True),
        Column("price", "Price then", lambda row: row.price, is_number=True),
    ),
    by="-worth",
    key="held",
)


def budgeting_routes(shell: Shell, watch: Watch) -> list[Route]:
    """The page; its tables are files, too."""
    return [Route("/budget", _Budgeting(shell, watch).shown)]


@dataclass(frozen=True, slots=True)
class _Budgeting:
    """The handler, with what it needs."""

    shell: Shell
    watch: Watch

    async def shown(self, request: Request) -> Response:
        """Where the budget went in the time that was chosen."""
        over = over_of(request)
        told = await run_in_threadpool(self.watch.budget, days_of(over))
        file = _file(request, told)
        if file is not None:
            return file
        shown = await run_in_threadpool(self._told, told, over)
        shown |= {"ways": ways(request), "kinds": _KINDS.seen(request, told.kinds)}
        shown |= {"sites": _SITES.seen(request, told.sites), "held": _HELD.seen(request, told.held)}
        return self.shell.page("budget.html", request, here="budget", title="Budget", **shown)

    def _told(self, told: BudgetTold, over: Over) -> dict[str, Any]:
        spent = self._spent_per_s(over) if told.per_s else None
        return {
            "told": told,
            "crawl": self.watch.crawl(),
            "over": over,
            "spent_share": spent / told.per_s if spent is not None and told.per_s else None,
            "spent_per_s": spent,
            "gain": sum(line.gain for line in told.kinds),
            "measured": sum(line.measured for line in told.kinds),
            "charts": self._charts(over, has_budget=told.per_s is not None) if told.fetches else [],
            "explained_at": explained_at,
            "kind_words": kind_words,
            "site_words": site_words,
            "per_cent": per_cent,
            "worth": worth,
            "said": said,
        }

    def _spent_per_s(self, over: Over) -> float | None:
        """On average since there has been a budget, in the time that is looked at; None where nothing was noted."""
        since_s = self.shell.now_s() - over.span_s
        limits = self.watch.points("budget_per_s", since_s, MOST_POINTS)
        spent = self.watch.points("budget_spent_per_s", limits[0][0], MOST_POINTS) if limits else []
        return fmean(value for _, value in spent) if spent else None

    def _charts(self, over: Over, *, has_budget: bool) -> list[Markup]:
        now_s = self.shell.now_s()
        if not has_budget:
            return [chart(self.watch, "budget_spent_per_s", over, now_s)]
        return [
            chart(self.watch, "budget_spent_per_s", over, now_s, "budget_per_s"),
            chart(self.watch, "price", over, now_s),
            chart(self.watch, "budget_held_back", over, now_s),
        ]


def _file(request: Request, told: BudgetTold) -> Response | None:
    """The table that is asked for as a file; None where none is."""
    if _KINDS.wants_csv(request):
        return _KINDS.csv(request, told.kinds, "budget-by-kind")
    if _SITES.wants_csv(request):
        return _SITES.csv(request, told.sites, "budget-by-site")
    return _HELD.csv(request, told.held, "not-worth-the-price") if _HELD.wants_csv(request) else None
