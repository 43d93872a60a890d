"""A page's dates are its most reliable statements, and never implausible."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.parse.text.dates import PageDates, find_dates

NOW_S = datetime(2026, 11, 16, 12, tzinfo=UTC).timestamp()
TEN_O_CLOCK_S = datetime(2026, 11, 15, 10, tzinfo=UTC).timestamp()
MIDNIGHT_S = datetime(2026, 11, 15, tzinfo=UTC).timestamp()
PLAIN_URL = "https://example.org/a-page"
MOMENTS = st.datetimes(datetime(1991, 1, 1), datetime(2026, 11, 15))  # noqa: DTZ001 -- hypothesis wants them bare
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


def published(text: str) -> float | None:
    """Return the publication date of a page with only this statement."""
    return find_dates([("date", text)], [], PLAIN_URL, "", NOW_S).published_s


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-15T10:00:00Z",
        "2026-11-15T10:00:00.000Z",
        "2026-11-15T10:00:00.0000000+00:00",
        "2026-11-15T11:00:00+01:00",
        "2026-11-15T11:00+0100",
        "20261115T100000Z",
        "2026-11-15 10:00",
        " 2026-11-15 10:00:00 UTC\n",
        "2026-11-15 05:00:00 -0500",
        "2026/11/15 10:00",
        "Sun, 15 Nov 2026 10:00:00 GMT",
        "Sun, 15 Nov 2026 05:00:00 EST",
        "Sunday, 15-Nov-26 10:00:00 GMT",
        "15 November 2026 10:00",
        "15.11.2026, 10:00",
        "Nov 15, 2026 10:00 AM",
        "November 15th, 2026 at 10:00 a.m.",
        "15/11/2026 10:00",
        "11/15/2026 10:00",
    ],
)
def test_a_moment_is_read_in_every_usual_form(text: str) -> None:
    """Programs and people write the same moment in many ways."""
    assert published(text) == TEN_O_CLOCK_S


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-15",
        "2026/11/15",
        "20261115",
        "15 November 2026",
        "Sunday 15 November 2026",
        "15th Nov. 2026",
        "Nov 15, 2026",
        "15.11.2026",
        "15. November 2026",
        "15 novembre 2026",
        "15 de noviembre de 2026",
        "15/11/2026",
        "11/15/2026",
    ],
)
def test_a_day_is_its_first_moment(text: str) -> None:
    """A date without a clock is midnight, in UTC."""
    assert published(text) == MIDNIGHT_S


@pytest.mark.parametrize(
    "text",
    [
        *("", "yesterday", "2026", "2026-11", "10:00", "PT15M", "2026-13-40", "32 November 2026", "15 Smarch 2026"),
        *(
            "03/04/2026",
            "2026-11-15T25:00:00Z",
            "15.11.2026 10:99",
            "1" * 70,
            "2026-11-15" * 9,
            "\u0662\u0660\u0662\u0666-\u0661\u0661-\u0661\u0665",
        ),
    ],
)
def test_what_is_no_date_is_not_there(text: str) -> None:
    """Incomplete, impossible and ambiguous dates, and durations, are ignored."""
    assert published(text) is None


@given(MOMENTS, ZONES)
def test_the_day_stays_as_written_in_any_zone(moment: datetime, zone: timezone) -> None:
    """A date with an offset keeps its day, and is the same time unless that is another day in UTC."""
    local = moment.replace(tzinfo=UTC).astimezone(zone)
    found = published(local.isoformat())
    assert found is not None
    assert datetime.fromtimestamp(found, UTC).date() == local.date()
    assert found == local.timestamp() or local.astimezone(UTC).date() != local.date()


@pytest.mark.parametrize(
    ("line", "published_day", "modified_day"),
    [
        ("15 November 2026", 15, None),
        ("By Ann Example | November 15, 2026 | 4 min read", 15, None),
        ("Published 14.11.2026, 10:12. Updated 15.11.2026", 14, 15),
        ("Last modified: 2026-11-15", None, 15),
        ("03/04/2026", None, None),
        ("Version 2026.1 of 12 parts", None, None),
        ("31 February 2026", None, None),
    ],
)
def test_dates_that_readers_see(line: str, published_day: int | None, modified_day: int | None) -> None:
    """A line next to the heading dates a page without metadata; after "updated", it is a change."""
    found = find_dates([], [], PLAIN_URL, "", NOW_S, [line])
    days = [seconds and datetime.fromtimestamp(seconds, UTC).day for seconds in (found.published_s, found.modified_s)]
    assert days == [published_day, modified_day]


def test_what_a_page_says_to_programs_comes_first() -> None:
    """A visible date is only used if metadata and URL have none, because it may belong to something else."""
    assert find_dates([("date", "2026-11-15")], [], PLAIN_URL, "", NOW_S, ["1 May 2020"]).published_s == MIDNIGHT_S


@given(
    MOMENTS, st.sampled_from(["%d %B %Y", "%b %d, %Y", "%d.%m.%Y", "%Y-%m-%d", "%a, %d %b %Y", "%d %b %y", "%Y/%m/%d"])
)
def test_any_day_comes_back(moment: datetime, form: str) -> None:
    """Every day of every month is read in every form."""
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=UTC)
    assert published(day.strftime(form)) == day.timestamp()


def in_linked_data(**more: object) -> str:
    """Return an article that states its date."""
    return json.dumps({"@type": "NewsArticle", "datePublished": "2026-11-01", **more})


def test_the_most_deliberate_word_wins() -> None:
    """The order is linked data, meta elements, time elements, then the URL.

    Each is only used if the earlier ones have none.
    """
    words = [("time:published", "2026-11-03"), ("date", "2026-11-05"), ("article:published_time", "2026-11-02")]
    url = "https://example.org/2026/11/04/title"
    days = [
        find_dates(words, [in_linked_data()], url, "", NOW_S),
        find_dates(words, [], url, "", NOW_S),
        find_dates(words[:1], [], url, "", NOW_S),
        find_dates([], [], url, "", NOW_S),
    ]
    assert [day.source for day in days] == ["linked data", "meta", "time", "url"]
    assert [datetime.fromtimestamp(day.published_s or 0, UTC).day for day in days] == [1, 2, 3, 4]


def test_last_modified_is_the_weakest_word_on_changes() -> None:
    """The header is used if the page states no change; it never dates the publication."""
    header = "Sun, 15 Nov 2026 10:00:00 GMT"
    assert find_dates([], [], PLAIN_URL, header, NOW_S) == PageDates(None, TEN_O_CLOCK_S, "header")
    stated = find_dates([("og:updated_time", "2026-11-15")], [], PLAIN_URL, header, NOW_S)
    assert stated == PageDates(None, MIDNIGHT_S, "meta")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/2026/11/15/title.html", True),
        ("/blog/2026-11-15-title", True),
        ("/news/2026/nov/15/title", True),
        ("/2026/11/15", True),
        ("/2026/11/title", False),
        ("/2026/11/155/title", False),
        ("/2026/13/15/title", False),
        ("/12026/11/15/title", False),
        ("/page?back=/2026/11/15/", False),
        ("/page#/2026/11/15/", False),
    ],
)
def test_a_url_may_hold_the_day(path: str, found: bool) -> None:  # noqa: FBT001 -- a table's column
    """A whole day in the path is the day of publication; months, other numbers and queries are not."""
    dates = find_dates([], [], f"https://example.org{path}", "", NOW_S)
    assert dates.published_s == (MIDNIGHT_S if found else None)


@pytest.mark.parametrize("untrue", ["2026-11-18", "2126-11-15", "1989-12-31", "1970-01-01T00:00:00Z", "0001-01-01"])
def test_what_cannot_be_true_gives_way_to_the_next(untrue: str) -> None:
    """Dates in the future or before the web are errors, and a weaker but plausible one is used instead."""
    dates = find_dates([("article:published_time", untrue), ("date", "2026-11-15")], [], PLAIN_URL, untrue, NOW_S)
    assert dates == PageDates(MIDNIGHT_S, None, "meta")


def test_tomorrow_is_still_believed() -> None:
    """A date one day ahead may be due to a time zone, so it is accepted."""
    assert published("2026-11-17") == MIDNIGHT_S + 2 * 86_400


def test_a_page_does_not_change_before_it_is_published() -> None:
    """A change before the publication is dropped in favor of a later one."""
    words = [("date", "2026-11-10"), ("article:modified_time", "2026-11-09"), ("og:updated_time", "2026-11-15")]
    assert find_dates(words, [], PLAIN_URL, "", NOW_S).modified_s == MIDNIGHT_S
    assert find_dates(words[:2], [], PLAIN_URL, "", NOW_S).modified_s is None


@pytest.mark.parametrize(
    "text",
    [
        in_linked_data(),
        f"[{in_linked_data()}]",
        f'{{"@graph": [{{"@type": "Person"}}, {in_linked_data()}]}}',
        f'{{"@type": "WebPage", "mainEntity": {in_linked_data()}}}',
        f'[{{"@type": "WebPage", "datePublished": "2020-01-01"}}, {in_linked_data()}]',
        in_linked_data(review={"@type": "Review", "datePublished": "2026-11-09"}),
        in_linked_data(**{"@type": ["Thing", "BlogPosting"]}),
        in_linked_data(description="a\nraw line").replace("\\n", "\n"),
    ],
)
def test_linked_data_is_asked_about_the_article(text: str) -> None:
    """Alone, in a list, in a graph, or as a page's main entity: the article's date is found, and no other."""
    dates = find_dates([], [text], PLAIN_URL, "", NOW_S)
    assert (dates.published_s, dates.source) == (published("2026-11-01"), "linked data")


@pytest.mark.parametrize(
    "text",
    [
        '{"@type": "Product", "review": {"datePublished": "2026-11-01"}}',
        '{"datePublished": ["2026-11-01"]}',
        '{"datePublished": 20261101}',
        '{"datePublished": "2026-11-01"',
        '"datePublished"',
        "[" * 200_000 + '"datePublished"' + "]" * 200_000,
        '{"@graph":' * 200_000 + '"datePublished"' + "}" * 200_000,
        f'{{"datePublished": {"9" * 10_000}}}',
    ],
    ids=["of a review", "list", "number", "broken", "string", "deep list", "deep object", "long number"],
)
def test_other_linked_data_says_nothing(text: str) -> None:
    """Dates of reviews, wrong types, broken JSON and deep nesting are ignored."""
    assert find_dates([], [text], PLAIN_URL, "", NOW_S) == PageDates(None, None, "")


def test_bare_time_elements_count_where_they_agree() -> None:
    """If all time elements have the same date, it is the page's; different ones belong to a list or to comments."""
    one, other = ("time", "2026-11-15"), ("time", "2026-11-14")
    assert find_dates([one, one], [], PLAIN_URL, "", NOW_S) == PageDates(MIDNIGHT_S, None, "time")
    assert find_dates([one, other], [], PLAIN_URL, "", NOW_S) == PageDates(None, None, "")


@given(
    st.lists(st.tuples(st.sampled_from(["date", "time", "lastmod", "x"]), st.text(max_size=70)), max_size=9),
    st.lists(st.text(max_size=40).map(lambda text: '{"datePublished": "' + text), max_size=3),
    st.text(max_size=60),
    st.text(max_size=60),
)
def test_no_text_is_an_error(stamps: list[tuple[str, str]], linked_data: list[str], url: str, header: str) -> None:
    """For any text, the result is plausible dates or none."""
    dates = find_dates(stamps, linked_data, url, header, NOW_S)
    assert all(s is None or 0 < s <= NOW_S + 86_400 for s in (dates.published_s, dates.modified_s))
