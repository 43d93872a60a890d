"""The frame around every page of the console: navigation, forms, and what was just done with a way to undo it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from vedette.web.auth.access import AccessControl, get_path
from vedette.web.branding import Branding
from vedette.web.commands.commands import Command
from vedette.web.console.ports.lab_reports import NO_REPORTS, ReportStore
from vedette.web.console.ports.sites import ActionLine, AdminService
from vedette.web.console.ui.forms import FormValues, parse_number
from vedette.web.console.ui.scales import format_percent, format_value, format_worth
from vedette.web.rendering import render_page

ACTOR = "the console"


class NavItem(NamedTuple):
    """A page of the navigation."""

    name: str
    title: str
    address: str


NAVIGATION = (
    NavItem("overview", "Overview", "/console/"),
    NavItem("sites", "Sites", "/console/sites"),
    NavItem("queue", "Queue", "/console/queue"),
    NavItem("explain", "Explain", "/console/explain"),
    NavItem("discover", "Discover", "/console/discover"),
    NavItem("discovery", "New pages", "/console/discovery"),
    NavItem("watches", "Watches", "/console/watches"),
    NavItem("sponsored", "Sponsored", "/console/sponsored"),
    NavItem("refresh", "Refresh", "/console/refresh"),
    NavItem("budget", "Budget", "/console/budget"),
    NavItem("push", "Push", "/console/push"),
    NavItem("searches", "Searches", "/console/searches"),
    NavItem("ranking", "Ranking", "/console/ranking"),
    NavItem("results", "Rules", "/console/results"),
    NavItem("storage", "Storage", "/console/storage"),
    NavItem("lab", "Lab", "/console/lab"),
    NavItem("actions", "Actions", "/console/actions"),
)


@dataclass(frozen=True, slots=True)
class ConsoleShell:
    """What all pages of the console share."""

    admin: AdminService
    branding: Branding
    access: AccessControl
    now_s: Callable[[], float]
    reports: ReportStore = NO_REPORTS
    shows_ads: bool = False

    def render_page(
        self, template: str, request: Request, *, here: str, title: str, status: int = 200, **told: object
    ) -> Response:
        """Render a page in the frame; ``here`` names its place in the navigation. A form with ``problems`` is a 422."""
        shared: dict[str, object] = {
            "here": here,
            "title": title,
            "navigation": self._list_nav_items(here),
            "csrf": getattr(request.state, "csrf", ""),
            "done": self._find_done_action(request),
            "request_path": get_path(request),
            "now_s": self.now_s(),
            "problems": {},
            "explained_at": build_explain_url,
            "said": format_value,
            "per_cent": format_percent,
            "worth": format_worth,
        }
        status = 422 if told.get("problems") else status
        return render_page(f"console/{template}", request, self.branding, status, **{**shared, **told})

    def not_found_page(self, request: Request, status: int = 404, said: str = "") -> Response:
        """A page that says so, in the frame."""
        words = said or "The address may be mistyped, or what was here is gone."
        return self.render_page(
            "missing.html", request, here="", title="There is nothing here", status=status, said=words
        )

    def run_command(self, request: Request, command: Command, back: str) -> Response:
        """Run a command, then redirect to a page that says what was done; the handler shows a ``VedetteError``."""
        done = self.admin.run_command(command, self.describe_actor(request))
        return RedirectResponse(add_done_parameter(back, done.action), 303)

    def describe_actor(self, request: Request) -> str:
        """Who orders it, for the log: the console, and whom a proxy names."""
        name = request.state.reader.name
        return f"{ACTOR} ({name})" if name else ACTOR

    def _list_nav_items(self, here: str) -> list[NavItem]:
        """Where one can go; to the lab where it has something to show, or somebody is there already."""
        hidden = {"lab": here != "lab" and not self.reports.has_any(), "sponsored": not self.shows_ads}
        return [place for place in NAVIGATION if not hidden.get(place.name)]

    def _find_done_action(self, request: Request) -> ActionLine | None:
        """The action that the address names; no text travels in addresses, where anybody could write it."""
        number = parse_number(request.query_params.get("done", ""))
        if number is None:
            return None
        return next((line for line in self.admin.list_actions(1, number + 1) if line.id == number), None)


def build_explain_url(url: str) -> str:
    """The address of the page about a URL.

    >>> build_explain_url("https://example.org/a?b=c&d")
    '/console/explain?url=https%3A%2F%2Fexample.org%2Fa%3Fb%3Dc%26d'
    """
    return f"/console/explain?url={quote(url, safe='', errors='replace')}"


def read_form(request: Request) -> FormValues:
    """Return the posted fields, which the session guard has read; several values of a field are lines of it."""
    fields: dict[str, list[str]] = getattr(request.state, "fields", {})
    return {name: "\n".join(values).strip() for name, values in fields.items()}


def add_done_parameter(back: str, action: int) -> str:
    """The address of a page that says what was done; as it is where that was not logged.

    >>> add_done_parameter("/console/sites", 7), add_done_parameter("/console/sites", 0)
    ('/console/sites?done=7', '/console/sites')
    >>> add_done_parameter("/console/sites?sort=pages", 7)
    '/console/sites?sort=pages&done=7'
    """
    if not action:
        return back
    return f"{back}{'&' if '?' in back else '?'}done={action}"
