"""The console's Explain page: why a URL is fetched or not, what was decided about it, and what can be done."""

import math
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from vedette.errors import VedetteError
from vedette.model import origin_of, registrable_domain
from vedette.web.commands.commands import AddRules, Command, FetchNow, Rule
from vedette.web.commands.rule_text import parse_rule, parse_web_url
from vedette.web.console.explain.url_text import build_sections, describe_verdict
from vedette.web.console.ports.sites import SiteService
from vedette.web.console.ui.forms import parse_number
from vedette.web.console.ui.layout import ConsoleShell, build_explain_url, read_form
from vedette.web.formatting import sentence

Facts = dict[str, Any]

MAX_URL_LENGTH: Final = 4000
RELOAD_S: Final = 2
MAX_RELOADS: Final = 60


class _FetchWait(NamedTuple):
    """A wait for a URL that the operator requested at ``since_s``, with the number of reloads so far."""

    since_s: float
    reloads: int

    def get_state(self, explanation: Facts) -> Literal["fetched", "ended", "waits", "long"]:
        page, state = explanation["page"], explanation["known"]
        if page is not None and page["fetched_s"] > self.since_s:
            return "fetched"
        if state is not None and (state["ended_s"] or 0.0) > self.since_s:
            return "ended"
        return "waits" if self.reloads < MAX_RELOADS else "long"

    def build_next_url(self, url: str) -> str:
        return f"{build_explain_url(url)}&since={self.since_s!r}&looks={self.reloads + 1}"


@dataclass(frozen=True, slots=True)
class ExplainPage:
    """The console's Explain page, and the POST handlers that fetch or hide the URL."""

    shell: ConsoleShell
    sites: SiteService

    def show(self, request: Request) -> Response:
        """Show the Explain page: a URL field, and the explanation of the URL that was typed."""
        typed = request.query_params.get("url", "")[:MAX_URL_LENGTH].strip()
        return self._render(request, typed, _parse_wait(request))

    def fetch_now(self, request: Request) -> Response:
        """Fetch the explained URL now, and reload the Explain page until it is fetched."""
        typed = read_form(request).get("url", "")[:MAX_URL_LENGTH]
        try:
            url, since_s = parse_web_url(typed), self.shell.now_s()
            return self.shell.run_command(request, FetchNow((url,)), _FetchWait(since_s, 0).build_next_url(url))
        except VedetteError as error:
            return self._render(request, typed, message=str(error))

    def read_robots(self, request: Request) -> Response:
        """Fetch the robots.txt of the explained URL again."""
        typed = read_form(request).get("url", "")[:MAX_URL_LENGTH]
        try:
            url = parse_web_url(typed)
            return self.shell.run_command(request, FetchNow((origin_of(url).robots_url,)), build_explain_url(url))
        except VedetteError as error:
            return self._render(request, typed, message=str(error))

    def hide(self, request: Request) -> Response:
        """Hide the explained page, everything below its path, or its whole domain from results."""
        form = read_form(request)
        typed = form.get("url", "")[:MAX_URL_LENGTH]
        try:
            url = parse_web_url(typed)
            command = _build_hide_command(url, form.get("what", ""))
            return self.shell.run_command(request, command, build_explain_url(url))
        except VedetteError as error:
            return self._render(request, typed, message=str(error))

    def _render(self, request: Request, typed: str, wait: _FetchWait | None = None, message: str = "") -> Response:
        explanation, problems = Facts(), {"form": sentence(message)} if message else {}
        try:
            explanation = self.sites.explain_url(parse_web_url(typed)) if typed else {}
        except VedetteError as error:
            problems = {"url": sentence(str(error))}
        state = wait.get_state(explanation) if wait and explanation else ""
        answer = self.shell.render_page(
            "explain.html",
            request,
            here="explain",
            title="Explain",
            typed=typed,
            explanation=explanation,
            verdict=describe_verdict(explanation) if explanation else "",
            parts=build_sections(explanation) if explanation else [],
            hideable=_find_hide_targets(explanation["known_as"]) if explanation else None,
            may_fetch=bool(explanation) and _can_fetch(explanation),
            state=state,
            problems=problems,
            rule_of=lambda rule: str(Rule(rule["kind"], rule["query"], rule["value"])),
        )
        if wait and state == "waits":
            answer.headers["refresh"] = f"{RELOAD_S}; url={wait.build_next_url(explanation['url'])}"
        return answer


def _can_fetch(explanation: Facts) -> bool:
    robots, site = explanation["robots"], explanation["site"]
    return site is not None and not site["paused"] and (robots["ignored"] or robots["verdict"] != "disallowed")


class _HideTargets(NamedTuple):
    """What could be hidden besides an explained URL itself: all below its folder, or its domain."""

    folder: str
    domain: str


def _find_hide_targets(url: str) -> _HideTargets:
    return _HideTargets(url.partition("?")[0].rpartition("/")[0] + "/", registrable_domain(origin_of(url).host))


def _build_hide_command(url: str, what: str) -> Command:
    places = _find_hide_targets(url)
    if what == "domain":
        return AddRules((parse_rule("block", "", places.domain),))
    return AddRules((parse_rule("conceal", "", f"{places.folder}*" if what == "below" else url),))


def _parse_wait(request: Request) -> _FetchWait | None:
    params = request.query_params
    try:
        since_s = float(params.get("since", "")[:40])
    except ValueError:
        return None
    reloads = parse_number(params.get("looks", ""), digits=4)
    return _FetchWait(since_s, MAX_RELOADS if reloads is None else reloads) if math.isfinite(since_s) else None
