"""The console's Rules page: the operator's rules for search results: pins, synonyms, blocked domains."""

from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from vedette.errors import UsageError, VedetteError
from vedette.web.commands.commands import QUERY_RULE_KINDS, RULE_KINDS, AddRules, RemoveRules, Rule
from vedette.web.commands.rule_text import parse_rule
from vedette.web.console.explain.page import MAX_URL_LENGTH
from vedette.web.console.ports.sites import SiteService, StoredRule
from vedette.web.console.ui.forms import FormValues, Problems, find_problem
from vedette.web.console.ui.layout import ConsoleShell, build_explain_url, read_form
from vedette.web.console.ui.tables import Column, Table, find_csv
from vedette.web.formatting import sentence

PAGE_URL: Final = "/console/results"
RULE_LABELS: Final = {
    "synonym": "Synonym",
    "pin": "Pinned",
    "hide": "Hidden for query",
    "block": "Blocked",
    "raise": "Raised",
    "lower": "Lowered",
    "conceal": "Hidden",
}
_EXAMPLE_URL: Final = "https://example.org/"
RULE_TABLE: Final = Table[StoredRule](
    (
        Column("kind", "Rule", lambda stored: RULE_LABELS[stored.rule.kind]),
        Column("query", "Query", lambda stored: stored.rule.query or None),
        Column("value", "Applies to", lambda stored: stored.rule.value),
        Column("since", "Since", lambda stored: stored.added_s, is_number=True),
    ),
    default_sort="-since",
)


@dataclass(frozen=True, slots=True)
class RulesPage:
    """The console's page on search rules, and the POST handlers that add and remove a rule."""

    shell: ConsoleShell
    sites: SiteService

    def show(self, request: Request) -> Response:
        """Show all search rules and the forms to add one; a link may have filled in a form."""
        typed = {name: request.query_params.get(name, "")[:2000] for name in ("kind", "query", "value")}
        return self._render(request, typed)

    def add(self, request: Request) -> Response:
        """Add a search rule, or show its form again with what is wrong."""
        form = read_form(request)
        rule, problems = _parse_rule(form)
        if rule is None:
            return self._render(request, form, problems)
        try:
            return self.shell.run_command(request, AddRules((rule,)), PAGE_URL)
        except VedetteError as error:
            return self._render(request, form, {"form": sentence(str(error))})

    def remove(self, request: Request) -> Response:
        """Remove a search rule, then return to the Explain page of the URL it hid, if requested there."""
        form = read_form(request)
        kind: Any = form.get("kind", "")
        try:
            if kind not in RULE_KINDS:
                raise UsageError("there is no such rule; reload the page")
            command = RemoveRules((Rule(kind, form.get("query", ""), form.get("value", "")),))
            back = build_explain_url(form["url"][:MAX_URL_LENGTH]) if form.get("url") else PAGE_URL
            return self.shell.run_command(request, command, back)
        except VedetteError as error:
            return self._render(request, {}, {"form": sentence(str(error))})

    def _render(self, request: Request, typed: FormValues, problems: Problems | None = None) -> Response:
        rules = self.sites.list_rules()
        if file := find_csv(request, (RULE_TABLE, rules, "rules")):
            return file
        return self.shell.render_page(
            "rules.html",
            request,
            here="results",
            title="Rules",
            rules=rules,
            seen=RULE_TABLE.paginate(request, rules),
            words=RULE_LABELS,
            typed=typed,
            problems=problems or {},
        )


def _parse_rule(form: FormValues) -> tuple[Rule | None, Problems]:
    """Parse a search rule's form into the rule, or into the problem of each field."""
    kind: Any = form.get("kind", "")
    if kind not in RULE_KINDS:
        return None, {"form": "Choose an effect for the rule."}
    query = form.get("query", "")
    if kind in QUERY_RULE_KINDS and (wrong := find_problem(parse_rule, "hide", query, _EXAMPLE_URL)):
        return None, {"query": wrong}
    value_field = "value" if kind in QUERY_RULE_KINDS else "url" if kind == "conceal" else "domain"
    try:
        return parse_rule(kind, query, form.get(value_field, "")), {}
    except VedetteError as error:
        return None, {value_field: sentence(str(error))}
