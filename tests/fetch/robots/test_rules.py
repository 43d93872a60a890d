"""The rules of a robots.txt for one agent: groups, precedence, and other lines."""

import pytest

from vedette.fetch.robots.rules import clip_lines, extract_path, is_allowed, parse_robots

RFC_9309_SIMPLE = b"""\
User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""

RFC_9309_LONGEST = b"""\
User-Agent: foobot
Allow: /example/page/
Disallow: /example/page/disallowed.gif
"""


@pytest.mark.parametrize(
    ("agent", "path", "expected"),
    [
        ("otherbot", "/a.gif", False),
        ("otherbot", "/a.gif?size=1", True),
        ("otherbot", "/example/", False),
        ("otherbot", "/publications/a.html", True),
        ("foobot", "/publications/", False),
        ("foobot", "/example/page.html", True),
        ("foobot", "/example/allowed.gif", True),
        ("barbot", "/example/page.html", False),
        ("bazbot", "/example/page.html", False),
        ("bazbot", "/example/allowed.gif", True),
        ("quxbot", "/example/page.html", True),
    ],
)
def test_the_simple_example_of_rfc_9309(agent: str, path: str, *, expected: bool) -> None:
    """The crawlers of RFC 9309, section 5.1, get the rules given there."""
    assert is_allowed(RFC_9309_SIMPLE, agent, f"https://example.com{path}") is expected


def test_the_longest_match_example_of_rfc_9309() -> None:
    """In RFC 9309, section 5.2, the more specific Disallow wins over the folder's Allow."""
    rules = parse_robots(RFC_9309_LONGEST, "foobot")
    assert not rules.is_allowed("https://example.com/example/page/disallowed.gif")
    assert rules.is_allowed("https://example.com/example/page/other.gif")


def test_a_tie_is_allowed() -> None:
    """Of two matching patterns of equal length, Allow wins, in any order."""
    for body in (b"user-agent: *\nallow: /a\ndisallow: /a", b"user-agent: *\ndisallow: /a\nallow: /a"):
        assert is_allowed(body, "vedette", "https://example.org/a")


def test_a_group_of_our_own_silences_the_one_for_everyone() -> None:
    """A group that names the agent replaces the group for everyone, even if it has no rules."""
    body = b"User-agent: vedette\n\nUser-agent: other\nDisallow: /b\n\nUser-agent: *\nDisallow: /\n"
    own = b"User-agent: vedette\nAllow: /x\n\nUser-agent: *\nDisallow: /\n"
    assert is_allowed(own, "vedette", "https://example.org/a")
    assert not is_allowed(own, "someone", "https://example.org/a")
    assert not is_allowed(body, "vedette", "https://example.org/b"), (
        "agent lines without a rule between them are one group"
    )
    assert is_allowed(body, "vedette", "https://example.org/c")


def test_groups_of_one_agent_are_merged() -> None:
    """The rules of all groups that name the agent are merged; groups between them don't count."""
    body = b"user-agent: vedette\ndisallow: /a\nuser-agent: b\ndisallow: /b\nuser-agent: Vedette/2\ndisallow: /c"
    rules = parse_robots(body, "vedette")
    assert [rules.is_allowed(f"https://example.org/{letter}") for letter in "abc"] == [False, True, False]


@pytest.mark.parametrize("between", [b"Sitemap: https://example.org/s.xml", b"Crawl-delay: 3", b"Host: a", b""])
def test_only_rules_end_a_run_of_agents(between: bytes) -> None:
    """Lines other than Allow and Disallow leave the agents above and below them in one group."""
    body = b"User-agent: vedette\n" + between + b"\nUser-agent: other\nDisallow: /\n"
    assert not is_allowed(body, "vedette", "https://example.org/a")


def test_rules_before_any_agent_belong_to_nobody() -> None:
    """A rule above the first user-agent line is ignored."""
    assert is_allowed(b"Disallow: /\nUser-agent: *\nDisallow: /a", "vedette", "https://example.org/b")


@pytest.mark.parametrize("agent", ["*", "* ", "*\tand more", "vedette", "VEDETTE/1.0", "vedette bot"])
def test_agents_that_mean_us(agent: str) -> None:
    """A star followed by a comment means everyone; a name ends at its first invalid character."""
    assert not is_allowed(f"User-agent: {agent}\nDisallow: /".encode(), "vedette", "https://example.org/")


@pytest.mark.parametrize("agent", ["*bot", "vedettes", "vedette-images", "ved", "the vedette", ""])
def test_agents_that_mean_somebody_else(agent: str) -> None:
    """A name only matches as a whole."""
    assert is_allowed(f"User-agent: {agent}\nDisallow: /".encode(), "vedette", "https://example.org/")


@pytest.mark.parametrize(
    "line",
    ["disallow: /a", "DISALLOW:/a", "Disallow /a", "disallow\t/a", "disallow-all: /a"]
    + [f"{misspelt}: /a" for misspelt in ("dissallow", "dissalow", "disalow", "diasllow", "disallaw")],
)
def test_a_rule_that_was_meant_is_obeyed(line: str) -> None:
    """Rules with missing colons, and misspellings that the reference parser accepts, are still rules."""
    for agent_key in ("user-agent", "useragent", "user agent"):
        assert not is_allowed(f"{agent_key}: *\n{line}".encode(), "vedette", "https://example.org/a")


@pytest.mark.parametrize("line", ["disallow", "disallow:", ": /a", "disallow /a /b", "dis-allow: /a", "#disallow: /a"])
def test_a_line_that_says_nothing_forbids_nothing(line: str) -> None:
    """Lines without a key, without a value, or with three words are not rules."""
    assert is_allowed(f"user-agent: *\n{line}".encode(), "vedette", "https://example.org/a")


@pytest.mark.parametrize(
    ("pattern", "path", "is_matched"),
    [
        ("/a%2fb", "/a%2Fb", True),
        ("/a%2fb", "/a%2fb", True),
        ("/a%2fb", "/a/b", False),
        ("/%7Ejoe/", "/~joe/page", True),
        ("/~joe/", "/%7ejoe/page", True),
        ("/b%2A", "/b%2a", True),
        ("/%2A", "/anything", False),
        ("/a*a$", "/a", False),
        ("/a*a$", "/aa", True),
        ("/a$b", "/a$b/c", True),
        ("$", "/", False),
    ],
)
def test_patterns(pattern: str, path: str, *, is_matched: bool) -> None:
    """Escapes match in any spelling (RFC 9309, 2.2.2), parts never overlap, and a dollar inside is a dollar."""
    assert (
        is_allowed(f"user-agent: *\ndisallow: {pattern}".encode(), "x", f"https://example.org{path}") is not is_matched
    )


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("", b"/"),
        ("http://www.example.com", b"/"),
        ("http://www.example.com/", b"/"),
        ("http://www.example.com/a", b"/a"),
        ("http://www.example.com/a/b?c=http://d.e/", b"/a/b?c=http://d.e/"),
        ("http://www.example.com/a/b?c#d", b"/a/b?c"),
        ("www.example.com/a", b"/a"),
        ("//a/b/c", b"/b/c"),
        ("//a?b://c", b"/?b://c"),
        ("http://a;p?q", b"/;p?q"),
        ("a#/b", b"/"),
        ("/a\0b", b"/a"),
    ],
)
def test_what_of_a_url_is_matched(url: str, path: bytes) -> None:
    """Patterns match path, parameters and query, but not scheme, authority and fragment."""
    assert extract_path(url) == path


def test_a_verdict_quotes_the_line() -> None:
    """The deciding rule is quoted as in the file, with the usual spelling of its key."""
    rules = parse_robots("user-agent: *\ndisalow: /caf\u00e9/*  # not yet\n".encode(), "vedette")
    assert rules.check("https://example.org/caf%C3%A9/a").line == "Disallow: /caf\u00e9/*"
    assert rules.check("https://example.org/a").line is None


def test_an_index_page_quotes_its_own_line() -> None:
    """If a folder is allowed because of its index page, the explanation quotes the line in the file."""
    rules = parse_robots(b"user-agent: *\nallow: /a/index.html\ndisallow: /", "vedette")
    assert rules.check("https://example.org/a/").line == "Allow: /a/index.html"
    assert not rules.is_allowed("https://example.org/a/b")


@pytest.mark.parametrize(
    ("value", "delay_s"),
    [("2", 2.0), ("0.5", 0.5), (".5", 0.5), ("1.", 1.0), ("0", 0.0)]
    + [(garbage, None) for garbage in ("-1", "nan", "inf", "1e9", "1_0", "", "ten", "5 s", "1" * 50)],
)
def test_crawl_delay_is_a_plain_number(value: str, delay_s: float | None) -> None:
    """Only a plainly written, finite number of at least 0 is a delay; anything else is ignored."""
    assert parse_robots(f"User-agent: *\nCrawl-delay: {value}\n".encode(), "vedette").crawl_delay_s == delay_s


def test_crawl_delay_comes_from_the_group_that_applies() -> None:
    """The delay of another group is ignored, even the general one if we are named; the longest of several applies."""
    body = b"""
        user-agent: *\ncrawl-delay: 60\nallow: /
        user-agent: other\ncrawl-delay: 50\nallow: /
        user-agent: vedette\ncrawl-delay: 4\nallow: /
        user-agent: vedette\nCRAWL-DELAY: 3\nallow: /
        user-agent: silent\nallow: /
    """
    asked = {agent: parse_robots(body, agent).crawl_delay_s for agent in ("vedette", "silent", "unnamed")}
    assert asked == {"vedette": 4.0, "silent": None, "unnamed": 60.0}


def test_sitemaps_are_for_everyone() -> None:
    """Sitemap lines count anywhere, once each, in order."""
    body = b"Sitemap: https://a.example/1\nUser-agent: x\nDisallow: /\nsite-map: /2\nSITEMAP:https://a.example/1\nSitemap:\n"
    assert parse_robots(body, "vedette").sitemaps == ("https://a.example/1", "/2")


def test_sitemaps_are_bounded() -> None:
    """A file full of sitemap lines, or with an endless one, doesn't fill the memory."""
    many = b"".join(b"Sitemap: /%d\n" % number for number in range(20_000))
    assert 0 < len(parse_robots(many, "vedette").sitemaps) < 10_000
    assert parse_robots(b"Sitemap: /" + b"a" * 10_000, "vedette").sitemaps == ()


def test_a_large_file_is_read_up_to_a_whole_line() -> None:
    """The crawler reads 500 KiB and drops a rule cut by the limit; the matcher alone reads everything."""
    start = b"User-agent: *\nDisallow: /first\n"
    cut = b"\nAllow: /b"
    padding = b"#" * (500 * 1024 - len(start) - len(cut))
    body = start + padding + cut + b"/c\nDisallow: /last\nDisallow: /b\n"
    rules = parse_robots(body, "vedette")
    assert [rule.value for rule in rules.rules] == [b"/first"]
    assert rules.is_allowed("https://example.org/last")
    assert not is_allowed(body, "vedette", "https://example.org/last")
    assert is_allowed(body, "vedette", "https://example.org/last", limit_bytes=500 * 1024)


def test_clip_keeps_a_line_that_just_fits() -> None:
    """A line that ends exactly at the limit is complete, with any kind of line ending."""
    for ending in (b"\n", b"\r", b"\r\n"):
        assert clip_lines(b"Allow: /a" + ending + b"x", 9) == b"Allow: /a"
    assert clip_lines(b"Allow: /a", 9) == b"Allow: /a"
    assert clip_lines(b"Allow: /a", 8) == b""


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_a_file_in_utf_16_is_read(coding: str) -> None:
    """Some editors write UTF-16, with or without a byte order mark."""
    body = "User-agent: *\nDisallow: /caf\u00e9/\n".encode(coding)
    assert not is_allowed(body, "vedette", "https://example.org/caf%C3%A9/menu")
    assert is_allowed(body, "vedette", "https://example.org/tea")
