"""Layout around every console page: navigation, form access, and the notice of a done action with undo."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from vedette.errors import VedetteError
from vedette.web.auth.access import AccessControl, get_path
from vedette.web.commands.ads_commands import AdCommand
from vedette.web.commands.commands import Command
from vedette.web.console.ports.lab_reports import NO_REPORTS, ReportStore
from vedette.web.console.ports.sites import ActionLine, AdminService
from vedette.web.console.ui.forms import FormValues, Problems, parse_number, parse_settings
from vedette.web.console.ui.scales import format_percent, format_value, format_worth
from vedette.web.formatting import sentence
from vedette.web.rendering import Branding, render_page

ACTOR = "the console"


class NavItem(NamedTuple):
    """An item of the console's navigation."""

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
    NavItem("observers", "Observers", "/console/observers"),
    NavItem("searches", "Searches", "/console/searches"),
    NavItem("ranking", "Ranking", "/console/ranking"),
    NavItem("results", "Rules", "/console/results"),
    NavItem("cluster", "Cluster", "/console/cluster"),
    NavItem("storage", "Storage", "/console/storage"),
    NavItem("lab", "Lab", "/console/lab"),
    NavItem("actions", "Actions", "/console/actions"),
)


_OPTIONAL = frozenset(("sponsored", "cluster"))
# Pages that a cluster has not.
_OF_ONE_FOLDER = frozenset(("push",))


@dataclass(frozen=True, slots=True)
class ConsoleShell:
    """What all console pages share: layout, navigation and running commands.

    ``get_gap`` describes what the numbers lack at the moment; empty if they are complete.
    """

    admin: AdminService
    branding: Branding
    access: AccessControl
    now_s: Callable[[], float]
    reports: ReportStore = NO_REPORTS
    shows: frozenset[str] = frozenset()
    get_gap: Callable[[], str] = str
    has_observers: Callable[[], bool] = bool

    def render_page(
        self, template: str, request: Request, *, here: str, title: str, status: int = 200, **values: object
    ) -> Response:
        """Render a console page in its layout; ``here`` is its navigation item.

        A form with ``problems`` gets status 422.
        """
        shared: dict[str, object] = {
            "here": here,
            "title": title,
            "navigation": self._list_nav_items(here),
            "csrf": getattr(request.state, "csrf", ""),
            "done": self._find_done_action(request),
            "request_path": get_path(request),
            "now_s": self.now_s(),
            "problems": {},
            "gap": self.get_gap(),
            "explained_at": build_explain_url,
            "amount": format_value,
            "per_cent": format_percent,
            "worth": format_worth,
        }
        status = 422 if values.get("problems") else status
        return render_page(f"console/{template}", request, self.branding, status, **{**shared, **values})

    def not_found_page(self, request: Request, status: int = 404, message: str = "") -> Response:
        """Render the console's "not found" page in its layout."""
        words = message or "The address may be misspelled, or the page has been removed."
        return self.render_page("missing.html", request, here="", title="Page not found", status=status, message=words)

    def run_command(self, request: Request, command: Command, back: str) -> Response:
        """Run an operator's command, then redirect to a console page that shows what was done.

        The handler shows a ``VedetteError``.
        """
        done = self.admin.run_command(command, self.describe_actor(request), identify_command(request, command))
        return RedirectResponse(add_done_parameter(back, done.action), 303)

    def save_settings(
        self,
        request: Request,
        fields: Mapping[str, str],
        before: FormValues,
        back: str,
        show_again: Callable[[FormValues, Problems], Response],
    ) -> Response:
        """Save a form of runtime settings and redirect, or show it again with the problem of each field.

        ``fields`` has the setting of each field, ``before`` its current value.
        """
        form = read_form(request)
        command, problems = parse_settings(form, fields, before)
        try:
            if command is not None:
                return self.run_command(request, command, back)
        except VedetteError as error:
            problems = {"form": sentence(str(error))}
        return show_again(form, problems)

    def describe_actor(self, request: Request) -> str:
        """Describe who gives a command for the activity log: the console, and the user that a proxy names."""
        name = request.state.reader.name
        return f"{ACTOR} ({name})" if name else ACTOR

    def _list_nav_items(self, here: str) -> list[NavItem]:
        """List the console's navigation items, without pages that have nothing to show."""
        hidden = set(_OPTIONAL - self.shows)
        if "cluster" in self.shows:
            hidden |= _OF_ONE_FOLDER
        if here != "lab" and not self.reports.has_any():
            hidden.add("lab")
        if here != "observers" and not self.has_observers():
            hidden.add("observers")
        return [place for place in NAVIGATION if place.name not in hidden]

    def _find_done_action(self, request: Request) -> ActionLine | None:
        """Find the done action that the page's URL names by id.

        No text is taken from the URL, where anyone could write it.
        """
        number = parse_number(request.query_params.get("done", ""))
        if number is None:
            return None
        return next((line for line in self.admin.list_actions(1, number + 1) if line.id == number), None)


def build_explain_url(url: str) -> str:
    """Build the address of the console's Explain page for a URL.

    >>> build_explain_url("https://example.org/a?b=c&d")
    '/console/explain?url=https%3A%2F%2Fexample.org%2Fa%3Fb%3Dc%26d'
    """
    return f"/console/explain?url={quote(url, safe='', errors='replace')}"


def identify_command(request: Request, command: Command | AdCommand) -> str:
    """Return the id of a command that a form sent: the same form with the same content is executed once."""
    number = getattr(request.state, "form_number", "")
    return hashlib.sha256(f"{number} {command!r}".encode("utf-8", "replace")).hexdigest() if number else ""


def read_form(request: Request) -> FormValues:
    """Return the posted form fields that the session guard has read; several values of a field become lines."""
    fields: dict[str, list[str]] = getattr(request.state, "fields", {})
    return {name: "\n".join(values).strip() for name, values in fields.items()}


def add_done_parameter(back: str, action: int) -> str:
    """Add the id of the done action to a console URL, so that the layout shows its notice; 0 adds nothing.

    >>> add_done_parameter("/console/sites", 7), add_done_parameter("/console/sites", 0)
    ('/console/sites?done=7', '/console/sites')
    >>> add_done_parameter("/console/sites?sort=pages", 7)
    '/console/sites?sort=pages&done=7'
    """
    if not action:
        return back
    return f"{back}{'&' if '?' in back else '?'}done={action}"
