"""Checks of observers: home only requests a host once its observer has released it, and respects its delay."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.runtime.observers.desk_setup import HOST, NAME, OLD, Desk, observe

from vedette.adapters.crawl_store.request_budget import RequestBudget
from vedette.discover.urls.scope import SiteIndex
from vedette.engine.fetcher.page_reader import parse_outcome
from vedette.engine.links import LinkResolver
from vedette.engine.messages import FetchSuccess, FetchTask, HostSettings
from vedette.fetch.connect_to import parse_override
from vedette.model import FetchResponse
from vedette.runtime.observers.checks import PageChecks
from vedette.runtime.observers.desk import ErrandDesk
from vedette.web.commands.commands import AssignHosts

LINKS = LinkResolver(SiteIndex([]))
CRAWL_DELAY_S = 15.0
OTHER_URL = "http://near.test/"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A desk with one observer and one host, which home can reach as well."""
    made = Desk(tmp_path)
    detours = (parse_override(f"{HOST}:80=127.0.0.1:9"),)
    made.settings = replace(made.settings, detours=detours, allow_private=True)
    yield made
    made.store.close()


@pytest.fixture
def checks(desk: Desk) -> Iterator[PageChecks]:
    """The checks of the desk's hub."""
    budget = RequestBudget(desk.folder, 1_000)
    made = PageChecks(desk.settings, budget)
    yield made
    made.close()
    budget.close()


def answer(task: FetchTask, ended_s: float, status: int = 200, retry_after: str = "") -> FetchResponse:
    """Return a response from the host."""
    headers = (("content-type", "text/html"), *((("retry-after", retry_after),) if retry_after else ()))
    return FetchResponse(task.url, "page", status, headers, OLD, ended_s - 0.1, ended_s, "127.0.0.1", payload=OLD)


def lease(desk: Desk, *paths: str) -> list[FetchTask]:
    """Return what the coordinator leases; it knows the crawl delay, but none of home's requests for checks."""
    tasks = desk.take_tasks(*paths)
    desk.desk.take_tasks([HostSettings(HOST, "observed", 1.0, CRAWL_DELAY_S, 0.0, 0)], [])
    return tasks


def begin_check(desk: Desk, checks: PageChecks, task: FetchTask) -> None:
    """Consider observations until one is checked."""
    seen = parse_outcome(task, answer(task, desk.settings.clock.now() - 5.0), LINKS)
    assert isinstance(seen, FetchSuccess)
    while not desk.desk.paused:
        checks.consider(seen, NAME, desk.desk)


def test_a_check_waits_for_errands_given_with_the_answer_to_its_observation(desk: Desk, checks: PageChecks) -> None:
    """The report that brought the page shows an idle host, but the reply contained the host's next errand."""
    (task,) = lease(desk, "/a")
    (errand,) = desk.errands()
    del desk.desk.tasks[task.url]
    lease(desk, "/b")
    (given,) = desk.orders(desk.report(observe(errand))).errands
    begin_check(desk, checks, task)
    clock = desk.settings.clock
    for wait_s in (0.0, CRAWL_DELAY_S + 1.0):
        assert checks.take_request(clock.now() + wait_s, desk.desk) is None
    desk.report(held=(given.number,))
    for wait_s in (0.0, CRAWL_DELAY_S + 1.0):
        assert checks.take_request(clock.now() + wait_s, desk.desk) is None
    desk.report(observe(given))
    now_s = clock.now()
    assert checks.take_request(now_s, desk.desk) is None
    assert checks.take_request(now_s + CRAWL_DELAY_S - 1.0, desk.desk) is None
    assert checks.take_request(now_s + CRAWL_DELAY_S + 1.0, desk.desk) is not None


@pytest.mark.parametrize(("status", "retry_after", "rest_s"), [(200, "", CRAWL_DELAY_S), (429, "500", 500.0)])
def test_the_delay_after_a_check_outlasts_what_the_coordinator_says(
    desk: Desk, checks: PageChecks, status: int, retry_after: str, rest_s: float
) -> None:
    """The observer waits as after any request, and the coordinator gets the time of the next allowed request."""
    (task,) = lease(desk, "/a")
    begin_check(desk, checks, task)
    ended_s = desk.settings.clock.now()
    (update,) = checks.on_outcome(answer(task, ended_s, status, retry_after), LINKS, desk.desk)
    assert update.ready_s == pytest.approx(ended_s + rest_s)
    lease(desk, "/b")
    (host,) = desk.orders(desk.report()).hosts
    assert host.wait_s == pytest.approx(rest_s, abs=10.0)


def test_a_hub_that_was_just_started_lets_hosts_rest(desk: Desk) -> None:
    """It may have been killed while it checked a page, and no other process knows about that request."""
    started = ErrandDesk(desk.settings, desk.store)
    started.take_tasks([HostSettings(HOST, "observed", 1.0, CRAWL_DELAY_S, 0.0, 0)], [])
    rest_s = started.hosts[HOST].ready_s - desk.settings.clock.now()
    assert rest_s == pytest.approx(CRAWL_DELAY_S, abs=10.0)


def test_a_host_does_not_change_hands_while_home_checks_it(desk: Desk, checks: PageChecks) -> None:
    """Its next observer must not request it at the same time."""
    (task,) = lease(desk, "/a")
    (errand,) = desk.errands()
    begin_check(desk, checks, task)
    desk.command(AssignHosts((HOST,), ""))
    desk.report(held=(errand.number,))
    desk.report(returned=(errand.number,))
    assert desk.desk.release_hosts(0.0) == ([], [])
    checks.on_outcome(answer(task, desk.settings.clock.now()), LINKS, desk.desk)
    assert desk.desk.release_hosts(0.0)[0] == [HOST]


def test_a_check_has_the_address_for_itself(desk: Desk, checks: PageChecks) -> None:
    """Other hosts at the address get no errands meanwhile, and the delay of the address passes before and after."""
    other = "near.test"
    desk.command(AssignHosts((other,), NAME))
    desk.desk.load_assignments()
    (task,) = lease(desk, "/a")
    desk.desk.take_tasks([HostSettings(other, "observed", 1.0, None, 0.0, 0)], [FetchTask(9, other, OTHER_URL, "page")])
    first, second = desk.errands()
    seen = [observe(one)._replace(address="192.0.2.7") for one in (first, second)]
    for answered in desk.report(seen[0], held=(second.number,)).answered:
        desk.desk.measure(answered, 100, is_refetch=False)
    for answered in desk.report(seen[1]).answered:
        desk.desk.measure(answered, 100, is_refetch=False)
    begin_check(desk, checks, task)
    desk.desk.take_tasks([], [FetchTask(10, other, OTHER_URL + "b", "page")])
    assert not desk.errands()
    now_s = desk.settings.clock.now()
    assert checks.take_request(now_s, desk.desk) is None
    assert checks.take_request(now_s + CRAWL_DELAY_S + 1.0, desk.desk) is not None
    ended_s = desk.settings.clock.now() + 5.0
    updates = {one.name: one for one in checks.on_outcome(answer(task, ended_s), LINKS, desk.desk)}
    assert updates[other].ready_s == pytest.approx(ended_s + desk.settings.config.crawl.address_delay_s)
    assert [one.host for one in desk.errands()] == [other]


def test_a_check_waits_for_errands_of_other_hosts_at_the_address(desk: Desk, checks: PageChecks) -> None:
    """The observer may be requesting one of them at this moment."""
    other = "near.test"
    desk.command(AssignHosts((other,), NAME))
    desk.desk.load_assignments()
    (task,) = lease(desk, "/a")
    desk.desk.take_tasks([HostSettings(other, "observed", 1.0, None, 0.0, 0)], [FetchTask(9, other, OTHER_URL, "page")])
    first, second = desk.errands()
    desk.report(observe(first), held=(second.number,))
    desk.desk.facts[NAME].addresses.update({HOST: "192.0.2.7", other: "192.0.2.7"})
    begin_check(desk, checks, task)
    clock = desk.settings.clock
    desk.report(held=(second.number,))
    for wait_s in (0.0, CRAWL_DELAY_S + 1.0):
        assert checks.take_request(clock.now() + wait_s, desk.desk) is None
    desk.report(observe(second))
    now_s = clock.now()
    assert checks.take_request(now_s, desk.desk) is None
    assert checks.take_request(now_s + CRAWL_DELAY_S + 1.0, desk.desk) is not None
