"""The daily budget of requests: never exceeded, even if processes are killed or the clock is set back."""

import os
import signal
import time
from contextlib import closing
from pathlib import Path

from tests.tree_runs import patiently

from vedette.adapters.crawl_store.request_budget import (
    REQUESTS_FILE,
    REQUESTS_NAME,
    ExceededLimit,
    RequestBudget,
    read_exceeded,
)
from vedette.timeutil import DAY_S, HOUR_S

NOON_S = 20_000.5 * DAY_S
ADDRESS = "192.0.2.1"


def count_sent(budget: RequestBudget, host: str, address: str, tries: int, now_s: float = NOON_S) -> int:
    """Count how many of some requests may be sent."""
    return sum(budget.spend(host, address, now_s) is None for _ in range(tries))


def test_an_address_and_a_domain_get_no_more_than_the_limit(tmp_path: Path) -> None:
    """Hosts of one domain share its budget, and hosts at one address the address's; others are not affected."""
    with closing(RequestBudget(tmp_path, 5)) as budget:
        assert count_sent(budget, "a.example.org", ADDRESS, 3) == 3
        assert count_sent(budget, "b.example.org", "192.0.2.2", 9) == 2
        assert count_sent(budget, "other.test", ADDRESS, 9) == 2
        assert count_sent(budget, "fine.test", "192.0.2.3", 4) == 4
        address, domain = read_exceeded(tmp_path)
        assert (domain.kind, domain.name, domain.requests, domain.refused) == ("domain", "example.org", 5, 7)
        assert (address.kind, address.name, address.requests, address.refused) == ("address", ADDRESS, 5, 7)
        assert str(domain) == "the daily limit of 5 requests to domain example.org is used up"


def test_a_new_day_starts_another_budget_and_a_clock_set_back_does_not(tmp_path: Path) -> None:
    """Counts end with their day; a clock that jumps back, or back and forth, keeps them, so that no jump sends more."""
    with closing(RequestBudget(tmp_path, 5)) as budget:
        assert count_sent(budget, "a.test", ADDRESS, 9) == 5
        assert sum(count_sent(budget, "a.test", ADDRESS, 9, NOON_S - day * DAY_S) for day in (1, 0, 2, 0, 1)) == 0
        assert count_sent(budget, "a.test", ADDRESS, 9, NOON_S - 30 * DAY_S) == 0
        assert count_sent(budget, "a.test", ADDRESS, 9, NOON_S + DAY_S) == 5
    assert ExceededLimit("domain", "a.test", 5, 1).find_retry_s(NOON_S) == NOON_S + HOUR_S


def test_processes_that_are_killed_share_one_budget(tmp_path: Path) -> None:
    """Four processes send as much as they can, one is killed again and again: together they stay within the limit."""
    limit, sent = 200, tmp_path / "sent"
    sent.touch()

    def send_all() -> None:
        budget, log = RequestBudget(tmp_path, limit), os.open(sent, os.O_WRONLY | os.O_APPEND)
        while True:
            if budget.spend("a.test", ADDRESS, NOON_S) is None:
                os.write(log, b".")

    def start() -> int:
        child = os.fork()
        if child == 0:
            try:
                send_all()
            finally:
                os._exit(1)
        return child

    def kill(pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    others = [start() for _ in range(3)]
    try:
        for _ in range(5):
            victim = start()
            time.sleep(0.02)
            kill(victim)
        patiently(lambda: sum(one.refused for one in read_exceeded(tmp_path)) > 100)
    finally:
        for pid in others:
            kill(pid)
    # Counted before it is sent: a kill in between costs a request, never adds one.
    assert limit - 5 <= sent.stat().st_size <= limit
    with closing(RequestBudget(tmp_path, limit)) as budget:
        assert count_sent(budget, "a.test", ADDRESS, 9) == 0


def test_a_damaged_file_is_replaced_at_the_next_start(tmp_path: Path) -> None:
    """Readers say nothing about it, and a fetcher that starts puts it aside."""
    for damage in (b"this is no database" * 300, b""):
        (tmp_path / REQUESTS_NAME).write_bytes(damage)
        assert read_exceeded(tmp_path) == ()
        with closing(RequestBudget(tmp_path, 1)) as budget:
            assert count_sent(budget, "a.test", ADDRESS, 3) == 1
    assert REQUESTS_FILE.query(tmp_path, "SELECT count(*) FROM spent") == [(2,)]
