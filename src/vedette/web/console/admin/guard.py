"""Session guard of the console: sign-in, session cookies and CSRF checks for everything under ``/console``.

Every route passes through it, so no page can be forgotten. The operator enters the token once and gets a session: a
secret in a cookie; only its digest is stored. Each form carries a CSRF token derived from this secret; a POST without
it is refused, and so is one from a page of another site.
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
from vedette.web.auth.access import Identity, Refusal, get_path, is_same_origin
from vedette.web.auth.rate_limits import RateLimiter
from vedette.web.auth.tokens import hash_secret
from vedette.web.console.ui.layout import ConsoleShell
from vedette.web.gate import read_form, refusal_response
from vedette.web.rendering import render_page

HOME_URL = "/console/"
SIGN_IN_PATH = "/console/signin"
SIGN_OUT_PATH = "/console/signout"
SESSION_COOKIE = "vedette_console"
SESSION_S = 12 * 3600
CLOCK_SLACK_S = 300  # the wall clock may have been set back
MAX_TOKEN_LENGTH = 200
MAX_NUMBER_LENGTH = 16
ADDRESS_RATE = Rate(10, 60.0)
GLOBAL_RATE = Rate(100, 60.0)
_CONSOLE_URL = re.compile(r"/console/(?!.*(?:\.|%2e){2})[!-\[\]-~]{0,2000}", re.IGNORECASE)
_FOREIGN_FORM = Refusal(403, "not_ours", "This form was not sent from the console. Open the console and try again.")
_STALE_FORM = Refusal(
    403, "stale_form", "This form belongs to an earlier sign-in. Go back, reload the page, and send it again."
)
_NO_SESSION = Refusal(403, "not_signed_in", "You are no longer signed in, so nothing was changed. Sign in first.")
_NOT_A_FORM = Refusal(400, "no_form", "This is not a console form.")


def safe_redirect(place: str) -> str:
    """Return the sign-in redirect target if it is a console URL, else the console's home page.

    >>> [safe_redirect(place) for place in ("/console/sites?sort=pages", "//example.org/console/", "/console/../x")]
    ['/console/sites?sort=pages', '/console/', '/console/']
    """
    return place if _CONSOLE_URL.fullmatch(place) else HOME_URL


class SessionGuard:
    """ASGI middleware in front of the console's routes that requires a signed-in session."""

    def __init__(
        self,
        app: Router,
        shell: ConsoleShell,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._shell = shell
        self._wall = wall
        self._limits = RateLimiter(clock)

    @property
    def routes(self) -> list[BaseRoute]:
        """Return the console routes behind the session guard."""
        return self._app.routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request with a valid console session on to its route, or answer it here."""
        request = Request(scope, receive)
        stopped, sealed = await self._check_request(request), _add_security_headers(send)
        try:
            await (stopped or self._app)(scope, receive, sealed)
        except HTTPException as error:  # no route, or not with this method; nothing was sent yet
            await self._shell.not_found_page(request, error.status_code)(scope, receive, sealed)

    async def _check_request(self, request: Request) -> Response | None:
        """Return the response to a request without access to the console; None to let it through."""
        is_read = request.method in {"GET", "HEAD"}
        if get_path(request) == SIGN_IN_PATH:
            return self._render_sign_in(request) if is_read else await self._sign_in(request)
        session = self._find_session(request)
        if session is None:
            return _redirect_to_sign_in(request) if is_read else self._refuse(request, _NO_SESSION)
        # Each page has its own number in its forms, so that a form which is sent twice is executed once.
        request.state.csrf = f"{self._make_csrf_token(session)}.{secrets.token_hex(8)}"
        request.state.is_in = lambda: self._find_session(request) is not None  # for responses that take long
        if is_read:
            return None
        return await self._check_post(request) or await self._sign_out(request, session)

    async def _check_post(self, request: Request) -> Response | None:
        """Refuse a console POST from another origin, or with another session's CSRF token."""
        if not is_same_origin(request, self._shell.access):
            return self._refuse(request, _FOREIGN_FORM)
        fields = await read_form(request)
        if fields is None:
            return self._refuse(request, _NOT_A_FORM)
        shown, _, number = fields.pop("csrf", [""])[-1].partition(".")
        expected = request.state.csrf.partition(".")[0]
        if not hmac.compare_digest(shown.encode("utf-8", "replace"), expected.encode()):
            return self._refuse(request, _STALE_FORM)
        request.state.fields, request.state.form_number = fields, number[:MAX_NUMBER_LENGTH]
        request.state.csrf = f"{expected}.{request.state.form_number}"  # of the same form, if it is shown again
        return None

    # sessions

    def _find_session(self, request: Request) -> str | None:
        """Return the secret of the open console session in the request's cookie, if there is one."""
        secret = request.cookies.get(SESSION_COOKIE, "")
        opened_s = self._shell.admin.session_opened_s(hash_secret(secret)) if secret else None
        if opened_s is None or not -CLOCK_SLACK_S <= self._wall() - opened_s < SESSION_S:
            return None
        return secret

    def _make_csrf_token(self, session: str) -> str:
        """Derive the CSRF token for the forms of a console session by HMAC.

        It reveals nothing about the session's secret, and no one else can compute it.
        """
        key, text = self._shell.admin.get_signing_secret(), f"console form {session}"
        return hmac.new(key, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()

    async def _sign_in(self, request: Request) -> Response:
        if not is_same_origin(request, self._shell.access):
            return self._refuse(request, _FOREIGN_FORM)
        fields = await read_form(request)
        if fields is None:
            return self._refuse(request, _NOT_A_FORM)
        place = safe_redirect(fields.get("next", [""])[-1])
        address = f"address {self._shell.access.get_rate_limit_key(request, Identity())}"
        if wait_s := self._limits.get_wait_s(address, ADDRESS_RATE):
            return self._refuse_attempts(request, place, ceil(wait_s))
        if self._shell.admin.is_operator_token(fields.get("token", [""])[-1].strip()[:MAX_TOKEN_LENGTH]):
            return await self._open_session(request, place)
        # Only wrong tokens count, and those of other addresses don't: however many people guess, the operator gets in.
        self._limits.take_token(address, ADDRESS_RATE)
        if wait_s := self._limits.take_token("all", GLOBAL_RATE):
            return self._refuse_attempts(request, place, ceil(wait_s))
        return self._render_sign_in(request, place, 401, "This is not the operator's token.")

    def _refuse_attempts(self, request: Request, place: str, wait_s: int) -> Response:
        message = f"Too many wrong tokens. Try again in {wait_s} s."
        return self._render_sign_in(request, place, 429, message, {"retry-after": str(wait_s)})

    async def _open_session(self, request: Request, place: str) -> Response:
        """Sign the operator in: open a new console session and set its cookie.

        The secret is always new: an earlier one in the browser is worthless, no matter who put it there.
        """
        secret = secrets.token_urlsafe(32)
        try:
            actor = self._shell.describe_actor(request)
            await run_in_threadpool(self._shell.admin.open_session, hash_secret(secret), self._wall(), actor)
        except VedetteError as error:
            return self._render_sign_in(request, place, 503, f"Cannot sign in right now: {error}.")
        answer = RedirectResponse(place, 303)
        # Lax, not strict: a link in a mail or a chat opens the console for signed-in users. Following a link changes
        # nothing, and POSTs are checked in two other ways.
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

    async def _sign_out(self, request: Request, session: str) -> Response | None:
        if get_path(request) != SIGN_OUT_PATH:
            return None
        try:
            await run_in_threadpool(self._shell.admin.close_session, hash_secret(session))
        except VedetteError as error:
            return self._refuse(request, Refusal(503, "busy", f"You are still signed in: {error}."))
        answer = RedirectResponse(SIGN_IN_PATH, 303)
        answer.delete_cookie(SESSION_COOKIE, path="/console", httponly=True, samesite="lax")
        return answer

    # responses

    def _render_sign_in(
        self,
        request: Request,
        place: str | None = None,
        status: int = 200,
        message: str = "",
        headers: dict[str, str] | None = None,
    ) -> Response:
        wanted = safe_redirect(request.query_params.get("next", "")) if place is None else place
        answer = render_page("console/signin.html", request, self._shell.branding, status, message=message, next=wanted)
        answer.headers.update(headers or {})
        return answer

    def _refuse(self, request: Request, refused: Refusal) -> Response:
        return refusal_response(request, self._shell.branding, refused)


def _redirect_to_sign_in(request: Request) -> Response:
    query = request.scope["query_string"].decode("latin-1")
    place = get_path(request) + (f"?{query}" if query else "")
    return RedirectResponse(f"{SIGN_IN_PATH}?next={quote(place, safe='')}", 303)


def _add_security_headers(send: Send) -> Send:
    """Add headers to console responses that forbid caching and keep the referrer within the origin.

    The referrer lets ``is_same_origin`` check where forms come from.
    """

    async def send_checked(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["cache-control"] = "no-store"
            headers["referrer-policy"] = "same-origin"
        await send(message)

    return send_checked
