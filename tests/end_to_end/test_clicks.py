"""A burst of clicks while processes are killed: no acknowledged click is lost, and none counts twice."""

import http.client
import json
import os
import signal
import threading
import time
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.search_runs import SmallWeb, Up, page, small_web, up
from tests.tree_runs import PATIENCE_S, patiently

from vedette.adapters.event_store.reader import EventReader

HOME = "http://one.test/"
NAMES = tuple(f"page{number}" for number in range(8))
PAGES = {
    HOME: page("Home", "a list", {f"/{name}": name for name in NAMES}),
    **{f"{HOME}{name}": page(f"Zeppelin {name}", f"about the zeppelin {name}") for name in NAMES},
}
VISITORS = 24
UNHURRIED_S = 0.5  # no one clicks sooner than a person can


class Click(NamedTuple):
    """A result that a visitor opens."""

    visitor: int
    slate: str
    page: int


@pytest.fixture(scope="module")
def web() -> Iterator[SmallWeb]:
    """A site with a few pages on one topic."""
    with small_web(PAGES) as web:
        yield web


def agent(visitor: int) -> dict[str, str]:
    """Give each visitor a different browser."""
    return {
        "User-Agent": f"Mozilla/5.0 (X11; Linux x86_64; rv:{100 + visitor}.0) Gecko/20100101 Firefox/{100 + visitor}.0"
    }


def clicks_of(run: Up) -> list[Click]:
    """Let every visitor search and open every result twice."""
    clicks = []
    for visitor in range(VISITORS):
        told = run.search("zeppelin", agent(visitor))
        clicks += [Click(visitor, told["slate"], result["id"]) for result in told["results"]] * 2
    time.sleep(UNHURRIED_S)
    return clicks


def is_acknowledged(run: Up, click: Click) -> bool:
    """Check whether the server acknowledged the click; it may be dead."""
    connection = http.client.HTTPConnection("127.0.0.1", run.port, timeout=PATIENCE_S)
    body = json.dumps({"slate": click.slate, "kind": "click", "page": click.page})
    headers = {**agent(click.visitor), "Content-Type": "application/json"}
    with closing(connection), suppress(OSError, http.client.HTTPException):
        connection.request("POST", "/api/v1/events", body, headers)
        with closing(connection.getresponse()) as answer:
            return answer.status == 204
    return False


def burst(run: Up, clicks: list[Click], acknowledged: set[Click], *, stubborn: bool) -> list[threading.Thread]:
    """Send clicks in parallel; a persistent visitor resends those that were not accepted."""

    def send(own: list[Click]) -> None:
        for click in own:
            until_s = time.monotonic() + PATIENCE_S
            while not (taken := is_acknowledged(run, click)) and stubborn and time.monotonic() < until_s:
                time.sleep(0.02)
            if taken:
                acknowledged.add(click)

    threads = [threading.Thread(target=send, args=(clicks[part::4],)) for part in range(4)]
    for thread in threads:
        thread.start()
    return threads


def counted(folder: Path) -> int:
    """Return the counted clicks."""
    return EventReader(folder / "data").read_totals(0.0).clicks


def test_servers_and_recorder_are_killed_in_a_burst_of_clicks(web: SmallWeb, tmp_path: Path) -> None:
    """If unacknowledged clicks are sent again, each is counted exactly once."""
    with up(web, tmp_path, HOME) as run:
        patiently(lambda: len(run.found("zeppelin")) == len(NAMES))
        clicks, acknowledged = clicks_of(run), set[Click]()
        threads = burst(run, clicks, acknowledged, stubborn=True)
        for victim in ("server", "record", "server"):
            patiently(lambda: len(acknowledged) > len(set(clicks)) // 8)
            os.kill(run.pid(victim), signal.SIGKILL)
            time.sleep(0.3)  # the burst goes on meanwhile
        for thread in threads:
            thread.join()
        assert acknowledged == set(clicks)
        patiently(lambda: counted(tmp_path) == len(acknowledged))


def test_the_whole_tree_is_killed_in_a_burst_of_clicks(web: SmallWeb, tmp_path: Path) -> None:
    """After the restart every acknowledged click counts, none twice, and none that was never sent."""
    with up(web, tmp_path, HOME) as run:
        patiently(lambda: len(run.found("zeppelin")) == len(NAMES))
        clicks, acknowledged = clicks_of(run), set[Click]()
        threads = burst(run, clicks, acknowledged, stubborn=False)
        patiently(lambda: len(acknowledged) > len(set(clicks)) // 4)
        os.killpg(run.process.pid, signal.SIGKILL)
        run.process.wait()
        for thread in threads:
            thread.join()
    with up(web, tmp_path):
        patiently(lambda: not list((tmp_path / "data" / "log").glob("*.jsonl")))
    view = EventReader(tmp_path / "data")
    events = {(event.slate, event.page) for slate in view.iter_searches(0.0) for event in view.list_clicks(slate.id)}
    ids = {click: (slate_id(click.slate), click.page) for click in clicks}
    assert {ids[click] for click in acknowledged} <= events <= set(ids.values())
    assert counted(tmp_path) == len(events)


def slate_id(token: str) -> str:
    """Return the slate of a token: its first sixteen bytes."""
    return urlsafe_b64decode(token)[:16].hex()
