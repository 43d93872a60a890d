"""Signing in with a key: the one thing that is posted here.

The cookie holds the key itself. So there is no session to keep or lose, and a revoked key is out at once. A form on
somebody else's page could sign a visitor in with a key of its own, to watch what they look for; so a post counts only
if the browser says that it comes from our own page.
"""

import re

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from vedette.web.auth.access import COOKIE, Access, Refused
from vedette.web.branding import Look
from vedette.web.form_posts import is_ours, posted_fields
from vedette.web.gate import told_refusal
from vedette.web.rendering import page

__all__ = ["signin_route"]

LONGEST_FORM = 4096
KEPT_S = 30 * 86_400
_PLACE = re.compile(r"/(?![/\\])[!-~]{0,2000}")


def signin_route(access: Access, look: Look) -> Route:
    """The page with the field for a key, and what takes it."""

    async def answered(request: Request) -> Response:
        if request.method != "POST":
            return _form(request, look, request.query_params.get("next", "/"))
        if not is_ours(request, access):
            return told_refusal(request, look, Refused(403, "not_ours", "Sign in from the page of this server itself."))
        fields = await posted_fields(request, LONGEST_FORM)
        if fields is None:
            return told_refusal(request, look, Refused(400, "no_form", "This is not what the sign-in page sends."))
        form = {name: fields.get(name, [""])[-1].strip() for name in ("key", "next")}
        return _signed_in(request, access, look, form) if form["key"] else _signed_out()

    return Route("/signin", answered, methods=["GET", "POST"])


def _signed_in(request: Request, access: Access, look: Look, form: dict[str, str]) -> Response:
    reader = access.holder(form["key"])
    if reader is None:
        return _form(request, look, form["next"], 401, "This key is unknown or was revoked.")
    if reader.sites or "search" not in reader.scopes:
        return _form(request, look, form["next"], 403, "This key is not for these pages, only for programs.")
    answer = RedirectResponse(_kept(form["next"]), 303)
    secure = access.is_https(request)
    answer.set_cookie(COOKIE, form["key"], max_age=KEPT_S, httponly=True, samesite="lax", secure=secure)
    return answer


def _signed_out() -> Response:
    answer = RedirectResponse("/signin", 303)
    answer.delete_cookie(COOKIE, httponly=True, samesite="lax")
    return answer


def _form(request: Request, look: Look, place: str, status: int = 200, said: str = "") -> Response:
    name = request.state.reader.name
    answer = page("signin.html", request, look, status, said=said, next=_kept(place), name=name)
    # Without it browsers hide where the form comes from, which is what ``is_ours`` asks.
    answer.headers["referrer-policy"] = "same-origin"
    answer.headers["cache-control"] = "no-store"
    return answer


def _kept(place: str) -> str:
    """Where the reader wanted to go, if that is here."""
    return place if _PLACE.fullmatch(place) else "/"
