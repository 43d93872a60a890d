"""What is recorded about a search, and what is not: the token, the visitor hash, the record."""

import re
import secrets
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.web.small_search import NOW_S, PAGES, HeldLog, SmallSearch, recording_to, served

from vedette.config import Rate, Serve
from vedette.errors import StoreError
from vedette.learn.events import SearchEvent, decode_event
from vedette.serve.rank.scoring import POLICY
from vedette.serve.slate import SearchRequest, SearchResult, Slate
from vedette.web.auth.tokens import TOKEN_PATTERN, TokenClaims, sign_token, verify_token
from vedette.web.public.slates import create_null_recorder
from vedette.web.public.visits import Visitor, hash_visitor

WALL_S = 1_790_000_000.0
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
OPEN = Serve(rate=Rate(0, 1.0))
PERSON = Visitor("192.0.2.1", BROWSER)
IDS = st.binary(min_size=16, max_size=16).map(bytes.hex)
TIMES = st.floats(0, 1e10)


def build_record(slate: Slate, visit: Visitor = PERSON) -> SearchEvent:
    """Return the record of a slate."""
    log = HeldLog()
    assert recording_to(log).record_slate(slate, visit, "page", 3.14159)
    (record,) = log.slates
    return record


# --- tokens ---


@given(IDS, TIMES, st.binary(max_size=64))
def test_a_token_contains_id_and_time(id_: str, at_s: float, secret: bytes) -> None:
    """The full id and the time in milliseconds, in a form that fits in an attribute and a URL."""
    token = sign_token(TokenClaims(id_, at_s), secret)
    assert re.fullmatch(TOKEN_PATTERN, token)
    read = verify_token(token, secret)
    assert read is not None
    assert read.id == id_
    assert read.at_s == pytest.approx(at_s, abs=0.0011)


@given(IDS, TIMES, st.integers(0, 47), st.integers(0, 5))
def test_a_token_with_any_other_bit_is_none(id_: str, at_s: float, place: int, bit: int) -> None:
    """No one can change the time of a search or invent one: every bit of every character counts."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    token = sign_token(TokenClaims(id_, at_s), b"ours")
    other = letters[letters.index(token[place]) ^ 1 << bit]
    assert verify_token(token[:place] + other + token[place + 1 :], b"ours") is None


@given(st.text() | st.from_regex(TOKEN_PATTERN, fullmatch=True), IDS)
def test_invalid_and_foreign_tokens_are_rejected(text: str, id_: str) -> None:
    """Whatever is sent is rejected without an exception."""
    token = sign_token(TokenClaims(id_, WALL_S), b"theirs")
    for foreign in (text, token, token[:-1], token + "=", token + "A", f" {token}", token + "\n"):
        assert verify_token(foreign, b"ours") is None


# --- marks ---


@given(st.text(), st.text(), st.text(), st.binary(min_size=1, max_size=64))
def test_a_mark_is_short_and_good_for_its_day(address: str, agent: str, name: str, salt: bytes) -> None:
    """It has sixteen hexadecimal digits, the same for the same salt and different for another one."""
    visit = Visitor(address, agent, name)
    assert re.fullmatch("[0-9a-f]{16}", hash_visitor(visit, salt))
    assert hash_visitor(visit, salt) == hash_visitor(visit, salt)
    assert hash_visitor(visit, salt) != hash_visitor(visit, b"the salt of another day, which is 1 of very many")


def test_visitor_hashes_depend_on_network_and_browser() -> None:
    """A home with many IPv6 addresses is one visitor, two browsers are two, and a named user is one everywhere."""

    def mark(visit: Visitor) -> str:
        return hash_visitor(visit, b"today")

    assert mark(Visitor("2001:db8::1", "A")) == mark(Visitor("2001:db8::2", "A"))
    others = [
        Visitor("192.0.2.1", "A"),
        Visitor("192.0.2.2", "A"),
        Visitor("192.0.2.1", "B"),
        Visitor("", "", "key:ann"),
    ]
    assert len({mark(visit) for visit in others}) == len(others)
    assert mark(Visitor("192.0.2.1", "A", "key:ann")) == mark(Visitor("192.0.2.2", "B", "key:ann"))
    assert mark(Visitor("", "", "key:ann")) != mark(Visitor("", "", "proxy:ann"))


def test_the_salt_changes_at_midnight() -> None:
    """The same visitor has another hash on another day, and each day's salt is read once."""
    days: list[str] = []
    now_s = [WALL_S]

    def salt(day: str) -> bytes:
        days.append(day)
        return secrets.token_bytes(32)

    recording = replace(recording_to(HeldLog(), lambda: now_s[0]), get_salt=salt)
    today = {recording.hash_visitor(PERSON) for _ in range(3)}
    now_s[0] += 86_400
    assert recording.hash_visitor(PERSON) not in today
    assert (len(today), days) == (1, ["2026-09-21", "2026-09-22"])


# --- records ---


def test_a_slate_record_has_all_fields_for_learning() -> None:
    """It has query, words, filters, policy, and for each result position, score, propensity, features and reasons."""
    found = PAGES[0]._replace(
        score=7.123456, propensity=0.25, features=(("title_is", 1.0), ("body_bm25", 0.123456)), note="pinned"
    )
    wish = SearchRequest("Consumer  LAG?", n=7, page=3, site="docs.example.org", after_s=86_400.0)
    record = build_record(Slate(wish, 128, (found, PAGES[1])))
    assert (record.query, record.words, record.total, record.page) == ("Consumer  LAG?", "consumer lag", 128, 3)
    assert (record.at_s, record.via, record.policy, record.took_ms) == (NOW_S, "page", POLICY, 3.142)
    assert record.filters == '{"site":"docs.example.org","after":86400.0}'
    first, second = record.results
    assert first == (1, 15, 7.123, 0.25, (("title_is", 1.0), ("body_bm25", 0.1235)), "pinned")
    assert (second.page, second.position, second.propensity) == (2, 16, 1.0)


ODD = st.builds(
    PAGES[0]._replace,
    id=st.integers(0, 2**60),
    score=st.floats(),
    propensity=st.floats(),
    features=st.lists(st.tuples(st.text(max_size=9), st.floats()), max_size=4).map(tuple),
)


@given(st.text(), st.lists(ODD, max_size=3), st.text(), st.text())
def test_any_slate_can_be_read_back(query: str, results: list[SearchResult], site: str, agent: str) -> None:
    """Control characters, unusual letters and NaN are preserved."""
    log = HeldLog()
    slate = Slate(SearchRequest(query, site=site), 2**40, tuple(results))
    assert recording_to(log).record_slate(slate, Visitor("192.0.2.1", agent), "api", 1.0)
    assert [decode_event(line) for line in log.lines] == log.records


@pytest.mark.parametrize("error", [StoreError("no room"), OSError("gone"), RuntimeError("a fault of ours")])
def test_searches_work_if_the_log_fails(error: Exception) -> None:
    """The page has no token, and neither has the API response."""
    log = HeldLog()
    log.broken = error
    with served(OPEN, recording=recording_to(log)) as (ask, _):
        page = ask("/search?q=lag")
        assert (page.status, b"data-slate" in page.body) == (200, False)
        assert ask("/api/v1/search?q=lag").json["slate"] is None


def test_searches_work_without_a_salt() -> None:
    """Nothing is recorded then, because it would have no visitor hash."""
    log = HeldLog()

    def salt(_day: str) -> bytes:
        raise OSError("no room")

    recording = replace(recording_to(log), get_salt=salt)
    assert recording.record_slate(Slate(SearchRequest("lag"), 0), PERSON, "page", 1.0) == ""
    assert (recording.hash_visitor(PERSON), log.records) == ("", [])


def test_nothing_is_logged_with_zero_days() -> None:
    """With zero days, as without recording, there is no line, no token, and no script that would send anything."""
    log = HeldLog()
    assert recording_to(log, keep_days=0).record_slate(Slate(SearchRequest("lag"), 0), PERSON, "page", 1.0) == ""
    assert create_null_recorder().record_slate(Slate(SearchRequest("lag"), 0), PERSON, "page", 1.0) == ""
    with served(OPEN, recording=recording_to(log, keep_days=0)) as (ask, _):
        page = ask("/search?q=lag").body
        assert not [word for word in (b"data-slate", b"slates.js") if word in page]
        assert ask("/api/v1/search?q=lag").json["slate"] is None
    assert log.records == []


def test_only_searches_are_logged() -> None:
    """This includes every results page and API search, but no suggestions, copies, similar pages or overviews."""
    log = HeldLog()
    with served(OPEN, search=SmallSearch(), recording=recording_to(log)) as (ask, _):
        for path in ("/", "/bot", "/privacy", "/api/v1/suggest?q=l", "/api/v1/sites", "/cached/1", "/similar/1"):
            assert ask(path, {"User-Agent": BROWSER}).status == 200
        assert log.records == []
        page = ask("/search?q=lag", {"User-Agent": BROWSER}).body.decode()
        ask("/search?q=lag&page=2", {"User-Agent": BROWSER})
        report = ask("/api/v1/search?q=lag&n=5", {"User-Agent": BROWSER})
    assert [(slate.via, slate.page, slate.query) for slate in log.slates] == [
        ("page", 1, "lag"),
        ("page", 2, "lag"),
        ("api", 1, "lag"),
    ]
    assert len({slate.visitor for slate in log.slates}) == 1
    assert {slate.filter_reason for slate in log.slates} == {""}
    token = re.search(r'data-slate="([^"]+)"', page)
    assert token
    issued = [verify_token(each, b"a secret") for each in (token[1], report.json["slate"])]
    assert [each and each.id for each in issued] == [log.slates[0].id, log.slates[2].id]
    assert 'data-page="1"' in page
    assert report.headers["cache-control"] == "private, no-store"


def test_programs_and_prefetches_do_not_count() -> None:
    """They get results and are recorded with the reason why they don't count."""
    log = HeldLog()
    with served(OPEN, recording=recording_to(log)) as (ask, _):
        ask("/search?q=lag", {"User-Agent": BROWSER, "Sec-Purpose": "prefetch;prerender"})
        ask("/search?q=lag", {"User-Agent": "curl/8.5.0"})
        ask("/search?q=lag", {"User-Agent": BROWSER}, "HEAD")
    assert len(log.slates) == 3
    assert all(slate.filter_reason for slate in log.slates)


def test_no_line_has_an_address_or_a_browser() -> None:
    """It has neither the peer's address nor those from proxies nor a key's name; the network hash is stable."""
    log = HeldLog()
    with served(OPEN, recording=recording_to(log)) as (ask, _):
        for address in ("203.0.113.77", "2001:db8:77::1", "2001:db8:77::2"):
            headers = {"User-Agent": BROWSER, "X-Forwarded-For": address}
            token = ask("/api/v1/search?q=lag", headers).json["slate"]
            body = f'{{"slate": "{token}", "kind": "view", "page": 0}}'.encode()
            assert ask("/api/v1/events", {**headers, "Content-Type": "text/plain"}, "POST", body).status == 204
    written = b"".join(log.lines)
    assert not [word for word in (b"203.0.113", b"2001", b"127.0.0.1", b"Firefox", b"Mozilla") if word in written]
    marks = [record.visitor for record in log.records]
    assert marks[0] == marks[1] != marks[2]
    assert len(set(marks[2:])) == 1
