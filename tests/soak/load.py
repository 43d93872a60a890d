"""Load on the running server: searches, clicks, ads and unauthorized requests, and what was acknowledged."""

import http.client
import json
import re
import threading
import time
from base64 import urlsafe_b64decode
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

CLOSED = ("/console/", "/console/sites", "/console/queue", "/api/v1/actions")
AD = re.compile(rb'href="(/sponsored/[^"]+)"')
TIMEOUT_S = 30.0
PAUSE_S = 0.4
# A click that comes sooner is not charged: no person reads that fast.
READING_S = 1.5


@dataclass(slots=True)
class Load:
    """Visitors who search and click until they are stopped; ``acknowledged`` clicks are (slate, page)."""

    port: int
    rng: Random
    counts: Counter[str] = field(default_factory=Counter)
    sent: set[tuple[str, int]] = field(default_factory=set)
    acknowledged: set[tuple[str, int]] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Start the visitors."""
        self._threads = [threading.Thread(target=self._run, args=(number,), daemon=True) for number in range(2)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop the visitors and wait for them."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        while not self._stop.wait(PAUSE_S):
            with suppress(OSError, http.client.HTTPException, ValueError):
                self._visit(number)

    def _visit(self, number: int) -> None:
        agent = (
            f"Mozilla/5.0 (X11; Linux x86_64; rv:{self.rng.randrange(100, 140)}.{number}) Gecko/20100101 Firefox/140.0"
        )
        word = self.rng.choice(("zeppelin", "page", "bace", "difo guha"))
        choice = self.rng.random()
        if choice < 0.1:
            self._probe(agent)
        elif choice < 0.3:
            self._click_ad(agent, word)
        else:
            self._click_result(agent, word)

    def _probe(self, agent: str) -> None:
        """Check that access requires permission."""
        path = self.rng.choice(CLOSED)
        status, _ = self._request("GET", path, agent)
        self.counts["probes"] += 1
        if status in range(200, 300):
            self.wrong.append(f"{path} was served without permission")

    def _click_result(self, agent: str, word: str) -> None:
        status, body = self._request("GET", f"/api/v1/search?q={word.replace(' ', '+')}", agent)
        self.counts[f"searches {status}"] += 1
        found = json.loads(body) if status == 200 else {}
        if not found.get("results") or not found.get("slate"):
            return
        self._stop.wait(0.3)
        slate, page = found["slate"], self.rng.choice(found["results"])["id"]
        click = (urlsafe_b64decode(slate)[:16].hex(), page)
        self.sent.add(click)
        message = json.dumps({"slate": slate, "kind": "click", "page": page})
        status, _ = self._request("POST", "/api/v1/events", agent, message)
        if status == 204:
            self.acknowledged.add(click)

    def _click_ad(self, agent: str, word: str) -> None:
        status, body = self._request("GET", f"/search?q={word.replace(' ', '+')}", agent)
        self.counts[f"pages {status}"] += 1
        links = AD.findall(body)
        if links and not self._stop.wait(READING_S):
            status, _ = self._request("GET", links[0].decode(), agent)
            self.counts[f"ad clicks {status}"] += 1

    def _request(self, method: str, target: str, agent: str, body: str | None = None) -> tuple[int, bytes]:
        source = (f"127.0.1.{sum(agent.encode()) % 250 + 1}", 0)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S, source_address=source)
        headers: dict[str, Any] = {"User-Agent": agent, "Content-Type": "application/json"}
        with closing(connection):
            connection.request(method, target, body, headers)
            with closing(connection.getresponse()) as answer:
                return answer.status, answer.read()


def wait_for(port: int, seconds: float) -> bool:
    """Wait until the server responds."""
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        with closing(connection), suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/healthz")
            with closing(connection.getresponse()) as answer:
                answer.read()
                return True
        time.sleep(0.2)
    return False
