"""The console's page on fetching pages again: how current they are, what that costs, whether forecasts come true."""

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.errors import VedetteError
from vedette.web.console.crawl.forecast import TENTHS, reliability, tenth_lines, trust
from vedette.web.console.crawl.refresh_counts import counts_chart, counts_of, step_of, won_chart, won_of
from vedette.web.console.crawl.refresh_settings import FIELDS, POLICY_WORDS, read_settings, typed_of
from vedette.web.console.explain.page import explained_at
from vedette.web.console.explain.refresh_text import every, per_cent, worth
from vedette.web.console.ports.monitoring import DuePage, Refresh, Watch
from vedette.web.console.ui.layout import Problems, Shell
from vedette.web.console.ui.scales import said
from vedette.web.console.ui.tables import Column, Table, csv_answer
from vedette.web.console.ui.time_series import Over, chart, over_of, ways
from vedette.web.formatting import sentence, stamp

__all__ = ["refreshing_routes", "why_then"]


def why_then(page: DuePage) -> str:
    """Why a page is due when it is: how often it changes, or the rule that has it."""
    if page.rate_d is None:
        return page.rule
    return f"changes {every(page.rate_d, page.rate_low_d, page.rate_high_d)}"


_SOON: Table[DuePage] = Table(
    (
        Column("page", "Page", lambda row: row.url),
        Column("due", "Due", lambda row: row.due_s, is_number=True),
        Column("chance", "Has changed", lambda row: row.chance, is_number=True),
        Column("worth", "Worth now", lambda row: row.worth, is_number=True),
        Column("why", "Why", why_then),
    ),
    key="soon",
)


def refreshing_routes(shell: Shell, watch: Watch) -> list[Route]:
    """The page, and the post that changes its settings."""
    pages = _Refreshing(shell, watch)
    return [Route("/refresh", pages.refresh), Route("/refresh/set", pages.settled, methods=["POST"])]


@dataclass(frozen=True, slots=True)
class _Refreshing:
    """The handler, with what it needs."""

    shell: Shell
    watch: Watch

    async def refresh(self, request: Request) -> Response:
        """How refreshing stands; each table and chart is a file, too."""
        refresh, over = await run_in_threadpool(self.watch.refresh), over_of(request)
        file = await run_in_threadpool(self._file, request, refresh, over)
        return file if file is not None else await self._page(request, refresh)

    async def settled(self, request: Request) -> Response:
        """Another policy or budget from now on; or the page again, with what is wrong beside its field."""
        form, machine = await self.shell.form(request), await run_in_threadpool(self.watch.machine)
        order, problems = read_settings(form, machine)
        try:
            if order is not None:
                return await self.shell.ordered(request, order, "/console/refresh")
        except VedetteError as error:
            problems = {"form": sentence(str(error))}
        return await self._page(request, await run_in_threadpool(self.watch.refresh), form, problems)

    async def _page(
        self, request: Request, refresh: Refresh, typed: dict[str, str] | None = None, problems: Problems | None = None
    ) -> Response:
        told = await run_in_threadpool(self._told, refresh, over_of(request))
        machine = await run_in_threadpool(self.watch.machine)
        told |= {"seen": _SOON.seen(request, refresh.soon), "ways": ways(request), "machine": machine}
        told |= {"typed": {**typed_of(machine), **(typed or {})}, "problems": problems or {}}
        told |= {"policies": [(name, name, words) for name, words in POLICY_WORDS.items()], "fields": FIELDS}
        status = 422 if problems else 200
        return self.shell.page("refresh.html", request, here="refresh", title="Refresh", status=status, **told)

    def _file(self, request: Request, refresh: Refresh, over: Over) -> Response | None:
        """The table or chart that is asked for as a file; None where none is."""
        now_s, words = self.shell.now_s(), step_of(over)[1]
        if TENTHS.wants_csv(request):
            return TENTHS.csv(request, tenth_lines(refresh.tenths), "calibration")
        if _SOON.wants_csv(request):
            return _SOON.csv(request, refresh.soon, "due-next")
        if request.query_params.get("csv") == "won":
            rows = [(stamp(at_s), won) for at_s, won in won_of(self.watch, over, now_s)]
            return csv_answer("quality-won", ["when", f"quality won {words}"], rows)
        if request.query_params.get("csv") == "refreshes":
            counts = counts_of(self.watch, over, now_s)
            pairs = zip(counts.all, counts.wasted, strict=True)
            counted = [(stamp(at_s), round(count, 1), round(wasted, 1)) for (at_s, count), (_, wasted) in pairs]
            return csv_answer("refreshes", ["when", f"refreshes {words}", "found nothing new"], counted)
        return None

    def _told(self, refresh: Refresh, over: Over) -> dict[str, Any]:
        now_s = self.shell.now_s()
        counts = counts_of(self.watch, over, now_s)
        return {
            "refresh": refresh,
            "crawl": self.watch.crawl(),
            "latest": self.watch.latest(),
            "over": over,
            "counts": counts,
            "charts": [counts_chart(counts, over, now_s), *self._charts(over, now_s)],
            "tenths": tenth_lines(refresh.tenths),
            "trust": trust(refresh.tenths),
            "reliability": reliability(refresh.tenths),
            "explained_at": explained_at,
            "per_cent": per_cent,
            "worth": worth,
            "why_then": why_then,
            "said": said,
        }

    def _charts(self, over: Over, now_s: float) -> list[Markup]:
        """Those with two lines stand first, side by side."""
        return [
            chart(self.watch, "change_found", over, now_s, "change_expected"),
            won_chart(won_of(self.watch, over, now_s), over, now_s),
            chart(self.watch, "current_share", over, now_s),
            chart(self.watch, "checked_in_time", over, now_s),
            chart(self.watch, "wasted_share", over, now_s),
            chart(self.watch, "price", over, now_s),
        ]
