"""Features are computed for all pages at once, with the same result as a plain loop over pages."""

from itertools import pairwise
from math import log1p, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.index.features import FEATURES, MAX_SLOTS, WORDY, Slot, compute_features, compute_idf
from vedette.index.query.retrieval import TEXT_FIELDS, ForwardTokens

KEYS = [feature.key for feature in FEATURES]
# BM25's constants, as the module's documentation of ranking states them: k1, b, usual length.
CONSTANTS = {
    "title": (0.6, 0.5, 8),
    "headings": (0.8, 0.5, 40),
    "anchors": (1.2, 0.3, 12),
    "url": (0.5, 0.3, 8),
    "body": (2.0, 0.75, 150),
}
Page = dict[str, list[int]]


def forward_of(pages: list[Page]) -> ForwardTokens:
    """Return pages as in the forward file."""
    words = [word for page in pages for field in TEXT_FIELDS for word in page.get(field, [])]
    lengths = [[len(page.get(field, [])) for field in TEXT_FIELDS] for page in pages]
    return ForwardTokens(np.array(words, np.uint32), np.array(lengths, np.int64).reshape(len(pages), len(TEXT_FIELDS)))


def named(pages: list[Page], slots: list[Slot]) -> list[dict[str, float]]:
    """Return the features of each page by name."""
    return [dict(zip(KEYS, row, strict=True)) for row in compute_features(forward_of(pages), slots).tolist()]


def slot(*words: int, idf: float = 1.0) -> Slot:
    """Return a slot in which the first word counts fully, and every other one half."""
    return Slot(words, tuple(1.0 if place == 0 else 0.5 for place in range(len(words))), idf)


# --- The slow reference ---


def slow(page: Page, slots: list[Slot]) -> dict[str, float]:
    """Compute the same features one page and one word at a time."""
    total = sum(one.idf for one in slots)
    shares = [one.idf / total if total else 1 / len(slots) for one in slots]
    found: dict[str, float] = {}
    for field in TEXT_FIELDS:
        words = page.get(field, [])
        counts = [sum(_weight(word, one) for word in words) for one in slots]
        found[f"{field}_bm25"] = _bm25(counts, shares, field, len(words))
        found[f"{field}_coverage"] = sum(share * min(count, 1) for share, count in zip(shares, counts, strict=True))
        if field != "url":
            whole = sum(_run(words, at, slots) for at in range(len(words))) if len(slots) > 1 else 0
            found[f"{field}_phrase"] = _bm25([whole], [1.0], field, len(words))
            found[f"{field}_pairs"] = _pairs(words, slots, shares, field)
    title, anchors, body = page.get("title", []), page.get("anchors", []), page.get("body", [])
    hits = sum(any(_weight(word, one) for one in slots) for word in title)
    found["title_exact"] = hits / max(len(title), 1) * found["title_coverage"]
    found["title_is"] = float(len(title) == len(slots) and _run(title, 0, slots))
    text = sum(_run(anchors, at, slots) for at in range(len(anchors))) * len(slots)
    found["anchors_exact"] = sqrt(min(text / max(len(anchors), 1), 1))
    address = page.get("url", [])
    times = sum(_weight(word, one) for word in address for one in slots)
    found["url_exact"] = min(times / max(len(address) - 4, 1), 1) * found["url_coverage"]
    found["body_has"] = float(len(slots) > 1 and any(_run(body, at, slots) for at in range(len(body))))
    found["body_span"], found["body_near"] = _nearness(body, slots)
    found["body_early"] = sum(
        share * 100 / (100 + first)
        for share, one in zip(shares, slots, strict=True)
        if (first := next((at for at, word in enumerate(body) if _weight(word, one)), None)) is not None
    )
    found["body_near"] *= len(slots) > 1  # one word has no neighbors
    for field, long in (("headings", 400), ("body", 4096)):
        words = page.get(field, [])
        has = len(slots) > 1 and any(_run(words, at, slots) for at in range(len(words)))
        found[f"{field}_short"] = max(1 - log1p(len(words)) / log1p(long), 0) if has else 0.0
    for key, fields in (("anywhere", TEXT_FIELDS), ("outside", TEXT_FIELDS[:-1])):
        found[key] = sum(
            share * max(min(sum(_weight(word, one) for word in page.get(field, [])), 1) for field in fields)
            for share, one in zip(shares, slots, strict=True)
        )
    return found


def _weight(word: int, one: Slot) -> float:
    return max((weight for number, weight in zip(one.numbers, one.weights, strict=True) if number == word), default=0)


def _bm25(counts: list[float], shares: list[float], field: str, length: int) -> float:
    k1, b, usual = CONSTANTS[field]
    slowed = k1 * (1 - b + b * length / usual)
    return sum(share * count * (k1 + 1) / (count + slowed) for share, count in zip(shares, counts, strict=True))


def _run(words: list[int], at: int, slots: list[Slot]) -> bool:
    there = words[at : at + len(slots)]
    return len(there) == len(slots) and all(map(_weight, there, slots))


def _pairs(words: list[int], slots: list[Slot], shares: list[float], field: str) -> float:
    worth = [one + other for one, other in pairwise(shares)]
    if not sum(worth):
        return 0.0
    counts = [
        sum(bool(_weight(a, one) and _weight(b, other)) for a, b in pairwise(words)) for one, other in pairwise(slots)
    ]
    return _bm25([float(count) for count in counts], [each / sum(worth) for each in worth], field, len(words))


def _nearness(body: list[int], slots: list[Slot]) -> tuple[float, float]:
    """Return the shortest stretch with all important slots, by trying all; and neighboring slots within eight words."""
    most = max(one.idf for one in slots)
    telling = [one for one in slots if one.idf >= 0.25 * most]
    places = [[at for at, word in enumerate(body) if _weight(word, one)] for one in telling]
    spans = [
        end - start + 1
        for start in range(len(body))
        for end in range(start, len(body))
        if all(any(start <= at <= end for at in each) for each in places)
    ]
    pairs = list(pairwise(places))
    if not pairs:
        near = float(bool(places[0]))
    else:
        near = sum(any(abs(a - b) <= 8 for a in one for b in other) for one, other in pairs) / len(pairs)
    return (min(len(telling) / min(spans), 1) if spans else 0.0), near


WORDS = st.integers(0, 6).map(lambda word: word * 65_536 + 3 if word % 2 else word)  # some share their low bits
PAGES = st.lists(
    st.fixed_dictionaries({field: st.lists(WORDS, max_size=18 if field == "body" else 6) for field in TEXT_FIELDS}),
    max_size=4,
)
SLOTS = st.lists(
    st.builds(
        lambda words, idf: slot(*words, idf=idf),
        st.lists(WORDS, min_size=1, max_size=3, unique=True),
        st.sampled_from([0.1, 1.0, 2.0, 5.0]),
    ),
    min_size=1,
    max_size=5,
)


@given(PAGES, SLOTS)
def test_all_pages_at_once_as_one_by_one(pages: list[Page], slots: list[Slot]) -> None:
    """For any pages and query, the arrays equal the result of a plain loop."""
    for page, found in zip(pages, named(pages, slots), strict=True):
        assert found == pytest.approx(slow(page, slots), abs=1e-6)


@given(PAGES, SLOTS)
def test_a_page_does_not_depend_on_its_neighbours(pages: list[Page], slots: list[Slot]) -> None:
    """A page has the same features alone as among others: no phrase spans pages or fields."""
    together = compute_features(forward_of(pages), slots)
    for page, row in zip(pages, together, strict=True):
        assert np.allclose(compute_features(forward_of([page]), slots)[0], row)


def test_no_pages_and_no_words() -> None:
    """Without pages or words there are no features and no error."""
    assert compute_features(forward_of([]), [slot(1)]).shape == (0, len(FEATURES))
    assert not compute_features(forward_of([{"body": [1, 2]}]), []).any()
    assert not compute_features(forward_of([{}]), [Slot((), (), 1.0)]).any()


def test_words_without_worth_count_alike() -> None:
    """A query of words that are on every page still works."""
    (found,) = named([{"title": [1, 2]}], [slot(1, idf=0.0), slot(2, idf=0.0)])
    assert found["title_coverage"] == pytest.approx(1.0)


def test_a_title_that_is_the_query() -> None:
    """A title equal to the query scores higher than one that contains it among other words."""
    exact, longer = named([{"title": [1, 2]}, {"title": [1, 2, 3, 4]}], [slot(1), slot(2)])
    assert exact["title_exact"] == 1.0 > longer["title_exact"] > 0


def test_order_counts() -> None:
    """Words in the order of the query are a phrase, and in another order they are only near."""
    ordered, turned = named([{"body": [1, 2]}, {"body": [2, 1]}], [slot(1), slot(2)])
    assert ordered["body_has"] == 1.0
    assert turned["body_has"] == 0.0
    assert ordered["body_span"] == turned["body_span"] == 1.0


def test_very_long_queries_are_cut() -> None:
    """Words beyond the limit change nothing."""
    slots = [slot(number) for number in range(MAX_SLOTS + 9)]
    page: Page = {"body": list(range(40))}
    assert named([page], slots) == named([page], slots[:MAX_SLOTS])


def test_rare_words_tell_more() -> None:
    """The fewer pages have a word, the more it counts.

    A word on all pages counts almost nothing, but is never negative.
    """
    report = [compute_idf(df, 1000) for df in (0, 1, 10, 500, 1000, 2000)]
    assert report == sorted(report, reverse=True)
    assert report[-1] >= 0


def test_in_a_long_question_rare_words_tell_still_more() -> None:
    """Of a question with many words, a page with its one rare word has more than that word's share of the idf."""
    slots = [*(slot(number, idf=1.0) for number in range(WORDY - 1)), slot(99, idf=6.0)]
    share = slots[-1].idf / sum(each.idf for each in slots)
    assert named([{"body": [99]}], slots)[0]["body_coverage"] > share
    assert named([{"body": [99]}], slots[1:])[0]["body_coverage"] == pytest.approx(
        6.0 / sum(each.idf for each in slots[1:])
    )


def test_every_feature_has_a_name_for_people() -> None:
    """Every feature has a unique name."""
    assert all(feature.words for feature in FEATURES)
    assert len({feature.words for feature in FEATURES}) == len({feature.key for feature in FEATURES}) == len(FEATURES)
