"""Who asks, as far as it is written down: a mark that is good for one day, and whether it looks like a person.

The mark tells searches of one person from those of another without saying who they are. It is made of the address and
the browser, keyed with a salt that is thrown away at the end of the day: after that nobody, the operator included, can
find out whose it was. Whoever is known by name gets a mark of the name instead.
"""

from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

from starlette.requests import Request

from vedette.learn.bot_filter import of_request
from vedette.learn.clicks.experiment_groups import ALL, PLAIN, group_of
from vedette.serve.rank.reranking import UNPROVEN
from vedette.serve.slate import ANYBODY, Audience, Slate
from vedette.web.auth.access import Reader
from vedette.web.auth.rate_limits import network_of

__all__ = ["MOST_A_DAY", "Trials", "Visit", "mark_of", "visit_of"]

# One visitor in ten gets the order without anything learned, by the mark of the day, and one gets it without anything
# tried: others are held against them (``learn.reader_groups``).


MOST_A_DAY = 20  # unproven results for one person
MOST_PEOPLE = 20_000
BEFORE, BEHIND = 1, 2  # the first place that is open to the unproven


@dataclass(frozen=True, slots=True)
class Trials:
    """What the operator allows, and what each visitor of today has been shown; those seen first are forgotten first.

    ``most`` is how many of a page of ten may be unproven. Marks are of one day, so counts begin anew each day.
    """

    most: int = 0
    first_place: bool = False
    _shown: dict[str, int] = field(default_factory=dict, init=False)

    def audience(self, mark: str, doubt: str = "") -> Audience:
        """How results are ordered for a visitor; who has no mark or may be no person teaches nothing, so tries nothing.

        >>> Trials(most=2).audience("0123456789abcdef").unproven, Trials(most=2).audience("").unproven
        (2, 0)
        """
        if not mark:
            return ANYBODY
        group = group_of(mark)
        left = MOST_A_DAY - self._shown.get(mark, 0)
        most = max(min(self.most, left), 0) if group == ALL and not doubt else 0
        return Audience(group != PLAIN, most, BEFORE if self.first_place else BEHIND, int(mark, 16))

    def saw(self, mark: str, slate: Slate) -> None:
        """Count what was shown to be tried."""
        tried = sum(result.note == UNPROVEN for result in slate.results)
        if mark and tried:
            self._shown[mark] = self._shown.pop(mark, 0) + tried
            if len(self._shown) > MOST_PEOPLE:
                del self._shown[next(iter(self._shown))]


MARK_BYTES = 8


class Visit(NamedTuple):
    """What a request says of its sender. Only the mark that is made of it, and the doubt, are ever kept.

    ``name`` is how a known reader is known, else empty; ``doubt`` is why this may be no person.
    """

    address: str = ""
    agent: str = ""
    name: str = ""
    doubt: str = ""


def visit_of(request: Request) -> Visit:
    """The sender of a request that came through the gate."""
    reader: Reader = getattr(request.state, "reader", Reader())
    agent = request.headers.get("user-agent", "")
    name = f"{reader.known_by}:{reader.name}" if reader.known_by else ""
    doubt = "asked for headers only" if request.method == "HEAD" else of_request(agent, request.headers)
    return Visit(getattr(request.state, "address", ""), agent, name, doubt)


def mark_of(visit: Visit, salt: bytes) -> str:
    """Stands for whoever visits, on the day of the salt.

    >>> mark_of(Visit("192.0.2.1", "Browser"), b"monday")
    '5e0b9204944aa4fb'
    >>> mark_of(Visit("192.0.2.1", "Browser"), b"tuesday") == mark_of(Visit("192.0.2.1", "Browser"), b"monday")
    False
    """
    parts = ("name", visit.name) if visit.name else ("network", network_of(visit.address), visit.agent)
    told = "\0".join(parts).encode("utf-8", "replace")
    return blake2b(told, key=salt, digest_size=MARK_BYTES).hexdigest()
