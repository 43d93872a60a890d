"""What a log shows of every origin's robots.txt: the word that the client had when it asked for a page.

RFC 9309: 2xx binds; 304 confirms the copy at hand; 4xx (but 429) and more than five redirects mean that there are no
rules; everything else, silence and half a file included, means that nothing may be asked. Redirects are followed
through the log: what the last hop answers is the word of the origin where the chain began.
"""

from dataclasses import dataclass, field, replace

from vedette.fetch.robots.rules import Rules, read
from vedette.lab.judge.access_log import ROBOTS_BYTES, Entry, redirect_target
from vedette.model import Origin

__all__ = ["RobotsWitness", "Standing"]

REDIRECTS_MOST = 5
REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an origin stands; ``rules`` bind until another file or "no file" is answered, whatever fails meanwhile."""

    answered_s: float
    permits: bool
    word: str
    rules: Rules


@dataclass(frozen=True, slots=True)
class _Chain:
    """A robots.txt that answered with a redirect, and how many hops have been seen."""

    origin: Origin
    hops: int


@dataclass(slots=True)
class RobotsWitness:
    """Told of every answer in the order in which answers ended; asked about origins and URLs."""

    user_agent: str
    _standings: dict[Origin, Standing] = field(default_factory=dict)
    _awaited: dict[str, tuple[_Chain, ...]] = field(default_factory=dict)

    def standing(self, entry: Entry) -> Standing | None:
        """The latest word of this request's origin; None where there was none yet."""
        return self._standings.get(_origin(entry))

    def is_robots(self, entry: Entry) -> bool:
        """Whether this request is for a robots.txt, or for where one said it is."""
        return entry.target == "/robots.txt" or (bool(self._awaited) and _own_url(entry) in self._awaited)

    def observe(self, entry: Entry) -> None:
        """An answer ended."""
        if entry.method != "GET" or not self.is_robots(entry):
            return
        chains = self._awaited.pop(_own_url(entry), ())
        if entry.target == "/robots.txt":
            chains = (*chains, _Chain(_origin(entry), 0))
        for chain in chains:
            self._advance(chain, entry)

    def _advance(self, chain: _Chain, entry: Entry) -> None:
        following = redirect_target(entry.url, entry.location or "") if entry.status in REDIRECTS else None
        if following is None or chain.hops >= REDIRECTS_MOST:
            before = self._standings.get(chain.origin)
            self._standings[chain.origin] = _after(before, entry, self.user_agent)
        else:
            self._awaited[following] = (*self._awaited.get(following, ()), replace(chain, hops=chain.hops + 1))


def _after(before: Standing | None, entry: Entry, user_agent: str) -> Standing:
    status = entry.status if entry.whole or entry.status >= 300 or entry.bytes >= ROBOTS_BYTES else 0
    word = f"status {status}" if status else "no whole answer"
    rules = before.rules if before is not None else Rules()
    if 200 <= status <= 299:
        text = (entry.robots or "").encode("utf-8", "surrogateescape")
        return Standing(entry.end_s, permits=True, word=word, rules=read(text, user_agent))
    if status == 304:
        return Standing(entry.end_s, permits=before is not None, word=word, rules=rules)
    if 300 <= status <= 499 and status != 429:
        return Standing(entry.end_s, permits=True, word=word, rules=Rules())
    return Standing(entry.end_s, permits=False, word=word, rules=rules)


def _origin(entry: Entry) -> Origin:
    return Origin(entry.scheme, entry.host, entry.port)


def _own_url(entry: Entry) -> str:
    return redirect_target(entry.url, "") or entry.url
