"""The console's Sites page: list sites, and pause, edit or remove one."""

from dataclasses import dataclass, replace
from typing import Final, get_args

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from vedette.config.site_settings import OWNERSHIP_PHRASE, describe_settings
from vedette.errors import VedetteError
from vedette.model import Overrule, origin_of
from vedette.web.commands.commands import PauseSite, RemoveSite, SetMachine, SetSite
from vedette.web.console.crawl.add_site import preview_scopes
from vedette.web.console.crawl.site_forms import describe_allowed, diff_sites, fill_form, parse_form
from vedette.web.console.crawl.url_list import build_pages_url
from vedette.web.console.ports.monitoring import Monitoring
from vedette.web.console.ports.sites import SiteLine, SiteService, SiteState, StoredSite
from vedette.web.console.ui.forms import FormValues, Problems, find_setting_problem
from vedette.web.console.ui.layout import ConsoleShell, read_form
from vedette.web.console.ui.tables import Column, Table, find_csv
from vedette.web.formatting import sentence

PAGE_URL: Final = "/console/sites"
CONTACT_SETTING: Final = "crawl.contact"
MAX_LENGTH: Final = 200
STATE_LABELS: Final[dict[SiteState, str]] = {
    "crawled": "running",
    "paused": "paused",
    "robots": "in trouble, waiting for robots.txt",
    "trouble": "in trouble",
    "new": "waiting for its first page",
    "still": "not crawled: the crawler is not running",
}


def _describe_state(line: SiteLine) -> str:
    """Describe a site's state in the list of sites, and why its host does not respond if it is in trouble."""
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


@dataclass(frozen=True, slots=True)
class SitePages:
    """The console's list of sites, and the forms and POST handlers that pause, edit or remove a site."""

    shell: ConsoleShell
    sites: SiteService
    monitoring: Monitoring

    def show_list(self, request: Request) -> Response:
        """Show the list of sites with the state of each, or export it as CSV."""
        lines = self.sites.list_sites()
        return find_csv(request, (SITE_TABLE, lines, "sites")) or self._list_page(request, lines)

    def set_contact(self, request: Request) -> Response:
        """Set the operator's contact, or let the configured one apply again."""
        form, machine = read_form(request), self.monitoring.get_runtime_settings()
        value = None if form.get("configured") else form.get("contact", "").strip()[:MAX_LENGTH]
        problem = find_setting_problem(CONTACT_SETTING, value) if value else ""
        if not problem and value == machine.contact:
            problem = "Nothing to save: this is the current contact."
        try:
            if not problem:
                return self.shell.run_command(request, SetMachine({CONTACT_SETTING: value}), PAGE_URL)
        except VedetteError as error:
            problem = sentence(str(error))
        return self._list_page(request, self.sites.list_sites(), {"contact": value or ""}, {"contact": problem})

    def _list_page(
        self,
        request: Request,
        lines: list[SiteLine],
        typed: FormValues | None = None,
        problems: Problems | None = None,
    ) -> Response:
        machine = self.monitoring.get_runtime_settings()
        return self.shell.render_page(
            "sites.html",
            request,
            here="sites",
            title="Sites",
            lines=lines,
            seen=SITE_TABLE.paginate(request, lines),
            state_of=_describe_state,
            listed_at=build_pages_url,
            settings=describe_settings,
            machine=machine,
            is_contact_chosen=CONTACT_SETTING in machine.chosen,
            typed={"contact": machine.contact, **(typed or {})},
            problems=problems or {},
        )

    def pause(self, request: Request) -> Response:
        """Pause or resume a site."""
        form = read_form(request)
        command = PauseSite(form.get("site", ""), paused=form.get("paused") == "yes")
        try:
            return self.shell.run_command(request, command, PAGE_URL)
        except VedetteError as error:
            return self._not_found(request, str(error))

    def fetch_held(self, request: Request) -> Response:
        """Fetch the URLs of a site that are held back as traps: overrule that judgment for it."""
        stored = self._find_site(request, read_form(request))
        if stored is None:
            return self._not_found(request)
        wanted = tuple(name for name in get_args(Overrule) if name == "trap" or name in stored.site.overrule)
        command = SetSite(stored.site.start, {"overrule": wanted}, f"overrule={','.join(wanted)}")
        return self.shell.run_command(request, command, "/console/")

    def edit(self, request: Request) -> Response:
        """Show a site's settings form, or save the edited settings."""
        form = read_form(request)
        stored = self._find_site(request, form)
        if stored is None:
            return self._not_found(request)
        if request.method != "POST":
            return self._edit_form(request, stored, fill_form(stored.site))
        typed = {**form, "site": stored.site.start}
        site, problems = parse_form(typed, self.shell.access.serve.console_secrets, stored.site)
        if site is None:
            return self._edit_form(request, stored, typed, problems)
        if stored.site.ignore_robots and not form.get("obey_robots"):
            site = replace(site, ignore_robots=True)
        changes = diff_sites(stored.site, site)
        if not changes:
            return RedirectResponse(PAGE_URL, 303)
        command = SetSite(stored.site.start, changes, _describe_changes(typed, fill_form(stored.site)))
        try:
            return self.shell.run_command(request, command, PAGE_URL)
        except VedetteError as error:
            return self._edit_form(request, stored, typed, {"form": sentence(str(error))})

    def remove(self, request: Request) -> Response:
        """Show what removing a site would delete, and remove it once its host name is typed."""
        form = read_form(request)
        stored = self._find_site(request, form)
        if stored is None:
            return self._not_found(request)
        if request.method != "POST":
            return self._remove_form(request, stored, form)
        host = origin_of(stored.site.start).host
        if form.get("host", "").lower() != host:
            return self._remove_form(request, stored, form, {"host": f"Type {host} to remove it."})
        try:
            command = RemoveSite(stored.site.start, with_pages=form.get("pages") == "go")
            return self.shell.run_command(request, command, PAGE_URL)
        except VedetteError as error:
            return self._remove_form(request, stored, form, {"host": sentence(str(error))})

    def _find_site(self, request: Request, form: FormValues) -> StoredSite | None:
        return self.sites.find_site(form.get("start") or request.query_params.get("site", ""))

    def _edit_form(
        self, request: Request, stored: StoredSite, typed: FormValues, problems: Problems | None = None
    ) -> Response:
        return self.shell.render_page(
            "site_edit.html",
            request,
            here="sites",
            title=f"Settings of {origin_of(stored.site.start).host}",
            stored=stored,
            typed=typed,
            scopes=preview_scopes(stored.site),
            listed_at=build_pages_url,
            owned=OWNERSHIP_PHRASE,
            places=describe_allowed(self.shell.access.serve.console_secrets),
            problems=problems or {},
        )

    def _remove_form(
        self, request: Request, stored: StoredSite, typed: FormValues, problems: Problems | None = None
    ) -> Response:
        host = origin_of(stored.site.start).host
        return self.shell.render_page(
            "site_remove.html",
            request,
            here="sites",
            title=f"Remove {host}",
            stored=stored,
            host=host,
            leaving=self.sites.preview_removal(stored.site.start),
            typed=typed,
            problems=problems or {},
        )

    def _not_found(
        self,
        request: Request,
        message: str = "This site does not exist. It may have been removed, or the name is misspelled.",
    ) -> Response:
        return self.shell.render_page(
            "no_site.html", request, here="sites", title="Site not found", status=404, message=sentence(message)
        )


def _describe_changes(typed: FormValues, before: FormValues) -> str:
    """Describe the edited settings of a site as the command line would, for the activity log."""
    changed = [name for name in before if typed.get(name, "").split() != before[name].split()]
    return " ".join(f"{name}={','.join(typed.get(name, '').split())}" for name in changed)
