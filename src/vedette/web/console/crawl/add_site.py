"""The console's Add site pages: type a URL, preview the site, then add it.

A preview may fetch the host's robots.txt. So it is also a POST: no link on another site can trigger it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, get_args

from starlette.requests import Request
from starlette.responses import Response

from vedette.config.site_settings import OWNERSHIP_PHRASE, site_of_text
from vedette.discover.urls.scope import check_scope
from vedette.errors import VedetteError
from vedette.model import ScopeKind, Site, origin_of, registrable_domain
from vedette.timeutil import DAY_S
from vedette.web.commands.commands import AddSite
from vedette.web.console.crawl.site_forms import build_empty_form, describe_allowed, parse_form
from vedette.web.console.ports.sites import SiteService
from vedette.web.console.ui.forms import FormValues, Problems
from vedette.web.console.ui.layout import ConsoleShell, read_form
from vedette.web.formatting import sentence


class ScopePreview(NamedTuple):
    """Preview of a site scope: its description, with example URLs inside and outside of it."""

    scope: ScopeKind
    words: str
    takes: tuple[str, ...]
    leaves: tuple[str, ...]


def preview_scopes(site: Site) -> tuple[ScopePreview, ...]:
    """Preview each scope that a new site could have, with example URLs inside and outside of it.

    >>> [look.takes[-1] for look in preview_scopes(Site("https://www.example.org/docs/a"))]
    ['https://www.example.org/docs/page', 'https://www.example.org/elsewhere', 'https://blog.example.org/']
    """
    return tuple(_preview_scope(replace(site, include=(), exclude=()), scope) for scope in get_args(ScopeKind))


def _preview_scope(site: Site, scope: ScopeKind) -> ScopePreview:
    scoped = replace(site, scope=scope)
    examples = _build_example_urls(site)
    takes = tuple(url for url in examples if check_scope(url, scoped) is None)
    return ScopePreview(scope, _describe_scope(scoped), takes, tuple(url for url in examples if url not in takes))


def _build_example_urls(site: Site) -> tuple[str, ...]:
    origin = origin_of(site.start)
    domain = registrable_domain(origin.host)
    urls = [f"{_get_folder_url(site)}page", f"{origin}/elsewhere"]
    if "." in domain and not (domain.startswith("[") or domain.replace(".", "").isdigit()):
        urls.append(f"{origin._replace(host=f'blog.{domain}')}/")
    return tuple(dict.fromkeys(urls))


def _get_folder_url(site: Site) -> str:
    return site.start.partition("?")[0].rpartition("/")[0] + "/"


def _describe_scope(site: Site) -> str:
    host = origin_of(site.start).host
    if site.scope == "prefix":
        return f"only URLs that start with {_get_folder_url(site)}"
    if site.scope == "host":
        return f"all of {host}"
    return f"all of {registrable_domain(host)}, including subdomains"


MAX_ROBOTS_AGE_S = DAY_S


@dataclass(frozen=True, slots=True)
class AddSitePages:
    """The console's pages to add a site: URL field, preview, and the command that adds it."""

    shell: ConsoleShell
    sites: SiteService

    def show_start(self, request: Request) -> Response:
        """Show the first step of adding a site: a URL field, which a link may have filled in."""
        return self._render_start(request, request.query_params.get("site", "")[:2000], {})

    def preview(self, request: Request) -> Response:
        """Preview a new site with the settings typed so far, before it is added."""
        form = read_form(request)
        typed = form if "scope" in form else build_empty_form(form.get("site", ""))
        _, problems = parse_form(typed, self.shell.access.serve.console_secrets)
        return self._render_preview(request, typed, problems)

    def add(self, request: Request) -> Response:
        """Add the previewed site, or show its form again with what is wrong."""
        form = read_form(request)
        site, problems = parse_form(form, self.shell.access.serve.console_secrets)
        if site is None:
            return self._render_preview(request, form, problems)
        try:
            command = AddSite(site, asked_s=self._get_robots_fetched_s(form, site))
            return self.shell.run_command(request, command, "/console/sites")
        except VedetteError as error:
            return self._render_preview(request, form, {"form": sentence(str(error))})

    def _render_start(self, request: Request, text: str, problems: Problems) -> Response:
        return self.shell.render_page(
            "site_add.html", request, here="sites", title="Add a site", text=text, problems=problems
        )

    def _render_preview(self, request: Request, typed: FormValues, problems: Problems) -> Response:
        """Render the preview of a new site; without a valid site, the first step again."""
        if "site" in problems:
            return self._render_start(request, typed.get("site", ""), problems)
        allowed = self.shell.access.serve.console_secrets
        site = _parse_leniently(typed, allowed)
        return self.shell.render_page(
            "site_new.html",
            request,
            here="sites",
            title="Add a site",
            site=site,
            typed=typed,
            seen=self.sites.preview_site(site, self._get_robots_fetched_s(typed, site)),
            scopes=preview_scopes(site),
            owned=OWNERSHIP_PHRASE,
            places=describe_allowed(allowed),
            problems=problems,
        )

    def _get_robots_fetched_s(self, form: FormValues, site: Site) -> float | None:
        """Return when the preview fetched the host's robots.txt, if the form remembers it for this host."""
        if form.get("asked_of") != origin_of(site.start).host:
            return None
        try:
            asked_s = float(form.get("asked_s", ""))
        except ValueError:
            return None
        now_s = self.shell.now_s()
        return asked_s if math.isfinite(asked_s) and now_s - MAX_ROBOTS_AGE_S <= asked_s <= now_s else None


def _parse_leniently(typed: FormValues, places: Sequence[str]) -> Site:
    """Parse the add-site form for its preview; invalid settings keep their defaults."""
    site, _ = parse_form(typed, places)
    if site is not None:
        return site
    private = {"allow_private": True} if typed.get("allow_private") else {}
    return site_of_text(typed["site"], private)
