"""Who may come into the console: everything under ``/console`` passes here, so that no page can be forgotten.

The operator shows the token once and gets a session: a secret in a cookie, of which only the digest is kept. Each form
carries a mark that is made of this secret; a post without it does nothing. So does one that another site's page sends.
"""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable
from math import ceil
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Router
from starlette.types import Message, Receive, Scope, Send

from vedette.config import Rate
from vedette.errors import VedetteError
from vedette.web.auth.access import Reader, Refused, path_of
from vedette.web.auth.rate_limits import Limits
from vedette.web.auth.tokens import digest_of
from vedette.web.commands.commands import CloseSession, OpenSession
from vedette.web.console.ui.layout import Shell
from vedette.web.form_posts import is_ours, posted_fields
from vedette.web.gate import told_refusal
from vedette.web.rendering import page

__all__ = ["HOME", "SESSION_COOKIE", "SESSION_S", "SIGN_IN", "Guard", "kept_place"]

HOME = "/console/"
SIGN_IN = "/console/signin"
SIGN_OUT = "/console/signout"
SESSION_COOKIE = "vedette_console"
SESSION_S = 12 * 3600
CLOCK_SLACK_S = 300  # the wall's clock may have been set back
LONGEST_TOKEN = 200
PER_ADDRESS = Rate(10, 60.0)
FOR_ALL = Rate(100, 60.0)
_PLACE = re.compile(r"/console/(?!.*(?:\.|%2e){2})[!-\[\]-~]{0,2000}", re.IGNORECASE)
_NOT_OURS = Refused(403, "not_ours", "This was not sent by a page of the console. Open the console and do it there.")
_STALE = Refused(403, "stale_form", "This form is of another sign-in. Go back, load the page again, and send it again.")
_NO_SESSION = Refused(403, "not_signed_in", "You are not signed in any more, so nothing was done. Sign in first.")
_NO_FORM = Refused(400, "no_form", "This is not what a page of the console sends.")


def kept_place(place: str) -> str:
    """Where somebody wanted to go, if that is a page of the console; else its first page.

    >>> kept_place("/console/sites?sort=pages"), kept_place("//example.org/console/"), kept_place("/console/../x")
    ('/console/sites?sort=pages', '/console/', '/console/')
    """
    return place if _PLACE.fullmatch(place) else HOME


class Guard:
    """Stands before the console's routes."""

    def __init__(
        self,
        app: Router,
        shell: Shell,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._shell = shell
        self._wall = wall
        self._limits = Limits(clock)

    @property
    def routes(self) -> list[BaseRoute]:
        """What is guarded."""
        return self._app.routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets a request in, or answers it here."""
        request = Request(scope, receive)
        stopped, sealed = await self._stopped(request), _sealed(send)
        try:
            await (stopped or self._app)(scope, receive, sealed)
        except HTTPException as error:  # no route, or not with this method; nothing was sent yet
            await self._shell.nothing_here(request, error.status_code)(scope, receive, sealed)

    async def _stopped(self, request: Request) -> Response | None:
        """The answer to what goes no further; None for what does."""
        is_read = request.method in {"GET", "HEAD"}
        if path_of(request) == SIGN_IN:
            return self._form(request) if is_read else await self._signed_in(request)
        session = self._session(request)
        if session is None:
            return _to_sign_in(request) if is_read else self._refused(request, _NO_SESSION)
        request.state.csrf = self._mark(session)
        request.state.is_in = lambda: self._session(request) is not None  # for answers that take long
        if is_read:
            return None
        return await self._unwanted(request) or await self._signed_out(request, session)

    async def _unwanted(self, request: Request) -> Response | None:
        """A post that is not of our own pages, or of another session's."""
        if not is_ours(request, self._shell.access):
            return self._refused(request, _NOT_OURS)
        fields = await posted_fields(request)
        if fields is None:
            return self._refused(request, _NO_FORM)
        shown = fields.pop("csrf", [""])[-1]
        if not _same(shown, request.state.csrf):
            return self._refused(request, _STALE)
        request.state.fields = fields
        return None

    # sessions

    def _session(self, request: Request) -> str | None:
        """The secret of an open session, where the request shows one."""
        secret = request.cookies.get(SESSION_COOKIE, "")
        opened_s = self._shell.operator.session_opened_s(digest_of(secret)) if secret else None
        if opened_s is None or not -CLOCK_SLACK_S <= self._wall() - opened_s < SESSION_S:
            return None
        return secret

    def _mark(self, session: str) -> str:
        """What forms of this session carry. It tells nothing of the session's secret, and nobody else can make it."""
        key, text = self._shell.operator.secret(), f"console form {session}"
        return hmac.new(key, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()

    async def _signed_in(self, request: Request) -> Response:
        if not is_ours(request, self._shell.access):
            return self._refused(request, _NOT_OURS)
        fields = await posted_fields(request)
        if fields is None:
            return self._refused(request, _NO_FORM)
        place = kept_place(fields.get("next", [""])[-1])
        mark = self._shell.access.mark(request, Reader())
        if wait_s := self._limits.wait_s(f"address {mark}", PER_ADDRESS):
            return self._too_many(request, place, ceil(wait_s))
        if self._shell.operator.token_fits(fields.get("token", [""])[-1].strip()[:LONGEST_TOKEN]):
            return await self._opened(request, place)
        # Only wrong tokens count for all: however many guess elsewhere, the operator gets in.
        if wait_s := self._limits.wait_s("all", FOR_ALL):
            return self._too_many(request, place, ceil(wait_s))
        return self._form(request, place, 401, "This is not the operator's token.")

    def _too_many(self, request: Request, place: str, wait_s: int) -> Response:
        said = f"Too many wrong tokens. Try again in {wait_s} s."
        return self._form(request, place, 429, said, {"retry-after": str(wait_s)})

    async def _opened(self, request: Request, place: str) -> Response:
        """Always a new secret: one that was in the browser before is worth nothing, whoever put it there."""
        secret = secrets.token_urlsafe(32)
        try:
            await self._order(OpenSession(digest_of(secret), self._wall()), request)
        except VedetteError as error:
            return self._form(request, place, 503, f"Nobody can be signed in now: {error}.")
        answer = RedirectResponse(place, 303)
        # Lax, not strict: a link in a mail or a chat opens the console for those who are signed in. Nothing is changed
        # by following a link, and posts are checked in two other ways.
        answer.set_cookie(
            SESSION_COOKIE,
            secret,
            max_age=SESSION_S,
            path="/console",
            httponly=True,
            samesite="lax",
            secure=self._shell.access.is_https(request),
        )
        return answer

    async def _signed_out(self, request: Request, session: str) -> Response | None:
        if path_of(request) != SIGN_OUT:
            return None
        try:
            await self._order(CloseSession(digest_of(session)), request)
        except VedetteError as error:
            return self._refused(request, Refused(503, "busy", f"You are still signed in: {error}."))
        answer = RedirectResponse(SIGN_IN, 303)
        answer.delete_cookie(SESSION_COOKIE, path="/console", httponly=True, samesite="lax")
        return answer

    async def _order(self, order: OpenSession | CloseSession, request: Request) -> None:
        await run_in_threadpool(self._shell.operator.order, order, self._shell.by(request))

    # answers

    def _form(
        self,
        request: Request,
        place: str | None = None,
        status: int = 200,
        said: str = "",
        headers: dict[str, str] | None = None,
    ) -> Response:
        wanted = kept_place(request.query_params.get("next", "")) if place is None else place
        answer = page("console/signin.html", request, self._shell.look, status, said=said, next=wanted)
        answer.headers.update(headers or {})
        return answer

    def _refused(self, request: Request, refused: Refused) -> Response:
        return told_refusal(request, self._shell.look, refused)


def _to_sign_in(request: Request) -> Response:
    query = request.scope["query_string"].decode("latin-1")
    place = path_of(request) + (f"?{query}" if query else "")
    return RedirectResponse(f"{SIGN_IN}?next={quote(place, safe='')}", 303)


def _same(shown: str, own: str) -> bool:
    return hmac.compare_digest(shown.encode("utf-8", "replace"), own.encode())


def _sealed(send: Send) -> Send:
    """Nothing of the console is kept by anybody; and forms may say where they come from, which ``is_ours`` asks."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["cache-control"] = "no-store"
            headers["referrer-policy"] = "same-origin"
        await send(message)

    return sent
