"""The list of sites, and what is done to those that are there: pausing, other settings, removing."""

from dataclasses import dataclass, replace
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from vedette.config.site_settings import OWNERSHIP_PHRASE, describe_settings
from vedette.errors import VedetteError
from vedette.model import origin_of
from vedette.web.commands.commands import PauseSite, RemoveSite, SetSite
from vedette.web.console.crawl.add_site import preview_scopes
from vedette.web.console.crawl.site_forms import FormValues, describe_allowed, diff_sites, fill_form, parse_form
from vedette.web.console.crawl.url_list import build_pages_url
from vedette.web.console.explain.page import build_explain_url
from vedette.web.console.ports.sites import SiteLine, SiteService, SiteState, StoredSite
from vedette.web.console.ui.layout import ConsoleShell, Problems
from vedette.web.console.ui.tables import Column, Table
from vedette.web.formatting import sentence

Context = dict[str, Any]

PAGE_URL: Final = "/console/sites"
STATE_LABELS: Final[dict[SiteState, str]] = {
    "crawled": "running",
    "paused": "paused",
    "robots": "in trouble, waiting for robots.txt",
    "trouble": "in trouble",
    "new": "waiting for its first page",
    "still": "not crawled: nothing runs",
}


def _describe_state(line: SiteLine) -> str:
    """How a site stands, and why its host does not answer where it does not."""
    why = line.trouble.removeprefix("robots.txt: ")
    return f"{STATE_LABELS[line.state]}: {why}" if why else STATE_LABELS[line.state]


def _describe_error(line: SiteLine) -> str | None:
    return f"{line.mishap.why}: {line.mishap.url}" if line.mishap else None


SITE_TABLE: Final = Table[SiteLine](
    (
        Column("site", "Site", lambda line: line.site.start),
        Column("state", "State", _describe_state),
        Column("pages", "Pages", lambda line: line.pages, is_number=True),
        Column("known", "Known URLs", lambda line: line.known, is_number=True),
        Column("fetched", "Last fetch", lambda line: line.fetched_s, is_number=True),
        Column("error", "Last error", _describe_error),
        Column("delay", "Delay", lambda line: line.delay_s, is_number=True),
        Column("share", "Share", lambda line: line.site.share, is_number=True),
    )
)


def site_routes(shell: ConsoleShell, desk: SiteService) -> list[Route]:
    """The pages, and the posts that change something."""
    pages = _SitePages(shell, desk)
    return [
        Route("/sites", pages.show_list),
        Route("/sites/pause", pages.pause, methods=["POST"]),
        Route("/sites/edit", pages.edit, methods=["GET", "POST"]),
        Route("/sites/remove", pages.remove, methods=["GET", "POST"]),
    ]


@dataclass(frozen=True, slots=True)
class _SitePages:
    """The handlers, with what they all need."""

    shell: ConsoleShell
    sites: SiteService

    async def show_list(self, request: Request) -> Response:
        """All sites, with how each stands."""
        lines = await run_in_threadpool(self.sites.list_sites)
        if SITE_TABLE.wants_csv(request):
            return SITE_TABLE.csv_response(request, lines, "sites")
        told: Context = {"lines": lines, "seen": SITE_TABLE.paginate(request, lines), "state_of": _describe_state}
        told |= {"explained_at": build_explain_url, "listed_at": build_pages_url, "settings": describe_settings}
        return self.shell.render_page("sites.html", request, here="sites", title="Sites", **told)

    async def pause(self, request: Request) -> Response:
        """Pause a site, or resume it."""
        form = await self.shell.read_form(request)
        order = PauseSite(form.get("site", ""), paused=form.get("paused") == "yes")
        try:
            return await self.shell.run_command(request, order, PAGE_URL)
        except VedetteError as error:
            return self._not_found(request, str(error))

    async def edit(self, request: Request) -> Response:
        """The settings of a site, and others for it."""
        posted = request.method == "POST"
        form = await self.shell.read_form(request) if posted else {}
        kept = await self._find_site(request, form)
        if kept is None:
            return self._not_found(request)
        if not posted:
            return self._edit_form(request, kept, fill_form(kept.site), {})
        typed = {**form, "site": kept.site.start}
        site, problems = parse_form(typed, self._get_allowed_secrets(), kept.site)
        if site is None:
            return self._edit_form(request, kept, typed, problems, 422)
        if kept.site.ignore_robots and not form.get("obey_robots"):
            site = replace(site, ignore_robots=True)
        changes = diff_sites(kept.site, site)
        if not changes:
            return RedirectResponse(PAGE_URL, 303)
        order = SetSite(kept.site.start, changes, _describe_changes(typed, fill_form(kept.site)))
        try:
            return await self.shell.run_command(request, order, PAGE_URL)
        except VedetteError as error:
            return self._edit_form(request, kept, typed, {"form": sentence(str(error))}, 422)

    async def remove(self, request: Request) -> Response:
        """What will go, and then it goes; whoever means it types the name of the host."""
        form = await self.shell.read_form(request) if request.method == "POST" else {}
        kept = await self._find_site(request, form)
        if kept is None:
            return self._not_found(request)
        host = origin_of(kept.site.start).host
        if request.method != "POST":
            return await self._remove_form(request, kept, form, {})
        if form.get("host", "").lower() != host:
            return await self._remove_form(request, kept, form, {"host": f"Type {host} to remove it."}, 422)
        try:
            order = RemoveSite(kept.site.start, with_pages=form.get("pages") == "go")
            return await self.shell.run_command(request, order, PAGE_URL)
        except VedetteError as error:
            return await self._remove_form(request, kept, form, {"host": sentence(str(error))}, 422)

    def _get_allowed_secrets(self) -> tuple[str, ...]:
        return self.shell.access.serve.console_secrets

    async def _find_site(self, request: Request, form: FormValues) -> StoredSite | None:
        start = form.get("start") or request.query_params.get("site", "")
        return await run_in_threadpool(self.sites.find_site, start)

    def _edit_form(
        self, request: Request, kept: StoredSite, typed: FormValues, problems: Problems, status: int = 200
    ) -> Response:
        told: Context = {"kept": kept, "typed": typed, "scopes": preview_scopes(kept.site), "problems": problems}
        told |= {
            "listed_at": build_pages_url,
            "owned": OWNERSHIP_PHRASE,
            "places": describe_allowed(self._get_allowed_secrets()),
        }
        title = f"Settings of {origin_of(kept.site.start).host}"
        return self.shell.render_page("site_edit.html", request, here="sites", title=title, status=status, **told)

    async def _remove_form(
        self, request: Request, kept: StoredSite, typed: FormValues, problems: Problems, status: int = 200
    ) -> Response:
        leaving = await run_in_threadpool(self.sites.preview_removal, kept.site.start)
        host = origin_of(kept.site.start).host
        told = {"kept": kept, "host": host, "leaving": leaving, "typed": typed, "problems": problems}
        return self.shell.render_page(
            "site_remove.html", request, here="sites", title=f"Remove {host}", status=status, **told
        )

    def _not_found(
        self, request: Request, said: str = "There is no such site any more, or its name was mistyped."
    ) -> Response:
        return self.shell.render_page(
            "no_site.html", request, here="sites", title="That is no site", status=404, said=sentence(said)
        )


def _describe_changes(typed: FormValues, before: FormValues) -> str:
    """What was changed, as a command line would say it, for the log of actions."""
    changed = [name for name in before if typed.get(name, "").split() != before[name].split()]
    return " ".join(f"{name}={','.join(typed.get(name, '').split())}" for name in changed)
