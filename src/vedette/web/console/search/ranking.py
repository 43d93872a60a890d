"""The console's page on ranking that learns: what is tried, what became of it, and whether it does any good."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.errors import UsageError, VedetteError
from vedette.learn.clicks.experiment_groups import ALL, PLAIN, UNTRIED
from vedette.learn.clicks.off_policy import FEWEST, Estimate, OtherOrder
from vedette.learn.clicks.rollback_guard import FEWEST_PEOPLE, Arm
from vedette.web.commands.commands import SetMachine
from vedette.web.console.explain.page import explained_at
from vedette.web.console.explain.refresh_text import per_cent
from vedette.web.console.ports.monitoring import Promoted, RankingTold, Watch
from vedette.web.console.ui.layout import Shell
from vedette.web.console.ui.tables import Column, Table
from vedette.web.formatting import THIN, sentence
from vedette.web.ports import Search

__all__ = ["estimated", "fate_of", "give_or_take", "ranking_routes", "verdict"]

LEARN = "serve.learn"
_SWITCH: Mapping[str, str | None] = {"on": "true", "off": "false", "configured": None}
ORDERS: Mapping[str, str] = {
    PLAIN: "By relevance alone",
    UNTRIED: "With what was learned, nothing tried",
    ALL: "With what was learned and trials",
}
# So many looks tell something of a page, and so much better or worse than any other is worth a word.
ENOUGH_LOOKS = 5.0
BETTER, WORSE = 1.2, 0.8


def fate_of(page: Promoted, general: float) -> str:
    """What became of a page that was tried.

    >>> fate_of(Promoted("u", 0.0, 9, 5, 8.0, 12.0, 0.5), 0.2), fate_of(Promoted("u", 0.0, 9, 0, 0.0, 1.0, 0.2), 0.2)
    ('liked', 'too few looks yet')
    """
    if page.looks < ENOUGH_LOOKS or general <= 0:
        return "too few looks yet"
    ratio = page.expected / general
    return "liked" if ratio >= BETTER else "not liked" if ratio <= WORSE else "like others"


def give_or_take(arm: Arm) -> str:
    """Quality per click of a group with the ends of its 95 % interval; a dash before there is any.

    >>> give_or_take(Arm(50, 90, 0.62, 0.05)), give_or_take(Arm(0, 0, 0.0, math.inf))
    ('0.62 (0.57 to 0.67)', '—')
    """
    if not arm.clicks:
        return "\N{EM DASH}"
    if not math.isfinite(arm.give_or_take):
        return f"{arm.quality:.2f}"
    low, high = max(arm.quality - arm.give_or_take, 0.0), min(arm.quality + arm.give_or_take, 1.0)
    return f"{arm.quality:.2f} ({low:.2f} to {high:.2f})"


def verdict(told: RankingTold) -> str:
    """Whether what was learned does any good, no surer than the numbers are."""
    if not told.is_enough or not math.isfinite(told.difference_give_or_take):
        fewest = min(told.learned.people, told.plain.people)
        return f"It is too early to say: {FEWEST_PEOPLE} people of each group must have clicked, and it is {fewest}."
    low, high = (told.difference + sign * told.difference_give_or_take for sign in (-1, 1))
    ends = f"the difference lies between {low:+.2f} and {high:+.2f} with 95{THIN}%"
    if low > 0:
        return f"Clicks are worth more with what was learned: {ends}."
    if high < 0:
        return f"Clicks are worth less with what was learned: {ends}. A guard ends it when that is beyond doubt."
    return f"No difference can be told so far: {ends}."


def estimated(found: Estimate) -> str:
    """The share of searches that an order would have brought to success, or that nobody can know yet.

    >>> estimated(Estimate(0.41, 0.36, 0.46, 230.0, "")).replace(THIN, " ")
    '41 % (36 % to 46 %)'
    >>> estimated(Estimate(0.41, 0.0, 0.9, 12.0, "not enough data"))
    'not enough data'
    """
    if found.said:
        return found.said
    low, high = max(found.low, 0.0), min(found.high, 1.0)
    return f"{per_cent(found.value)} ({per_cent(low)} to {per_cent(high)})"


def orders_verdict(orders: tuple[OtherOrder, ...]) -> str:
    """What can be said of the orders that most readers did not get: no more than that intervals lie apart."""
    by_name = {order.name: order for order in orders}
    ours, others = by_name.get(ALL), [order for order in orders if order.name != ALL]
    if ours is None or ours.robust.said or all(order.robust.said for order in others):
        most = max((order.robust.effective for order in others), default=0.0)
        return f"Not enough data: {FEWEST:.0f} readers must have got an order before it is told, and it is {most:.0f}."
    told = [_against(ours.robust, order) for order in others if not order.robust.said]
    return " ".join(told)


def _against(ours: Estimate, other: OtherOrder) -> str:
    name = ORDERS[other.name].lower()
    if other.robust.high < ours.low:
        return f"Had all readers got the order {name}, fewer searches would have succeeded."
    if other.robust.low > ours.high:
        return f"Had all readers got the order {name}, more searches would have succeeded."
    return f"Whether the order {name} would have done better or worse cannot be told so far."


class Line(NamedTuple):
    """A page that was tried, and what became of it in words."""

    page: Promoted
    fate: str


_PROMOTED: Table[Line] = Table(
    (
        Column("page", "Page", lambda row: row.page.url),
        Column("since", "First tried", lambda row: row.page.first_s, is_number=True),
        Column("shown", "Shown to be tried", lambda row: row.page.shown, is_number=True),
        Column("clicks", "Opened then", lambda row: row.page.clicks, is_number=True),
        Column("looks", "Looks in all", lambda row: round(row.page.looks, 1), is_number=True),
        Column("likes", "Likes in all", lambda row: round(row.page.likes, 1), is_number=True),
        Column("expected", "Expected", lambda row: round(row.page.expected, 4), is_number=True),
        Column("fate", "What became of it", lambda row: row.fate),
    ),
    by="-shown",
    key="promoted",
    rows=20,
)


def ranking_routes(shell: Shell, search: Search, watch: Watch) -> list[Route]:
    """The page, and its switch."""
    pages = _Ranking(shell, search, watch)
    return [Route("/ranking", pages.ranking), Route("/ranking/set", pages.switched, methods=["POST"])]


@dataclass(frozen=True, slots=True)
class _Ranking:
    """The handler, with what it needs."""

    shell: Shell
    search: Search
    watch: Watch

    async def switched(self, request: Request) -> Response:
        """Learning on, off, or as configured, from now on; or the page again, with why not."""
        value = _SWITCH.get((await self.shell.form(request)).get("learn", ""), "")
        try:
            if value == "":
                raise UsageError("say whether the order is to learn from clicks")
            return await self.shell.ordered(request, SetMachine({LEARN: value}), "/console/ranking")
        except VedetteError as error:
            return await self._page(request, sentence(str(error)))

    async def ranking(self, request: Request) -> Response:
        """How ranking stands; the table is a file, too."""
        return await self._page(request)

    async def _page(self, request: Request, problem: str = "") -> Response:
        asked: Callable[[], RankingTold | None] = getattr(self.search, "ranking", _nothing_told)
        found = await run_in_threadpool(asked)
        told = found or RankingTold()
        machine = await run_in_threadpool(self.watch.machine)
        lines = [Line(page, fate_of(page, told.general)) for page in told.promoted]
        if _PROMOTED.wants_csv(request):
            return _PROMOTED.csv(request, lines, "tried-pages")
        return self.shell.page(
            "ranking.html",
            request,
            here="ranking",
            title="Ranking",
            status=422 if problem else 200,
            problem=problem,
            is_on=machine.learn,
            is_chosen=LEARN in machine.chosen,
            told=told,
            was_told=found is not None,
            is_guarded=told.guard.holds(self.shell.now_s()),
            verdict=verdict(told),
            arms=[("With what was learned", told.learned), ("Without", told.plain)],
            seen=_PROMOTED.seen(request, lines),
            give_or_take=give_or_take,
            orders=[(ORDERS.get(order.name, order.name), order) for order in told.orders],
            orders_verdict=orders_verdict(told.orders),
            estimated=estimated,
            taken_off=[(round(looks), why) for why, looks in told.taken_off if round(looks)],
            fewest=int(FEWEST),
            per_cent=per_cent,
            explained_at=explained_at,
        )


def _nothing_told() -> RankingTold | None:
    """Of a search that knows nothing of learning."""
    return None
