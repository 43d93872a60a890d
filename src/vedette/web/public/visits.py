"""Visitors: a visitor hash valid for one day, the bot filter's reason, and the quota of trials.

The visitor hash distinguishes the searches of one person from those of another without identifying them. It is computed
from the address and the browser, keyed with a salt that is deleted at the end of the day: after that no one, including
the operator, can find out whose it was. A user who is known by name gets a hash of the name instead.
"""

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

from starlette.requests import Request

from vedette.learn.bot_filter import check_request
from vedette.learn.clicks.off_policy import RELEVANCE_ONLY, WITH_TRIALS, assign_group
from vedette.serve.ads.ledger import NETWORK_DIGITS
from vedette.serve.rank.reranking import UNPROVEN
from vedette.serve.slate import DEFAULT_AUDIENCE, Audience, Slate
from vedette.web.auth.access import Identity
from vedette.web.auth.rate_limits import to_neighborhood, to_network

# One visitor in ten, by the hash of the day, gets the order without anything learned, and one gets it without trials:
# others are compared with them (``learn.clicks.off_policy``).
MAX_TRIALS_PER_DAY = 20  # unproven results for one person
MAX_VISITORS = 20_000
FIRST_SLOT, SECOND_SLOT = 1, 2  # the first position that is open to unproven results


@dataclass(frozen=True, slots=True)
class TrialQuota:
    """The quota of unproven results (trials) that each visitor of today may be shown; oldest visitors are dropped.

    ``max_per_page`` is how many of a page of ten may be unproven. Visitor hashes last one day, so counts restart each
    day.
    """

    max_per_page: int = 0
    first_place: bool = False
    _shown: dict[str, int] = field(default_factory=dict, init=False)

    def get_audience(self, mark: str, doubt: str = "") -> Audience:
        """Return how results are ranked for a visitor; likely bots and visitors without a hash get no trials.

        >>> quota = TrialQuota(max_per_page=2)
        >>> quota.get_audience("0123456789abcdef").unproven, quota.get_audience("").unproven
        (2, 0)
        """
        if not mark:
            return DEFAULT_AUDIENCE
        group = assign_group(mark)
        left = MAX_TRIALS_PER_DAY - self._shown.get(mark, 0)
        most = max(min(self.max_per_page, left), 0) if group == WITH_TRIALS and not doubt else 0
        return Audience(group != RELEVANCE_ONLY, most, FIRST_SLOT if self.first_place else SECOND_SLOT, int(mark, 16))

    def count_shown(self, mark: str, slate: Slate) -> None:
        """Count the unproven results (trials) that a visitor was shown."""
        tried = sum(result.note == UNPROVEN for result in slate.results)
        if mark and tried:
            self._shown[mark] = self._shown.pop(mark, 0) + tried
            if len(self._shown) > MAX_VISITORS:
                del self._shown[next(iter(self._shown))]


HASH_BYTES = 8


class Visitor(NamedTuple):
    """What a request says about its visitor. Only the visitor hash and the filter reason are ever stored.

    ``name`` identifies a known user, else it is empty; ``filter_reason`` is why this may be a bot.
    """

    address: str = ""
    agent: str = ""
    name: str = ""
    filter_reason: str = ""


def parse_visitor(request: Request) -> Visitor:
    """Parse the visitor of a request that came through the gate."""
    reader: Identity = getattr(request.state, "reader", Identity())
    agent = request.headers.get("user-agent", "")
    name = f"{reader.auth_method}:{reader.name}" if reader.auth_method else ""
    doubt = "HEAD request" if request.method == "HEAD" else check_request(agent, request.headers)
    return Visitor(getattr(request.state, "address", ""), agent, name, doubt)


def hash_visitor(visit: Visitor, salt: bytes) -> str:
    """Return the visitor hash of a visitor on the day of the salt.

    >>> visit = Visitor("192.0.2.1", "Browser")
    >>> hash_visitor(visit, b"monday")
    '5e0b9204944aa4fb'
    >>> hash_visitor(visit, b"tuesday") == hash_visitor(visit, b"monday")
    False
    """
    parts = ("name", visit.name) if visit.name else ("network", to_network(visit.address), visit.agent)
    identity = "\0".join(parts).encode("utf-8", "replace")
    return blake2b(identity, key=salt, digest_size=HASH_BYTES).hexdigest()


def hash_clicker(address: str, salt: bytes) -> str:
    """Return the visitor hash for ads: of the address alone, since a browser's name can be forged, and its network.

    >>> one, other = (hash_clicker(f"8.8.4.{last}", b"monday") for last in (1, 2))
    >>> one == other, one[:NETWORK_DIGITS] == other[:NETWORK_DIGITS]
    (False, True)
    """
    own, network = (hash_visitor(Visitor(each), salt) for each in (address, to_neighborhood(address)))
    return network[:NETWORK_DIGITS] + own[NETWORK_DIGITS:]
