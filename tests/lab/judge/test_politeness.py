"""The politeness judge: every kind of violation is reported, and nothing polite is."""

import os
import random
import socket
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.lab.judge.access_log import AccessEntry, LogHeader, read_log
from vedette.lab.judge.politeness import VIOLATION_KINDS, Verdict, format_verdict, judge_log, parse_product_token
from vedette.lab.worlds.synthetic.server import ServerHandle, start_server
from vedette.lab.worlds.synthetic.validators import format_http_date
from vedette.lab.worlds.world import Reply, WorldHost, WorldRequest

HEADER = LogHeader("made:test 1", 1.0, 1e9, 1e9, 8080)
HOUR_S = 3600.0
DELAY_S = 10.0
ADDRESS_DELAY_S = 2.0


def ask(
    at_s: float,
    target: str,
    *,
    took_s: float = 1.0,
    host: str = "a.test",
    address: str = "127.0.0.2",
    status: int = 200,
    agent: str = "Vedette/0.1 (+http://bot.test/)",
    whole: bool = True,
    **more: str,
) -> AccessEntry:
    """Return a request, by seconds since the log began."""
    start_s, end_s = 1e9 + at_s, 1e9 + at_s + took_s
    return AccessEntry(
        start_s, end_s, start_s, end_s, host, "http", 80, address, "GET", target, status, 9, whole, agent, **more
    )


def robots(at_s: float, text: str = "") -> AccessEntry:
    """Return a response to /robots.txt."""
    return ask(at_s, "/robots.txt", robots=text)


def judged(
    entries: Iterable[AccessEntry], *, per_address: int = 1, tolerance_s: float = 0.0, most: int = 1000
) -> Verdict:
    """Return the verdict under the rules of these tests."""
    return judge_log(
        entries,
        HEADER,
        delay_s=DELAY_S,
        address_delay_s=ADDRESS_DELAY_S,
        per_address=per_address,
        tolerance_s=tolerance_s,
        most=most,
    )


def kinds(entries: Iterable[AccessEntry]) -> list[str]:
    """List the kinds of violations in order."""
    return [violation.kind for violation in judged(entries).violations]


POLITE = [
    robots(0, "User-agent: *\nCrawl-delay: 20\nDisallow: /private"),
    ask(21, "/"),
    ask(43, "/b"),
    ask(46, "/robots.txt", host="b.test", status=404),
    ask(57, "/private", host="b.test"),
    ask(68, "/busy", host="b.test", status=503, retry_after="30"),
    ask(99, "/busy", host="b.test"),
    ask(102, "/c", took_s=0.5),
]


def test_polite_log_has_no_violation_and_says_what_it_saw() -> None:
    """Gaps of exactly the delay, rules kept, a pause honoured."""
    verdict = judged(POLITE)
    assert (verdict.requests, verdict.hosts, verdict.left_out, verdict.total) == (8, 2, 0, 0)
    assert {found.kind: found.gap_s for found in verdict.closest} == {"host gap": 10.0, "address gap": 2.0}


def test_empty_log_is_polite() -> None:
    """No requests, no violations."""
    assert judged([]).total == 0


@pytest.mark.parametrize(
    ("kind", "entries"),
    [
        ("host gap", [robots(0), ask(10.9, "/")]),
        ("host gap", [robots(0, "User-agent: vedette\nCrawl-delay: 30"), ask(30.9, "/")]),
        ("host gap", [robots(0), ask(11, "/old", status=301, location="/new"), ask(15, "/new")]),
        ("host gap", [ask(0, "/robots.txt", status=503), ask(5, "/robots.txt")]),
        ("host overlap", [robots(0), ask(11, "/", took_s=30), ask(40, "/b", address="127.0.0.3")]),
        ("address gap", [robots(0), ask(1.5, "/robots.txt", host="b.test")]),
        ("address overlap", [robots(0), ask(0.5, "/robots.txt", host="b.test")]),
        ("disallowed", [robots(0, "User-agent: *\nDisallow: /x"), ask(11, "/x?y")]),
        ("no robots", [ask(0, "/")]),
        ("no robots", [ask(0, "/robots.txt", status=429), ask(11, "/")]),
        ("no robots", [ask(0, "/robots.txt", status=500), ask(11, "/")]),
        ("no robots", [ask(0, "/robots.txt", status=0, whole=False), ask(11, "/")]),
        ("no robots", [replace(robots(0, "User-agent: *"), whole=False), ask(11, "/")]),
        ("no robots", [robots(0), ask(11, "/robots.txt", status=503), ask(22, "/")]),
        ("no robots", [ask(0, "/robots.txt", status=304), ask(11, "/")]),
        ("no robots", [replace(robots(0), method="HEAD"), ask(11, "/")]),
        ("no robots", [replace(robots(0), port=8080), ask(11, "/")]),
        ("no robots", [replace(robots(0), scheme="https", port=443), ask(11, "/")]),
        ("stale robots", [robots(0), ask(24 * HOUR_S + 5, "/")]),
        ("retry-after", [robots(0), ask(11, "/", status=429, retry_after="60"), ask(70, "/b")]),
        ("retry-after", [robots(0), ask(11, "/", status=503, retry_after=format_http_date(10**9 + 90)), ask(89, "/b")]),
        ("retry-after", [ask(0, "/robots.txt", status=503, retry_after="60"), ask(40, "/robots.txt")]),
    ],
)
def test_each_violation_is_named_once(kind: str, entries: list[AccessEntry]) -> None:
    """Breaking one rule gives one violation of that kind; the sentence names host and targets."""
    verdict = judged(entries)
    (violation,) = verdict.violations
    assert violation.kind == kind
    assert violation.at_s == entries[-1].start_s
    assert violation.host == entries[-1].host
    assert f"http://{violation.host}{entries[-1].target}" in violation.detail
    assert dict(verdict.counts)[kind] == verdict.total == 1


def test_a_gap_names_both_requests_their_times_and_the_rule() -> None:
    """The sentence alone is enough to find both lines in the log."""
    (violation,) = judged([robots(0, "User-agent: *\nCrawl-delay: 30"), ask(25.25, "/page")]).violations
    for word in ("/robots.txt", "/page", "1.000 s", "25.250 s", "24.250000 s", "crawl-delay is 30 s"):
        assert word in violation.detail


@pytest.mark.parametrize(
    "entries",
    [
        [robots(0, "User-agent: *\nDisallow: /"), ask(11, "/robots.txt", status=404), ask(22, "/")],
        [robots(0), ask(24 * HOUR_S - 50, "/robots.txt", status=304), ask(25 * HOUR_S, "/")],
        [robots(0, "User-agent: other\nDisallow: /\nCrawl-delay: 99"), ask(11, "/")],
        [robots(0), ask(11, "/", status=503, retry_after="99999999"), ask(24 * HOUR_S + 12, "/robots.txt")],
        [robots(0), ask(11, "/", status=503, retry_after="soon"), ask(22, "/b")],
        [robots(0), ask(11, "/", status=200, retry_after="600"), ask(22, "/b")],
        [replace(robots(0, "User-agent: *"), whole=False, bytes=500 * 1024), ask(11, "/")],
        [robots(0), ask(3.5, "/robots.txt", host="b.test"), ask(11, "/")],
    ],
)
def test_what_the_rules_permit_is_not_accused(entries: list[AccessEntry]) -> None:
    """No file, a confirmed copy, others' rules, a day at most, nonsense, half a megabyte of rules, another host."""
    assert kinds(entries) == []


def test_robots_is_followed_through_redirects() -> None:
    """The rules at the end of the chain apply to the original host; the hops need no permission."""
    chain = [
        ask(0, "/robots.txt", status=301, location="http://b.test/robots.txt"),
        ask(11, "/robots.txt", host="b.test", status=302, location="/rules.txt"),
        replace(ask(22, "/rules.txt", host="b.test"), robots="User-agent: *\nDisallow: /x"),
    ]
    assert kinds([*chain, ask(33, "/y")]) == []
    assert kinds([*chain, ask(33, "/x")]) == ["disallowed"]
    assert kinds([*chain[:2], ask(22, "/y")]) == ["no robots"]


def test_robots_that_redirects_for_ever_is_none() -> None:
    """After five redirects, there are no rules (RFC 9309, 2.3.1.2); after four, they are still unknown."""
    hops = [ask(0, "/robots.txt", status=301, location="/1")]
    hops += [ask(11 * number, f"/{number}", status=301, location=f"/{number + 1}") for number in range(1, 6)]
    assert kinds([*hops, ask(99, "/page")]) == []
    assert kinds([*hops[:-1], ask(99, "/page")]) == ["no robots"]


def test_an_answer_counts_only_once_it_has_ended() -> None:
    """A robots.txt that is still being received permits nothing."""
    assert kinds([replace(robots(0), end_s=1e9 + 30), ask(20, "/")]) == ["host overlap", "address overlap", "no robots"]


def test_several_at_once_on_an_address_where_that_is_allowed() -> None:
    """With two slots, two hosts may overlap; a third one must wait for a slot and its delay."""
    entries = [ask(at_s, "/robots.txt", host=f"{at_s}.test", took_s=10) for at_s in (0, 1, 2, 12)]
    counts = dict(judged(entries, per_address=2).counts)
    assert (counts["address overlap"], counts["address gap"]) == (1, 1)
    assert dict(judged(entries, per_address=3).counts)["address overlap"] == 0


def test_tolerance_forgives_that_much() -> None:
    """By default, only rounding is tolerated, and more on request."""
    entries = [robots(0), ask(10.9, "/")]
    assert judged(entries, tolerance_s=0.2).total == 0
    assert judged(entries, tolerance_s=0.05).total == 1


def test_other_agents_are_left_out_and_counted() -> None:
    """A browser, and a program whose name begins like ours, are not our crawler."""
    others = [ask(at_s, "/", agent=agent) for at_s in (0, 1) for agent in ("Mozilla/5.0", "vedettes/2", "")]
    verdict = judged([*POLITE, *others])
    assert (verdict.requests, verdict.left_out, verdict.total) == (len(POLITE), len(others), 0)
    verdict = judge_log(others, HEADER, delay_s=1.0, address_delay_s=1.0, user_agent="Mozilla/9 (x)")
    assert verdict.requests == 2


@pytest.mark.parametrize(
    ("agent", "token"), [("VEDETTE", "vedette"), ("a/b/c", "a"), ("a b", "a"), ("", ""), ("  x/1", "x")]
)
def test_product_token(agent: str, token: str) -> None:
    """The first word up to a slash, in lower case."""
    assert parse_product_token(agent) == token


def test_violations_beyond_the_most_are_counted_but_not_told() -> None:
    """A misbehaving crawler does not fill the memory with sentences."""
    entries = [ask(at_s, "/", took_s=0) for at_s in range(50)]
    verdict = judged(entries, most=3)
    assert len(verdict.violations) == 3
    assert dict(verdict.counts)["no robots"] == 50
    assert "and 144 more" in format_verdict(judged(entries, most=5), sentences=4)


def test_report_has_every_rule_and_the_sentences() -> None:
    """The summary lists all rules, including those without violations, and describes the violations."""
    verdict = judged([*POLITE, ask(103, "/private/x")])
    text = format_verdict(verdict)
    assert all(kind in text for kind in VIOLATION_KINDS)
    assert all(violation.detail in text for violation in verdict.violations)
    assert "9 requests to 2 hosts: 3 violations" in text


MOMENTS = st.lists(st.integers(0, 4000), min_size=1, max_size=25, unique=True)
WHAT = st.tuples(
    st.sampled_from(["/robots.txt", "/", "/x"]),
    st.sampled_from(["a.test", "b.test"]),
    st.sampled_from([200, 404, 429, 503]),
    st.sampled_from([0.25, 8.0, 64.0]),
)


@st.composite
def logs(draw: st.DrawFn) -> list[AccessEntry]:
    """Logs with distinct starts, polite or not."""
    found = []
    for moment in draw(MOMENTS):
        target, host, status, took_s = draw(WHAT)
        entry = ask(float(moment), target, host=host, status=status, took_s=took_s)
        found.append(replace(entry, retry_after="64", robots="User-agent: *\nDisallow: /x\nCrawl-delay: 32"))
    return found


@given(logs(), st.integers(0, 2**32))
def test_order_of_lines_changes_nothing(entries: list[AccessEntry], seed: int) -> None:
    """The order of the lines in a log does not matter."""
    mixed = list(entries)
    random.Random(seed).shuffle(mixed)  # noqa: S311 - a shuffle, no secret
    assert judged(mixed) == judged(entries)


@given(logs(), st.integers(-500_000_000, 500_000_000))
def test_shifting_all_times_changes_nothing_but_the_times(entries: list[AccessEntry], shift_s: int) -> None:
    """Only differences matter; sentences give times since the start of the log."""
    moved = [replace(entry, start_s=entry.start_s + shift_s, end_s=entry.end_s + shift_s) for entry in entries]
    header = replace(HEADER, world_start=HEADER.world_start + shift_s)
    shifted = judge_log(moved, header, delay_s=DELAY_S, address_delay_s=ADDRESS_DELAY_S)
    still = judged(entries)
    assert [(found.kind, found.detail) for found in shifted.violations] == [
        (found.kind, found.detail) for found in still.violations
    ]
    assert (shifted.counts, shifted.closest) == (still.counts, still.closest)


@given(logs())
def test_a_longer_delay_is_never_easier_to_keep(entries: list[AccessEntry]) -> None:
    """Requiring more politeness finds at least as many violations."""
    strict = judge_log(entries, HEADER, delay_s=DELAY_S * 3, address_delay_s=ADDRESS_DELAY_S * 3)
    assert strict.total >= judged(entries).total


class TinyWorld:
    """One host with rules."""

    name = "tiny 1"
    start_s = 1e9

    def hosts(self) -> tuple[WorldHost, ...]:
        """One host."""
        return (WorldHost("a.test", "127.0.0.2"),)

    def reply(self, question: WorldRequest, now_s: float) -> Reply:
        """A robots.txt, a busy page, and pages."""
        assert now_s >= self.start_s
        if question.target == "/robots.txt":
            return Reply(200, (), b"User-agent: *\nDisallow: /secret\nCrawl-delay: 60")
        if question.target == "/busy":
            return Reply(503, (("retry-after", "36000"),), b"")
        return Reply(200, (), b"page")


def tiny_world(seed: int) -> TinyWorld:
    """Return the world for the server, which opens it by name and seed."""
    assert seed >= 0
    return TinyWorld()


@pytest.fixture
def _world_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a child process import this file, which contains the world."""
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    monkeypatch.setenv("PYTHONPATH", path)


def crawl(web: ServerHandle, targets: Iterable[str], *, rest_s: float) -> None:
    """Request these targets, each exactly this many world seconds after the last byte of the previous response."""
    with socket.create_connection(("127.0.0.2", web.port)) as connection, connection.makefile("rb") as answers:
        for target in targets:
            request = f"GET {target} HTTP/1.1\r\nHost: a.test\r\nUser-Agent: vedette/0.1\r\n\r\n"
            connection.sendall(request.encode())
            read_answer(answers)
            ready_s = web.clock.now() + rest_s
            while web.clock.now() < ready_s:
                continue


def read_answer(answers: BinaryIO) -> None:
    """Read a response to its last byte."""
    length = 0
    while (line := answers.readline().lower()) != b"\r\n":
        if line.startswith(b"content-length:"):
            length = int(line.split()[1])
    assert len(answers.read(length)) == length


@pytest.mark.usefixtures("_world_on_path")
def test_impolite_client_at_a_real_server_is_found_out(tmp_path: Path) -> None:
    """A page before robots.txt, no pause, a disallowed page, an ignored Retry-After: all are in the server's log."""
    with start_server("test_politeness:tiny_world", 1, log_path=tmp_path / "log") as web:
        crawl(web, ["/early", "/robots.txt", "/secret", "/busy", "/again"], rest_s=0.0)
    header, entries = read_log(tmp_path / "log")
    counts = dict(judge_log(entries, header, delay_s=50.0, address_delay_s=50.0).counts)
    assert {kind: count for kind, count in counts.items() if count} == {
        "no robots": 1,
        "host gap": 4,
        "address gap": 4,
        "disallowed": 1,
        "retry-after": 1,
    }


@pytest.mark.usefixtures("_world_on_path")
def test_polite_client_at_a_real_server_in_fast_time_is_not_accused(tmp_path: Path) -> None:
    """A client that waits exactly its delay after the last byte never appears to wait less, even at high speed."""
    targets = ["/robots.txt", *(f"/{number}" for number in range(300))]
    with start_server("test_politeness:tiny_world", 1, speed=100_000.0, log_path=tmp_path / "log") as web:
        crawl(web, targets, rest_s=60.0)
    header, entries = read_log(tmp_path / "log")
    verdict = judge_log(entries, header, delay_s=60.0, address_delay_s=60.0)
    assert verdict.requests == len(targets)
    # On a busy machine, a second of the client's is more than a day of this clock: its robots.txt may grow old.
    assert [each for each in verdict.violations if each.kind != "stale robots"] == []
