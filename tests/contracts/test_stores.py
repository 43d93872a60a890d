"""What every store of a crawl does, whether it keeps it in memory or on disk."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vedette.edges.memory import MemoryStore
from vedette.edges.sqlite import SqliteStore
from vedette.facts import Failure, Origin, Page, Refusal, fingerprint
from vedette.fetch.robots_state import UNKNOWN, RobotsAnswered, RobotsSilent, RobotsState, observe
from vedette.ring.events import GiveUp, Keep, KeepRobots, Known, Refuse, Remember, Seen
from vedette.ring.store import Counts, Kept, Store

NOW_S = 1_800_000_000.5
URLS = tuple(f"http://host{number % 3}.test/{number}" for number in range(9))
ROBOTS = b"User-agent: *\nDisallow: /private/\nCrawl-delay: 3\n\xff\xfe"

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
pages = st.builds(
    Page,
    url=st.sampled_from(URLS),
    depth=st.just(1),
    status=st.integers(100, 599),
    fetched_s=st.floats(0, 1e12),
    title=words,
    links=st.lists(st.sampled_from(URLS), max_size=4).map(tuple),
    body=st.binary(max_size=200),
    content_type=words,
    etag=words,
    last_modified=words,
    location=words,
)
states = st.one_of(
    st.builds(RobotsSilent, st.floats(0, 1e12), words).map(lambda event: observe(UNKNOWN, event, "vedette")),
    st.builds(
        RobotsAnswered, st.floats(0, 1e12), st.integers(100, 599), st.binary(max_size=99), st.just(0), st.just(())
    ).map(lambda event: observe(UNKNOWN, event, "vedette")),
)
commands = st.one_of(
    st.builds(Keep, pages),
    st.builds(Refuse, st.sampled_from(URLS), st.sampled_from(list(Refusal)), words),
    st.builds(GiveUp, st.sampled_from(URLS), words, st.floats(0, 1e12)),
    st.builds(
        KeepRobots, st.builds(Origin, st.just("https"), st.sampled_from(["a.test", "[::1]"]), st.just(81)), states
    ),
    st.lists(st.builds(Seen, st.sampled_from(URLS), st.just(1)), max_size=3).map(tuple).map(Remember),
)
EVERYTHING = Remember(tuple(Seen(url, 1) for url in URLS))


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store of each kind."""
    store: Store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "data")
    yield store
    store.close()


def remember(*urls: str, depth: int = 0) -> Remember:
    """URLs that were just seen."""
    return Remember(tuple(Seen(url, depth) for url in urls))


def page(url: str, body: bytes = b"body") -> Page:
    """A page with something in every field."""
    links = (f"{url}/a", f"{url}/b?c")
    return Page(url, 0, 200, NOW_S, "Títle \0", links, body, "text/html", '"e\xe9"', "yesterday", "http://x.test/")


def known_to(store: Store) -> Known:
    """What a store knows, which must be something."""
    known = store.known()
    assert known is not None
    return known


def test_nothing_is_known_at_first(store: Store) -> None:
    """An empty store says so, so that a first run can be told from a later one."""
    assert store.known() is None
    assert store.counts() == Counts(0, 0, 0, 0, 0)
    assert list(store.pages()) == []


def test_what_was_seen_waits_in_its_order(store: Store) -> None:
    """URLs wait in the order in which they were seen, with their depths, and are known by fingerprint."""
    store.keep([remember(URLS[2], URLS[0]), remember(URLS[1], depth=4)])
    known = known_to(store)
    assert known.waiting == (Seen(URLS[2], 0), Seen(URLS[0], 0), Seen(URLS[1], 4))
    assert known.fingerprints == {fingerprint(url) for url in URLS[:3]}


def test_a_url_is_remembered_once(store: Store) -> None:
    """A URL that is seen again keeps its place and depth, and makes no trouble for those after it."""
    store.keep([remember(URLS[0], URLS[1]), remember(URLS[0], depth=7), remember(URLS[2], URLS[3])])
    assert known_to(store).waiting == tuple(Seen(url, 0) for url in URLS[:4])
    assert store.counts().known == 4


def test_every_end_is_an_end(store: Store) -> None:
    """What was fetched, refused or given up waits no more, stays known, and is counted as what it is."""
    store.keep([remember(*URLS[:5]), Keep(page(URLS[0])), Refuse(URLS[1], Refusal.ROBOTS, "Disallow: /")])
    store.keep([GiveUp(URLS[2], Failure.TIMEOUT, NOW_S), GiveUp(URLS[3], "status 500", NOW_S)])
    known = known_to(store)
    assert known.waiting == (Seen(URLS[4], 0),)
    assert len(known.fingerprints) == 5
    assert store.counts() == Counts(known=5, waiting=1, fetched=1, refused=1, failed=2)


def test_the_last_word_counts(store: Store) -> None:
    """A URL has one end, the latest; a page that was once had is not lost by a later failure."""
    store.keep([remember(URLS[0]), GiveUp(URLS[0], "status 500", NOW_S), Keep(page(URLS[0]))])
    assert store.counts() == Counts(1, 0, 1, 0, 0)
    store.keep([GiveUp(URLS[0], "status 500", NOW_S)])
    assert store.counts() == Counts(1, 0, 0, 0, 1)
    assert list(store.pages()) == [page(URLS[0])]


def test_pages_come_back_whole(store: Store) -> None:
    """A page comes back equal in every field, in the order of first sight, the newest where it was fetched again."""
    store.keep([remember(*URLS[:3]), Keep(page(URLS[2])), Keep(page(URLS[0])), Keep(page(URLS[2], b""))])
    assert list(store.pages()) == [page(URLS[0]), page(URLS[2], b"")]


def test_robots_states_come_back(store: Store) -> None:
    """What is known of robots.txt files comes back by origin, ready to decide by; the newest counts."""
    state: RobotsState = observe(UNKNOWN, RobotsAnswered(NOW_S, 200, ROBOTS, 0, (("etag", '"1"'),)), "vedette")
    waiting = observe(state, RobotsSilent(NOW_S + 9, "too slow"), "vedette")
    a, b = Origin("https", "a.test", 443), Origin("http", "[::1]", 8080)
    store.keep([remember(URLS[0]), KeepRobots(a, waiting), KeepRobots(b, waiting), KeepRobots(a, state)])
    assert known_to(store).robots == {a: state, b: waiting}
    assert known_to(store).robots[a].crawl_delay_s == 3.0


def test_commit_changes_nothing_that_can_be_seen(store: Store) -> None:
    """What was kept is there before and after a commit, and further commits are harmless."""
    store.commit()
    store.keep([remember(URLS[0]), Keep(page(URLS[0]))])
    before = store.counts(), list(store.pages()), store.known()
    store.commit()
    store.commit()
    assert (store.counts(), list(store.pages()), store.known()) == before


def test_nothing_to_keep(store: Store) -> None:
    """Empty batches are batches."""
    store.keep([])
    store.keep([Remember(())])
    assert store.known() is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(commands, max_size=25), st.lists(st.integers(0, 25)))
def test_both_kinds_agree(tmp_path_factory: pytest.TempPathFactory, batch: list[Kept], commit_after: list[int]) -> None:
    """After any commands, with commits and a new start in between, disk and memory say the same."""
    memory, folder = MemoryStore(), tmp_path_factory.mktemp("store")
    disk = SqliteStore(folder)
    for row, command in enumerate([EVERYTHING, *batch]):
        memory.keep([command])
        disk.keep([command])
        if row in commit_after:
            disk.commit()
    disk.close()
    disk = SqliteStore(folder)
    assert (disk.counts(), disk.known()) == (memory.counts(), memory.known())
    assert list(disk.pages()) == list(memory.pages())
    disk.close()
