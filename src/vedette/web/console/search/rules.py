"""What the operator decides beyond sites: hosts that are offered, rules for results, and the log of all he did."""

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.errors import UsageError, VedetteError
from vedette.web.commands.commands import KINDS, PER_QUERY, AddRules, Dismiss, RemoveRules, Rule
from vedette.web.commands.rule_text import rule_of
from vedette.web.console.crawl.site_forms import Typed
from vedette.web.console.explain.page import LONGEST, explained_at
from vedette.web.console.ports.sites import ActionLine, KeptRule, SiteDesk, Stranger
from vedette.web.console.ui.layout import Problems, Shell
from vedette.web.console.ui.tables import Column, Table, csv_answer
from vedette.web.formatting import exact, sentence

__all__ = ["result_routes"]

Told = dict[str, Any]

MOST_STRANGERS: Final = 1000
ACTIONS_A_PAGE: Final = 50
MOST_ACTIONS: Final = 10_000
WORDS: Final = {
    "synonym": "Means the same",
    "pin": "Always shows",
    "hide": "Never shows",
    "block": "Blocked",
    "raise": "Raised",
    "lower": "Lowered",
    "conceal": "Hidden",
}
_SOME_URL: Final = "https://example.org/"
RULES: Final = Table[KeptRule](
    (
        Column("kind", "Rule", lambda kept: WORDS[kept.rule.kind]),
        Column("query", "Query", lambda kept: kept.rule.query or None),
        Column("value", "What", lambda kept: kept.rule.value),
        Column("since", "Since", lambda kept: kept.added_s, is_number=True),
    ),
    by="-since",
)
STRANGERS: Final = Table[Stranger](
    (
        Column("host", "Host", lambda host: host.host),
        Column("pages", "Pages that link", lambda host: host.pages, is_number=True),
        Column("domains", "Of domains", lambda host: host.domains, is_number=True),
        Column("since", "First seen", lambda host: host.first_s, is_number=True),
        Column("example", "Such as", lambda host: host.example),
    ),
    by="-pages",
)


def result_routes(shell: Shell, desk: SiteDesk) -> list[Route]:
    """The pages, and the posts that change something."""
    pages = _Results(shell, desk)
    return [
        Route("/discover", pages.discovered),
        Route("/discover/dismiss", pages.dismissed, methods=["POST"]),
        Route("/results", pages.ruled),
        Route("/results/add", pages.added, methods=["POST"]),
        Route("/results/remove", pages.removed, methods=["POST"]),
        Route("/actions", pages.logged),
    ]


@dataclass(frozen=True, slots=True)
class _Results:
    """The handlers, with what they all need."""

    shell: Shell
    desk: SiteDesk

    # hosts that no site takes

    async def discovered(self, request: Request) -> Response:
        """The hosts that pages link to most."""
        return await self._discover(request)

    async def dismissed(self, request: Request) -> Response:
        """One of them is not to be offered again."""
        form = await self.shell.form(request)
        try:
            host = rule_of("block", "", form.get("host", "")).value  # a host, as rules know it
            return await self.shell.ordered(request, Dismiss(host), "/console/discover")
        except VedetteError as error:
            return await self._discover(request, {"form": sentence(str(error))}, 422)

    async def _discover(self, request: Request, problems: Problems | None = None, status: int = 200) -> Response:
        hosts = await run_in_threadpool(self.desk.strangers, MOST_STRANGERS)
        if STRANGERS.wants_csv(request):
            return STRANGERS.csv(request, hosts, "hosts")
        told = {"hosts": hosts, "seen": STRANGERS.seen(request, hosts), "problems": problems or {}}
        told |= {"most": MOST_STRANGERS, "explained_at": explained_at}
        return self.shell.page("discover.html", request, here="discover", title="Discover", status=status, **told)

    # rules for results

    async def ruled(self, request: Request) -> Response:
        """All rules, and forms for more; a link may have filled one in."""
        asked = request.query_params
        typed = {name: asked.get(name, "")[:2000] for name in ("kind", "query", "value")}
        if RULES.wants_csv(request):
            return RULES.csv(request, await run_in_threadpool(self.desk.rules), "rules")
        return await self._rules(request, typed)

    async def added(self, request: Request) -> Response:
        """One more rule; or the form again, with what is wrong."""
        form = await self.shell.form(request)
        rule, problems = _read_rule(form)
        if rule is None:
            return await self._rules(request, form, problems, 422)
        try:
            return await self.shell.ordered(request, AddRules((rule,)), "/console/results")
        except VedetteError as error:
            return await self._rules(request, form, {"form": sentence(str(error))}, 422)

    async def removed(self, request: Request) -> Response:
        """A rule holds no more."""
        form = await self.shell.form(request)
        kind: Any = form.get("kind", "")
        try:
            if kind not in KINDS:
                raise UsageError("there is no such rule")
            order = RemoveRules((Rule(kind, form.get("query", ""), form.get("value", "")),))
            back = explained_at(form["url"][:LONGEST]) if form.get("url") else "/console/results"
            return await self.shell.ordered(request, order, back)
        except VedetteError as error:
            return await self._rules(request, {}, {"form": sentence(str(error))}, 422)

    async def _rules(
        self, request: Request, typed: Typed, problems: Problems | None = None, status: int = 200
    ) -> Response:
        rules = await run_in_threadpool(self.desk.rules)
        told = {"rules": rules, "seen": RULES.seen(request, rules), "words": WORDS, "typed": typed}
        told |= {"explained_at": explained_at, "problems": problems or {}}
        return self.shell.page(
            "results.html", request, here="results", title="Rules for results", status=status, **told
        )

    # the log

    async def logged(self, request: Request) -> Response:
        """What was done, the last one first."""
        asked = request.query_params
        if asked.get("csv"):
            return _csv(await run_in_threadpool(self.shell.operator.actions, MOST_ACTIONS, None))
        before = _number(asked.get("before", ""))
        lines = await run_in_threadpool(self.shell.operator.actions, ACTIONS_A_PAGE + 1, before)
        more = f"/console/actions?{urlencode({'before': lines[-2].id})}" if len(lines) > ACTIONS_A_PAGE else ""
        told: Told = {"lines": lines[:ACTIONS_A_PAGE], "more": more, "is_first": before is None}
        return self.shell.page("actions.html", request, here="actions", title="Actions", **told)


def _read_rule(form: Typed) -> tuple[Rule | None, Problems]:
    """The rule that a form means; or what is wrong, by the name of its field there."""
    kind: Any = form.get("kind", "")
    if kind not in KINDS:
        return None, {"form": "Choose what the rule does."}
    query = form.get("query", "")
    value_field = "value" if kind in PER_QUERY else "url" if kind == "conceal" else "domain"
    try:
        if kind in PER_QUERY:
            rule_of("hide", query, _SOME_URL)
    except VedetteError as error:
        return None, {"query": sentence(str(error))}
    try:
        return rule_of(kind, query, form.get(value_field, "")), {}
    except VedetteError as error:
        return None, {value_field: sentence(str(error))}


def _csv(lines: list[ActionLine]) -> Response:
    rows = [[exact(line.at_s), line.what, line.by, exact(line.undone_s) if line.undone_s else ""] for line in lines]
    return csv_answer("actions", ["Time", "What", "By", "Undone"], rows)


def _number(typed: str) -> int | None:
    return int(typed) if typed.isascii() and typed.isdigit() and len(typed) < 16 else None
