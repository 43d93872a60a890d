"""Which visitors count as people: every browser that people use, and nothing that declares itself a program."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.learn.bot_filter import (
    MAX_CLICKS_PER_HOUR,
    MAX_SEARCHES_PER_HOUR,
    RateMeter,
    check_event,
    check_hourly_rate,
    check_request,
)

PEOPLE = [
    "Mozilla/5.0 (X11; Linux x86_64; rv:141.0) Gecko/20100101 Firefox/141.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/139.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/139.0.0.0 Safari/537.36 Edg/139.0.0.0",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 Version/18.5 Mobile Safari/604.1",
    "Mozilla/5.0 (Linux; Android 9; CUBOT_X19) AppleWebKit/537.36 Chrome/120.0 Mobile Safari/537.36",
    "Mozilla/5.0 (Linux; Android 13; CUBOT NOTE 50) AppleWebKit/537.36 Chrome/126.0 Mobile Safari/537.36",
    "Mozilla/5.0 (Linux; Android 14; SM-S911B) AppleWebKit/537.36 SamsungBrowser/25.0 Chrome/121 Mobile Safari/537.36",
    "Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 Chrome/138.0.0.0 Safari/537.36",
    "Opera/9.80 (J2ME/MIDP; Opera Mini/9.80/191.0; U; en) Presto/2.5.25 Version/10.54",
    "Lynx/2.9.0 libwww-FM/2.14 SSL-MM/1.4.1",
    "w3m/0.5.3+git20230121",
    "ELinks/0.17 (textmode; Linux; 80x24-2)",
    "Dillo/3.1",
]
PROGRAMS = [
    "curl/8.9.1",
    "Wget/1.24.5",
    "python-requests/2.32.3",
    "Python/3.12 aiohttp/3.10.0",
    "Python-urllib/3.11",
    "Go-http-client/2.0",
    "Java/21.0.3",
    "okhttp/4.12.0",
    "node-fetch/1.0",
    "axios/1.7.4",
    "libwww-perl/6.77",
    "Apache-HttpClient/5.3 (Java/17)",
    "PostmanRuntime/7.41.0",
    "Scrapy/2.11 (+https://scrapy.example)",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 HeadlessChrome/139.0.0.0 Safari/537.36",
    "Mozilla/5.0 (compatible; examplebot/2.1; +http://example.org/bot.html)",
    "Mozilla/5.0 (Linux; Android 6.0.1) AppleWebKit/537.36 Chrome/139.0 Mobile (compatible; SomeBot/2.1)",
    "Mozilla/5.0 (compatible; Example Robots; en)",
    "ExampleSpider/1.0",
    "Mozilla/5.0 (compatible; HarbourCrawler 3)",
    "Mozilla/5.0 (compatible; Slurp)",
    "ChatGPT-User/1.0",
    "vedette/0.1 (+mailto:a@example.org; bot)",
    "Mozilla/5.0 (compatible) Chrome-Lighthouse",
]


@pytest.mark.parametrize("agent", PEOPLE)
def test_a_browser_is_a_person(agent: str) -> None:
    """Browsers of all makes count, even on a phone whose name ends in "bot"."""
    assert check_request(agent, {"accept": "text/html", "sec-fetch-mode": "navigate"}) == ""


@pytest.mark.parametrize("agent", PROGRAMS)
def test_a_program_that_says_so_is_not(agent: str) -> None:
    """Tools, libraries, crawlers and headless browsers are listed under the name that they declare."""
    assert check_request(agent, {}) == "says it is a program"
    assert check_request(agent.upper(), {}) == "says it is a program"


def test_nobody_is_not_a_person() -> None:
    """A request without a User-Agent is excluded, because browsers always send one."""
    assert check_request("", {})
    assert check_request("  ", {})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sec-purpose", "prefetch"),
        ("sec-purpose", "prefetch;prerender"),
        ("purpose", "prefetch"),
        ("x-moz", "prefetch"),
        ("x-purpose", "preview"),
    ],
)
def test_what_a_browser_fetches_ahead_was_not_asked_for(name: str, value: str) -> None:
    """A prefetched page may never have been seen."""
    assert "ahead" in check_request(PEOPLE[0], {name: value})
    assert check_request(PEOPLE[0], {name: "navigate"}) == ""


def test_a_click_takes_a_moment_and_not_a_week() -> None:
    """No one clicks within a hundredth of a second, and a click days later comes from a saved page."""
    assert [check_event("click", after_s) for after_s in (0.0, -5.0, 2.0, 3600.0)] == ["too quick", "too quick", "", ""]
    assert [check_event("view", after_s) for after_s in (0.0, 3600.0)] == ["", ""]
    assert [check_event(kind, 7 * 86_400.0) for kind in ("view", "click")] == ["too late", "too late"]
    assert check_event("view", float("nan"))
    assert check_event("click", float("inf"))


def test_an_hour_has_room_for_so_many() -> None:
    """Only beyond the limits does a reason name the limit."""
    assert check_hourly_rate(MAX_SEARCHES_PER_HOUR, MAX_CLICKS_PER_HOUR) == ""
    assert str(MAX_SEARCHES_PER_HOUR) in check_hourly_rate(MAX_SEARCHES_PER_HOUR + 1, 0)
    assert "clicks" in check_hourly_rate(0, MAX_CLICKS_PER_HOUR + 1)


def test_a_steady_person_is_never_doubted() -> None:
    """Someone who searches every two seconds for an hour is not a bot."""
    pace = RateMeter()
    assert {pace.count("ab", "search", second) for second in range(0, 3600, 2)} == {""}


def test_a_program_is_doubted_and_forgiven() -> None:
    """A hundred searches a second are a bot; others aren't affected, and it is forgotten after some minutes."""
    pace = RateMeter()
    report = [pace.count("ab", "search", number / 100) for number in range(500)]
    assert report[0] == ""
    assert "searches in a minute" in report[-1]
    assert pace.count("cd", "search", 5.0) == ""
    assert pace.count("ab", "click", 5.0) == ""
    assert pace.count("ab", "search", 3600.0) == ""


def test_memory_of_paces_is_bounded() -> None:
    """With more visitors than there is room for, the most recent ones are remembered."""
    pace = RateMeter(most_visitors=10)
    for number in range(1000):
        pace.count(f"v{number}", "search", 1.0)
        pace.count("busy", "search", 1.0)
    assert len(pace._levels) <= 10
    assert pace.count("busy", "search", 1.0)


@given(st.text(), st.dictionaries(st.sampled_from(["purpose", "sec-purpose", "x-moz", "other"]), st.text()))
def test_no_header_breaks_it(agent: str, headers: dict[str, str]) -> None:
    """Any header gives a short reason or none."""
    assert len(check_request(agent, headers)) < 60
