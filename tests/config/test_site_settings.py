"""Settings of sites as people write them: they are saved and loaded unchanged, and errors are reported."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.config.site_settings import format_sites, parse_changes, parse_sites
from vedette.errors import UsageError
from vedette.model import ChangeRule, Overrule, ScopeKind, Site

PATTERN = st.text(st.characters(codec="utf-8"), max_size=20).map(lambda text: f"/{text}")
SCOPE: st.SearchStrategy[ScopeKind] = st.sampled_from(["prefix", "host", "domain"])
CHANGE: st.SearchStrategy[ChangeRule] = st.sampled_from(["bytes", "text", "main", "links", "queries"])
OVERRULE: st.SearchStrategy[tuple[Overrule, ...]] = st.sampled_from([(), ("trap",), ("trap", "copy"), ("thin", "spam")])
SITE = st.builds(
    Site,
    start=st.sampled_from(
        ["https://example.org/", "http://127.0.0.1:8080/docs/", "https://xn--bcher-kva.example/a?b=1"]
    ),
    scope=SCOPE,
    include=st.lists(PATTERN, max_size=3).map(tuple),
    exclude=st.lists(PATTERN, max_size=3).map(tuple),
    sort_parameters=st.booleans(),
    drop_parameters=st.lists(st.text("abc_*", min_size=1, max_size=5), max_size=3).map(tuple),
    delay_s=st.none() | st.integers(0, 10**7).map(lambda ms: ms / 1000),
    hours=st.sampled_from(["", "22:00-06:00", "00:00-05:00, 12:00-13:00"]),
    busy_hours=st.sampled_from(["", "08:00-18:00 x3", "22:00-06:00,12:00-13:00x1.5"]),
    bytes_per_s=st.none() | st.integers(1, 10**12).map(float),
    ignore_robots=st.booleans(),
    allow_private=st.booleans(),
    secrets=st.sampled_from(["", "env:TOKEN", "file:/etc/vedette/wiki"]),
    change=CHANGE,
    overrule=OVERRULE,
    readers=st.sampled_from([(), ("*",), ("alice", "wiki"), ("Zoë, of the dock",)]),
    share=st.none() | st.integers(1, 100_000).map(lambda part: part / 100_000),
    promise=st.sampled_from([(), ("900 /news",), ("1.5 /a?b=c=d", "604800 https://example.org/tag")]),
)


@given(st.lists(st.tuples(SITE, st.booleans()), max_size=4))
def test_what_export_writes_import_reads(sites: list[tuple[Site, bool]]) -> None:
    """Every setting of every site survives export and import, with any characters in its patterns."""
    assert parse_sites(format_sites(sites), "sites.toml") == tuple(sites)


def complaint(text: str) -> str:
    """Return the error in a file; empty if it can be parsed."""
    try:
        parse_sites(text, "x")
    except UsageError as error:
        return str(error)
    return ""


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    """Any file is either a list of sites or a usage error in one line."""
    assert "\n" not in complaint(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[site]]\nscope = 'host'", "start"),
        ("[[site]]\nstart = 'example.org'\ndelai = '2s'", "did you mean delay?"),
        ("[[site]]\nstart = 'example.org'\ndelay = 2", "delay"),
        ("[[site]]\nstart = 'example.org'\nignore_robots = true", "I-OWN-THIS-SITE"),
        ("[[site]]\nstart = 'example.org'\nscope = 'planet'", "prefix, host, domain"),
        ("[[site]]\nstart = 'example.org'\ninclude = 'docs'", "list"),
        ("[[site]]\nstart = 'example.org'\ninclude = ['docs']", "start it with /"),
        ("[[site]]\nstart = 'example.org'\nhours = 'night'", "22:00-06:00"),
        ("[[site]]\nstart = 'example.org'\nsecrets = 'hunter2'", "env:NAME"),
        ("[[site]]\nstart = 'example.org'\nchange = 'words'", "bytes, text, main, links"),
        ("[[site]]\nstart = 'example.org'\noverrule = ['trap', 'robots']", "trap, copy, missing, script"),
        ("[[site]]\nstart = 'example.org'\noverrule = true", '["trap", "spam"]'),
        ("[[sites]]\nstart = 'example.org'", "[[site]]"),
        ("site = 3", "[[site]]"),
        ("[[site]", "TOML"),
    ],
)
def test_a_wrong_file_is_refused_with_what_to_write(text: str, message: str) -> None:
    """The message names the file, the site and the right word, and never repeats a possible secret."""
    with pytest.raises(UsageError) as error:
        parse_sites(text, "sites.toml")
    assert "sites.toml" in str(error.value)
    assert message in str(error.value)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["delay"], "delay=VALUE"),
        (["delay=2"], "2s"),
        (["dely=2s"], "did you mean delay?"),
        (["colour=red"], "known settings: scope"),
        (["allow_private=perhaps"], "yes or no"),
        (["ignore_robots=yes"], "I-OWN-THIS-SITE"),
        (["bytes_per_s=0B"], "above 0"),
        (["busy_hours=08:00-18:00"], "08:00-18:00 x3"),
        (["busy_hours=08:30-18:00x3"], "whole hours"),
        (["busy_hours=08:00-18:00x0.5"], "from 1 to 100"),
    ],
)
def test_a_wrong_change_is_refused_with_what_to_write(words: list[str], message: str) -> None:
    """Each mistake on the command line gets specific advice."""
    with pytest.raises(UsageError) as error:
        parse_changes(words)
    assert message in str(error.value)


@pytest.mark.parametrize("written", ["spam,trap", "trap, spam", "trap,trap,spam"])
def test_judgements_are_overruled_by_name_in_any_order(written: str) -> None:
    """The same names are the same setting, in any order."""
    assert parse_changes([f"overrule={written}"]) == {"overrule": ("trap", "spam")}


@pytest.mark.parametrize("written", ["", "none"])
def test_overruling_is_taken_back(written: str) -> None:
    """An empty value or "none" restores the default."""
    assert parse_changes([f"overrule={written}"]) == {"overrule": ()}


@pytest.mark.parametrize(("text", "share"), [("20%", 0.2), ("0.5%", 0.005), ("100%", 1.0), ("", None)])
def test_a_share_is_written_as_a_percentage(text: str, share: float | None) -> None:
    """Shares are percentages; empty means no share."""
    assert parse_changes([f"share={text}"]) == {"share": share}


@pytest.mark.parametrize("text", ["0%", "101%", "20", "-1%", "1e1%", "٢٠%", "nan%", "20 %"])
def test_what_is_no_share_is_told(text: str) -> None:
    """Anything else is rejected, with the right format."""
    with pytest.raises(UsageError, match="such as 20%"):
        parse_changes([f"share={text}"])


@pytest.mark.parametrize(
    ("value", "message"), [("0.25", ""), ("2", "20%"), ("true", "20%"), ("nan", "20%"), ("9" * 400, "20%")]
)
def test_a_share_may_be_a_number_in_a_file(value: str, message: str) -> None:
    """In TOML, numbers between 0 and 1 are shares."""
    assert message in complaint(f'[[site]]\nstart = "https://example.org/"\nshare = {value}')


def test_promises_add_up_and_are_taken_back() -> None:
    """Each value is the promise of one source; an empty value removes all of them."""
    assert parse_changes(["promise=/news=15min", "promise=/tag=2h"]) == {"promise": ("900 /news", "7200 /tag")}
    assert parse_changes(["promise="]) == {"promise": ()}


@pytest.mark.parametrize("typed", ["15min", "/news", "/news=", "/news=15", "/news=0s", "ftp://x/=1h", "/a b=1h", "=1h"])
def test_what_is_no_promise_is_wrong_usage(typed: str) -> None:
    """A promise needs a URL and a time with a unit, at least a second."""
    with pytest.raises(UsageError, match="promise"):
        parse_changes([f"promise={typed}"])
