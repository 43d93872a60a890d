"""Learn page reputations from logged searches: examination by position, and quality overall and by query.

A page's quality is shrunk to its site and to its topic, which is the query that shows it most; a page for a query is
shrunk to the page, and to all pages that the query shows. With few clicks nothing is learned at all: then results stay
in order of relevance.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from vedette.attention import visibility
from vedette.learn.clicks.examination import ClickLog, correct_examination, fit_position
from vedette.learn.clicks.impressions import Impressions
from vedette.learn.clicks.page_quality import (
    PAGE_WEIGHT,
    ResultViews,
    cap_weights,
    decay_weights,
    estimate_quality,
    shrink_quality,
)
from vedette.policy import Floats, Ints

PLACES = 10
# Fewer clicks or people are not enough evidence.
MIN_CLICKS, MIN_PEOPLE = 100, 20
# From this many searches with a full page of results on, examination is learned instead of assumed.
MIN_FULL_PAGES = 500
MIN_EXAMINED = 0.02


class LearnedQuality(NamedTuple):
    """Learned page quality: pages, pairs, groups (by query) and hosts, each ordered by id.

    ``likes`` and ``looks`` are decayed and capped. ``pair_group`` and ``pair_page`` are positions in groups and pages.
    ``group_views`` are views a day of the results of a query. ``taken_off`` is the weight removed by caps, by reason.
    """

    examined: Floats
    page: Ints
    likes: Floats
    looks: Floats
    mean: Floats
    pair_group: Ints
    pair_page: Ints
    pair_mean: Floats
    pair_likes: Floats
    pair_looks: Floats
    group_mean: Floats
    group_views: Floats
    host: Ints
    host_mean: Floats
    general: float
    people: float
    clicks: int
    taken_off: Mapping[str, float]


def estimate_examination(seen: Impressions) -> Floats:
    """Estimate the examination probability of ten positions: fitted with enough data, else as published.

    Only full result pages are fitted, so that every position could be examined. Impressions at random positions correct
    the result.
    """
    return np.clip(correct_examination(seen, _fit_examination(seen)), MIN_EXAMINED, 1.0)


def _fit_examination(seen: Impressions) -> Floats:
    published = visibility(np.arange(1, PLACES + 1))
    shown = seen.place < PLACES
    sizes = np.bincount(seen.slate[shown], minlength=1)
    whole = shown & (sizes[seen.slate] == PLACES)
    order = np.flatnonzero(whole)[np.lexsort((seen.place[whole], seen.slate[whole]))]
    if len(order) < PLACES * MIN_FULL_PAGES or int(seen.clicked[order].sum()) < MIN_CLICKS:
        return published
    pairs = np.column_stack([seen.group[order], seen.page[order]])
    unique, result = np.unique(pairs, axis=0, return_inverse=True)
    clicks = ClickLog(result.reshape(-1, PLACES), seen.clicked[order].reshape(-1, PLACES), len(unique))
    model = fit_position(clicks, np.full(len(unique), float(seen.clicked[order].mean()) + 1e-6))
    return np.clip(model.examined, MIN_EXAMINED, 1.0)


def learn_reputations(seen: Impressions, host_of: Mapping[int, int], now_days: float) -> LearnedQuality | None:
    """Learn page reputations from impressions; None if there is too little data.

    ``host_of`` has the host of each page.
    """
    people = len(np.unique(seen.visitor))
    if int(seen.clicked.sum()) < MIN_CLICKS or people < MIN_PEOPLE:
        return None
    examined = estimate_examination(seen)
    pages, page = np.unique(seen.page, return_inverse=True)
    rows = _to_views(seen, page, examined)
    host = np.array([host_of.get(id_, -1) for id_ in pages.tolist()], np.int64)
    hosts, host_number = np.unique(host, return_inverse=True)
    overall = estimate_quality(rows, host_number, _find_topics(page, seen.group), now_days)
    both, pair = np.unique(np.column_stack([seen.group, page]), axis=0, return_inverse=True)
    of_pair = estimate_quality(rows._replace(page=pair.ravel()), both[:, 1], both[:, 0], now_days)
    general = float(overall.likes.sum() + 1.0) / float(overall.looks.sum() + 2.0)
    span_days = max(now_days - float(seen.at_days.min()), 1.0)
    return LearnedQuality(
        examined,
        pages,
        overall.likes,
        overall.looks,
        overall.mean,
        both[:, 0],
        both[:, 1],
        of_pair.mean,
        of_pair.likes,
        of_pair.looks,
        _average_by_group(seen.group, rows, general, len(seen.groups), now_days),
        np.bincount(seen.group, rows.looked, len(seen.groups)) / span_days,
        hosts,
        _average_by_group(host_number[page], rows, general, len(hosts), now_days),
        general,
        float(people),
        int(seen.clicked.sum()),
        cap_weights(rows).taken_off,
    )


def _to_views(seen: Impressions, page: Ints, examined: Floats) -> ResultViews:
    looked = examined[np.minimum(seen.place, PLACES - 1)]
    return ResultViews(page, seen.visitor, seen.address, looked, seen.liked, seen.at_days)


def _find_topics(page: Ints, group: Ints) -> Ints:
    """Find the topic of each page: the query that shows it most; of equals the first."""
    both, times = np.unique(np.column_stack([page, group]), axis=0, return_counts=True)
    order = np.lexsort((both[:, 1], -times, both[:, 0]))
    _, first = np.unique(both[order, 0], return_index=True)
    return np.asarray(both[order[first], 1])


def _average_by_group(group: Ints, rows: ResultViews, general: float, length: int, now_days: float) -> Floats:
    """Compute the decayed share of liked views in each group, shrunk to the general share."""
    weight = cap_weights(rows).weight * decay_weights(rows.at_days, now_days)
    likes = np.bincount(group, weight * rows.liked, length).astype(np.float64)
    looks = np.bincount(group, weight * np.maximum(rows.looked, rows.liked), length).astype(np.float64)
    return _shrink_groups(likes, looks, general)


def _shrink_groups(likes: Floats, looks: Floats, general: float) -> Floats:
    return np.asarray((likes + 4 * PAGE_WEIGHT * general) / (looks + 4 * PAGE_WEIGHT))


def learn_from_counts(likes: Floats, looks: Floats, views_per_day: float, people: float) -> LearnedQuality | None:
    """Learn page reputations from likes and views of pages that one query shows, all of one host; None from too few.

    The lab counts these itself; it equals ``learn_reputations`` if each view is a click in the first position now.
    """
    if looks.sum() < MIN_CLICKS or people < MIN_PEOPLE:
        return None
    pages = np.flatnonzero(looks > 0)  # nothing is learned about a page without views
    likes, looks, one = likes[pages], looks[pages], np.zeros(len(pages), np.int64)
    general = float(likes.sum() + 1.0) / float(looks.sum() + 2.0)
    group_mean = _shrink_groups(np.array([likes.sum()]), np.array([looks.sum()]), general)
    return LearnedQuality(
        examined=np.ones(PLACES),
        page=pages,
        likes=likes,
        looks=looks,
        mean=shrink_quality(likes, looks, one, one),
        pair_group=one,
        pair_page=np.arange(len(pages)),
        pair_mean=shrink_quality(likes, looks, np.arange(len(pages)), one),
        pair_likes=likes,
        pair_looks=looks,
        group_mean=group_mean,
        group_views=np.array([views_per_day]),
        host=np.zeros(1, np.int64),
        host_mean=group_mean,
        general=general,
        people=people,
        clicks=int(looks.sum()),
        taken_off={},
    )
