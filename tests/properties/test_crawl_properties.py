"""Properties of every crawl of every small web: politeness, obedience, and that nothing is lost or stuck.

The webs are small, with many problems: hosts that share addresses, robots.txt on other hosts or late ones, slow pages,
failures, redirects back and forth, fetchers that are killed, coordinators that are interrupted.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from tests.engine.memory_web import Asked, Drive, MemoryWeb, Reply, Served, Server, moved, page, rules_for

from vedette.fetch.politeness import FIRST_RETRY_S
from vedette.model import Failure

HOSTS = ("a.test", "b.test", "c.test", "d.test")
ADDRESSES = ("93.184.216.1", "93.184.216.2")
PATHS = ("/", "/1", "/2", "/x", "/x/1")
START_S = 1000.0
# Times are sums of many doubles; this is less than any of them and more than their rounding.
ROUNDING_S = 1e-6

urls = st.builds("https://{}{}".format, st.sampled_from(HOSTS), st.sampled_from(PATHS))


@dataclass(frozen=True, slots=True)
class File:
    """The robots.txt of a host: its location, from when on it is available, and its content."""

    at: str
    since_s: float
    crawl_delay_s: float
    disallows: bool


@dataclass(frozen=True, slots=True)
class World:
    """A web, and the rules that a crawl of it must follow."""

    web: MemoryWeb
    files: dict[str, File]
    delay_s: float
    address_delay_s: float


files = st.builds(
    File,
    at=st.sampled_from(HOSTS),
    since_s=st.sampled_from([0.0, 0.0, START_S + 300.0]),
    crawl_delay_s=st.sampled_from([0.0, 0.0, 3.0, 20.0]),
    disallows=st.booleans(),
)
pages: st.SearchStrategy[Served] = st.one_of(
    st.builds(
        lambda links, took_s: page(*links, took_s=took_s), st.lists(urls, max_size=5), st.sampled_from([0.0, 0.1, 30.0])
    ),
    # What a single page can do; a fault of TLS or of a name is its host's (test_outages).
    st.sampled_from([Reply(404), Reply(500), Reply(429), Failure.TIMEOUT, Failure.TOO_LARGE]),
    urls.map(moved),
)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Generate a web of four hosts at two addresses."""
    found = {host: draw(files) for host in HOSTS}
    replies: dict[str, Served | Server] = {}
    for host, file in found.items():
        replies |= _served(host, file)
        replies |= {f"https://{host}{path}": draw(pages) for path in PATHS}
    names = {host: (draw(st.sampled_from(ADDRESSES)),) for host in HOSTS}
    delays = st.sampled_from([0.0, 0.5, 2.0])
    return World(MemoryWeb(replies, dict(names)), found, draw(delays), draw(delays))


def _served(host: str, file: File) -> dict[str, Served | Server]:
    lines = ["User-agent: *", f"Crawl-delay: {file.crawl_delay_s}", *["Disallow: /x"] * file.disallows]
    there = f"https://{file.at}/for-{host}.txt"

    def late(now_s: float) -> Served:
        return Reply(200, (), "\n".join(lines).encode()) if now_s >= file.since_s else Reply(503)

    return {f"https://{host}/robots.txt": moved(there), there: late}


def drive_of(world: World, **settings: object) -> Drive:
    """Start a crawl of it with two fetchers."""
    starts = [f"https://{host}/" for host in HOSTS]
    rules = rules_for(*starts, delay_s=world.delay_s, address_delay_s=world.address_delay_s, **settings)
    return Drive(world.web, rules, room=3, start_s=START_S).begin()


def crawl(world: World, **settings: object) -> Drive:
    """Crawl it to the end."""
    return drive_of(world, **settings).run()


def gaps(asked: list[Asked]) -> list[tuple[float, Asked]]:
    """Yield the time between the end of each response and the next request, with that request."""
    return [(after.sent_s - before.ended_s + ROUNDING_S, after) for before, after in pairwise(asked)]


def check_rests(world: World, log: list[Asked]) -> None:
    """Check one request at a time, and after each response the longest of the delays known by then."""
    for host in HOSTS:
        asked = [each for each in log if each.host == host]
        first_page = next((number for number, each in enumerate(asked) if each.purpose == "page"), len(asked))
        assert all(gap >= world.delay_s for gap, _ in gaps(asked))
        assert all(gap >= world.files[host].crawl_delay_s for gap, _ in gaps(asked[max(first_page - 1, 0) :]))
    for address in ADDRESSES:
        assert all(gap >= world.address_delay_s for gap, _ in gaps([a for a in log if a.address == address]))


def seen_before_death(log: list[Asked], died_s: float) -> list[Asked]:
    """Return the log with answers cut off that a dead fetcher could not receive."""
    return [replace(each, ended_s=min(each.ended_s, died_s)) if each.sent_s <= died_s else each for each in log]


@given(worlds())
def test_hosts_and_addresses_get_their_rest(world: World) -> None:
    """Even with several fetchers, no host and no address gets two requests at once, nor one before its delay."""
    check_rests(world, crawl(world).log)


@given(worlds(), st.sampled_from([0.1, 1.0, 2.5, 10.0, 40.0]), st.integers(0, 1))
def test_a_worker_that_dies_costs_nobody_rest_and_no_url(world: World, after_s: float, number: int) -> None:
    """Its tasks are returned once, its hosts wait first, and every URL is finished in the end."""
    drive = drive_of(world, max_attempts=2).run(after_s)
    died_s, kept = drive.now_s, drive.pages()
    drive.kill_worker(number)
    drive.run()
    check_rests(world, seen_before_death(drive.log, died_s))
    counts = drive.urls.get_counts()
    assert (counts.waiting, counts.leased, drive.keeper.pages_out) == (0, 0, 0)
    assert all(most_in_a_row(drive, url) <= 3 for url in drive.depths())
    assert not [asked.url for asked in drive.log if asked.url in kept and asked.sent_s > died_s]


@given(worlds())
def test_robots_txt_is_known_and_obeyed(world: World) -> None:
    """No page is requested before the host's file was fetched, or if the file disallows it."""
    drive = crawl(world)
    known_s = {host: _known_s(drive, host, world.files[host]) for host in HOSTS}
    for asked in drive.log:
        if asked.purpose == "page":
            assert asked.sent_s >= known_s[asked.host]
            assert not (world.files[asked.host].disallows and "/x" in asked.url)


def _known_s(drive: Drive, host: str, file: File) -> float:
    answers = (each for each in drive.log if each.url.endswith(f"/for-{host}.txt") and each.sent_s >= file.since_s)
    return min((each.ended_s for each in answers), default=float("inf"))


def most_in_a_row(drive: Drive, url: str) -> int:
    """The maximum number of requests for a page before it was left alone for an hour."""
    times = [asked.sent_s for asked in drive.log if asked.url == url and asked.purpose == "page"]
    return max((sum(0.0 <= time_s - since_s < FIRST_RETRY_S for time_s in times) for since_s in times), default=0)


@given(worlds())
def test_every_url_that_was_seen_comes_to_one_end(world: World) -> None:
    """Each URL is fetched, refused or failed, and never requested more often in a row than allowed."""
    drive = crawl(world, max_attempts=2)
    ends = [*drive.pages(), *drive.refused(), *drive.given_up()]
    assert sorted(ends) == sorted(drive.depths())
    assert all(most_in_a_row(drive, url) <= 2 for url in drive.depths())
    assert drive.keeper.get_ending(drive.now_s, 0.0) == "done"


@given(worlds(), st.integers(1, 8))
def test_no_page_more_than_wanted(world: World, most: int) -> None:
    """The number of pages is exact, or there are no more."""
    everything = crawl(world).keeper.tally.pages
    assert crawl(world, max_pages=most).keeper.tally.pages == min(most, everything)


@given(worlds(), st.sampled_from([0.0, 1.0, 10.0, 100.0, 1000.0]), st.booleans())
def test_a_crawl_that_was_cut_off_goes_on_politely(world: World, cut_s: float, clean: bool) -> None:  # noqa: FBT001 - both kinds
    """If it is stopped at any time, the next run only repeats requests in flight, and respects every delay."""
    earlier = drive_of(world).run(cut_s)
    kept = earlier.pages()
    later = earlier.after(clean=clean).run()
    assert not [url for url in later.asked_urls() if url in kept]
    assert later.urls.get_counts().waiting == 0
    check_rests(world, seen_before_death(earlier.log, earlier.now_s) + later.log)
