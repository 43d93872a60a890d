"""Sponsored results on the page: each with an address of its own here, by which a click is charged and led on.

The address has a signed token of the showing and nothing else: where it leads is looked up, so that nobody can make
this server lead people elsewhere.
"""

import hmac
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from vedette.serve.ads.click_validity import Objection
from vedette.web.auth.tokens import Issued, read_token, token_of
from vedette.web.branding import Look
from vedette.web.commands.ads_text import landing_refusal
from vedette.web.formatting import sentence
from vedette.web.public.visits import Visit, visit_of
from vedette.web.rendering import problem_page, theme_of

__all__ = [
    "NOTHING_SPONSORED",
    "NO_SPONSOR",
    "PLACE",
    "AdOnPage",
    "Landing",
    "ShownAd",
    "Sponsor",
    "Sponsored",
    "sponsored_route",
]


class ShownAd(NamedTuple):
    """An ad on a page. ``showing`` is its id, 32 hexadecimal digits, of ``at_s`` (wall time)."""

    showing: str
    at_s: float
    title: str
    text: str
    url: str
    phrase: str


class Landing(NamedTuple):
    """Where a click leads; empty with words for people where it leads nowhere. ``refused`` is why it cost nothing."""

    url: str = ""
    refused: str = ""


class Sponsor(Protocol):
    """Whoever chooses. Neither ever raises: a search goes on without ads."""

    def shown(self, query: str, visit: Visit) -> tuple[ShownAd, ...]:
        """The ads for a query, for each of which the price of a click is held."""

    def clicked(self, showing: str, visit: Visit) -> Landing:
        """Charge a click on a showing, or not; and say where it leads."""

    def forged(self) -> None:
        """A click came with a token that is not ours."""


class _Nobody:
    """Where nothing is sponsored."""

    def shown(self, query: str, visit: Visit) -> tuple[ShownAd, ...]:  # noqa: ARG002 - the port's
        return ()

    def clicked(self, showing: str, visit: Visit) -> Landing:  # noqa: ARG002 - the port's
        return Landing(refused="nothing is sponsored here")

    def forged(self) -> None:
        """Nothing to count."""


NO_SPONSOR: Final = _Nobody()


PLACE = "/sponsored/"
_PURPOSE = b"vedette sponsored 1"
_NOT_LED = "This ad leads nowhere any more"
_NO_STORE = {"cache-control": "no-store", "referrer-policy": "no-referrer"}


class AdOnPage(NamedTuple):
    """An ad, and the address that its title leads to."""

    ad: ShownAd
    address: str


@dataclass(frozen=True, slots=True)
class Sponsored:
    """Ads with their addresses. ``secret`` signs: the same for all processes of a server, and over its restarts."""

    sponsor: Sponsor
    secret: bytes

    @property
    def _key(self) -> bytes:
        """A token of a slate is none of an ad."""
        return hmac.digest(self.secret, _PURPOSE, "sha256")

    def ads(self, query: str, visit: Visit) -> tuple[AdOnPage, ...]:
        """What a query shows."""
        return tuple(AdOnPage(ad, self.address(ad)) for ad in self.sponsor.shown(query, visit))

    def address(self, ad: ShownAd) -> str:
        """Where a click on it goes first."""
        return PLACE + token_of(Issued(ad.showing, ad.at_s), self._key)

    def showing(self, token: str) -> str | None:
        """The showing of a token; None where it is not one of ours."""
        issued = read_token(token, self._key)
        return issued.slate if issued else None


NOTHING_SPONSORED = Sponsored(NO_SPONSOR, b"")


def sponsored_route(sponsored: Sponsored, look: Look) -> Route:
    """The address of clicks."""

    def refused(request: Request, status: int, why: str) -> Response:
        answer = problem_page(status, sentence(why), title=_NOT_LED, look=look, theme=theme_of(request))
        answer.headers.update(_NO_STORE)
        return answer

    async def clicked(request: Request) -> Response:
        if request.method != "GET":  # who asks for headers only has not come to see anything
            return Response(status_code=405, headers={**_NO_STORE, "allow": "GET"})
        showing = sponsored.showing(request.path_params["token"])
        if showing is None:
            sponsored.sponsor.forged()
            return refused(request, 403, f"this address was not made here: {Objection.FORGED.value}")
        landing = sponsored.sponsor.clicked(showing, visit_of(request))
        why = "" if not landing.url else landing_refusal(landing.url)
        if not landing.url or why:
            return refused(request, 410, why or landing.refused)
        return RedirectResponse(landing.url, 303, _NO_STORE)

    return Route(f"{PLACE}{{token}}", clicked, methods=["GET"])
