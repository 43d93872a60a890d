"""Hostile robots.txt files; the tests only have to finish in time."""

from vedette.fetch.robots.rules import is_allowed, parse_robots

HOST = "https://example.org"


def test_ten_thousand_stars() -> None:
    """A pattern of stars and letters is matched with a path that matches up to its last byte."""
    body = b"user-agent: *\ndisallow: /" + b"*a" * 8_000
    assert not is_allowed(body, "vedette", f"{HOST}/" + "a" * 10_000)
    assert is_allowed(body, "vedette", f"{HOST}/" + "a" * 7_999)
    assert is_allowed(body + b"b", "vedette", f"{HOST}/" + "a" * 10_000)
    assert not is_allowed(b"user-agent: *\ndisallow: " + b"*" * 10_000, "vedette", f"{HOST}/" + "a" * 10_000)


def test_many_rules_with_stars_on_a_long_path() -> None:
    """A file full of different wildcard rules is matched against a long path; the last, longer rule still decides."""
    rules = b"".join(b"disallow: /*%d*z\n" % number for number in range(20_000))
    body = b"user-agent: *\n" + rules + b"disallow: /*long-enough-to-win\n"
    assert parse_robots(body, "vedette").check(f"{HOST}/{'a' * 8_000}").allowed
    assert not is_allowed(body, "vedette", f"{HOST}/{'a' * 8_000}/long-enough-to-win")


def test_many_groups() -> None:
    """Forty thousand groups of other crawlers do not hide ours."""
    strangers = b"".join(b"user-agent: bot%s\ndisallow: /\n" % (b"x" * (n % 50)) for n in range(20_000))
    body = strangers + b"user-agent: vedette\ndisallow: /a\n" + strangers
    assert not is_allowed(body, "vedette", f"{HOST}/a")
    assert is_allowed(body, "vedette", f"{HOST}/b")


def test_an_endless_line_is_cut_and_the_next_one_read() -> None:
    """Only the beginning of a line of megabytes counts, and the lines after it are read as usual."""
    body = b"user-agent: *\ndisallow: /a" + b"b" * 3_000_000 + b"\ndisallow: /c\n"
    assert is_allowed(body, "vedette", f"{HOST}/a")
    assert not is_allowed(body, "vedette", f"{HOST}/c")
    assert not is_allowed(body, "vedette", f"{HOST}/a" + "b" * 20_000)


def test_a_line_counts_up_to_the_length_of_the_reference() -> None:
    """The reference parser reads eight times 2,083 bytes of a line, including its end."""
    start = b"disallow: /"
    fitting = b"a" * (8 * 2083 - 1 - len(start))
    body = b"user-agent: *\n" + start + fitting
    for path, expected in ((fitting, False), (fitting[1:], True)):
        assert is_allowed(body + b"beyond", "vedette", f"{HOST}/{path.decode()}") is expected


def test_megabytes_of_line_endings() -> None:
    """Empty lines of any number and kind neither end a group nor use memory."""
    body = b"user-agent: *\n" + b"\r\n\n\r" * 500_000 + b"disallow: /a"
    assert not is_allowed(body, "vedette", f"{HOST}/a")


def test_what_follows_a_nul_is_not_seen() -> None:
    """A NUL ends its line, but not the file."""
    body = b"user-agent: *\0x\ndisallow: /a\0bc\n\0disallow: /d\ndisallow: /e\n"
    assert [is_allowed(body, "vedette", f"{HOST}/{path}") for path in ("a", "d", "e")] == [False, True, False]


def test_bytes_that_are_no_text() -> None:
    """Every byte value is accepted without an error at every place of a line."""
    noise = bytes(range(256)) * 200
    body = noise + b"\nuser-agent: *\ndisallow: /a\n" + noise + b"\ndisallow: /" + noise
    assert not is_allowed(body, "vedette", f"{HOST}/a")
