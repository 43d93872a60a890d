"""Ads on the results page: each links to a signed URL here, which charges the click and redirects it.

The URL has a signed token of the impression and nothing else: its target is looked up, so that this server cannot be
used to redirect people elsewhere.
"""

import hmac
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from vedette.serve.ads.click_validity import ClickRejection
from vedette.web.auth.tokens import TokenClaims, sign_token, verify_token
from vedette.web.commands.ads_text import check_landing_url
from vedette.web.formatting import sentence
from vedette.web.public.visits import Visitor, parse_visitor
from vedette.web.rendering import Branding, error_page, get_theme


class ShownAd(NamedTuple):
    """An ad shown on a results page. ``impression`` is its id, 32 hexadecimal digits, of ``at_s`` (wall time)."""

    impression: str
    at_s: float
    title: str
    text: str
    url: str
    phrase: str


class ClickOutcome(NamedTuple):
    """The outcome of an ad click: its target, or a message if there is none; ``refusal`` is why it was not charged."""

    url: str = ""
    refusal: str = ""


class AdServer(Protocol):
    """The ad server that chooses ads for the results page. It never raises: a search continues without ads."""

    def choose_ads(self, query: str, visit: Visitor) -> tuple[ShownAd, ...]:
        """Choose the ads for a query, and reserve the price of a click on each."""

    def charge_click(self, showing: str, visit: Visitor) -> ClickOutcome:
        """Charge a click on an ad impression, or refuse to; return the target of the click."""

    def count_forged_click(self) -> None:
        """Count an ad click with a token that is not ours."""


class _NoAdServer:
    """The ad server of a server without ads."""

    def choose_ads(self, query: str, visit: Visitor) -> tuple[ShownAd, ...]:  # noqa: ARG002 - the port's
        return ()

    def charge_click(self, showing: str, visit: Visitor) -> ClickOutcome:  # noqa: ARG002 - the port's
        return ClickOutcome(refusal="there are no ads here")

    def count_forged_click(self) -> None:
        """Ignore a forged ad click: without ads nothing is counted."""


NO_AD_SERVER: Final = _NoAdServer()


CLICK_PREFIX = "/sponsored/"
_PURPOSE = b"vedette sponsored 1"
_NO_LANDING = "This ad is no longer available"
_NO_STORE = {"cache-control": "no-store", "referrer-policy": "no-referrer"}


class LinkedAd(NamedTuple):
    """An ad on the results page, and the URL that its title links to."""

    ad: ShownAd
    address: str


@dataclass(frozen=True, slots=True)
class AdLinks:
    """The ads of results pages with their click URLs. ``secret`` signs them, for all processes and over restarts."""

    server: AdServer
    secret: bytes

    @property
    def _signing_key(self) -> bytes:
        """Return the signing key of ad click tokens; a slate's token must not be valid for an ad."""
        return hmac.digest(self.secret, _PURPOSE, "sha256")

    def choose_ads(self, query: str, visit: Visitor) -> tuple[LinkedAd, ...]:
        """Choose the ads for a query, each with its click URL."""
        return tuple(LinkedAd(ad, self.build_click_url(ad)) for ad in self.server.choose_ads(query, visit))

    def build_click_url(self, ad: ShownAd) -> str:
        """Build the signed click URL of a shown ad."""
        return CLICK_PREFIX + sign_token(TokenClaims(ad.impression, ad.at_s), self._signing_key)

    def verify_click(self, token: str) -> str | None:
        """Verify the token of an ad click; return its impression, or None if the token is not ours."""
        issued = verify_token(token, self._signing_key)
        return issued.id if issued else None


NO_ADS = AdLinks(NO_AD_SERVER, b"")


def ad_click_route(sponsored: AdLinks, look: Branding) -> Route:
    """Return the route of ad clicks, which charges and redirects them."""

    def refuse(request: Request, status: int, why: str) -> Response:
        answer = error_page(status, sentence(why), title=_NO_LANDING, look=look, theme=get_theme(request))
        answer.headers.update(_NO_STORE)
        return answer

    async def follow_click(request: Request) -> Response:
        if request.method != "GET":  # a HEAD request is not a visit
            return Response(status_code=405, headers={**_NO_STORE, "allow": "GET"})
        showing = sponsored.verify_click(request.path_params["token"])
        if showing is None:
            sponsored.server.count_forged_click()
            return refuse(request, 403, f"this link is not valid: {ClickRejection.FORGED.value}")
        landing = sponsored.server.charge_click(showing, parse_visitor(request))
        why = "" if not landing.url else check_landing_url(landing.url)
        if not landing.url or why:
            return refuse(request, 410, why or landing.refusal)
        return RedirectResponse(landing.url, 303, _NO_STORE)

    return Route(f"{CLICK_PREFIX}{{token}}", follow_click, methods=["GET"])
