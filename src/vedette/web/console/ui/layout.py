"""The frame around every page of the console: navigation, forms, and what was just done with a way to undo it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from vedette.web.auth.access import Access, path_of
from vedette.web.branding import Look
from vedette.web.commands.commands import Order
from vedette.web.console.ports.lab_reports import NO_REPORTS, Reports
from vedette.web.console.ports.sites import ActionLine, Operator
from vedette.web.rendering import page

__all__ = ["NAVIGATION", "Place", "Problems", "Shell", "with_done"]

Problems = dict[str, str]  # what is wrong with a form, by the name of its field
BY = "the console"
_MOST_DIGITS = 15  # of the number of an action; more is none's


class Place(NamedTuple):
    """A page of the navigation."""

    name: str
    title: str
    address: str


NAVIGATION = (
    Place("overview", "Overview", "/console/"),
    Place("sites", "Sites", "/console/sites"),
    Place("queue", "Queue", "/console/queue"),
    Place("explain", "Explain", "/console/explain"),
    Place("discover", "Discover", "/console/discover"),
    Place("discovery", "New pages", "/console/discovery"),
    Place("watches", "Watches", "/console/watches"),
    Place("sponsored", "Sponsored", "/console/sponsored"),
    Place("refresh", "Refresh", "/console/refresh"),
    Place("budget", "Budget", "/console/budget"),
    Place("push", "Push", "/console/push"),
    Place("searches", "Searches", "/console/searches"),
    Place("ranking", "Ranking", "/console/ranking"),
    Place("results", "Rules", "/console/results"),
    Place("storage", "Storage", "/console/storage"),
    Place("lab", "Lab", "/console/lab"),
    Place("actions", "Actions", "/console/actions"),
)


@dataclass(frozen=True, slots=True)
class Shell:
    """What all pages of the console share."""

    operator: Operator
    look: Look
    access: Access
    now_s: Callable[[], float]
    reports: Reports = NO_REPORTS
    shows_sponsored: bool = False

    def page(
        self, template: str, request: Request, *, here: str, title: str, status: int = 200, **told: object
    ) -> Response:
        """A page in the frame. ``here`` names its place in the navigation; ``problems`` may be among what is told."""
        shared: dict[str, object] = {
            "here": here,
            "title": title,
            "navigation": self._navigation(here),
            "csrf": getattr(request.state, "csrf", ""),
            "done": self._done(request),
            "request_path": path_of(request),
            "now_s": self.now_s(),
            "problems": {},
        }
        return page(f"console/{template}", request, self.look, status, **{**shared, **told})

    def nothing_here(self, request: Request, status: int = 404, said: str = "") -> Response:
        """A page that says so, in the frame."""
        words = said or "The address may be mistyped, or what was here is gone."
        return self.page("missing.html", request, here="", title="There is nothing here", status=status, said=words)

    async def form(self, request: Request) -> dict[str, str]:
        """The fields of the form that was posted; several values of one field stand on lines of their own."""
        return {name: "\n".join(values).strip() for name, values in (await self.lists(request)).items()}

    async def lists(self, request: Request) -> dict[str, list[str]]:
        """The same with all values of each field. The guard has read them, and left them here."""
        fields: dict[str, list[str]] = getattr(request.state, "fields", {})
        return fields

    async def ordered(self, request: Request, order: Order, back: str) -> Response:
        """Has an order carried out, then leads back to a page that says what was done.

        A ``VedetteError`` is the handler's: it shows the form again, with the words beside the field.
        """
        done = await run_in_threadpool(self.operator.order, order, self.by(request))
        return RedirectResponse(with_done(back, done.action), 303)

    def by(self, request: Request) -> str:
        """Who orders it, for the log: the console, and whom a proxy names."""
        name = request.state.reader.name
        return f"{BY} ({name})" if name else BY

    def _navigation(self, here: str) -> list[Place]:
        """Where one can go; to the lab where it has something to show, or somebody is there already."""
        hidden = {"lab": here != "lab" and not self.reports.has_any(), "sponsored": not self.shows_sponsored}
        return [place for place in NAVIGATION if not hidden.get(place.name)]

    def _done(self, request: Request) -> ActionLine | None:
        """The action that the address names; no text travels in addresses, where anybody could write it."""
        typed = request.query_params.get("done", "")
        if not (typed.isascii() and typed.isdigit() and len(typed) <= _MOST_DIGITS):
            return None
        return next((line for line in self.operator.actions(1, int(typed) + 1) if line.id == int(typed)), None)


def with_done(back: str, action: int) -> str:
    """The address of a page that says what was done; as it is where that was not logged.

    >>> with_done("/console/sites", 7), with_done("/console/sites?sort=pages", 7), with_done("/console/sites", 0)
    ('/console/sites?done=7', '/console/sites?sort=pages&done=7', '/console/sites')
    """
    if not action:
        return back
    return f"{back}{'&' if '?' in back else '?'}done={action}"
