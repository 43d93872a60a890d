"""The query language: operators, text that resembles them, limits, and that any text can be parsed."""

# ruff: noqa: RUF001 - typographic signs and look-alikes are what people type
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vedette.index.query.parser import ParsedQuery, QueryPart, format_query, parse_query

NOW = datetime(2024, 5, 17, 12, 30, tzinfo=UTC).timestamp()
PIECES = [
    *("site:", "-site:", "intitle:", "inurl:", "filetype:", "type:", "ext:", "lang:", "after:", "before:", "-before:"),
    *(" OR ", " AND ", "|", " -", " +", "(", ")", '"', "“", "”", "«", "»", ":", "--", "-", " ", "\u3000", "\t"),
    *("example.org", "https://Example.org/Docs/", "*.org", "2024", "2024-05", "2024-02-30", "7d", "1y", "today", "pdf"),
    *(
        "de",
        "en-US",
        "OR",
        "AND",
        "or",
        "foo",
        "Ünïcode",
        "ß",
        "日本語",
        "한국",
        "c++",
        "3.9.0",
        ".net",
        "ﬃ",
        "ſite:",
        "/",
    ),
]
QUERIES = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=40).map("".join)
ANYTHING = st.text(st.characters(exclude_categories=()))
MODEST = settings().max_examples <= 100
MANY = settings().max_examples * (5 if MODEST else 50)


def day_s(year: int, month: int = 1, day: int = 1) -> float:
    """Return the start of a day."""
    return datetime(year, month, day, tzinfo=UTC).timestamp()


def words(asked: ParsedQuery) -> list[list[str]]:
    """Return the groups of a query, each part as its words joined with plus signs."""
    return [["+".join(part.words) for part in group] for group in asked.every]


def unsaid(asked: ParsedQuery) -> ParsedQuery:
    """Return a query without its notes."""
    return asked._replace(text="", notes=())


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("", []),
        ("sea birds", [["sea"], ["birds"]]),
        ("Sea   BIRDS!", [["sea"], ["birds"]]),
        ('"sea birds"', [["sea+birds"]]),
        ("“sea birds” „north sea“ «été»", [["sea+birds"], ["north+sea"], ["ete"]]),
        ('gulls "north sea', [["gulls"], ["north+sea"]]),
        ('wild"sea birds"gulls', [["wild"], ["sea+birds"], ["gulls"]]),
        ("python 3.9.0", [["python"], ["3+9+0"]]),
        ("日本語 東京", [["日+本+語"], ["東+京"]]),
        ("日本語\u3000東京", [["日+本+語"], ["東+京"]]),
        ("c++ .net", [["cplusplus"], ["dotnet"]]),
        ("gulls OR terns", [["gulls", "terns"]]),
        ("gulls|terns | auks", [["gulls", "terns", "auks"]]),
        ("north (gulls OR terns) sea", [["north"], ["gulls", "terns"], ["sea"]]),
        ('gulls OR "sea birds" nest', [["gulls", "sea+birds"], ["nest"]]),
        ("gulls or terns", [["gulls"], ["or"], ["terns"]]),
        ("gulls OR OR | terns", [["gulls", "terns"]]),
        ("gulls OR ??? OR terns", [["gulls", "terns"]]),
        ("gulls OR gulls", [["gulls"]]),
        ("OR", [["or"]]),
        ("OR gate", [["or"], ["gate"]]),
        ("either OR", [["either"], ["or"]]),
        ("| gulls |", [["gulls"]]),
        ("salt AND pepper", [["salt"], ["pepper"]]),
        ("+salt +pepper", [["salt"], ["pepper"]]),
        ("to be or not to be", [["to"], ["be"], ["or"], ["not"], ["to"], ["be"]]),
        ("foo:bar std::string 12:30", [["foo+bar"], ["std+string"], ["12+30"]]),
        ("http://example.org/a", [["http+example+org+a"]]),
        ("git --force a - b", [["git"], ["force"], ["a"], ["b"]]),
        ("well-known", [["well+known"]]),
        ("mypy type:ignore", [["mypy"], ["type+ignore"]]),
        ("\u017fite:example.org", [["site+example+org"]]),
    ],
)
def test_words(text: str, groups: list[list[str]]) -> None:
    """Words, phrases and alternatives are parsed; what only looks like an operator becomes words."""
    assert words(parse_query(text)) == groups


def test_quotes_are_remembered() -> None:
    """A quoted word is literal; a word that is split was not quoted."""
    quoted, plain = parse_query('"gulls" 3.9').every
    assert quoted == (QueryPart(("gulls",), quoted=True),)
    assert plain == (QueryPart(("3", "9")),)
    assert plain[0].is_phrase


def test_exclusion() -> None:
    """A minus excludes a word, a phrase, or a word in a field."""
    asked = parse_query('gulls -plastic -"north sea" -intitle:news -INURL:"a b"')
    assert words(asked) == [["gulls"]]
    assert asked.none == (
        QueryPart(("plastic",)),
        QueryPart(("north", "sea"), quoted=True),
        QueryPart(("news",), "title"),
        QueryPart(("a", "b"), "url", quoted=True),
    )
    assert asked.notes == ()


def test_only_exclusion() -> None:
    """Without anything to find, a note says that something is missing."""
    for text in ("-plastic", "-site:example.org", '-"a b" -lang:de'):
        assert "Add something to search for." in parse_query(text).notes
    assert parse_query("-plastic lang:de").notes == ()


def test_places() -> None:
    """Words may be searched in titles and URLs, including alternatives."""
    asked = parse_query('intitle:Gulls OR inurl:gulls intitle:"sea birds"')
    assert asked.every == (
        (QueryPart(("gulls",), "title"), QueryPart(("gulls",), "url")),
        (QueryPart(("sea", "birds"), "title", quoted=True),),
    )


@pytest.mark.parametrize(
    ("value", "site"),
    [
        ("example.org", "example.org"),
        ("https://Example.org/Docs/", "example.org/docs"),
        ("*.example.org", "example.org"),
        (".edu", "edu"),
        ("http://*.example.org:8080//", "example.org:8080"),
        ("example.org/a?b=c#d", "example.org/a"),
        ("example.org),", "example.org"),
        ("example.org/foo_(bar)", "example.org/foo_(bar)"),
        ("Bücher.example", "bücher.example"),
        ('"example.org"', "example.org"),
        ("localhost", "localhost"),
    ],
)
def test_sites(value: str, site: str) -> None:
    """A site may be a host, a domain, a host with a path, or a URL from the address bar."""
    assert parse_query(f"gulls site:{value}").sites == (site,)
    assert parse_query(f"gulls -site:{value}").not_sites == (site,)


def test_several_values() -> None:
    """Filters of one kind are combined, with or without OR, each value once."""
    asked = parse_query("gulls site:a.org OR site:b.org site:a.org filetype:PDF ext:.txt type:htm lang:de lang:en-US")
    assert asked.sites == ("a.org", "b.org")
    assert asked.kinds == ("pdf", "txt", "html")
    assert asked.languages == ("de", "en")
    assert asked.notes == ()
    asked = parse_query("gulls -filetype:pdf -lang:de")
    assert (asked.not_kinds, asked.not_languages) == (("pdf",), ("de",))


@pytest.mark.parametrize(
    ("value", "moment_s"),
    [
        ("2023", day_s(2023)),
        ("2023-11", day_s(2023, 11)),
        ("2023-11-05", day_s(2023, 11, 5)),
        ("2023/11/5", day_s(2023, 11, 5)),
        ("1969", day_s(1969)),
        ("2023-11-05T06:07:08", day_s(2023, 11, 5) + 6 * 3600 + 7 * 60 + 8),
        ("24h", NOW - 24 * 3600),
        ("7d", NOW - 7 * 86400),
        ("2w", NOW - 14 * 86400),
        ("3m", NOW - 90 * 86400),
        ("1Y", NOW - 365 * 86400),
        ("today", day_s(2024, 5, 17)),
        ("yesterday", day_s(2024, 5, 16)),
    ],
)
def test_times(value: str, moment_s: float) -> None:
    """Years, months, days and relative times work; a minus turns after into before."""
    assert parse_query(f"gulls after:{value}", NOW).after_s == moment_s
    assert parse_query(f"gulls before:{value}", NOW).before_s == moment_s
    assert parse_query(f"gulls -after:{value}", NOW).before_s == moment_s
    assert parse_query(f"gulls -before:{value}", NOW).after_s == moment_s


def test_several_times() -> None:
    """The narrowest span applies; an empty one is reported."""
    asked = parse_query("gulls after:2020 after:2021 before:2024 before:2023")
    assert (asked.after_s, asked.before_s, asked.notes) == (day_s(2021), day_s(2023), ())
    assert len(parse_query("gulls after:2022 before:2021").notes) == 1


@pytest.mark.parametrize(
    ("text", "group"),
    [
        ("site:", "site"),
        ("site:???", "site"),
        ('site:"a b"', "site+a+b"),
        ("site:user@example.org", "site+user+example+org"),
        ("intitle:", "intitle"),
        ('intitle:""', "intitle"),
        ("lang:german", "lang+german"),
        ("filetype:notatypeatall", "filetype+notatypeatall"),
        ("after:tomorrow", "after+tomorrow"),
        ("before:2024-13", "before+2024+13"),
        ("before:2024-02-30", "before+2024+02+30"),
        ("after:0000", "after+0000"),
        ("after:999999y", "after+999999y"),
        ("after:٢٠٢٤", "after+٢٠٢٤"),
    ],
)
def test_values_without_sense(text: str, group: str) -> None:
    """An operator with an invalid value is searched as words, and a note mentions it."""
    asked = parse_query(f"gulls {text}", NOW)
    assert words(asked) == [["gulls"], [group]]
    assert len(asked.notes) == 1
    assert text.partition(":")[0] in asked.notes[0]
    assert unsaid(asked) == unsaid(ParsedQuery("", asked.every))


def test_or_between_other_things() -> None:
    """OR next to an excluded word changes nothing, and is reported."""
    asked = parse_query("gulls OR site:example.org -a OR terns")
    assert words(asked) == [["gulls"], ["terns"]]
    assert asked.sites == ("example.org",)
    assert any("OR" in note for note in asked.notes)


def test_no_words() -> None:
    """A query of symbols gets a note; an empty one doesn't."""
    assert len(parse_query("?! ...").notes) == 1
    assert parse_query("  ").notes == ()
    assert parse_query("?!").is_empty


def test_many_groups() -> None:
    """Of too many words, alternatives, exclusions and sites, the first are used, with a note."""
    numbers = [f"w{at}" for at in range(80)]
    asked = parse_query(" ".join(numbers))
    assert words(asked) == [[word] for word in numbers[:64]]
    assert len(asked.notes) == 1
    asked = parse_query("|".join(numbers))
    assert words(asked) == [numbers[:8]]
    assert len(asked.notes) == 1
    asked = parse_query("gulls " + " ".join(f"-{word}" for word in numbers))
    assert len(asked.none) == 32
    asked = parse_query(" ".join(f"site:{word}" for word in numbers[:50]))
    assert len(asked.sites) == 32


def test_alternatives_of_what_was_left_out() -> None:
    """Alternatives to a dropped word don't become alternatives to another word."""
    asked = parse_query(" ".join("a" * 80) + " OR b OR c")
    assert words(asked) == [["a"]] * 64


def test_long_queries() -> None:
    """A query is cut at its limit; one of plain words up to the limit is used completely."""
    text = " ".join("x" * 31 for _ in range(16)) + "y"
    assert len(text) == 512
    assert len(parse_query(text).every) == 16
    assert parse_query(text).notes == ()
    asked = parse_query(text + " more")
    assert len(asked.every) == 16
    assert len(asked.notes) == 1
    assert len(parse_query("a" * 1_000_000).every) == 1


@pytest.mark.parametrize(
    "piece", ['"', "-", "(", "|", "OR ", "site:", "a|", '-"', "*.", "a://", "+", "[", "\\", "ﬃ|", "\ud800"]
)
def test_repetition(piece: str) -> None:
    """Repeated syntax of any kind is parsed in finite time, and so is the result."""
    for text in (piece * 512, f"site:{piece * 512}", f"a {piece * 300}"):
        asked = parse_query(text)
        assert unsaid(parse_query(format_query(asked))) == unsaid(asked)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ('Gulls  "Sea Birds"', 'gulls "sea birds"'),
        ("a|b c AND d", "a OR b c d"),
        ("-type:htm x -after:2024", "x -filetype:html before:2024-01-01"),
        ("after:24h v1.2", "v1-2 after:2024-05-16T12:30:00"),
        ('-inurl:"x y" lang:de site:A.org z', 'z -inurl:"x y" site:a.org lang:de'),
    ],
)
def test_spoken(text: str, canonical: str) -> None:
    """A query has one normal form: words, exclusions, filters, times."""
    assert format_query(parse_query(text, NOW)) == canonical


@settings(max_examples=MANY)
@given(QUERIES | ANYTHING)
def test_any_text_can_be_asked(text: str) -> None:
    """For any text, nothing fails, limits are respected, and parsing the normal form gives the same query."""
    asked = parse_query(text, NOW)
    assert len(asked.every) <= 32
    assert all(0 < len(group) <= 8 for group in asked.every)
    assert all(part.words for group in (*asked.every, asked.none) for part in group)
    written = format_query(asked)
    assert len(written) <= 512
    again = parse_query(written)
    assert unsaid(again) == unsaid(asked)
    assert format_query(again) == written
