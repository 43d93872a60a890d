"""Properties of every robots.txt, every URL and every sequence of responses."""

import json
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from vedette.fetch.request import build_conditional_headers
from vedette.fetch.robots.meta_tags import (
    UNRESTRICTED,
    Directives,
    merge_directives,
    parse_header_directives,
    parse_meta_directives,
)
from vedette.fetch.robots.rules import clip_lines, compile_pattern, is_allowed, parse_robots
from vedette.fetch.robots.state import (
    UNKNOWN,
    RobotsFailure,
    RobotsNeeded,
    RobotsResponse,
    RobotsWait,
    UrlAllowed,
    UrlDisallowed,
    apply_event,
    check_url,
    describe_state,
    state_from_json,
    state_to_json,
)
from vedette.model import Headers
from vedette.timeutil import parse_date

MINUTE_S = 60.0
DAY_S = 86_400.0

# Lone surrogates included: a URL or header may hold what no encoding can write.
any_text = st.text(st.characters())

keys = st.sampled_from([b"user-agent", b"Allow", b"disallow", b"disalow", b"crawl-delay", b"sitemap", b"x", b""])
values = st.one_of(
    st.sampled_from([b"*", b"vedette", b"other", b"/", b"", b"7", b"/index.html", b"nan"]),
    st.lists(st.sampled_from([b"/", b"a", b"*", b"$", b"%2f", b"\xc3\xa9", b"#", b"\0", b" "])).map(b"".join),
    st.binary(max_size=8),
)
lines = st.builds(
    lambda key, parting, value: (key + parting + value).replace(b"\r", b"").replace(b"\n", b""),
    keys,
    st.sampled_from([b":", b": ", b" ", b"\t:\t", b""]),
    values,
)
bodies = st.one_of(st.binary(), st.lists(lines).map(b"\n".join), st.lists(lines).map(b"\r".join))
agents = st.one_of(st.sampled_from(["vedette", "other", "*", ""]), any_text)
urls = st.one_of(
    st.text(st.sampled_from("/ab?;#:$*%"), max_size=12).map("https://example.org/".__add__),
    st.text(st.sampled_from("/a?;#:"), max_size=8),
    any_text,
)


@given(bodies, agents, urls)
@settings(deadline=None)
def test_any_bytes_and_any_text_get_a_verdict(body: bytes, agent: str, url: str) -> None:
    """The matcher never raises, and a parsed file gives the same result."""
    rules = parse_robots(body, agent)
    found = rules.check(url)
    assert is_allowed(body, agent, url) is rules.is_allowed(url) is found.allowed
    assert found.allowed or found.line is not None


@given(st.lists(lines, min_size=1), st.data(), urls, st.sampled_from([b"\n", b"\r", b"\r\n"]))
@settings(deadline=None)
def test_a_comment_changes_nothing(written: list[bytes], data: st.DataObject, url: str, ending: bytes) -> None:
    """A comment between any two lines does not change the file's meaning."""
    at = data.draw(st.integers(1, len(written)))
    comment = b" #" + data.draw(lines)
    commented = [*written[:at], comment, *written[at:]]
    assert parse_robots(ending.join(written), "vedette") == parse_robots(ending.join(commented), "vedette")
    assert is_allowed(ending.join(written), "vedette", url) is is_allowed(ending.join(commented), "vedette", url)


@given(st.lists(lines), st.permutations(["vedette", "Vedette", "VEDETTE"]))
@settings(deadline=None)
def test_the_case_of_the_agent_changes_nothing(written: list[bytes], agent: list[str]) -> None:
    """An agent is the same in any case."""
    body = b"\n".join(written)
    assert parse_robots(body, agent[0]) == parse_robots(body, agent[1])


@given(st.lists(lines), st.integers(0, 200))
@settings(deadline=None)
def test_clipping_leaves_whole_lines(written: list[bytes], limit_bytes: int) -> None:
    """The clipped file fits the limit and consists of the file's first lines."""
    clipped = clip_lines(b"\n".join(written), limit_bytes)
    assert len(clipped) <= limit_bytes
    assert clipped in [b"\n".join(written[:count]) for count in range(len(written) + 1)]


def naive_match(pattern: str, path: str) -> bool:
    """Match by the definition: consume one character of the pattern at a time, trying every length for a star."""
    if pattern == "":
        return True
    if pattern == "$":
        return path == ""
    if pattern[0] == "*":
        return any(naive_match(pattern[1:], path[taken:]) for taken in range(len(path) + 1))
    return path[:1] == pattern[0] and naive_match(pattern[1:], path[1:])


@given(st.text(st.sampled_from("ab*$"), max_size=7), st.text(st.sampled_from("ab$"), max_size=8))
@settings(deadline=None, max_examples=5 * settings().max_examples)
def test_the_matcher_agrees_with_the_definition(pattern: str, path: str) -> None:
    """Matching from left to right finds a match if and only if trying everything finds one."""
    assert compile_pattern(pattern.encode()).matches(path.encode()) is naive_match(pattern, path)


@dataclass(frozen=True, slots=True)
class Step:
    """An event, the time until it, and the time after it at which a page is checked."""

    pause_s: float
    event: RobotsResponse | RobotsFailure
    look_s: float


header_lists = st.lists(
    st.one_of(
        st.tuples(
            st.just("cache-control"), st.sampled_from(["max-age=0", "max-age=3600", "max-age=9999999", "private"])
        ),
        st.tuples(st.just("retry-after"), st.one_of(st.integers(0, 10**9).map(str), any_text)),
        st.tuples(st.sampled_from(["etag", "last-modified", "x-robots-tag"]), any_text),
    ),
    max_size=3,
).map(tuple)
times_s = st.one_of(st.sampled_from([0.0, 1.0, 59.0, 61.0, 599.0, 601.0, 3601.0]), st.floats(0.0, 2 * DAY_S))
statuses = st.one_of(st.sampled_from([200, 204, 301, 304, 304, 403, 404, 429, 500, 503, 0]), st.integers(0, 700))
steps = st.builds(
    Step,
    times_s,
    st.one_of(
        st.builds(RobotsResponse, st.just(0.0), statuses, bodies, st.integers(0, 7), header_lists),
        st.builds(RobotsFailure, st.just(0.0), any_text),
    ),
    times_s,
)


def is_found(event: RobotsResponse | RobotsFailure) -> bool:
    """Whether the event delivered a file."""
    return isinstance(event, RobotsResponse) and event.redirects <= 5 and event.status // 100 == 2


def is_missing(event: RobotsResponse | RobotsFailure) -> bool:
    """Whether the event says that there is no file."""
    if not isinstance(event, RobotsResponse):
        return False
    return event.redirects > 5 or (event.status // 100 in (3, 4) and event.status not in (304, 429))


def is_unchanged(event: RobotsResponse | RobotsFailure) -> bool:
    """Whether the event confirms the stored copy."""
    return isinstance(event, RobotsResponse) and event.redirects <= 5 and event.status == 304


@given(st.lists(steps, max_size=8), st.floats(-DAY_S, 2e9), urls)
@settings(deadline=None)
def test_nothing_is_allowed_before_it_is_known(taken: list[Step], now_s: float, url: str) -> None:
    """A page is only allowed or disallowed after a file, its absence or a valid 304, for ten minutes to a day."""
    state, has_copy = UNKNOWN, False
    assert isinstance(check_url(state, url, now_s), RobotsNeeded)
    for step in taken:
        now_s += step.pause_s
        event = _at(step.event, now_s)
        is_known = is_found(event) or is_missing(event) or (is_unchanged(event) and has_copy)
        has_copy = is_found(event) or (has_copy and not is_missing(event))
        state = apply_event(state, event, "vedette")
        decided = isinstance(check_url(state, url, now_s + step.look_s), UrlAllowed | UrlDisallowed)
        assert not decided or (is_known and step.look_s < DAY_S + 1)
        assert decided or not is_known or step.look_s > 10 * MINUTE_S - 1
        assert (state.last_good is not None) is has_copy


@given(st.lists(steps, max_size=6), st.floats(-DAY_S, 2e9), st.floats(0.0, MINUTE_S - 1))
@settings(deadline=None)
def test_a_failure_is_not_answered_by_another_request(taken: list[Step], now_s: float, look_s: float) -> None:
    """After a failure, nothing is requested for a minute, and nothing is delayed for longer than a day."""
    state = UNKNOWN
    for step in taken:
        state = apply_event(state, _at(step.event, now_s), "vedette")
    failed = apply_event(state, RobotsFailure(now_s, "too slow"), "vedette")
    found = check_url(failed, "https://example.org/", now_s + look_s)
    assert isinstance(found, RobotsWait)
    assert found.until_s <= now_s + DAY_S
    assert isinstance(check_url(failed, "https://example.org/", found.until_s), RobotsNeeded)


@given(st.lists(steps, max_size=6), st.floats(-DAY_S, 2e9))
@settings(deadline=None)
def test_every_state_survives_a_store_and_can_be_told(taken: list[Step], now_s: float) -> None:
    """Whatever happened, the state is restored from JSON, has a sentence, and its validators can be sent."""
    state = UNKNOWN
    for step in taken:
        state = apply_event(state, _at(step.event, now_s + step.pause_s), "vedette")
    assert state_from_json(json.loads(json.dumps(state_to_json(state))), "vedette") == state
    assert describe_state(state, now_s).endswith(".")
    assert all(value.isascii() and value.isprintable() for _, value in build_conditional_headers(*state.validators))


def _at(event: RobotsResponse | RobotsFailure, now_s: float) -> RobotsResponse | RobotsFailure:
    if isinstance(event, RobotsFailure):
        return RobotsFailure(now_s, event.why)
    return RobotsResponse(now_s, event.status, event.body, event.redirects, event.headers)


phrases = st.lists(
    st.one_of(
        st.sampled_from(
            ["noindex", "none", "vedette:", "other:", "max-snippet:", "unavailable_after:", "2010-06-25", ","]
        ),
        any_text,
    )
).map(" ".join)
directives = st.builds(
    Directives,
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.none() | st.integers(0, 9),
    st.none() | st.floats(0, 9),
)


@given(phrases, any_text, any_text)
@settings(deadline=None)
def test_any_directive_is_read(phrase: str, name: str, agent: str) -> None:
    """No text in a header, a meta tag or a date raises an error, and directives for everyone apply to every agent."""
    headers: Headers = (("x-robots-tag", phrase),)
    assert isinstance(parse_header_directives(headers, agent), Directives)
    assert not parse_meta_directives([(name, phrase), ("robots", phrase + ", noindex")], agent).index
    assert parse_date(phrase) is None or isinstance(parse_date(phrase), float)


@given(directives, directives, directives)
def test_merging_is_the_stricter_of_all(a: Directives, b: Directives, c: Directives) -> None:
    """Order and repetition do not matter, and empty directives change nothing."""
    assert merge_directives(a, b) == merge_directives(b, a)
    assert merge_directives(merge_directives(a, b), c) == merge_directives(a, merge_directives(b, c))
    assert merge_directives(a, a) == merge_directives(a, UNRESTRICTED) == a
