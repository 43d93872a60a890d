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
from vedette.web.console.crawl.forecast import (
    CALIBRATION_TABLE,
    build_calibration_rows,
    describe_calibration,
    render_reliability_diagram,
)
from vedette.web.console.explain.page import build_explain_url
from vedette.web.console.explain.refresh_text import format_interval, format_percent, format_worth
from vedette.web.console.ports.monitoring import DuePage, Monitoring, RefreshStatus, RuntimeSettings
from vedette.web.console.ui.charts import LineChart, Point, SecondLine, render_line_chart
from vedette.web.console.ui.layout import ConsoleShell, Problems
from vedette.web.console.ui.scales import format_value
from vedette.web.console.ui.tables import Column, Table, csv_response
from vedette.web.console.ui.time_series import TimeRange, build_range_links, parse_time_range, render_series
from vedette.web.formatting import sentence, stamp

# The fields of the form, and the settings that they are.
FIELD_SETTINGS: Final[Mapping[str, str]] = {"policy": "refresh.policy", "budget": "crawl.budget"}
MAX_LENGTH: Final = 100
POLICY_DESCRIPTIONS: Final[Mapping[str, str]] = {
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


def fill_form_values(machine: RuntimeSettings) -> dict[str, str]:
    """The form as it holds."""
    return {"policy": machine.policy, "budget": machine.budget}


def parse_settings(form: Mapping[str, str], machine: RuntimeSettings) -> tuple[SetMachine | None, Problems]:
    """The order that a form means; or what is wrong, by the name of its field.

    >>> parse_settings({"policy": "nutch", "budget": "0"}, RuntimeSettings("uniform", "0"))
    (SetMachine(changes={'refresh.policy': 'nutch'}), {})
    >>> parse_settings({"policy": "nutch", "budget": "many"}, RuntimeSettings("nutch", "0"))[1]["budget"]
    'Write a number of requests and a unit of time, such as "120/min" (s, min, h, d), or "0".'
    """
    if form.get("configured") in FIELD_SETTINGS:
        return SetMachine({FIELD_SETTINGS[form["configured"]]: None}), {}
    before = fill_form_values(machine)
    changes = {
        field: form[field][:MAX_LENGTH] for field in FIELD_SETTINGS if field in form and form[field] != before[field]
    }
    problems = {
        field: words for field, value in changes.items() if (words := _find_problem(FIELD_SETTINGS[field], value))
    }
    if problems:
        return None, problems
    if not changes:
        return None, {"form": "Nothing would change: it is set so already."}
    return SetMachine({FIELD_SETTINGS[field]: value for field, value in changes.items()}), {}


def _find_problem(name: str, value: str) -> str:
    """What is wrong with a value; nothing where it is right. Which one it is, its field says."""
    try:
        override(Config(), {name: value})
    except ConfigError as error:
        return sentence(str(error).partition(f"{name} = ")[2].partition('": ')[2] or str(error))
    return ""


# The keeper counts refreshes in sums that fade (``ring.forecast``), so that they speak of about the last day whenever
# one looks. What came between two looks is the later sum without what was left of the earlier.


MAX_SAMPLES = 4_000  # looks at a sum
MAX_BINS = 60
REFRESH_SERIES = ("refreshes", "wasted_share")
# By the name of the time that is looked at: seconds of a stretch, and what it is called.
_BIN_SIZES = {"hour": (300.0, "in 5 minutes"), "day": (3_600.0, "an hour"), "month": (86_400.0, "a day")}


class BinnedCounts(NamedTuple):
    """Refreshes and wasted ones, which found nothing new: in each stretch; and how many there were."""

    all: list[Point]
    wasted: list[Point]
    total: float


def get_bin_size(over: TimeRange) -> tuple[float, str]:
    """How long a stretch is, and its words."""
    return _BIN_SIZES[over.name]


def compute_increments(sums: Sequence[Point], half_life_s: float) -> list[Point]:
    """What was added to a sum that fades: when it was seen first, and how much; about one too many or too few at most.

    A sum that nothing was added to may stand as it was, because it fades when something is.

    >>> compute_increments([(0.0, 8.0), (86_400.0, 7.0), (90_000.0, 7.0)], 86_400.0)
    [(86400.0, 3.0), (90000.0, 0.0)]
    """
    found = []
    for (earlier_s, earlier), (later_s, later) in pairwise(sums):
        left = earlier * 0.5 ** (max(later_s - earlier_s, 0.0) / half_life_s)
        found.append((later_s, 0.0 if later == earlier else max(later - left, 0.0)))
    return found


def sum_by_bin(amounts: Sequence[Point], begun_s: float, now_s: float, step_s: float) -> list[Point]:
    """The sum of each stretch, at its end; stretches that began before the measuring did are left out.

    >>> sum_by_bin([(5.0, 1.0), (12.0, 2.0), (19.0, 3.0)], 0.0, 20.0, 10.0)
    [(10.0, 1.0), (20.0, 5.0)]
    """
    span_s = now_s - begun_s
    count = min(max(int(span_s / step_s), 0), MAX_BINS) if math.isfinite(span_s) else 0
    sums = [0.0] * count
    for at_s, amount in amounts:
        back = (now_s - at_s) / step_s
        if 0 <= back < count and math.isfinite(amount):
            sums[int(back)] += amount
    return [(now_s - back * step_s, sums[back]) for back in reversed(range(count))]


def load_counts(watch: Monitoring, over: TimeRange, now_s: float, of: tuple[str, str] = REFRESH_SERIES) -> BinnedCounts:
    """Refreshes over a time; or looks, by the names of their sum and of the share that was wasted."""
    since_s = now_s - over.span_s
    sums = watch.load_series(of[0], since_s, MAX_SAMPLES)
    shares = dict(watch.load_series(of[1], since_s, MAX_SAMPLES))
    lost = [(at_s, value * shares.get(at_s, 0.0)) for at_s, value in sums]
    begun_s = sums[0][0] if sums else now_s
    came, wasted = (compute_increments(each, HALF_LIFE_S) for each in (sums, lost))
    every, nothing_new = (sum_by_bin(each, begun_s, now_s, get_bin_size(over)[0]) for each in (came, wasted))
    return BinnedCounts(every, nothing_new, sum(amount for _, amount in came))


def render_counts(counts: BinnedCounts, over: TimeRange, now_s: float) -> Markup:
    """Both as lines."""
    words = get_bin_size(over)[1]
    other = SecondLine("of these found nothing new", counts.wasted)
    return _render_chart("refreshes", f"Refreshes {words}", "n", counts.all, (over, now_s), other)


def load_gains(watch: Monitoring, over: TimeRange, now_s: float) -> list[Point]:
    """What fetches of known pages brought to search over a time; from the first that was measured on."""
    gains, step_s = watch.list_gains(now_s - over.span_s), get_bin_size(over)[0]
    begun_s = max(gains[0][0] - step_s, now_s - over.span_s) if gains else now_s
    return sum_by_bin(gains, begun_s, now_s, step_s)


def render_gains(won: Sequence[Point], over: TimeRange, now_s: float) -> Markup:
    """As a line."""
    return _render_chart("won", f"Quality won {get_bin_size(over)[1]}", "gain", won, (over, now_s))


def _render_chart(
    name: str,
    title: str,
    unit: str,
    points: Sequence[Point],
    when: tuple[TimeRange, float],
    other: SecondLine | None = None,
) -> Markup:
    over, now_s = when
    begun_s = points[0][0] if points else now_s - over.span_s
    csv = f"/console/refresh?csv={name}&over={over.name}"
    return render_line_chart(LineChart(name, title, title, unit, points, min(begun_s, now_s - 1.0), now_s, csv, other))


def describe_due(page: DuePage) -> str:
    """Why a page is due when it is: how often it changes, or the rule that has it."""
    if page.rate_d is None:
        return page.rule
    return f"changes {format_interval(page.rate_d, page.rate_low_d, page.rate_high_d)}"


_DUE_TABLE: Table[DuePage] = Table(
    (
        Column("page", "Page", lambda row: row.url),
        Column("due", "Due", lambda row: row.due_s, is_number=True),
        Column("chance", "Has changed", lambda row: row.chance, is_number=True),
        Column("worth", "Worth now", lambda row: row.worth, is_number=True),
        Column("why", "Why", describe_due),
    ),
    prefix="soon",
)


def refresh_routes(shell: ConsoleShell, watch: Monitoring) -> list[Route]:
    """The page, and the post that changes its settings."""
    pages = _RefreshPage(shell, watch)
    return [Route("/refresh", pages.show), Route("/refresh/set", pages.change_settings, methods=["POST"])]


@dataclass(frozen=True, slots=True)
class _RefreshPage:
    """The handler, with what it needs."""

    shell: ConsoleShell
    monitoring: Monitoring

    async def show(self, request: Request) -> Response:
        """How refreshing stands; each table and chart is a file, too."""
        refresh, over = await run_in_threadpool(self.monitoring.get_refresh_status), parse_time_range(request)
        file = await run_in_threadpool(self._csv_response, request, refresh, over)
        return file if file is not None else await self._render(request, refresh)

    async def change_settings(self, request: Request) -> Response:
        """Another policy or budget from now on; or the page again, with what is wrong beside its field."""
        form, machine = (
            await self.shell.read_form(request),
            await run_in_threadpool(self.monitoring.get_runtime_settings),
        )
        order, problems = parse_settings(form, machine)
        try:
            if order is not None:
                return await self.shell.run_command(request, order, "/console/refresh")
        except VedetteError as error:
            problems = {"form": sentence(str(error))}
        return await self._render(request, await run_in_threadpool(self.monitoring.get_refresh_status), form, problems)

    async def _render(
        self,
        request: Request,
        refresh: RefreshStatus,
        typed: dict[str, str] | None = None,
        problems: Problems | None = None,
    ) -> Response:
        told = await run_in_threadpool(self._build_context, refresh, parse_time_range(request))
        machine = await run_in_threadpool(self.monitoring.get_runtime_settings)
        told |= {
            "seen": _DUE_TABLE.paginate(request, refresh.soon),
            "ways": build_range_links(request),
            "machine": machine,
        }
        told |= {"typed": {**fill_form_values(machine), **(typed or {})}, "problems": problems or {}}
        told |= {
            "policies": [(name, name, words) for name, words in POLICY_DESCRIPTIONS.items()],
            "fields": FIELD_SETTINGS,
        }
        status = 422 if problems else 200
        return self.shell.render_page("refresh.html", request, here="refresh", title="Refresh", status=status, **told)

    def _csv_response(self, request: Request, refresh: RefreshStatus, over: TimeRange) -> Response | None:
        """The table or chart that is asked for as a file; None where none is."""
        now_s, words = self.shell.now_s(), get_bin_size(over)[1]
        if CALIBRATION_TABLE.wants_csv(request):
            return CALIBRATION_TABLE.csv_response(request, build_calibration_rows(refresh.calibration), "calibration")
        if _DUE_TABLE.wants_csv(request):
            return _DUE_TABLE.csv_response(request, refresh.soon, "due-next")
        if request.query_params.get("csv") == "won":
            rows = [(stamp(at_s), won) for at_s, won in load_gains(self.monitoring, over, now_s)]
            return csv_response("quality-won", ["when", f"quality won {words}"], rows)
        if request.query_params.get("csv") == "refreshes":
            counts = load_counts(self.monitoring, over, now_s)
            pairs = zip(counts.all, counts.wasted, strict=True)
            counted = [(stamp(at_s), round(count, 1), round(wasted, 1)) for (at_s, count), (_, wasted) in pairs]
            return csv_response("refreshes", ["when", f"refreshes {words}", "found nothing new"], counted)
        return None

    def _build_context(self, refresh: RefreshStatus, over: TimeRange) -> dict[str, Any]:
        now_s = self.shell.now_s()
        counts = load_counts(self.monitoring, over, now_s)
        return {
            "refresh": refresh,
            "crawl": self.monitoring.get_crawl_status(),
            "latest": self.monitoring.get_latest_values(),
            "over": over,
            "counts": counts,
            "charts": [render_counts(counts, over, now_s), *self._build_charts(over, now_s)],
            "tenths": build_calibration_rows(refresh.calibration),
            "trust": describe_calibration(refresh.calibration),
            "reliability": render_reliability_diagram(refresh.calibration),
            "explained_at": build_explain_url,
            "per_cent": format_percent,
            "worth": format_worth,
            "why_then": describe_due,
            "said": format_value,
        }

    def _build_charts(self, over: TimeRange, now_s: float) -> list[Markup]:
        """Those with two lines stand first, side by side."""
        return [
            render_series(self.monitoring, "change_found", over, now_s, "change_expected"),
            render_gains(load_gains(self.monitoring, over, now_s), over, now_s),
            render_series(self.monitoring, "current_share", over, now_s),
            render_series(self.monitoring, "checked_in_time", over, now_s),
            render_series(self.monitoring, "wasted_share", over, now_s),
            render_series(self.monitoring, "price", over, now_s),
        ]
