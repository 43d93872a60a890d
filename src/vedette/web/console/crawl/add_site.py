"""Adding a site: one field first, then a page that says what it would be, then it is one.

Looking at a site may ask its host for its robots.txt. So that is a post, too: no link of a stranger can set it off.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, get_args

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.config.site_settings import OWNED, site_of_text
from vedette.discover.urls.scope import in_scope
from vedette.errors import VedetteError
from vedette.model import ScopeKind, Site, origin_of, registrable_domain
from vedette.web.commands.commands import AddSite
from vedette.web.console.crawl.site_forms import Typed, blank, places_in_words, read_form
from vedette.web.console.ports.sites import SiteDesk
from vedette.web.console.ui.layout import Problems, Shell
from vedette.web.formatting import sentence

__all__ = ["ScopeLook", "adding_routes", "scopes_of"]


class ScopeLook(NamedTuple):
    """What a scope would take, in words, with URLs that it takes and URLs that it leaves."""

    scope: ScopeKind
    words: str
    takes: tuple[str, ...]
    leaves: tuple[str, ...]


def scopes_of(site: Site) -> tuple[ScopeLook, ...]:
    """What each scope would take, with examples of both sides.

    >>> [look.takes[-1] for look in scopes_of(Site("https://www.example.org/docs/a"))]
    ['https://www.example.org/docs/page', 'https://www.example.org/elsewhere', 'https://blog.example.org/']
    """
    return tuple(_scope(replace(site, include=(), exclude=()), scope) for scope in get_args(ScopeKind))


def _scope(site: Site, scope: ScopeKind) -> ScopeLook:
    scoped = replace(site, scope=scope)
    examples = _examples(site)
    takes = tuple(url for url in examples if in_scope(url, scoped) is None)
    return ScopeLook(scope, _words(scoped), takes, tuple(url for url in examples if url not in takes))


def _examples(site: Site) -> tuple[str, ...]:
    origin = origin_of(site.start)
    domain = registrable_domain(origin.host)
    urls = [f"{_folder(site)}page", f"{origin}/elsewhere"]
    if "." in domain and not (domain.startswith("[") or domain.replace(".", "").isdigit()):
        urls.append(f"{origin._replace(host=f'blog.{domain}')}/")
    return tuple(dict.fromkeys(urls))


def _folder(site: Site) -> str:
    return site.start.partition("?")[0].rpartition("/")[0] + "/"


def _words(site: Site) -> str:
    host = origin_of(site.start).host
    if site.scope == "prefix":
        return f"only what begins with {_folder(site)}"
    if site.scope == "host":
        return f"all of {host}"
    return f"all of {registrable_domain(host)} and every host below it"


Told = dict[str, Any]

LONGEST_AGO_S = 86_400.0


def adding_routes(shell: Shell, desk: SiteDesk) -> list[Route]:
    """The first field, the look ahead, and the order itself."""
    pages = _Adding(shell, desk)
    return [
        Route("/sites/add", pages.first, methods=["GET"]),
        Route("/sites/add", pages.added, methods=["POST"]),
        Route("/sites/preview", pages.previewed, methods=["POST"]),
    ]


@dataclass(frozen=True, slots=True)
class _Adding:
    """The handlers, with what they all need."""

    shell: Shell
    desk: SiteDesk

    async def first(self, request: Request) -> Response:
        """One field; a link may have filled it in."""
        return self._first(request, request.query_params.get("site", "")[:2000], {})

    async def previewed(self, request: Request) -> Response:
        """What a site would be, with its settings as they are typed so far."""
        form = await self.shell.form(request)
        typed = form if "scope" in form else blank(form.get("site", ""))
        _, problems = read_form(typed, self._places())
        return await self._second(request, typed, problems, 422 if problems else 200)

    async def added(self, request: Request) -> Response:
        """Add it; or the same form again, with what is wrong."""
        form = await self.shell.form(request)
        site, problems = read_form(form, self._places())
        if site is None:
            return await self._second(request, form, problems, 422)
        try:
            order = AddSite(site, asked_s=self._asked_s(form, site))
            return await self.shell.ordered(request, order, "/console/sites")
        except VedetteError as error:
            return await self._second(request, form, {"form": sentence(str(error))}, 422)

    def _first(self, request: Request, text: str, problems: Problems, status: int = 200) -> Response:
        told = {"text": text, "problems": problems}
        return self.shell.page("site_add.html", request, here="sites", title="Add a site", status=status, **told)

    async def _second(self, request: Request, typed: Typed, problems: Problems, status: int) -> Response:
        """The form with the look ahead; without a site there is nothing to look at, so it is the first field again."""
        if "site" in problems:
            return self._first(request, typed.get("site", ""), problems, status)
        site = _as_far(typed, self._places())
        seen = await run_in_threadpool(self.desk.look, site, self._asked_s(typed, site))
        told: Told = {"site": site, "typed": typed, "seen": seen, "scopes": scopes_of(site)}
        told |= {"problems": problems, "owned": OWNED, "places": places_in_words(self._places())}
        return self.shell.page("site_new.html", request, here="sites", title="Add a site", status=status, **told)

    def _places(self) -> tuple[str, ...]:
        return self.shell.access.serve.console_secrets

    def _asked_s(self, form: Typed, site: Site) -> float | None:
        """When the host was asked for the look ahead, as the form remembers it; another host was not."""
        if form.get("asked_of") != origin_of(site.start).host:
            return None
        try:
            asked_s = float(form.get("asked_s", ""))
        except ValueError:
            return None
        now_s = self.shell.now_s()
        return asked_s if math.isfinite(asked_s) and now_s - LONGEST_AGO_S <= asked_s <= now_s else None


def _as_far(typed: Typed, places: Sequence[str]) -> Site:
    """The site as far as it can be read: settings that are wrong are left at their defaults."""
    site, _ = read_form(typed, places)
    if site is not None:
        return site
    private = {"allow_private": True} if typed.get("allow_private") else {}
    return site_of_text(typed["site"], private)
