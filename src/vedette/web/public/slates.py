"""Recording of searches (slates), views and clicks in the event log.

A search that is shown becomes a line in the log, and its page gets a token. Sending the token back reports that the
slate was seen, or which result was opened. A failing log must never cost anyone a search: then the page has no token,
and nothing is reported. An event, however, is accepted only once the log has it.
"""

import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import NamedTuple, Protocol

from vedette.config import Rate
from vedette.engine.search.scoring import QUALITY
from vedette.errors import StoreError
from vedette.learn.bot_filter import RateMeter, check_event
from vedette.learn.clicks.impressions import ADDRESS_DIGITS
from vedette.learn.events import ClickEvent, EventKind, LoggedEvent, SearchEvent, ShownResult, Via
from vedette.serve.rank.reranking import format_policy
from vedette.serve.rank.scoring import POLICY
from vedette.serve.slate import SearchRequest, SearchResult, Slate
from vedette.text import split_words
from vedette.web.api.responses import to_finite
from vedette.web.auth.rate_limits import RateLimiter
from vedette.web.auth.tokens import ID_BYTES, TokenClaims, sign_token, verify_token
from vedette.web.metrics import Metrics
from vedette.web.public.visits import Visitor, hash_visitor

TOKEN_LIFETIME_S = 86_400.0  # later actions are no response to its results
EVENT_RATE = Rate(60, 60.0)  # of events for one slate; no person clicks faster


class EventLog(Protocol):
    """The log that search, view and click events are appended to. Appended events survive the process."""

    def append(self, record: LoggedEvent) -> None:
        """Append a search, view or click event durably, or raise."""


class EventOutcome(NamedTuple):
    """The outcome of a view or click event: taken (204), or refused with a code and a message."""

    status: int = 204
    code: str = ""
    message: str = ""
    wait_s: float = 0.0


ACCEPTED = EventOutcome()
NOT_RECORDING = EventOutcome(409, "not_recording", "This server does not record searches.")
BAD_TOKEN = EventOutcome(
    403, "wrong_slate", "This slate is not from this server: send the slate from the search response."
)
EXPIRED_TOKEN = EventOutcome(410, "old_slate", "This slate is older than a day: search again.")
NOT_STORED = EventOutcome(503, "not_kept", "The event could not be recorded. Try again later.")


@dataclass(frozen=True, slots=True)
class SearchRecorder:
    """Records searches, views and clicks in the event log; nothing if ``keep_days`` is 0.

    ``secret`` signs tokens: the same for all processes of a server, and over its restarts. ``get_salt`` returns the
    salt of a day, such as "2026-01-31"; days are those of the wall clock in UTC. ``world_clock`` gives the time of the
    recorded events.
    """

    log: EventLog
    secret: bytes
    get_salt: Callable[[str], bytes]
    world_clock: Callable[[], float]
    wall_clock: Callable[[], float] = time.time
    keep_days: int = 30
    metrics: Metrics | None = None
    _rate_limiter: RateLimiter = field(default_factory=RateLimiter, init=False)
    _pace_filter: RateMeter = field(default_factory=RateMeter, init=False)
    _salts: dict[str, bytes] = field(default_factory=dict, init=False)  # today's, once it was needed

    def with_metrics(self, metrics: Metrics) -> "SearchRecorder":
        """Return the same search recorder with its slates and events counted in the metrics."""
        return replace(self, metrics=metrics)

    def hash_visitor(self, visit: Visitor) -> str:
        """Return the visitor hash under which a visitor's searches of today are stored; empty if none are."""
        try:
            return self._hash_visitor(visit) if self.keep_days else ""
        except (StoreError, OSError):
            return ""

    def record_slate(self, slate: Slate, visit: Visitor, via: Via, took_ms: float) -> str:
        """Count a search and record its slate; return the token for its page, or an empty text if not recorded."""
        if self.metrics:
            self.metrics.observe_search(took_ms / 1000)
        if not self.keep_days:
            return ""
        try:
            issued = TokenClaims(secrets.token_hex(ID_BYTES), self.wall_clock())
            self.log.append(self._build_slate_record(issued.id, slate, visit, via, took_ms))
        except Exception:  # noqa: BLE001 - whatever fails here, the search itself does not
            return ""
        if self.metrics:
            self.metrics.count_slate(via)
        return sign_token(issued, self.secret)

    def record_event(self, token: str, kind: EventKind, page: int, visit: Visitor) -> EventOutcome:
        """Record a view or click on a slate, or return why it is refused."""
        outcome = self._check_event(token, kind, page, visit)
        if self.metrics:
            self.metrics.count_event(kind, outcome.code or "taken")
        return outcome

    def _hash_visitor(self, visit: Visitor) -> str:
        day = time.strftime("%Y-%m-%d", time.gmtime(self.wall_clock()))
        salt = self._salts.get(day)
        if salt is None:
            salt = self.get_salt(day)
            self._salts.clear()
            self._salts[day] = salt
        whole = hash_visitor(visit, salt)
        # The first half depends on the address alone, whatever the browser: many browsers of one address are no crowd.
        return (
            whole
            if visit.name
            else hash_visitor(Visitor(visit.address), salt)[:ADDRESS_DIGITS] + whole[ADDRESS_DIGITS:]
        )

    def _check_event(self, token: str, kind: EventKind, page: int, visit: Visitor) -> EventOutcome:
        issued = verify_token(token, self.secret) if self.keep_days else None
        if issued is None:
            return BAD_TOKEN if self.keep_days else NOT_RECORDING
        after_s = max(0.0, self.wall_clock() - issued.at_s)
        if after_s > TOKEN_LIFETIME_S:
            return EXPIRED_TOKEN
        wait_s = self._rate_limiter.take_token(issued.id, EVENT_RATE)
        if wait_s:
            return EventOutcome(429, "too_many_requests", "Too many events for one slate.", wait_s)
        return self._append_event(issued.id, kind, page, after_s, visit)

    def _append_event(self, slate: str, kind: EventKind, page: int, after_s: float, visit: Visitor) -> EventOutcome:
        try:
            after_s = round(after_s, 3)
            mark = self._hash_visitor(visit)
            doubt = (
                visit.filter_reason
                or check_event(kind, after_s)
                or self._pace_filter.count(mark, kind, self.wall_clock())
            )
            self.log.append(ClickEvent(slate, kind, page, self.world_clock(), after_s, mark, doubt))
        except (StoreError, OSError):
            return NOT_STORED
        return ACCEPTED

    def _classify_visitor(self, visit: Visitor, via: Via) -> tuple[str, str]:
        """Return the visitor hash and filter reason of a search to record.

        A program with a key acts for people we do not see: they have no visitor hash.
        """
        if via != "page" and visit.name.startswith("key:"):
            return "", ""
        mark = self._hash_visitor(visit)
        return mark, visit.filter_reason or self._pace_filter.count(mark, "search", self.wall_clock())

    def _build_slate_record(self, id_: str, slate: Slate, visit: Visitor, via: Via, took_ms: float) -> SearchEvent:
        wish = slate.request
        before = wish.n * (wish.page - 1)
        mark, doubt = self._classify_visitor(visit, via)
        return SearchEvent(
            id=id_,
            at_s=self.world_clock(),
            query=wish.query,
            words=" ".join(split_words(wish.query)),
            total=slate.total,
            visitor=mark,
            via=via,
            page=wish.page,
            filters=_filters_to_json(wish),
            policy=_get_policy_name(slate),
            took_ms=round(took_ms, 3),
            filter_reason=doubt,
            results=tuple(_to_shown_result(result, place) for place, result in enumerate(slate.results, before + 1)),
        )


def create_null_recorder() -> SearchRecorder:
    """Create a search recorder that records nothing, the default."""
    return SearchRecorder(_NullLog(), b"", lambda _day: b"", time.time, keep_days=0)


class _NullLog:
    """The event log of a search recorder that records nothing."""

    def append(self, record: LoggedEvent) -> None:
        """Raise an error: a recorder that records nothing never appends."""
        del record
        raise StoreError("nothing is recorded here")


def _get_policy_name(slate: Slate) -> str:
    """Return the name of the ranking policy of a slate: learned if quality is a feature of its results."""
    learned = any(name == QUALITY for result in slate.results for name, _ in result.features)
    return format_policy(slate.request.audience.promotion) if learned else POLICY


def _to_shown_result(result: SearchResult, place: int) -> ShownResult:
    features = tuple([(name, _round_digits(value)) for name, value in result.features])
    return ShownResult(
        result.id, place, _round_digits(result.score), _round_digits(result.propensity), features, result.note
    )


def _round_digits(value: float) -> float:
    """Round a recorded score or feature to four digits: more would say nothing more.

    >>> _round_digits(0.123456), _round_digits(float("nan"))
    (0.1235, 0.0)
    """
    return float(f"{value if isfinite(value) else to_finite(value):.4g}")


def _filters_to_json(wish: SearchRequest) -> str:
    """Return the filters of a recorded search as JSON, by the names of the API.

    >>> _filters_to_json(SearchRequest("lag", kind="pdf", after_s=86_400.0, folded=False))
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
