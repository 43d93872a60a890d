"""Ads on the results page: each with a signed address here, by which a click is charged and redirected.

The address has a signed token of the showing and nothing else: where it leads is looked up, so that nobody can make
this server lead people elsewhere.
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
    """An ad on a page. ``impression`` is its id, 32 hexadecimal digits, of ``at_s`` (wall time)."""

    impression: str
    at_s: float
    title: str
    text: str
    url: str
    phrase: str


class ClickOutcome(NamedTuple):
    """Where a click leads; empty with words for people where it leads nowhere. ``refusal`` is why it cost nothing."""

    url: str = ""
    refusal: str = ""


class AdServer(Protocol):
    """Whoever chooses. Neither ever raises: a search goes on without ads."""

    def choose_ads(self, query: str, visit: Visitor) -> tuple[ShownAd, ...]:
        """The ads for a query, for each of which the price of a click is held."""

    def charge_click(self, showing: str, visit: Visitor) -> ClickOutcome:
        """Charge a click on a showing, or not; and say where it leads."""

    def count_forged_click(self) -> None:
        """A click came with a token that is not ours."""


class _NoAdServer:
    """Where nothing is sponsored."""

    def choose_ads(self, query: str, visit: Visitor) -> tuple[ShownAd, ...]:  # noqa: ARG002 - the port's
        return ()

    def charge_click(self, showing: str, visit: Visitor) -> ClickOutcome:  # noqa: ARG002 - the port's
        return ClickOutcome(refusal="nothing is sponsored here")

    def count_forged_click(self) -> None:
        """Nothing to count."""


NO_AD_SERVER: Final = _NoAdServer()


CLICK_PREFIX = "/sponsored/"
_PURPOSE = b"vedette sponsored 1"
_NO_LANDING = "This ad leads nowhere any more"
_NO_STORE = {"cache-control": "no-store", "referrer-policy": "no-referrer"}


class LinkedAd(NamedTuple):
    """An ad, and the address that its title leads to."""

    ad: ShownAd
    address: str


@dataclass(frozen=True, slots=True)
class AdLinks:
    """Ads with their addresses. ``secret`` signs: the same for all processes of a server, and over its restarts."""

    server: AdServer
    secret: bytes

    @property
    def _signing_key(self) -> bytes:
        """A token of a slate is none of an ad."""
        return hmac.digest(self.secret, _PURPOSE, "sha256")

    def choose_ads(self, query: str, visit: Visitor) -> tuple[LinkedAd, ...]:
        """What a query shows."""
        return tuple(LinkedAd(ad, self.build_click_url(ad)) for ad in self.server.choose_ads(query, visit))

    def build_click_url(self, ad: ShownAd) -> str:
        """Where a click on it goes first."""
        return CLICK_PREFIX + sign_token(TokenClaims(ad.impression, ad.at_s), self._signing_key)

    def verify_click(self, token: str) -> str | None:
        """The showing of a token; None where it is not one of ours."""
        issued = verify_token(token, self._signing_key)
        return issued.id if issued else None


NO_ADS = AdLinks(NO_AD_SERVER, b"")


def ad_click_route(sponsored: AdLinks, look: Branding) -> Route:
    """The address of clicks."""

    def refuse(request: Request, status: int, why: str) -> Response:
        answer = error_page(status, sentence(why), title=_NO_LANDING, look=look, theme=get_theme(request))
        answer.headers.update(_NO_STORE)
        return answer

    async def follow_click(request: Request) -> Response:
        if request.method != "GET":  # who asks for headers only has not come to see anything
            return Response(status_code=405, headers={**_NO_STORE, "allow": "GET"})
        showing = sponsored.verify_click(request.path_params["token"])
        if showing is None:
            sponsored.server.count_forged_click()
            return refuse(request, 403, f"this address was not made here: {ClickRejection.FORGED.value}")
        landing = sponsored.server.charge_click(showing, parse_visitor(request))
        why = "" if not landing.url else check_landing_url(landing.url)
        if not landing.url or why:
            return refuse(request, 410, why or landing.refusal)
        return RedirectResponse(landing.url, 303, _NO_STORE)

    return Route(f"{CLICK_PREFIX}{{token}}", follow_click, methods=["GET"])
