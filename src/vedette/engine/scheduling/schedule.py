"""Recrawl schedule: build page rows with due times: sources at fixed intervals, pages as the policy judged."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf, isfinite

import numpy as np

from vedette.engine.decision_record import Decision, DecisionRecorder
from vedette.engine.messages import FetchSuccess, Kind
from vedette.engine.ports import Outlinks, PageRow
from vedette.policy import rng_for
from vedette.refresh.gone_pages import ReturnModel
from vedette.refresh.known_pages import KnownPages
from vedette.refresh.policies.fixed import Fixed
from vedette.refresh.policies.nutch import Nutch

SLASHES_OF_A_HOME = 3
Columns = Mapping[str, Sequence[float] | Sequence[bool]]
NO_TIMES: Mapping[int, float] = {}
DEFAULT_PRICE = 1.0  # a price


def is_source(url: str, kind: Kind) -> bool:
    """Check whether a page is a discovery source by URL and kind: feed, sitemap or home page."""
    return kind in {"feed", "sitemap"} or (url.endswith("/") and url.count("/") == SLASHES_OF_A_HOME and "?" not in url)


def is_good(status: int) -> bool:
    """Check whether a status means that the page exists: no error, not moved."""
    return 200 <= status < 300


def gone_duration_s(row: PageRow) -> float:
    """Return how long a stored page had been gone or moved at its last fetch."""
    return max(row.fetched_s - row.changed_s, 0.0)


def status_after(result: FetchSuccess, earlier: PageRow | None) -> int:
    """Return the status of the stored page after a response (unchanged by a 304)."""
    return earlier.status if earlier is not None and _is_not_modified(result) else result.status


def kind_after(result: FetchSuccess, earlier: PageRow | None) -> Kind:
    """Return the kind of the stored page after a response (unchanged by a 304)."""
    return earlier.kind if earlier is not None and _is_not_modified(result) else result.kind


@dataclass(frozen=True, slots=True)
class Schedule:
    """Recrawl rule for everything without a refresh policy; without ``recrawl`` nothing is due again.

    ``pages`` is used for pages without any state yet, as in an import. A ``witness`` records each batch with its
    decision.
    """

    recrawl: bool = False
    sources: Fixed = field(default_factory=Fixed)
    pages: Nutch = field(default_factory=Nutch)
    seed: int = 1
    witness: DecisionRecorder | None = None

    def build_rows(
        self,
        answers: Sequence[tuple[int, FetchSuccess]],
        earlier: Mapping[int, PageRow],
        judged: Mapping[int, float] = NO_TIMES,
    ) -> Iterator[tuple[PageRow, Outlinks | None]]:
        """Build the page rows to store for these responses, with links; None keeps the stored links.

        ``judged`` holds the due times that a refresh policy has set.
        """
        others = [result for _, result in answers if result.task.id not in judged]
        times = self._compute_times(others, earlier) if others else {}
        for host, result in answers:
            before = earlier.get(result.task.id)
            anchors = result.content.anchors if result.content else ()
            links = None if before and _is_not_modified(result) else (result.links, anchors)
            if result.task.id in times:
                interval_s, due_s = times[result.task.id]
            else:  # the wait, within bounds, is also the retry interval if the page is unavailable next time
                due_s = judged[result.task.id]
                interval_s = min(max(due_s - result.ended_s, self.pages.min_interval_s), self.pages.max_interval_s)
            yield _build_row(host, result, before, interval_s, due_s if self.recrawl else inf), links

    def due_after_failure(self, url: str, row: PageRow, now_s: float) -> float:
        """Return when to retry a page whose fetch failed; a failure says nothing about changes."""
        if not self.recrawl:
            return inf
        again_s = self.sources.interval_s if is_source(url, row.kind) else row.interval_s
        return now_s + max(again_s, self.pages.min_interval_s)

    def due_after_refusal(self, now_s: float) -> float:
        """Return when to recheck a stored page that may no longer be fetched, since rules change."""
        return now_s + self.pages.first_interval_s if self.recrawl else inf

    def reason(self, url: str, row: PageRow) -> str:
        """Explain which recrawl rule sets the due time of this page, and why."""
        changed = row.changed_s == row.fetched_s
        batch = KnownPages(
            place=np.arange(1),
            last_fetch_s=np.array([row.fetched_s]),
            changed=np.array([changed]),
            # A row does not count fetches; any later fetch leaves another interval than the first.
            first_fetch=np.array([changed and row.interval_s == self.pages.first_interval_s]),
            modified_s=np.full(1, np.nan),
        )
        if is_source(url, row.kind):
            return self.sources.reason((), batch, 0, row.fetched_s)
        if not is_good(row.status):
            planned = isfinite(row.due_s)  # a page that is already queued has no due time any more
            wait_s = row.due_s - row.fetched_s if planned else ReturnModel().wait_s(gone_duration_s(row), DEFAULT_PRICE)
            return ReturnModel.reason(gone_duration_s(row), wait_s)
        return self.pages.reason(np.array([row.interval_s]), batch, 0, row.fetched_s)

    def _compute_times(
        self, results: Sequence[FetchSuccess], earlier: Mapping[int, PageRow]
    ) -> dict[int, tuple[float, float]]:
        before = [earlier.get(result.task.id) for result in results]
        batch = KnownPages(
            place=np.arange(len(results)),
            last_fetch_s=np.array([result.ended_s for result in results]),
            changed=np.array([has_changed(*pair) for pair in zip(results, before, strict=True)]),
            first_fetch=np.array([_is_new_interval(*pair) for pair in zip(results, before, strict=True)]),
            modified_s=np.full(len(results), np.nan),
        )
        now_s = float(batch.last_fetch_s.max())
        rng = rng_for(self.seed, f"refresh/{now_s}")
        state = np.array([row.interval_s if row else 0.0 for row in before])
        after = self.pages.observe(state, batch, now_s)
        due = self.pages.due(after, batch, now_s, 0.0, rng)
        looks = self.sources.due((), batch, now_s, 0.0, rng)
        kinds = [kind_after(*pair) for pair in zip(results, before, strict=True)]
        sources = [is_source(result.task.url, kind) for result, kind in zip(results, kinds, strict=True)]
        due = np.where(sources, looks, due)
        if self.witness is not None:
            facts = {"state": state.tolist(), "is_source": sources, **_to_columns(batch)}
            self._record_decision(self.witness, now_s, facts, {"state": after.tolist(), "due_s": due.tolist()})
        ids = [result.task.id for result in results]
        return dict(zip(ids, zip(after.tolist(), due.tolist(), strict=True), strict=True))

    def _record_decision(self, witness: DecisionRecorder, now_s: float, facts: Columns, outcome: Columns) -> None:
        policies = {"pages": asdict(self.pages), "sources": asdict(self.sources)}
        witness(Decision("refresh", now_s, self.seed, f"refresh/{now_s}", policies, facts, outcome))


def _to_columns(batch: KnownPages) -> Columns:
    """Convert a schedule batch to plain lists for the decision record."""
    return {name: getattr(batch, name).tolist() for name in batch.__slots__}


def _is_not_modified(result: FetchSuccess) -> bool:
    """Check whether a response is 304 Not Modified."""
    return result.status == 304


def _is_new_interval(result: FetchSuccess, earlier: PageRow | None) -> bool:
    """Check whether the recrawl interval restarts: at the first response, and when a page is found gone."""
    return earlier is None or (is_good(earlier.status) and not is_good(status_after(result, earlier)))


def has_changed(result: FetchSuccess, earlier: PageRow | None) -> bool:
    """Check whether a response differs from the previous one; without a body, status and target count."""
    if earlier is None or _is_not_modified(result) or result.digest:
        return result.changed
    return (result.status, result.location or "") != (earlier.status, earlier.location)


def _build_row(host: int, result: FetchSuccess, earlier: PageRow | None, interval_s: float, due_s: float) -> PageRow:
    """Build the stored row of a page after a response; an unchanged page keeps what was known."""
    same = earlier if earlier is not None and _is_not_modified(result) else None
    changed = has_changed(result, earlier)
    # The first copy of identical bytes, unless it was given up; a 304 has none.
    place = earlier.place if earlier is not None and not changed and result.digest == earlier.digest else None
    return PageRow(
        id=result.task.id,
        host=host,
        status=same.status if same else result.status,
        kind=same.kind if same else result.kind,
        fetched_s=result.ended_s,
        changed_s=result.ended_s if changed or earlier is None else earlier.changed_s,
        title=same.title if same else result.title,
        content_type=result.header("content-type") or (same.content_type if same else ""),
        etag=result.header("etag") or (same.etag if same else ""),
        last_modified=result.header("last-modified") or (same.last_modified if same else ""),
        digest=same.digest if same else result.digest,
        payload_digest=same.payload_digest if same else result.payload_digest,
        location=result.location or "",
        body_bytes=same.body_bytes if same else result.body_bytes,
        place=place or (None if same else result.place),
        interval_s=interval_s,
        due_s=due_s,
    )


# A new due time is worth a write if it differs by this fraction of the remaining wait, or by a minute.
DUE_TOLERANCE, DUE_TOLERANCE_S = 0.02, 60.0


def is_rescheduled(before_s: float, after_s: float, now_s: float) -> bool:
    """Check whether a new refresh due time differs enough from the old one to be saved."""
    if not (isfinite(before_s) and isfinite(after_s)):
        return before_s != after_s
    return abs(after_s - before_s) > max(DUE_TOLERANCE_S, DUE_TOLERANCE * (after_s - now_s))
