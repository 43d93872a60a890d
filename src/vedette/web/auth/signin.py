"""The sign-in page for people with a key (``/signin``).

The cookie contains the key itself. So there is no session to store or lose, and a revoked key is invalid at once. A
form on another site's page could sign a visitor in with its own key, to see what they search for; so a POST counts only
if the browser says that it comes from our own page.
"""

import re

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from vedette.web.auth.access import KEY_COOKIE, AccessControl, Refusal, is_same_origin
from vedette.web.gate import read_form, refusal_response
from vedette.web.rendering import Branding, render_page

MAX_FORM_BYTES = 4096
COOKIE_MAX_AGE_S = 30 * 86_400
_LOCAL_URL = re.compile(r"/(?![/\\])[!-~]{0,2000}")


def signin_route(access: AccessControl, look: Branding) -> Route:
    """Return the route of the sign-in page, with its field for a key."""

    async def sign_in(request: Request) -> Response:
        if request.method != "POST":
            return _render_sign_in(request, look, request.query_params.get("next", "/"))
        if not is_same_origin(request, access):
            return refusal_response(
                request, look, Refusal(403, "not_ours", "Sign in from this server's own sign-in page.")
            )
        fields = await read_form(request, MAX_FORM_BYTES)
        if fields is None:
            return refusal_response(request, look, Refusal(400, "no_form", "This is not a sign-in form."))
        form = {name: fields.get(name, [""])[-1].strip() for name in ("key", "next")}
        return _sign_in(request, access, look, form) if form["key"] else _sign_out()

    return Route("/signin", sign_in, methods=["GET", "POST"])


def _sign_in(request: Request, access: AccessControl, look: Branding, form: dict[str, str]) -> Response:
    reader = access.find_key_holder(form["key"])
    if reader is None:
        return _render_sign_in(request, look, form["next"], 401, "This key is unknown or has been revoked.")
    if reader.sites or "search" not in reader.scopes:
        return _render_sign_in(
            request, look, form["next"], 403, "This key works with the API only, not with these pages."
        )
    answer = RedirectResponse(_safe_redirect(form["next"]), 303)
    secure = access.is_https(request)
    answer.set_cookie(KEY_COOKIE, form["key"], max_age=COOKIE_MAX_AGE_S, httponly=True, samesite="lax", secure=secure)
    return answer


def _sign_out() -> Response:
    answer = RedirectResponse("/signin", 303)
    answer.delete_cookie(KEY_COOKIE, httponly=True, samesite="lax")
    return answer


def _render_sign_in(request: Request, look: Branding, place: str, status: int = 200, message: str = "") -> Response:
    name = request.state.reader.name
    answer = render_page("signin.html", request, look, status, message=message, next=_safe_redirect(place), name=name)
    # Without it browsers hide where the form comes from, which ``is_same_origin`` needs.
    answer.headers["referrer-policy"] = "same-origin"
    answer.headers["cache-control"] = "no-store"
    return answer


def _safe_redirect(place: str) -> str:
    """Return the URL to redirect to after sign-in, if it is on this server."""
    return place if _LOCAL_URL.fullmatch(place) else "/"
