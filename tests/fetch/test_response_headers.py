"""How long a response is valid, and when to retry."""

from vedette.fetch.response_headers import parse_max_age_s, parse_retry_after_s


def test_the_shortest_max_age_holds() -> None:
    """If a server contradicts itself, in one header or in two, the shorter time applies."""
    assert (
        parse_max_age_s((("cache-control", "max-age=90, max-age=30"), ("cache-control", "public, max-age=60"))) == 30.0
    )
    assert parse_max_age_s((("expires", "max-age=90"),)) is None


def test_a_date_counts_from_now_and_never_backwards() -> None:
    """A date is relative to the given time; a past date means no wait."""
    header = (("retry-after", "Thu, 01 Jan 1970 00:02:00 GMT"),)
    assert parse_retry_after_s(header, now_s=50.0) == 70.0
    assert parse_retry_after_s(header, now_s=500.0) == 0.0
