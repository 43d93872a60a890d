"""What pages need of whatever chooses sponsored results: which a query shows, and where a click on one leads."""

from typing import Final, NamedTuple, Protocol

from vedette.web.public.visits import Visit

__all__ = ["NO_SPONSOR", "Landing", "ShownAd", "Sponsor"]


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
