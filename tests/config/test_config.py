"""Settings are parsed strictly, and a mistake is reported in one line that says what to write."""

import re
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.config import (
    Config,
    Rate,
    Serve,
    Store,
    describe,
    format_duration,
    format_rate,
    format_size,
    load,
    override,
    override_by_environment,
    parse,
    parse_duration,
    parse_rate,
    parse_size,
)
from vedette.errors import ConfigError
from vedette.model import Site

DOCUMENT = Path(__file__).parents[2] / "docs" / "configuration.md"
KEYS = [key for key, _, _ in describe()]


def complaint(read: Callable[[], object]) -> str:
    """Return the message of the ConfigError, which must be one line."""
    with pytest.raises(ConfigError) as caught:
        read()
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_every_key_is_read_into_its_field() -> None:
    """Values are in the units of the fields, and nothing else changes."""
    text = """
        [crawl]
        contact = "crawler@example.org"
        delay = "1.5min"
        address_delay = "20ms"
        budget = "50/s"
        daily_limit = 4321
        latency_factor = 3
        max_page_size = "1.5KiB"
        timeout = "1h"
        connect_timeout = "2 s"
        max_redirects = 0
        robots_max_age = "24h"
        order = "inlinks"
        source_interval = "5min"
        discovery_policy = "research:pham"
        guess_sitemaps = false
        workers = 4
        concurrency = 7
        proxy = "http://proxy.example.org:3128"
        ca_file = "/etc/roots.pem"
        browser = "none"
        [store]
        data = "/srv/données"
        keep_days = 7
        max_size = "20GB"
        min_free = "0B"
        [serve]
        listen = "[::1]:80"
        access = "proxy"
        proxy_header = "Remote-User"
        trusted_proxies = ["10.0.0.0/8", "::1"]
        embed_origins = ["https://docs.example.org"]
        name = "Notre maison"
        rate = "3/s"
        address = "https://search.example.org"
    """
    config = parse(text, "vedette.toml")
    assert [getattr(config.crawl, each.name) for each in fields(config.crawl)] == [
        *("crawler@example.org", 90.0, 0.02, Rate(50, 1.0), 4321, 3, 1536, 3600.0, 2.0, 0, 86400.0, "inlinks", 300.0),
        *("research:pham", False, 4, 7, "http://proxy.example.org:3128", "/etc/roots.pem", "none"),
    ]
    assert config.store == Store(Path("/srv/données"), keep_days=7, max_bytes=20_000_000_000, min_free_bytes=0)
    assert config.serve == Serve(
        *("[::1]:80", "proxy", "Remote-User", ("10.0.0.0/8", "::1"), ("https://docs.example.org",), "Notre maison"),
        rate=Rate(3, 1.0),
        address="https://search.example.org",
    )


def test_without_a_file_or_with_an_empty_one_all_is_default(tmp_path: Path) -> None:
    """A file only changes the settings that it contains."""
    empty = tmp_path / "vedette.toml"
    empty.write_bytes(b"\xef\xbb\xbf# with a byte-order mark, as some editors write it\r\n")
    assert load(None) == load(empty) == parse("[crawl]", "x") == Config()


def test_described_defaults_are_the_defaults() -> None:
    """Writing every default to a file changes nothing, and each section is complete."""
    lines = [f"{key} = {default}" for key, default, _ in describe()]
    assert parse("\n".join(lines), "defaults") == Config()
    assert {key.partition(".")[0] for key in KEYS} | {"sites"} == {section.name for section in fields(Config)}


def test_the_document_has_every_key_with_default_and_meaning() -> None:
    """The table in the documentation equals the declared settings, row by row."""
    rows = [line for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert rows == [f"| `{key}` | `{default}` | {meaning} |" for key, default, meaning in describe()]


def test_the_worked_example_and_the_messages_of_the_document_are_true() -> None:
    """The example loads and differs from the defaults, and each mistake gives the documented message."""
    text = DOCUMENT.read_text(encoding="utf-8")
    example = text.partition("```toml\n")[2].partition("```")[0]
    messages = text.partition("```text\n")[2].partition("```")[0].splitlines()
    tables = '\n\n\n\n\n\n\n[[site]]\nstart = "a.example"\n[[site]]\nstart = "https://example.org/"\ndelai = "3s"'
    mistakes = ['[crawl]\ndelai = "3s"', "[crawl]\ndelay = 3", '[crawl]\nrobots_max_age = "48h"', tables]
    variable = {"VEDETTE_CRAWL_DELAI": "3s"}
    assert parse(example, "example") != Config()
    words = [complaint(partial(parse, text, "vedette.toml")) for text in mistakes]
    assert [*words, complaint(partial(override_by_environment, Config(), variable))] == messages


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[crawl]\ndelai = "1s"', "unknown key crawl.delai; did you mean crawl.delay?"),
        ('[crawl]\nmax_pagesize = "1B"', "unknown key crawl.max_pagesize; did you mean crawl.max_page_size?"),
        ('[store]\ndelay = "1s"', "unknown key store.delay; did you mean crawl.delay?"),
        ('delay = "1s"', "unknown key delay; did you mean crawl.delay?"),
        (
            "[store]\nzzz = 1",
            "unknown key store.zzz; known keys: store.data, store.keep_days, store.max_size, store.min_free",
        ),
        ("[crawler]", "unknown section [crawler]; did you mean [crawl]?"),
        ("[zzz]", "unknown section [zzz]; known sections: [crawl], [refresh], [store], [serve] and [[site]]"),
        ('crawl = "fast"', 'crawl = "fast": use a [crawl] section instead'),
        ("[[crawl]]", "crawl = …: use a [crawl] section instead"),
    ],
)
def test_an_unknown_name_brings_the_nearest_known_one(text: str, message: str) -> None:
    """Misspelled and misplaced keys are errors that suggest the right name, or list all known ones."""
    assert complaint(lambda: parse(text, "my.toml")) == f"my.toml: {message}"


@pytest.mark.parametrize(
    ("setting", "advice"),
    [
        ("delay = 3", 'crawl.delay = 3: expected a duration with a unit, such as "3s"'),
        ('delay = "3"', 'crawl.delay = "3": expected a duration with a unit, such as "3s"'),
        ("delay = 1.5", 'crawl.delay = 1.5: expected a duration with a unit, such as "1.5s"'),
        ('delay = "3 parsecs"', "(ms, s, min, h, d)"),
        ('delay = "3 S"', "(ms, s, min, h, d)"),
        ('delay = "1e9s"', "expected a duration"),
        ('delay = "nan s"', "expected a duration"),
        ('delay = "٣s"', "expected a duration"),
        ("delay = inf", "crawl.delay = inf: expected a duration"),
        ("delay = true", "crawl.delay = true: expected a duration"),
        ("delay = 2026-01-01", "expected a duration"),
        ("delay = {}", "expected a duration"),
        (f"delay = 0x{'f' * 9000}", "expected a duration"),
        (f'delay = "{"9" * 400}d"', "expected a duration"),
        ('delay = "-1s"', "expected a value from 0s to"),
        ('timeout = "0s"', "expected a value from 1ms to 1h"),
        ('connect_timeout = "0ms"', "expected a value from 1ms to 1h"),
        ('robots_max_age = "24.1h"', "expected a value from 1min to 1d"),
        ("max_page_size = 10", 'crawl.max_page_size = 10: expected a size with a unit, such as "10B"'),
        ('max_page_size = "10 MiBs"', "(B, kB, KiB, MB, MiB, GB, GiB)"),
        ('max_page_size = "10mb"', "(B, kB, KiB, MB, MiB, GB, GiB)"),
        ('max_page_size = "0B"', "expected a value from 1B to 1GiB"),
        ('max_page_size = "1.5B"', "expected a whole number of bytes"),
        ("concurrency = 0", "expected a value from 1 to 10000"),
        ("concurrency = 1.0", "expected a whole number from 1 to 10000"),
        ("concurrency = true", "expected a whole number"),
        ('concurrency = "8"', "expected a whole number"),
        ("max_redirects = -1", "expected a value from 0 to 20"),
    ],
)
def test_a_wrong_value_brings_what_to_write(setting: str, advice: str) -> None:
    """Wrong types, missing units and values out of range are reported with key, value and the right format."""
    assert advice in complaint(lambda: parse(f"[crawl]\n{setting}", "vedette.toml"))


@pytest.mark.parametrize(
    "contact",
    [
        "me",
        "@example.org",
        "me@",
        "a@b@c",
        "ftp://example.org/",
        "http://",
        "a b@example.org",
        "a@b)",
        "a@b\\r\\nX: y",
        "ü@b",
    ],
)
def test_a_contact_that_reaches_nobody_or_breaks_a_header_is_refused(contact: str) -> None:
    """A contact is an email address or a URL in plain ASCII, without spaces, line ends or parentheses."""
    advice = "expected an email address or an http(s) URL"
    assert advice in complaint(lambda: parse(f'[crawl]\ncontact = "{contact}"', "vedette.toml"))


@pytest.mark.parametrize("contact", ["", "crawler@example.org", "https://example.org/bot?a=b", "http://localhost:8080"])
def test_a_contact_is_an_address_or_a_url(contact: str) -> None:
    """Both kinds are kept as written; an empty one means that there is none."""
    assert parse(f'[crawl]\ncontact = "{contact}"', "vedette.toml").crawl.contact == contact


@pytest.mark.parametrize("data", ["", "a\\u0000b", "a\\nb"])
def test_a_data_folder_has_a_path(data: str) -> None:
    """A path that can't be opened or displayed is rejected before anything is written."""
    assert "path to a folder" in complaint(lambda: parse(f'[store]\ndata = "{data}"', "vedette.toml"))


@pytest.mark.parametrize(
    ("setting", "advice"),
    [
        ('listen = "8080"', "expected HOST:PORT"),
        ("listen = 8080", "expected HOST:PORT"),
        ('access = "public"', 'expected one of "open", "token", "proxy"'),
        ('proxy_header = "X User"', "expected the name of a header"),
        ('trusted_proxies = "127.0.0.1"', "expected a list of IP addresses"),
        ('trusted_proxies = ["localhost"]', "expected a list of IP addresses"),
        ('trusted_proxies = ["10.0.0.1/8"]', "expected a list of IP addresses"),
        ("trusted_proxies = [1]", "expected a list of IP addresses"),
        ('embed_origins = ["docs.example.org"]', "expected a list of origins"),
        ('embed_origins = ["https://docs.example.org/"]', "expected a list of origins"),
        ('name = "two\\nlines"', "expected a short name"),
        ("rate = 120", 'such as "120/min"'),
        ("rate = []", 'such as "120/min"'),
        ("rate = false", 'such as "120/min"'),
        ('rate = "-1/s"', 'such as "120/min"'),
        ('rate = "1/ms"', 'such as "120/min"'),
        ('address = "https://example.org/search/"', "without a path"),
    ],
)
def test_who_is_served_is_told_as_strictly(setting: str, advice: str) -> None:
    """A list must be a list, an origin has no path, and an address is numeric; anything else is rejected."""
    assert advice in complaint(lambda: parse(f"[serve]\n{setting}", "vedette.toml"))


def test_lists_and_rates_can_be_typed() -> None:
    """On the command line, lists are separated by commas, and an empty string is an empty list."""
    typed = override(Config(), {"serve.trusted_proxies": "10.0.0.1, ::1", "serve.rate": "0"}).serve
    assert (typed.trusted_proxies, typed.rate.requests) == (("10.0.0.1", "::1"), 0)
    assert override(Config(), {"serve.trusted_proxies": ""}).serve.trusted_proxies == ()


@given(st.integers(1, 10**9 - 1), st.sampled_from(["s", "min", "h", "d"]))
def test_a_rate_is_read_back_as_written(requests: int, unit: str) -> None:
    """A rate is the same after formatting and parsing it."""
    assert format_rate(parse_rate(f"{requests}/{unit}")) == f"{requests}/{unit}"


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("\n\n[crawl", "line 3 is not valid TOML: "),
        ('[crawl]\ncontact = "', "line 2 is not valid TOML: "),
        ('[crawl]\ndelay = "1s"\ndelay = "1s"', "line 3 is not valid TOML: "),
        ("a = " + "[" * 100_000, "not valid TOML: nested too deeply"),
        ("a = " + "9" * 10_000, "not valid TOML: contains an invalid number"),
    ],
)
def test_what_is_not_toml_is_told_with_its_line(text: str, start: str) -> None:
    """The error has the line number of the mistake, and hostile nesting is an error like any other."""
    assert complaint(lambda: parse(text, "vedette.toml")).startswith(f"vedette.toml: {start}")


def test_files_that_cannot_be_read_are_told_by_name(tmp_path: Path) -> None:
    """Missing files, folders and binary files: each message starts with the path and says what to do."""
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b"# \xe9")
    expected = {
        tmp_path / "none.toml": "no such file; create it",
        tmp_path: "cannot read this file",
        latin: "save it as UTF-8",
    }
    for path, advice in expected.items():
        message = complaint(partial(load, path))
        assert message.startswith(f"{path}: ")
        assert advice in message


def test_options_override_with_the_same_checks() -> None:
    """Options are parsed like values in the file, except that a count comes as text."""
    config = override(parse('[crawl]\ndelay = "5s"', "x"), {"crawl.concurrency": "8", "crawl.timeout": "2s"})
    assert (config.crawl.delay_s, config.crawl.concurrency, config.crawl.timeout_s) == (5, 8, 2)
    assert complaint(lambda: override(config, {"crawl.delay": "3"})).startswith(
        'crawl.delay = "3": expected a duration'
    )
    assert "did you mean crawl.delay?" in complaint(lambda: override(config, {"crawl.delai": "3s"}))
    assert "expected a value from 1" in complaint(lambda: override(config, {"crawl.concurrency": "0"}))
    assert "expected a whole number" in complaint(lambda: override(config, {"crawl.concurrency": "many"}))


def test_units_mean_what_standards_say() -> None:
    """Prefixes of 1,000 and of 1,024 differ (IEC 80000-13); 1.1 days are exactly 95,040 seconds."""
    assert [parse_size(f"1{unit}") for unit in ("kB", "KiB", "MB", "MiB", "GB", "GiB")] == [
        *(1000, 1024, 1000**2, 1024**2, 1000**3, 1024**3)
    ]
    assert [parse_duration(text) for text in ("1.1d", "1h", "1min", "1s", "1ms")] == [95040, 3600, 60, 1, 0.001]


@given(st.floats(0.001, 1e9) | st.integers(0, 10**9).map(float))
def test_a_duration_is_read_back_as_written(seconds: float) -> None:
    """A duration is the same after formatting and parsing it."""
    assert parse_duration(format_duration(seconds)) == seconds


@given(st.integers(0, 10**15) | st.integers(0, 900).map(lambda count: count << 30))
def test_a_size_is_read_back_as_written(size: int) -> None:
    """A size is the same after formatting and parsing it."""
    assert parse_size(format_size(size)) == size


TOML_WORDS = st.sampled_from(
    [*KEYS, "[crawl]", "[store]", "[[", "]", "=", '"', "'", "\n", ".", "1", "1s", "s", "{", "}", ","]
)


@given(st.text() | st.lists(TOML_WORDS | st.text(max_size=3), max_size=15).map("".join))
def test_any_text_loads_or_is_a_config_error(text: str) -> None:
    """Arbitrary text raises no other exception."""
    try:
        result = parse(text, "vedette.toml")
    except ConfigError as error:
        shown = str(error)
    else:
        shown = repr(result)
    assert "\n" not in shown


@given(st.sampled_from(KEYS), st.text())
def test_any_typed_option_is_taken_or_is_a_config_error(key: str, value: str) -> None:
    """The same is true for options."""
    try:
        message = f"{key} = {override(Config(), {key: value})}"
    except ConfigError as error:
        message = str(error)
    assert message.startswith(f"{key} = ")


def test_variables_take_precedence_over_the_file_and_misspelt_ones_are_refused() -> None:
    """A variable is named after its key; empty variables and those of other programs set nothing."""
    config = parse('[crawl]\ndelay = "2s"\nworkers = 2\n[serve]\nhosts = ["a.example"]', "vedette.toml")
    environment = {
        "VEDETTE_CRAWL_DELAY": "3s",
        "VEDETTE_CRAWL_WORKERS": "",
        "VEDETTE_SERVE_HOSTS": "b.example, c.example",
        "VEDETTE_STORE_SERVICE_PORT": "8080",  # as Kubernetes names a service
        "VEDETTE_DATA": "elsewhere",  # the lab's
        "VEDETTE_SECRET_WIKI": "Cookie: a=b",
        "HOME": "/",
    }
    found = override_by_environment(config, environment)
    assert (found.crawl.delay_s, found.crawl.workers, found.serve.hosts) == (3.0, 2, ("b.example", "c.example"))
    for variable, value, words in (
        ("VEDETTE_CRAWL_DELAI", "3s", "did you mean VEDETTE_CRAWL_DELAY?"),
        ("VEDETTE_CONTACT", "a@example.org", "did you mean VEDETTE_CRAWL_CONTACT?"),
        ("VEDETTE_STORE_WHATEVER", "1", "known variables: VEDETTE_STORE_DATA, "),
        (
            "VEDETTE_CRAWL_DELAY",
            "3",
            'environment variable VEDETTE_CRAWL_DELAY: crawl.delay = "3": expected a duration',
        ),
    ):
        with pytest.raises(ConfigError, match=re.escape(words)):
            override_by_environment(config, {variable: value})


SITES = """
[crawl]
delay = "2s"

[[site]]
start = "https://example.org/docs/"
scope = "prefix"

[[site]]
start = "example.com"
paused = true
"""


def test_sites_of_the_file_are_read_with_their_settings() -> None:
    """A table only changes the settings that it contains."""
    docs, other = parse(SITES, "vedette.toml").sites
    assert docs.site == Site("https://example.org/docs/", scope="prefix")
    assert (other.site.start, other.paused) == ("https://example.com/", True)
    assert docs.find_changes(Site("https://example.org/docs/", delay_s=9.0)) == {"scope": "prefix"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('scope = "prefix"', "delai = 1"), "line 7, site 1 (https://example.org/docs/): unknown setting"),
        (
            ('scope = "prefix"', "delay = 5"),
            'line 7, site 1 (https://example.org/docs/): delay: "5": expected a duration',
        ),
        (('scope = "prefix"', 'scope = "all"'), "line 6, site 1"),
        (('start = "example.com"\n', ""), "line 9, site 2: start is missing"),
        (("paused = true", "paused = 1"), "line 11, site 2 (example.com)"),
        (("example.com", "https://example.org/docs/"), "https://example.org/docs/ has two [[site]] tables"),
        (("[[site]]", "[[sites]]"), "did you mean [[site]]?"),
        ((SITES, "[site]\nstart = 'a.example'"), "[[site]]"),
    ],
)
def test_a_wrong_table_is_named_by_its_line(change: tuple[str, str], words: str) -> None:
    """The error names file, line and key."""
    with pytest.raises(ConfigError, match=re.escape(words)) as error:
        parse(SITES.replace(*change), "vedette.toml")
    assert str(error.value).startswith("vedette.toml: ")
