"""Dates as servers write them."""

from datetime import UTC, datetime

import pytest

from vedette.timeutil import parse_date

RFC_9110_MOMENT_S = datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "text",
    [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "sun, 6 nov 1994 08:49:37 gmt",
        "06 November 1994 08:49:37 UTC",
        "6 Nov 1994 00:49:37 PST",
        "Sun, 06 Nov 1994 10:49:37 +0200",
        "1994-11-06T08:49:37Z",
        "1994-11-06T08:49:37.000Z",
        "1994-11-06 08:49:37",
        "1994-11-06T03:49:37-05:00",
        " 1994-11-06T09:49:37+01 ",
        "Sun, 06 Nov 1994 09:49:37 CET",
        "Sun, 06 Nov 1994 14:19:37 IST",
        "Sun, Nov 06, 1994 08:49:37 GMT",
        "Sun, 06 Nov, 1994 08:49:37",
        "Sunday, November 6, 1994 - 08:49:37",
        "Sun,06 Nov 1994 09:49:37 +0100 (CET)",
        "Sun, 6 Nov 1994 09:49:37 GMT+0100",
        "6 novembre 1994 08:49:37",
        "1994/11/06 08:49:37",
    ],
)
def test_one_moment_in_many_forms(text: str) -> None:
    """The three forms of RFC 9110, the zones of RFC 822 and ISO 8601 all give the same time."""
    assert parse_date(text) == RFC_9110_MOMENT_S


def test_a_day_without_a_time_begins_at_midnight() -> None:
    """A date alone is its first second in UTC."""
    midnight_s = datetime(2010, 6, 25, tzinfo=UTC).timestamp()
    assert parse_date("2010-06-25") == parse_date("25 Jun 2010") == parse_date("25-Jun-10") == midnight_s


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "Wed",
        "31 Foo 2010",
        "2010-13-01",
        "2010-02-30",
        "0000-01-01",
        "2010-01-01T",
        "1 Jan 2010 25:00",
        "1 Jan 2010 10:61",
        "0001-01-01T00:00:00+14:00",
        "\u0661 Jan 2010",
        "1 Jan" + " " * 10_000 + "2010",
        "9" * 10_000,
    ],
)
def test_what_is_no_date_is_none(text: str) -> None:
    """Nonsense, impossible days and endless text give no date and no error."""
    assert parse_date(text) is None


def test_a_leap_second_is_a_date() -> None:
    """Second 60 is valid in a header, and is within its minute."""
    assert parse_date("Sat, 31 Dec 2016 23:59:60 GMT") == parse_date("Sat, 31 Dec 2016 23:59:59 GMT")
