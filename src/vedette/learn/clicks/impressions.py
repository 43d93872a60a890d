"""Impressions: results that users were shown, joined with their clicks, as columns to learn from.

A slate counts once it was reported as seen, or one of its results was opened; clicks are joined to their slate by its
token, however late they come. The worth of a click follows from the time until its user's next action: the next click
on the same slate, or the next search under the same visitor hash. A user without a next action is assumed to have
stayed.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.learn.clicks.page_quality import grade_clicks
from vedette.learn.events import ClickEvent, SearchEvent, ShownResult
from vedette.policy import Floats, Ints
from vedette.timeutil import DAY_S

Bools = npt.NDArray[np.bool_]
# The first digits of a visitor hash depend on the address alone, whatever the browser (see ``web.public.slates``).
ADDRESS_DIGITS = 8


class Impressions(NamedTuple):
    """Impressions in columns, a row per result shown.

    Groups, visitors, addresses and slates are numbered from 0.

    ``place`` counts from 0 on the result page. ``liked`` is from 0 to 1, and 0 without a click. ``reason`` is why it
    was shown there, as recorded. ``by_policy`` names the policy that ranked its slate; it is empty if that was not
    shown on a page, since programs are in no group of visitors. ``groups`` are the words of the queries. ``propensity``
    is the probability of its position; below 1, the position was random. ``visitor_hashes`` are those of the visitors.
    """

    page: Ints
    group: Ints
    visitor: Ints
    address: Ints
    slate: Ints
    place: Ints
    clicked: Bools
    liked: Floats
    at_days: Floats
    reason: tuple[str, ...] = ()
    by_policy: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    propensity: Floats = np.zeros(0)
    visitor_hashes: tuple[str, ...] = ()


class _NameNumbers(dict[str, int]):
    """Number names in the order in which they first occur."""

    def __missing__(self, name: str) -> int:
        self[name] = number = len(self)
        return number


class _Row(NamedTuple):
    page: int
    group: int
    visitor: int
    address: int
    slate: int
    place: int
    dwell_s: float  # minus one if it was not opened
    at_days: float
    propensity: float
    reason: str
    by_policy: str


NOT_OPENED = -1.0


def build_impressions(slates: Iterable[SearchEvent], events: Iterable[ClickEvent], speed: float = 1.0) -> Impressions:
    """Build impressions of all results of seen slates; world time runs ``speed`` times as fast as wall time.

    >>> slate = SearchEvent("a", 5.0, "Kites", "kites", 2, "ab", results=(ShownResult(7, 1, 3.0), ShownResult(8, 2,
    ...     2.0)))
    >>> seen = build_impressions([slate], [ClickEvent("a", "click", 8, 9.0, 4.0, "ab")])
    >>> seen.page.tolist(), seen.clicked.tolist(), seen.liked.tolist(), seen.groups
    ([7, 8], [False, True], [0.0, 1.0], ('kites',))
    """
    unfiltered = [slate for slate in slates if not slate.filter_reason]
    deeds = _group_events(events)
    later = _find_next_searches(unfiltered)  # a search without results is also a return
    groups, visitors, addresses = _NameNumbers(), _NameNumbers(), _NameNumbers()
    rows: list[_Row] = []
    for number, slate in enumerate(slate for slate in unfiltered if slate.results and slate.id in deeds):
        stayed = _compute_dwells(deeds[slate.id], later.get(slate.id), speed)
        named = (groups[slate.words], visitors[slate.visitor], addresses[slate.visitor[:ADDRESS_DIGITS]], number)
        rows += [_build_row(shown, slate, named, stayed) for shown in slate.results]
    return _to_columns(rows, tuple(groups), tuple(visitors))


def _build_row(
    shown: ShownResult, slate: SearchEvent, named: tuple[int, int, int, int], stayed: Mapping[int, float]
) -> _Row:
    place = max(shown.position - slate.results[0].position, 0)
    dwell_s = stayed.get(shown.page, NOT_OPENED)
    policy = slate.policy if slate.via == "page" else ""
    return _Row(shown.page, *named, place, dwell_s, slate.at_s / DAY_S, shown.propensity, shown.reason, policy)


def _group_events(events: Iterable[ClickEvent]) -> dict[str, list[ClickEvent]]:
    """Group click events by slate, for slates that were seen at all."""
    found: dict[str, list[ClickEvent]] = {}
    for event in events:
        if not event.filter_reason:
            found.setdefault(event.slate, []).append(event)
    return found


def _find_next_searches(slates: Sequence[SearchEvent]) -> dict[str, float]:
    """Find when the user of each slate searched again; users without a visitor hash are skipped."""
    found: dict[str, float] = {}
    upcoming: dict[str, float] = {}
    for slate in sorted(slates, key=lambda each: -each.at_s):
        if slate.visitor:
            if slate.visitor in upcoming:
                found[slate.id] = upcoming[slate.visitor]
            upcoming[slate.visitor] = slate.at_s
    return found


def _compute_dwells(deeds: Sequence[ClickEvent], again_s: float | None, speed: float) -> dict[int, float]:
    """Compute the dwell time in wall seconds after each click of a slate; NaN if nothing followed."""
    clicks = sorted((event for event in deeds if event.kind == "click"), key=lambda event: event.after_s)
    found: dict[int, float] = {}
    for event, following in zip_longest(clicks, clicks[1:]):
        if following is not None:
            found[event.page] = max(following.after_s - event.after_s, 0.0)
        elif again_s is not None and again_s >= event.at_s:
            found[event.page] = (again_s - event.at_s) / max(speed, 1e-9)
        else:
            found[event.page] = float("nan")
    return found


def _to_columns(rows: Sequence[_Row], groups: tuple[str, ...], marks: tuple[str, ...]) -> Impressions:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(_Row._fields)
    page, group, visitor, address, slate, place = (np.array(column, np.int64) for column in columns[:6])
    dwell_s, at_days, propensity = (np.array(column, np.float64) for column in columns[6:9])
    clicked = np.asarray(dwell_s != NOT_OPENED)
    liked = np.where(clicked, grade_clicks(dwell_s), 0.0)
    reason, by_policy = (tuple(map(str, column)) for column in columns[9:])
    numbers = (page, group, visitor, address, slate, place)
    names = (reason, by_policy, groups)
    return Impressions(*numbers, clicked, liked, at_days, *names, propensity, marks)
