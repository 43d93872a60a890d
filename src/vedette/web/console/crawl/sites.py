"""The list of sites, and what is done to those that are there: pausing, other settings, removing."""

from dataclasses import dataclass, replace
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from vedette.config.site_settings import OWNED, settings_in_words
from vedette.errors import VedetteError
from vedette.model import origin_of
from vedette.web.commands.commands import PauseSite, RemoveSite, SetSite
from vedette.web.console.crawl.add_site import scopes_of
from vedette.web.console.crawl.site_forms import Typed, changes_between, filled, places_in_words, read_form
from vedette.web.console.crawl.url_list import listed_at
from vedette.web.console.explain.page import explained_at
from vedette.web.console.ports.sites import KeptSite, SiteDesk, SiteLine, SiteState
from vedette.web.console.ui.layout import Problems, Shell
from vedette.web.console.ui.tables import Column, Table
from vedette.web.formatting import sentence

__all__ = ["site_routes"]

Told = dict[str, Any]

HOME: Final = "/console/sites"
STATES: Final[dict[SiteState, str]] = {
    "crawled": "running",
    "paused": "paused",
    "robots": "in trouble, waiting for robots.txt",
    "trouble": "in trouble",
    "new": "waiting for its first page",
    "still": "not crawled: nothing runs",
}


def _state(line: SiteLine) -> str:
    """How a site stands, and why its host does not answer where it does not."""
    why = line.trouble.removeprefix("robots.txt: ")
    return f"{STATES[line.state]}: {why}" if why else STATES[line.state]


def _error(line: SiteLine) -> str | None:
    return f"{line.mishap.why}: {line.mishap.url}" if line.mishap else None


TABLE: Final = Table[SiteLine](
    (
        Column("site", "Site", lambda line: line.site.start),
        Column("state", "State", _state),
        Column("pages", "Pages", lambda line: line.pages, is_number=True),
        Column("known", "Known URLs", lambda line: line.known, is_number=True),
        Column("fetched", "Last fetch", lambda line: line.fetched_s, is_number=True),
        Column("error", "Last error", _error),
        Column("delay", "Delay", lambda line: line.delay_s, is_number=True),
        Column("share", "Share", lambda line: line.site.share, is_number=True),
    )
)


def site_routes(shell: Shell, desk: SiteDesk) -> list[Route]:
    """The pages, and the posts that change something."""
    pages = _Sites(shell, desk)
    return [
        Route("/sites", pages.listed),
        Route("/sites/pause", pages.paused, methods=["POST"]),
        Route("/sites/edit", pages.edited, methods=["GET", "POST"]),
        Route("/sites/remove", pages.removed, methods=["GET", "POST"]),
    ]


@dataclass(frozen=True, slots=True)
class _Sites:
    """The handlers, with what they all need."""

    shell: Shell
    desk: SiteDesk

    async def listed(self, request: Request) -> Response:
        """All sites, with how each stands."""
        lines = await run_in_threadpool(self.desk.sites)
        if TABLE.wants_csv(request):
            return TABLE.csv(request, lines, "sites")
        told: Told = {"lines": lines, "seen": TABLE.seen(request, lines), "state_of": _state}
        told |= {"explained_at": explained_at, "listed_at": listed_at, "settings": settings_in_words}
        return self.shell.page("sites.html", request, here="sites", title="Sites", **told)

    async def paused(self, request: Request) -> Response:
        """Pause a site, or resume it."""
        form = await self.shell.form(request)
        order = PauseSite(form.get("site", ""), paused=form.get("paused") == "yes")
        try:
            return await self.shell.ordered(request, order, HOME)
        except VedetteError as error:
            return self._missing(request, str(error))

    async def edited(self, request: Request) -> Response:
        """The settings of a site, and others for it."""
        posted = request.method == "POST"
        form = await self.shell.form(request) if posted else {}
        kept = await self._kept(request, form)
        if kept is None:
            return self._missing(request)
        if not posted:
            return self._edit_form(request, kept, filled(kept.site), {})
        typed = {**form, "site": kept.site.start}
        site, problems = read_form(typed, self._places(), kept.site)
        if site is None:
            return self._edit_form(request, kept, typed, problems, 422)
        if kept.site.ignore_robots and not form.get("obey_robots"):
            site = replace(site, ignore_robots=True)
        changes = changes_between(kept.site, site)
        if not changes:
            return RedirectResponse(HOME, 303)
        order = SetSite(kept.site.start, changes, _typed_words(typed, filled(kept.site)))
        try:
            return await self.shell.ordered(request, order, HOME)
        except VedetteError as error:
            return self._edit_form(request, kept, typed, {"form": sentence(str(error))}, 422)

    async def removed(self, request: Request) -> Response:
        """What will go, and then it goes; whoever means it types the name of the host."""
        form = await self.shell.form(request) if request.method == "POST" else {}
        kept = await self._kept(request, form)
        if kept is None:
            return self._missing(request)
        host = origin_of(kept.site.start).host
        if request.method != "POST":
            return await self._remove_form(request, kept, form, {})
        if form.get("host", "").lower() != host:
            return await self._remove_form(request, kept, form, {"host": f"Type {host} to remove it."}, 422)
        try:
            order = RemoveSite(kept.site.start, with_pages=form.get("pages") == "go")
            return await self.shell.ordered(request, order, HOME)
        except VedetteError as error:
            return await self._remove_form(request, kept, form, {"host": sentence(str(error))}, 422)

    def _places(self) -> tuple[str, ...]:
        return self.shell.access.serve.console_secrets

    async def _kept(self, request: Request, form: Typed) -> KeptSite | None:
        start = form.get("start") or request.query_params.get("site", "")
        return await run_in_threadpool(self.desk.site, start)

    def _edit_form(
        self, request: Request, kept: KeptSite, typed: Typed, problems: Problems, status: int = 200
    ) -> Response:
        told: Told = {"kept": kept, "typed": typed, "scopes": scopes_of(kept.site), "problems": problems}
        told |= {"listed_at": listed_at, "owned": OWNED, "places": places_in_words(self._places())}
        title = f"Settings of {origin_of(kept.site.start).host}"
        return self.shell.page("site_edit.html", request, here="sites", title=title, status=status, **told)

    async def _remove_form(
        self, request: Request, kept: KeptSite, typed: Typed, problems: Problems, status: int = 200
    ) -> Response:
        leaving = await run_in_threadpool(self.desk.leaving, kept.site.start)
        host = origin_of(kept.site.start).host
        told = {"kept": kept, "host": host, "leaving": leaving, "typed": typed, "problems": problems}
        return self.shell.page("site_remove.html", request, here="sites", title=f"Remove {host}", status=status, **told)

    def _missing(
        self, request: Request, said: str = "There is no such site any more, or its name was mistyped."
    ) -> Response:
        return self.shell.page(
            "no_site.html", request, here="sites", title="That is no site", status=404, said=sentence(said)
        )


def _typed_words(typed: Typed, before: Typed) -> str:
    """What was changed, as a command line would say it, for the log of actions."""
    changed = [name for name in before if typed.get(name, "").split() != before[name].split()]
    return " ".join(f"{name}={','.join(typed.get(name, '').split())}" for name in changed)
