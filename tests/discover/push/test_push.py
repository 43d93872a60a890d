"""Push signals: WebSub hubs, pings and promises, and how much they are trusted."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.discover.formats.feeds import Feed, parse_feed
from vedette.discover.push.credit import NEW_SOURCE, SignalTrust, move_due_s
from vedette.discover.push.indexnow import MAX_URLS, Ping, PingRejection, parse_ping, parse_ping_body
from vedette.discover.push.promises import Promise, compute_due_s, find_feasible_s, list_promises
from vedette.discover.push.websub import find_link, find_offer
from vedette.model import Site

FEED = "https://example.org/feed.xml"
HUB = "https://hub.example.net/"
KEY = "0123456789abcdef"


def body(**fields: object) -> bytes:
    """Return a ping of some URLs with some changes."""
    plain = {"host": "example.org", "key": KEY, "urlList": ["https://example.org/a", "https://example.org/b"]}
    return json.dumps(plain | fields).encode()


NOT_MEANT: st.SearchStrategy[object] = (
    st.none() | st.integers() | st.text(max_size=9) | st.lists(st.text(max_size=9), max_size=3)
)


def as_body(report: dict[str, object]) -> bytes:
    """Encode as a request body."""
    return json.dumps(report).encode()


def test_a_feed_names_its_hub_and_itself() -> None:
    """An Atom feed with both links is offered under the URL it declares as its own."""
    atom = f'<feed xmlns="http://www.w3.org/2005/Atom"><link rel="hub" href="{HUB}"/><link rel="self" href="/all"/>'
    found = find_offer(FEED, parse_feed(atom.encode(), FEED))
    assert found == (HUB, "https://example.org/all")


def test_headers_come_before_the_feed() -> None:
    """If both name a hub, the Link header wins."""
    found = find_offer(FEED, Feed(hub="https://other.example.net/"), [f"<{HUB}>; rel=hub"])
    assert found is not None
    assert found.hub == HUB


def test_a_topic_of_somebody_else_is_not_believed() -> None:
    """A feed that declares a URL on another host is subscribed to at the URL where it was found."""
    found = find_offer(FEED, Feed(hub=HUB, self_link="https://victim.example.com/feed"))
    assert found is not None
    assert found.topic == FEED


@given(st.lists(st.text('<>;, ="relhubself/a\\', max_size=200), max_size=4))
def test_no_link_header_breaks_the_reader(headers: list[str]) -> None:
    """Any Link header gives a URL or none."""
    found = find_link(headers, "hub", FEED)
    assert found is None or found.startswith("http")


def test_a_ping_says_where_its_key_is() -> None:
    """By default the key file has the key's name and is at the root; or its location is given."""
    plain = parse_ping({"url": "https://example.org/deep/a", "key": KEY})
    report = parse_ping(
        {"url": "https://example.org/deep/a", "key": KEY, "keyLocation": "https://example.org/deep/k.txt"}
    )
    assert isinstance(plain, Ping)
    assert isinstance(report, Ping)
    assert plain.key_url == f"https://example.org/{KEY}.txt"
    assert report.key_url == "https://example.org/deep/k.txt"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"not json", 400),
        (b"[]", 400),
        (b"[" * 100_000, 400),
        (body(urlList=[]), 400),
        (body(urlList=[1, 2]), 400),
        (body(urlList=["https://example.org/"] * (MAX_URLS + 1)), 400),
        (body(key="short"), 400),
        (body(key="with a space and more"), 400),
        (body(key=None), 400),
        (body(host="example.com"), 422),
        (body(host=None), 422),
        (body(urlList=["https://example.org/a", "https://example.com/b"]), 422),
        (body(keyLocation="https://example.com/k.txt"), 422),
        (body(keyLocation="https://example.org/below/k.txt"), 422),
    ],
)
def test_a_wrong_ping_is_answered_as_the_protocol_says(sent: bytes, status: int) -> None:
    """An invalid form is 400, URLs that the key does not cover are 422, and nothing raises."""
    found = parse_ping_body(sent)
    assert isinstance(found, PingRejection)
    assert found.status == status


@given(st.binary(max_size=100) | st.dictionaries(st.sampled_from(["host", "key", "urlList"]), NOT_MEANT).map(as_body))
def test_no_body_breaks_the_reader_of_pings(sent: bytes) -> None:
    """Anything posted is either a ping or rejected with a reason."""
    assert isinstance(parse_ping_body(sent), Ping | PingRejection)


@given(st.lists(st.booleans(), max_size=300))
def test_credit_stays_a_chance_and_follows_what_came(received: list[bool]) -> None:
    """For any outcomes, trust stays between 0 and 1, and a correct signal never lowers it."""
    credit = NEW_SOURCE
    for each in received:
        credit = credit.update(came_true=each)
    assert 0 < credit.mean < 1
    assert credit.update(came_true=False).mean < credit.update(came_true=True).mean


def test_a_liar_loses_its_credit_and_can_win_it_back() -> None:
    """After many false signals in a row a signal has no effect; as many correct ones restore it."""
    credit = NEW_SOURCE
    for _ in range(60):
        credit = credit.update(came_true=False)
    assert move_due_s(credit, 0.0, 1000.0, 86_400.0) is None
    for _ in range(60):
        credit = credit.update(came_true=True)
    assert move_due_s(credit, 0.0, 1000.0, 86_400.0) == 0.0


@given(st.floats(0, 200), st.floats(0, 200), st.floats(-1e6, 1e6))
def test_a_signal_never_puts_a_page_off(true: float, false: float, due: float) -> None:
    """For any credit, a signaled page isn't fetched later than it would have been, nor in the past."""
    moved = move_due_s(SignalTrust(true, false), 0.0, due, 86_400.0)
    assert moved is None or 0.0 <= moved <= max(due, 0.0)


def test_promises_are_read_in_the_spelling_of_their_site() -> None:
    """A URL without a host is on the site itself; parameters without meaning are dropped, other sites are skipped."""
    site = Site("https://example.org/", promise=("900 /news?utm_source=x", "60 https://example.com/"))
    assert list(list_promises(site)) == [Promise("https://example.org/news", 900.0)]


@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=5), st.floats(0.1, 100))
def test_what_is_said_to_be_possible_is(intervals: list[float], delay: float) -> None:
    """Rejected promises are accepted with the intervals that the error suggests."""
    promises = [Promise(f"https://example.org/{place}", each) for place, each in enumerate(intervals)]
    shortest = find_feasible_s(promises, delay)
    if shortest is not None:
        assert find_feasible_s([each._replace(interval_s=shortest) for each in promises], delay) is None


@given(st.floats(1, 1e6), st.floats(0.001, 1e3))
def test_a_promised_source_is_asked_for_before_its_time_is_over(interval: float, delay: float) -> None:
    """It is requested after its last fetch, but before its interval has passed."""
    assert 0 < compute_due_s(Promise("https://example.org/", interval), 0.0, delay) < interval
