"""One URL: why it is fetched or not, everything that was decided of it, and what can be done about it."""

import math
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.errors import VedetteError
from vedette.model import origin_of, registrable_domain
from vedette.web.commands.commands import AddRules, FetchNow, Order, Rule
from vedette.web.commands.rule_text import rule_of, web_url
from vedette.web.console.explain.url_text import parts, verdict
from vedette.web.console.ports.sites import SiteDesk
from vedette.web.console.ui.layout import Shell
from vedette.web.formatting import sentence

__all__ = ["LONGEST", "explain_routes", "explained_at"]

Told = dict[str, Any]

LONGEST: Final = 4000
LOOK_AGAIN_S: Final = 2
MOST_LOOKS: Final = 60


def explain_routes(shell: Shell, desk: SiteDesk) -> list[Route]:
    """The page, and what can be ordered there."""
    pages = _Explain(shell, desk)
    return [
        Route("/explain", pages.explained),
        Route("/explain/fetch", pages.fetched, methods=["POST"]),
        Route("/explain/hide", pages.hidden, methods=["POST"]),
    ]


def explained_at(url: str) -> str:
    """The address of the page about a URL.

    >>> explained_at("https://example.org/a?b=c&d")
    '/console/explain?url=https%3A%2F%2Fexample.org%2Fa%3Fb%3Dc%26d'
    """
    return f"/console/explain?url={quote(url, safe='', errors='replace')}"


class _Wait(NamedTuple):
    """Somebody asked for a URL at ``since_s`` and has looked so many times whether it came."""

    since_s: float
    looks: int

    def state(self, told: Told) -> Literal["came", "ended", "waits", "long"]:
        page, known = told["page"], told["known"]
        if page is not None and page["fetched_s"] > self.since_s:
            return "came"
        if known is not None and (known["ended_s"] or 0.0) > self.since_s:
            return "ended"
        return "waits" if self.looks < MOST_LOOKS else "long"

    def next_look(self, url: str) -> str:
        return f"{explained_at(url)}&since={self.since_s!r}&looks={self.looks + 1}"


@dataclass(frozen=True, slots=True)
class _Explain:
    """The handlers, with what they all need."""

    shell: Shell
    desk: SiteDesk

    async def explained(self, request: Request) -> Response:
        """The field, and the answer where something was typed."""
        typed = request.query_params.get("url", "")[:LONGEST].strip()
        return await self._page(request, typed, _wait_of(request))

    async def fetched(self, request: Request) -> Response:
        """Fetch it now, and look until it came."""
        form = await self.shell.form(request)
        typed = form.get("url", "")[:LONGEST]
        try:
            url, since_s = web_url(typed), self.shell.now_s()
            return await self.shell.ordered(request, FetchNow((url,)), _Wait(since_s, 0).next_look(url))
        except VedetteError as error:
            return await self._page(request, typed, said=str(error), status=422)

    async def hidden(self, request: Request) -> Response:
        """Hide the page, all below its path, or all of its domain."""
        form = await self.shell.form(request)
        typed = form.get("url", "")[:LONGEST]
        try:
            url = web_url(typed)
            return await self.shell.ordered(request, _hiding(url, form.get("what", "")), explained_at(url))
        except VedetteError as error:
            return await self._page(request, typed, said=str(error), status=422)

    async def _page(
        self, request: Request, typed: str, wait: _Wait | None = None, said: str = "", status: int = 200
    ) -> Response:
        told, problems = Told(), {"form": sentence(said)} if said else {}
        try:
            told = await run_in_threadpool(self.desk.explain, web_url(typed)) if typed else {}
        except VedetteError as error:
            problems, status = {"url": sentence(str(error))}, 422
        state = wait.state(told) if wait and told else ""
        answer = self.shell.page(
            "explain.html",
            request,
            here="explain",
            title="Explain",
            status=status,
            typed=typed,
            told=told,
            verdict=verdict(told) if told else "",
            parts=parts(told) if told else [],
            hideable=_places(told["known_as"]) if told else None,
            may_fetch=bool(told) and _may_fetch(told),
            state=state,
            problems=problems,
            explained_at=explained_at,
            rule_of=lambda rule: str(Rule(rule["kind"], rule["query"], rule["value"])),
        )
        if wait and state == "waits":
            answer.headers["refresh"] = f"{LOOK_AGAIN_S}; url={wait.next_look(told['url'])}"
        return answer


def _may_fetch(told: Told) -> bool:
    robots, site = told["robots"], told["site"]
    return site is not None and not site["paused"] and (robots["ignored"] or robots["verdict"] != "disallowed")


class _Places(NamedTuple):
    """What could be hidden with a URL."""

    folder: str
    domain: str


def _places(url: str) -> _Places:
    return _Places(url.partition("?")[0].rpartition("/")[0] + "/", registrable_domain(origin_of(url).host))


def _hiding(url: str, what: str) -> Order:
    places = _places(url)
    if what == "domain":
        return AddRules((rule_of("block", "", places.domain),))
    return AddRules((rule_of("conceal", "", f"{places.folder}*" if what == "below" else url),))


def _wait_of(request: Request) -> _Wait | None:
    typed, looks = request.query_params.get("since", ""), request.query_params.get("looks", "")
    try:
        since_s = float(typed[:40])
    except ValueError:
        return None
    known = looks.isascii() and looks.isdigit() and len(looks) < 5
    return _Wait(since_s, int(looks) if known else MOST_LOOKS) if math.isfinite(since_s) else None
