"""The fetcher alone: assignments in, requests and reports out, every delay respected."""

import pytest

from vedette.engine.fetcher.fetcher import Fetcher
from vedette.engine.messages import FetchFailure, FetchSuccess, FetchTask, HostSettings, Recall, WorkBatch
from vedette.model import Failure, FetchOutcome, FetchResponse, NoResponse, Origin, Site

HOST, PLACE = "a.test", "192.0.2.1"
ORIGIN = Origin("https", HOST, 443)


def orders(
    *errands: FetchTask, ready_s: float = 0.0, delay_s: float = 1.0, crawl_delay_s: float | None = None
) -> WorkBatch:
    """Errands to one host."""
    return WorkBatch((HostSettings(HOST, PLACE, delay_s, crawl_delay_s, ready_s, 0),), errands)


def errand(path: str, worth: float = 0.0, valid_until_s: float = 1e9) -> FetchTask:
    """A page to ask for."""
    return FetchTask(len(path), HOST, f"https://{HOST}{path}", "page", worth, valid_until_s=valid_until_s)


def asker(latency_factor: float = 0.0, speed: float = 1.0) -> Fetcher:
    """A worker for one site."""
    made = Fetcher("vedette/test", 0.25, hold_s=20.0, latency_factor=latency_factor, speed=speed)
    made.accept_batch(WorkBatch(sites=(Site(f"https://{HOST}/"),)))
    return made


def asked_for(worker: Fetcher, now_s: float) -> str | None:
    """The path of the next request."""
    ask = worker.take_request(now_s)
    return ask.url.removeprefix(f"https://{HOST}") if ask else None


def answer(path: str, started_s: float, ended_s: float, status: int = 200) -> FetchResponse:
    """What a server says."""
    return FetchResponse(f"https://{HOST}{path}", "page", status, (), b"", started_s, ended_s, PLACE)


def test_the_best_errand_comes_first_and_each_after_its_pause() -> None:
    """Worth decides within a host, the pause runs from the end of an answer."""
    worker = asker()
    worker.accept_batch(orders(errand("/second", 1.0), errand("/first", 2.0), ready_s=5.0))
    assert (asked_for(worker, 4.9), worker.next_s()) == (None, 5.0)
    assert asked_for(worker, 5.0) == "/first"
    worker.on_outcome(HOST, answer("/first", 5.0, 7.0))
    assert (asked_for(worker, 7.9), asked_for(worker, 8.0)) == (None, "/second")


def test_longer_pauses_hold_from_the_moment_they_are_told() -> None:
    """Assignments without tasks change a host's settings, even while a request to it is in flight."""
    worker = asker()
    worker.accept_batch(orders(errand("/1"), errand("/22")))
    assert asked_for(worker, 0.0) == "/1"
    worker.accept_batch(orders(ready_s=50.0, crawl_delay_s=15.0))
    worker.on_outcome(HOST, answer("/1", 0.0, 1.0))
    assert (asked_for(worker, 49.9), asked_for(worker, 50.0)) == (None, "/22")
    worker.on_outcome(HOST, answer("/22", 50.0, 51.0))
    assert worker.host_updates[HOST].ready_s == pytest.approx(66.0)


def test_what_robots_txt_no_longer_vouches_for_goes_back() -> None:
    """An expired task is not sent; the coordinator judges it again."""
    worker = asker()
    worker.accept_batch(orders(errand("/old", 2.0, valid_until_s=10.0), errand("/good", 1.0)))
    assert asked_for(worker, 10.0) == "/good"
    assert [back.url for back in worker.returned] == [f"https://{HOST}/old"]


def test_a_new_robots_txt_sends_the_pages_of_its_host_back() -> None:
    """From its response on its rules apply, and only the coordinator can parse it; other hosts' files stay queued."""
    worker = asker()
    file = FetchTask(0, HOST, ORIGIN.robots_url, "robots", 9.0, robots_of=ORIGIN)
    other = FetchTask(0, HOST, f"https://{HOST}/for-b", "robots", 8.0, robots_of=Origin("https", "b.test", 443))
    worker.accept_batch(orders(errand("/page"), other, file))
    assert asked_for(worker, 0.0) == "/robots.txt"
    result = worker.on_outcome(HOST, answer("/robots.txt", 0.0, 1.0))
    assert isinstance(result, FetchSuccess)
    assert [back.url for back in worker.returned] == [f"https://{HOST}/page"]
    assert asked_for(worker, 5.0) == "/for-b"


def test_a_recall_brings_back_what_has_not_left() -> None:
    """A request in flight stays in flight; an unknown host is ignored."""
    worker = asker()
    worker.accept_batch(orders(errand("/out", 2.0), errand("/in")))
    assert asked_for(worker, 0.0) == "/out"
    worker.recall(Recall((HOST, "unheard.of")))
    assert [back.url for back in worker.returned] == [f"https://{HOST}/in"]
    assert isinstance(worker.on_outcome(HOST, answer("/out", 0.0, 1.0)), FetchSuccess)


@pytest.mark.parametrize(
    "outcome",
    [answer("/1", 0.0, 1.0, status=503), NoResponse(f"https://{HOST}/1", "page", Failure.TIMEOUT, "", 0.0, 30.0)],
)
def test_a_host_that_must_rest_for_long_gives_its_errands_back(outcome: FetchOutcome) -> None:
    """Nothing waits in a fetcher that could wait in the coordinator, which learns why and for how long."""
    worker = asker()
    worker.accept_batch(orders(errand("/1", 1.0), errand("/22")))
    worker.take_request(0.0)
    result = worker.on_outcome(HOST, outcome)
    assert isinstance(result, FetchFailure) == isinstance(outcome, NoResponse)
    assert [back.url for back in worker.returned] == [f"https://{HOST}/22"]
    news = worker.host_updates[HOST]
    assert news.ready_s > outcome.ended_s + 20.0
    assert (news.failure_streak, bool(news.trouble)) == (1, True)


@pytest.mark.parametrize(("factor", "speed", "least_s"), [(0.0, 1.0, 1.0), (2.0, 1.0, 8.0), (2.0, 100.0, 1.0)])
def test_a_slow_answer_makes_for_a_longer_pause(factor: float, speed: float, least_s: float) -> None:
    """Twice as long as it took, where wanted and more than the delay; in fast time it took less by our clock."""
    worker = asker(factor, speed)
    worker.accept_batch(orders(errand("/1")))
    worker.take_request(0.0)
    worker.on_outcome(HOST, answer("/1", 0.0, 4.0))
    assert worker.host_updates[HOST].ready_s == pytest.approx(4.0 + least_s)


def test_a_host_that_moved_is_asked_where_it_lies_now() -> None:
    """The coordinator does so when nothing is in flight: delays of the new address count."""
    worker = asker()
    worker.accept_batch(orders(errand("/1")))
    worker.take_request(0.0)
    worker.on_outcome(HOST, answer("/1", 0.0, 1.0))
    moved = HostSettings(HOST, "192.0.2.9", 1.0, None, 1.0, 0)
    worker.accept_batch(WorkBatch((moved,), (errand("/22"),)))
    assert (asked_for(worker, 1.9), asked_for(worker, 2.0)) == (None, "/22")
    assert worker.hosts[HOST].settings.address == "192.0.2.9"
