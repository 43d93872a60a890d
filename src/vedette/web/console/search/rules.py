"""What the operator decides beyond sites: hosts that are offered, rules for results, and the log of all he did."""

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.errors import UsageError, VedetteError
from vedette.web.commands.commands import QUERY_RULE_KINDS, RULE_KINDS, AddRules, Dismiss, RemoveRules, Rule
from vedette.web.commands.rule_text import parse_rule
from vedette.web.console.crawl.site_forms import FormValues
from vedette.web.console.explain.page import MAX_URL_LENGTH, build_explain_url
from vedette.web.console.ports.sites import ActionLine, SiteService, StoredRule, UnlistedHost
from vedette.web.console.ui.layout import ConsoleShell, Problems
from vedette.web.console.ui.tables import Column, Table, csv_response
from vedette.web.formatting import exact, sentence

Context = dict[str, Any]

MAX_UNLISTED_HOSTS: Final = 1000
ACTIONS_PER_PAGE: Final = 50
MAX_ACTIONS: Final = 10_000
RULE_LABELS: Final = {
    "synonym": "Means the same",
    "pin": "Always shows",
    "hide": "Never shows",
    "block": "Blocked",
    "raise": "Raised",
    "lower": "Lowered",
    "conceal": "Hidden",
}
_EXAMPLE_URL: Final = "https://example.org/"
RULE_TABLE: Final = Table[StoredRule](
    (
        Column("kind", "Rule", lambda kept: RULE_LABELS[kept.rule.kind]),
        Column("query", "Query", lambda kept: kept.rule.query or None),
        Column("value", "What", lambda kept: kept.rule.value),
        Column("since", "Since", lambda kept: kept.added_s, is_number=True),
    ),
    default_sort="-since",
)
UNLISTED_HOST_TABLE: Final = Table[UnlistedHost](
    (
        Column("host", "Host", lambda host: host.host),
        Column("pages", "Pages that link", lambda host: host.pages, is_number=True),
        Column("domains", "Of domains", lambda host: host.domains, is_number=True),
        Column("since", "First seen", lambda host: host.first_s, is_number=True),
        Column("example", "Such as", lambda host: host.example),
    ),
    default_sort="-pages",
)


def rule_routes(shell: ConsoleShell, desk: SiteService) -> list[Route]:
    """The pages, and the posts that change something."""
    pages = _RulePages(shell, desk)
    return [
        Route("/discover", pages.show_unlisted_hosts),
        Route("/discover/dismiss", pages.dismiss_host, methods=["POST"]),
        Route("/results", pages.show_rules),
        Route("/results/add", pages.add_rule, methods=["POST"]),
        Route("/results/remove", pages.remove_rule, methods=["POST"]),
        Route("/actions", pages.show_actions),
    ]


@dataclass(frozen=True, slots=True)
class _RulePages:
    """The handlers, with what they all need."""

    shell: ConsoleShell
    sites: SiteService

    # hosts that no site takes

    async def show_unlisted_hosts(self, request: Request) -> Response:
        """The hosts that pages link to most."""
        return await self._render_unlisted_hosts(request)

    async def dismiss_host(self, request: Request) -> Response:
        """One of them is not to be offered again."""
        form = await self.shell.read_form(request)
        try:
            host = parse_rule("block", "", form.get("host", "")).value  # a host, as rules know it
            return await self.shell.run_command(request, Dismiss(host), "/console/discover")
        except VedetteError as error:
            return await self._render_unlisted_hosts(request, {"form": sentence(str(error))}, 422)

    async def _render_unlisted_hosts(
        self, request: Request, problems: Problems | None = None, status: int = 200
    ) -> Response:
        hosts = await run_in_threadpool(self.sites.list_unlisted_hosts, MAX_UNLISTED_HOSTS)
        if UNLISTED_HOST_TABLE.wants_csv(request):
            return UNLISTED_HOST_TABLE.csv_response(request, hosts, "hosts")
        told = {"hosts": hosts, "seen": UNLISTED_HOST_TABLE.paginate(request, hosts), "problems": problems or {}}
        told |= {"most": MAX_UNLISTED_HOSTS, "explained_at": build_explain_url}
        return self.shell.render_page(
            "discover.html", request, here="discover", title="Discover", status=status, **told
        )

    # rules for results

    async def show_rules(self, request: Request) -> Response:
        """All rules, and forms for more; a link may have filled one in."""
        asked = request.query_params
        typed = {name: asked.get(name, "")[:2000] for name in ("kind", "query", "value")}
        if RULE_TABLE.wants_csv(request):
            return RULE_TABLE.csv_response(request, await run_in_threadpool(self.sites.list_rules), "rules")
        return await self._render_rules(request, typed)

    async def add_rule(self, request: Request) -> Response:
        """One more rule; or the form again, with what is wrong."""
        form = await self.shell.read_form(request)
        rule, problems = _parse_rule(form)
        if rule is None:
            return await self._render_rules(request, form, problems, 422)
        try:
            return await self.shell.run_command(request, AddRules((rule,)), "/console/results")
        except VedetteError as error:
            return await self._render_rules(request, form, {"form": sentence(str(error))}, 422)

    async def remove_rule(self, request: Request) -> Response:
        """A rule holds no more."""
        form = await self.shell.read_form(request)
        kind: Any = form.get("kind", "")
        try:
            if kind not in RULE_KINDS:
                raise UsageError("there is no such rule")
            order = RemoveRules((Rule(kind, form.get("query", ""), form.get("value", "")),))
            back = build_explain_url(form["url"][:MAX_URL_LENGTH]) if form.get("url") else "/console/results"
            return await self.shell.run_command(request, order, back)
        except VedetteError as error:
            return await self._render_rules(request, {}, {"form": sentence(str(error))}, 422)

    async def _render_rules(
        self, request: Request, typed: FormValues, problems: Problems | None = None, status: int = 200
    ) -> Response:
        rules = await run_in_threadpool(self.sites.list_rules)
        told = {"rules": rules, "seen": RULE_TABLE.paginate(request, rules), "words": RULE_LABELS, "typed": typed}
        told |= {"explained_at": build_explain_url, "problems": problems or {}}
        return self.shell.render_page(
            "results.html", request, here="results", title="Rules for results", status=status, **told
        )

    # the log

    async def show_actions(self, request: Request) -> Response:
        """What was done, the last one first."""
        asked = request.query_params
        if asked.get("csv"):
            return _export_actions(await run_in_threadpool(self.shell.admin.list_actions, MAX_ACTIONS, None))
        before = _parse_number(asked.get("before", ""))
        lines = await run_in_threadpool(self.shell.admin.list_actions, ACTIONS_PER_PAGE + 1, before)
        more = f"/console/actions?{urlencode({'before': lines[-2].id})}" if len(lines) > ACTIONS_PER_PAGE else ""
        told: Context = {"lines": lines[:ACTIONS_PER_PAGE], "more": more, "is_first": before is None}
        return self.shell.render_page("actions.html", request, here="actions", title="Actions", **told)


def _parse_rule(form: FormValues) -> tuple[Rule | None, Problems]:
    """The rule that a form means; or what is wrong, by the name of its field there."""
    kind: Any = form.get("kind", "")
    if kind not in RULE_KINDS:
        return None, {"form": "Choose what the rule does."}
    query = form.get("query", "")
    value_field = "value" if kind in QUERY_RULE_KINDS else "url" if kind == "conceal" else "domain"
    try:
        if kind in QUERY_RULE_KINDS:
            parse_rule("hide", query, _EXAMPLE_URL)
    except VedetteError as error:
        return None, {"query": sentence(str(error))}
    try:
        return parse_rule(kind, query, form.get(value_field, "")), {}
    except VedetteError as error:
        return None, {value_field: sentence(str(error))}


def _export_actions(lines: list[ActionLine]) -> Response:
    rows = [[exact(line.at_s), line.what, line.by, exact(line.undone_s) if line.undone_s else ""] for line in lines]
    return csv_response("actions", ["Time", "What", "By", "Undone"], rows)


def _parse_number(typed: str) -> int | None:
    return int(typed) if typed.isascii() and typed.isdigit() and len(typed) < 16 else None
