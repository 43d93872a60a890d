"""Writing down what was shown, and what people did with it.

A search that is shown becomes a line in the log, and its page gets a token. Whoever sends the token back tells that
the slate was seen, or which result was opened. That the log fails must never cost anybody a search: then the page has
no token, and nothing is told. An event, though, is taken only once the log has it.
"""

import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import NamedTuple, Protocol

from vedette.config import Rate
from vedette.engine.search.learned_order import QUALITY
from vedette.errors import StoreError
from vedette.learn.bot_filter import Pace, of_event
from vedette.learn.clicks.impressions import ADDRESS_DIGITS
from vedette.learn.events import Event, EventKind, Record, Shown, SlateRecord, Via
from vedette.serve.rank.reranking import POLICY as LEARNED_POLICY
from vedette.serve.rank.scoring import POLICY
from vedette.serve.slate import Result, Slate, Wish
from vedette.text import words_of
from vedette.web.api.responses import number
from vedette.web.auth.rate_limits import Limits
from vedette.web.auth.tokens import ID_BYTES, Issued, read_token, token_of
from vedette.web.metrics import Metrics
from vedette.web.public.visits import Visit, mark_of

__all__ = ["Log", "Recording", "Told", "not_recording"]

LONGEST_S = 86_400.0  # what happens to a page later than this is no answer to its results
PACE = Rate(60, 60.0)  # of events for one slate; nobody clicks faster


class Log(Protocol):
    """Where records go. What ``append`` returns for survives the end of this process."""

    def append(self, record: Record) -> None:
        """Keeps a record, or raises."""


class Told(NamedTuple):
    """What came of an event: taken (204), or refused with a code for programs and words for people."""

    status: int = 204
    code: str = ""
    words: str = ""
    wait_s: float = 0.0


TAKEN = Told()
OFF = Told(409, "not_recording", "This search keeps nothing of what is asked.")
WRONG = Told(403, "wrong_slate", "This is no slate of this server: send what the search answered as slate.")
OLD = Told(410, "old_slate", "This slate is older than a day: search again.")
LOST = Told(503, "not_kept", "This could not be written down. Send it again later.")


@dataclass(frozen=True, slots=True)
class Recording:
    """What is written down of searches. With ``keep_days`` 0 it is nothing.

    ``secret`` signs tokens: the same for all processes of a server, and over its restarts. ``salt`` gives the salt of
    a day, such as "2026-01-31"; days are those of the wall's clock in UTC. ``world`` is the time of which records
    tell.
    """

    log: Log
    secret: bytes
    salt: Callable[[str], bytes]
    world: Callable[[], float]
    wall: Callable[[], float] = time.time
    keep_days: int = 30
    metrics: Metrics | None = None
    _pace: Limits = field(default_factory=Limits, init=False)
    _paces: Pace = field(default_factory=Pace, init=False)
    _salts: dict[str, bytes] = field(default_factory=dict, init=False)  # that of today, once it was needed

    def counted_by(self, metrics: Metrics) -> "Recording":
        """The same recording, of which each slate and event is counted there."""
        return replace(self, metrics=metrics)

    def mark(self, visit: Visit) -> str:
        """The mark under which a visitor's searches of today are kept; empty where nothing is."""
        try:
            return self._mark(visit) if self.keep_days else ""
        except (StoreError, OSError):
            return ""

    def shown(self, slate: Slate, visit: Visit, via: Via, took_ms: float) -> str:
        """Writes a slate down and gives the token for its page; empty where nothing was written."""
        if not self.keep_days:
            return ""
        try:
            issued = Issued(secrets.token_hex(ID_BYTES), self.wall())
            self.log.append(self._slate(issued.slate, slate, visit, via, took_ms))
        except Exception:  # noqa: BLE001 - whatever fails here, the search itself does not
            return ""
        if self.metrics:
            self.metrics.shown(via)
        return token_of(issued, self.secret)

    def told(self, token: str, kind: EventKind, page: int, visit: Visit) -> Told:
        """Writes down what somebody did with a slate, or says why not."""
        told = self._told(token, kind, page, visit)
        if self.metrics:
            self.metrics.told(kind, told.code or "taken")
        return told

    def _mark(self, visit: Visit) -> str:
        day = time.strftime("%Y-%m-%d", time.gmtime(self.wall()))
        salt = self._salts.get(day)
        if salt is None:
            salt = self.salt(day)
            self._salts.clear()
            self._salts[day] = salt
        whole = mark_of(visit, salt)
        # The first half is that of the address whatever the browser: many browsers of one address are no crowd.
        return whole if visit.name else mark_of(Visit(visit.address), salt)[:ADDRESS_DIGITS] + whole[ADDRESS_DIGITS:]

    def _told(self, token: str, kind: EventKind, page: int, visit: Visit) -> Told:
        issued = read_token(token, self.secret) if self.keep_days else None
        if issued is None:
            return WRONG if self.keep_days else OFF
        after_s = max(0.0, self.wall() - issued.at_s)
        if after_s > LONGEST_S:
            return OLD
        wait_s = self._pace.wait_s(issued.slate, PACE)
        if wait_s:
            return Told(429, "too_many_requests", "Too many events of one slate.", wait_s)
        return self._event(issued.slate, kind, page, after_s, visit)

    def _event(self, slate: str, kind: EventKind, page: int, after_s: float, visit: Visit) -> Told:
        try:
            after_s = round(after_s, 3)
            mark = self._mark(visit)
            doubt = visit.doubt or of_event(kind, after_s) or self._paces.told(mark, kind, self.wall())
            self.log.append(Event(slate, kind, page, self.world(), after_s, mark, doubt))
        except (StoreError, OSError):
            return LOST
        return TAKEN

    def _asker(self, visit: Visit, via: Via) -> tuple[str, str]:
        """Mark and doubt of a search. A program with a key speaks for people whom we do not see: they have no mark."""
        if via != "page" and visit.name.startswith("key:"):
            return "", ""
        mark = self._mark(visit)
        return mark, visit.doubt or self._paces.told(mark, "search", self.wall())

    def _slate(self, id_: str, slate: Slate, visit: Visit, via: Via, took_ms: float) -> SlateRecord:
        wish = slate.wish
        before = wish.n * (wish.page - 1)
        mark, doubt = self._asker(visit, via)
        return SlateRecord(
            id=id_,
            at_s=self.world(),
            query=wish.query,
            words=" ".join(words_of(wish.query)),
            total=slate.total,
            visitor=mark,
            via=via,
            page=wish.page,
            filters=_filters(wish),
            policy=_policy(slate),
            took_ms=round(took_ms, 3),
            doubt=doubt,
            results=tuple(_shown(result, place) for place, result in enumerate(slate.results, before + 1)),
        )


def not_recording() -> Recording:
    """One that keeps nothing, for where nobody said otherwise."""
    return Recording(_Nowhere(), b"", lambda _day: b"", time.time, keep_days=0)


class _Nowhere:
    """The log of a recording that keeps nothing."""

    def append(self, record: Record) -> None:
        """Never called, and would lose it."""
        del record
        raise StoreError("nothing is recorded here")


def _policy(slate: Slate) -> str:
    """What ranked: where quality counted, each result says so."""
    learned = any(name == QUALITY for result in slate.results for name, _ in result.features)
    return LEARNED_POLICY if learned else POLICY


def _shown(result: Result, place: int) -> Shown:
    features = tuple([(name, _short(value)) for name, value in result.features])
    return Shown(result.id, place, _short(result.score), _short(result.propensity), features, result.note)


def _short(value: float) -> float:
    """Four digits of a number: more would say nothing more.

    >>> _short(0.123456), _short(float("nan"))
    (0.1235, 0.0)
    """
    return float(f"{value if isfinite(value) else number(value):.4g}")


def _filters(wish: Wish) -> str:
    """What was chosen beside the query, by the names of the API.

    >>> _filters(Wish("lag", kind="pdf", after_s=86_400.0, folded=False))
    '{"type":"pdf","after":86400.0,"similar":0}'
    """
    chosen: dict[str, object] = {
        "site": wish.site or None,
        "type": wish.kind or None,
        "lang": wish.language or None,
        "after": wish.after_s,
        "before": wish.before_s,
        "similar": None if wish.folded else 0,
    }
    return json.dumps({name: value for name, value in chosen.items() if value is not None}, separators=(",", ":"))
