"""The console's page on fetching pages again: how current they are, what that costs, whether forecasts come true."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.config import Config, override
from vedette.engine.scheduling.forecast import HALF_LIFE_S
from vedette.errors import ConfigError, VedetteError
from vedette.web.commands.commands import SetMachine
from vedette.web.console.crawl.forecast import TENTHS, reliability, tenth_lines, trust
from vedette.web.console.explain.page import explained_at
from vedette.web.console.explain.refresh_text import every, per_cent, worth
from vedette.web.console.ports.monitoring import DuePage, Machine, Refresh, Watch
from vedette.web.console.ui.charts import Line, Other, Point, line_chart
from vedette.web.console.ui.layout import Problems, Shell
from vedette.web.console.ui.scales import said
from vedette.web.console.ui.tables import Column, Table, csv_answer
from vedette.web.console.ui.time_series import Over, chart, over_of, ways
from vedette.web.formatting import sentence, stamp

__all__ = [
    "FIELDS",
    "POLICY_WORDS",
    "Counts",
    "came_between",
    "counts_chart",
    "counts_of",
    "in_stretches",
    "read_settings",
    "refreshing_routes",
    "step_of",
    "typed_of",
    "why_then",
    "won_chart",
    "won_of",
]

# The fields of the form, and the settings that they are.
FIELDS: Final[Mapping[str, str]] = {"policy": "refresh.policy", "budget": "crawl.budget"}
LONGEST: Final = 100
POLICY_WORDS: Final[Mapping[str, str]] = {
    "expected-gain": "when what a fetch is expected to bring to search is worth its price; the one to use",
    "freshness": "when a page has probably changed, at rates pooled by site; all pages count alike",
    "lambdacrawl": "so that missed changes cost least, and no page is given up",
    "user-centric": "those first whose earlier changes did most for people who search",
    "nutch": "at an interval that shortens when a page has changed and grows when it has not",
    "stormcrawler": "at an interval that grows by half while a page stays the same, and halves when it changes",
    "uniform": "all pages in turn, equally often",
    "sbr": "so that copies are current as to changes of more than a small part of the text",
    "ebr": "so that nobody is shown a page that does not say any more what it is shown for",
    "greedy-c1": "when a page has most likely changed, one day at a time",
    "greedy-c2": "when a page has likely been out of date for longest, one day at a time",
    "n-day": "by a plan over several days ahead",
}


def typed_of(machine: Machine) -> dict[str, str]:
    """The form as it holds."""
    return {"policy": machine.policy, "budget": machine.budget}


def read_settings(form: Mapping[str, str], machine: Machine) -> tuple[SetMachine | None, Problems]:
    """The order that a form means; or what is wrong, by the name of its field.

    >>> read_settings({"policy": "nutch", "budget": "0"}, Machine("uniform", "0"))
    (SetMachine(changes={'refresh.policy': 'nutch'}), {})
    >>> read_settings({"policy": "nutch", "budget": "many"}, Machine("nutch", "0"))[1]["budget"]
    'Write a number of requests and a unit of time, such as "120/min" (s, min, h, d), or "0".'
    """
    if form.get("configured") in FIELDS:
        return SetMachine({FIELDS[form["configured"]]: None}), {}
    before = typed_of(machine)
    changes = {field: form[field][:LONGEST] for field in FIELDS if field in form and form[field] != before[field]}
    problems = {field: words for field, value in changes.items() if (words := _wrong(FIELDS[field], value))}
    if problems:
        return None, problems
    if not changes:
        return None, {"form": "Nothing would change: it is set so already."}
    return SetMachine({FIELDS[field]: value for field, value in changes.items()}), {}


def _wrong(name: str, value: str) -> str:
    """What is wrong with a value; nothing where it is right. Which one it is, its field says."""
    try:
        override(Config(), {name: value})
    except ConfigError as error:
        return sentence(str(error).partition(f"{name} = ")[2].partition('": ')[2] or str(error))
    return ""


# The keeper counts refreshes in sums that fade (``ring.forecast``), so that they speak of about the last day whenever
# one looks. What came between two looks is the later sum without what was left of the earlier.


MOST_SUMS = 4_000  # looks at a sum
MOST_STRETCHES = 60
REFRESHES = ("refreshes", "wasted_share")
# By the name of the time that is looked at: seconds of a stretch, and what it is called.
_STEPS = {"hour": (300.0, "in 5 minutes"), "day": (3_600.0, "an hour"), "month": (86_400.0, "a day")}


class Counts(NamedTuple):
    """Refreshes and wasted ones, which found nothing new: in each stretch; and how many there were."""

    all: list[Point]
    wasted: list[Point]
    total: float


def step_of(over: Over) -> tuple[float, str]:
    """How long a stretch is, and its words."""
    return _STEPS[over.name]


def came_between(sums: Sequence[Point], half_life_s: float) -> list[Point]:
    """What was added to a sum that fades: when it was seen first, and how much; about one too many or too few at most.

    A sum that nothing was added to may stand as it was, because it fades when something is.

    >>> came_between([(0.0, 8.0), (86_400.0, 7.0), (90_000.0, 7.0)], 86_400.0)
    [(86400.0, 3.0), (90000.0, 0.0)]
    """
    found = []
    for (earlier_s, earlier), (later_s, later) in pairwise(sums):
        left = earlier * 0.5 ** (max(later_s - earlier_s, 0.0) / half_life_s)
        found.append((later_s, 0.0 if later == earlier else max(later - left, 0.0)))
    return found


def in_stretches(amounts: Sequence[Point], begun_s: float, now_s: float, step_s: float) -> list[Point]:
    """The sum of each stretch, at its end; stretches that began before the measuring did are left out.

    >>> in_stretches([(5.0, 1.0), (12.0, 2.0), (19.0, 3.0)], 0.0, 20.0, 10.0)
    [(10.0, 1.0), (20.0, 5.0)]
    """
    span_s = now_s - begun_s
    count = min(max(int(span_s / step_s), 0), MOST_STRETCHES) if math.isfinite(span_s) else 0
    sums = [0.0] * count
    for at_s, amount in amounts:
        back = (now_s - at_s) / step_s
        if 0 <= back < count and math.isfinite(amount):
            sums[int(back)] += amount
    return [(now_s - back * step_s, sums[back]) for back in reversed(range(count))]


def counts_of(watch: Watch, over: Over, now_s: float, of: tuple[str, str] = REFRESHES) -> Counts:
    """Refreshes over a time; or looks, by the names of their sum and of the share that was wasted."""
    since_s = now_s - over.span_s
    sums = watch.points(of[0], since_s, MOST_SUMS)
    shares = dict(watch.points(of[1], since_s, MOST_SUMS))
    lost = [(at_s, value * shares.get(at_s, 0.0)) for at_s, value in sums]
    begun_s = sums[0][0] if sums else now_s
    came, wasted = (came_between(each, HALF_LIFE_S) for each in (sums, lost))
    every, nothing_new = (in_stretches(each, begun_s, now_s, step_of(over)[0]) for each in (came, wasted))
    return Counts(every, nothing_new, sum(amount for _, amount in came))


def counts_chart(counts: Counts, over: Over, now_s: float) -> Markup:
    """Both as lines."""
    words = step_of(over)[1]
    other = Other("of these found nothing new", counts.wasted)
    return _chart("refreshes", f"Refreshes {words}", "n", counts.all, (over, now_s), other)


def won_of(watch: Watch, over: Over, now_s: float) -> list[Point]:
    """What fetches of known pages brought to search over a time; from the first that was measured on."""
    gains, step_s = watch.gains(now_s - over.span_s), step_of(over)[0]
    begun_s = max(gains[0][0] - step_s, now_s - over.span_s) if gains else now_s
    return in_stretches(gains, begun_s, now_s, step_s)


def won_chart(won: Sequence[Point], over: Over, now_s: float) -> Markup:
    """As a line."""
    return _chart("won", f"Quality won {step_of(over)[1]}", "gain", won, (over, now_s))


def _chart(
    name: str, title: str, unit: str, points: Sequence[Point], when: tuple[Over, float], other: Other | None = None
) -> Markup:
    over, now_s = when
    begun_s = points[0][0] if points else now_s - over.span_s
    csv = f"/console/refresh?csv={name}&over={over.name}"
    return line_chart(Line(name, title, title, unit, points, min(begun_s, now_s - 1.0), now_s, csv, other))


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
