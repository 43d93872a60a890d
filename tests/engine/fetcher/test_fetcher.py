"""The fetcher alone: assignments in, requests and reports out, and all delays respected."""

import pytest

from vedette.engine.fetcher.fetcher import Fetcher
from vedette.engine.messages import FetchFailure, FetchSuccess, FetchTask, HostSettings, Recall, WorkBatch
from vedette.model import Failure, FetchOutcome, FetchResponse, NoResponse, Origin, Site

HOST, PLACE = "a.test", "192.0.2.1"
ORIGIN = Origin("https", HOST, 443)


def orders(
    *errands: FetchTask, ready_s: float = 0.0, delay_s: float = 1.0, crawl_delay_s: float | None = None
) -> WorkBatch:
    """Return tasks for one host."""
    return WorkBatch((HostSettings(HOST, PLACE, delay_s, crawl_delay_s, ready_s, 0),), errands)


def errand(path: str, worth: float = 0.0, valid_until_s: float = 1e9) -> FetchTask:
    """Return a task for a page."""
    return FetchTask(len(path), HOST, f"https://{HOST}{path}", "page", worth, valid_until_s=valid_until_s)


def asker(latency_factor: float = 0.0, speed: float = 1.0) -> Fetcher:
    """Return a fetcher for one site."""
    made = Fetcher("vedette/test", 0.25, hold_s=20.0, latency_factor=latency_factor, speed=speed)
    made.accept_batch(WorkBatch(sites=(Site(f"https://{HOST}/"),)))
    return made


def take_path(worker: Fetcher, now_s: float) -> str | None:
    """Return the path of the next request."""
    ask = worker.take_request(now_s)
    return ask.url.removeprefix(f"https://{HOST}") if ask else None


def answer(path: str, started_s: float, ended_s: float, status: int = 200) -> FetchResponse:
    """Return a response."""
    return FetchResponse(f"https://{HOST}{path}", "page", status, (), b"", started_s, ended_s, PLACE)


def test_the_best_task_comes_first_and_each_after_its_delay() -> None:
    """Within a host, worth decides; the delay starts at the end of a response."""
    worker = asker()
    worker.accept_batch(orders(errand("/second", 1.0), errand("/first", 2.0), ready_s=5.0))
    assert (take_path(worker, 4.9), worker.next_s()) == (None, 5.0)
    assert take_path(worker, 5.0) == "/first"
    worker.on_outcome(HOST, answer("/first", 5.0, 7.0))
    assert (take_path(worker, 7.9), take_path(worker, 8.0)) == (None, "/second")


def test_longer_delays_apply_at_once() -> None:
    """Assignments without tasks change a host's settings, even during a request to it."""
    worker = asker()
    worker.accept_batch(orders(errand("/1"), errand("/22")))
    assert take_path(worker, 0.0) == "/1"
    worker.accept_batch(orders(ready_s=50.0, crawl_delay_s=15.0))
    worker.on_outcome(HOST, answer("/1", 0.0, 1.0))
    assert (take_path(worker, 49.9), take_path(worker, 50.0)) == (None, "/22")
    worker.on_outcome(HOST, answer("/22", 50.0, 51.0))
    assert worker.host_updates[HOST].ready_s == pytest.approx(66.0)


def test_tasks_with_an_expired_robots_txt_are_returned() -> None:
    """An expired task is not sent; the coordinator checks it again."""
    worker = asker()
    worker.accept_batch(orders(errand("/old", 2.0, valid_until_s=10.0), errand("/good", 1.0)))
    assert take_path(worker, 10.0) == "/good"
    assert [back.url for back in worker.returned] == [f"https://{HOST}/old"]


def test_a_new_robots_txt_sends_the_pages_of_its_host_back() -> None:
    """Once it has arrived, its rules apply, and only the coordinator can parse it; other hosts' tasks stay queued."""
    worker = asker()
    file = FetchTask(0, HOST, ORIGIN.robots_url, "robots", 9.0, robots_of=ORIGIN)
    other = FetchTask(0, HOST, f"https://{HOST}/for-b", "robots", 8.0, robots_of=Origin("https", "b.test", 443))
    worker.accept_batch(orders(errand("/page"), other, file))
    assert take_path(worker, 0.0) == "/robots.txt"
    result = worker.on_outcome(HOST, answer("/robots.txt", 0.0, 1.0))
    assert isinstance(result, FetchSuccess)
    assert [back.url for back in worker.returned] == [f"https://{HOST}/page"]
    assert take_path(worker, 5.0) == "/for-b"


def test_a_recall_returns_unsent_tasks() -> None:
    """A request in flight stays in flight; an unknown host is ignored."""
    worker = asker()
    worker.accept_batch(orders(errand("/out", 2.0), errand("/in")))
    assert take_path(worker, 0.0) == "/out"
    worker.recall(Recall((HOST, "unheard.of")))
    assert [back.url for back in worker.returned] == [f"https://{HOST}/in"]
    assert isinstance(worker.on_outcome(HOST, answer("/out", 0.0, 1.0)), FetchSuccess)


@pytest.mark.parametrize(
    "outcome",
    [answer("/1", 0.0, 1.0, status=503), NoResponse(f"https://{HOST}/1", "page", Failure.TIMEOUT, "", 0.0, 30.0)],
)
def test_tasks_of_a_host_with_a_long_delay_are_returned(outcome: FetchOutcome) -> None:
    """Tasks that could wait in the coordinator are returned to it, with the reason and the time."""
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
def test_a_slow_response_lengthens_the_delay(factor: float, speed: float, least_s: float) -> None:
    """A host waits twice as long as its response took, if configured; with a fast clock, in real time."""
    worker = asker(factor, speed)
    worker.accept_batch(orders(errand("/1")))
    worker.take_request(0.0)
    worker.on_outcome(HOST, answer("/1", 0.0, 4.0))
    assert worker.host_updates[HOST].ready_s == pytest.approx(4.0 + least_s)


def test_a_moved_host_is_requested_at_its_new_address() -> None:
    """The coordinator moves it when nothing is in flight: delays of the new address apply."""
    worker = asker()
    worker.accept_batch(orders(errand("/1")))
    worker.take_request(0.0)
    worker.on_outcome(HOST, answer("/1", 0.0, 1.0))
    moved = HostSettings(HOST, "192.0.2.9", 1.0, None, 1.0, 0)
    worker.accept_batch(WorkBatch((moved,), (errand("/22"),)))
    assert (take_path(worker, 1.9), take_path(worker, 2.0)) == (None, "/22")
    assert worker.hosts[HOST].settings.address == "192.0.2.9"
