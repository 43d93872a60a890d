"""Shocks to a crawl under a budget, on a web in memory with a simulated clock, and their effect.

python -m tests.engine.shocks     prints a row for each blow, with the policy that runs live
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from tests.engine.memory_web import Drive, MemoryWeb, Reply, Served, page, rules_for

from vedette.model import Failure, Site

__all__ = ["BLOWS", "Taken", "struck"]

MINUTE_S, START_S = 60.0, 1_000.0
BLOW_MIN, BACK_MIN, END_MIN = 10, 20, 30
SETTLING_MIN = 3
TICK_S = 5.0


class BusyDrive(Drive):
    """Fetchers report and the coordinator checks due pages every few seconds, as on a busy crawl."""

    _ticked_s = -1.0

    def _settle(self) -> None:
        is_tick = self.now_s >= self._ticked_s + TICK_S
        if is_tick:
            self._ticked_s = self.now_s
            self.keeper.wake_due_pages(self.now_s)
            super()._report()
            self._later(self.now_s + TICK_S, lambda: None)
        while self._hand_out() | self._send():
            pass

    def _due_s(self) -> float | None:
        return None

    def _is_over(self) -> bool:
        return False


@dataclass(slots=True)
class Scene:
    """A web of hosts, some of them down, and the events; minutes count from the start."""

    hosts: int = 20
    per_s: float = 1.0
    pages: int = 100
    down: Callable[[int], bool] = lambda _host: False
    factors: dict[int, float] = field(default_factory=dict)
    births: int = 0
    new_site: int = 0

    def web(self) -> MemoryWeb:
        """Return hosts with a start page that links to their pages; one more host joins later."""
        made = MemoryWeb()
        for host in range(self.hosts + 1):
            paths = [f"/{'abcdefgh'[n % 8]}/{n}" for n in range(self._pages_of(host))]
            for path in ("/start", *paths, *self.born_on(host)):
                made.replies[f"{origin(host)}{path}"] = self._served(host, path, paths)
            made.replies[f"{origin(host)}/robots.txt"] = self._served(host, "", [])
            made.names[f"h{host}.test"] = (f"93.184.1.{host + 1}",)
        return made

    def _pages_of(self, host: int) -> int:
        """Return enough pages for hosts that stay up."""
        return self.new_site if host == self.hosts else self.pages

    def born_on(self, host: int) -> list[str]:
        """Return the hosts on which pages appear during the shock."""
        return [f"/born/{n}" for n in range(self.births)] if host < self.hosts else []

    def _served(self, host: int, path: str, paths: list[str]) -> Callable[[float], Served]:
        named = page(*(paths if path == "/start" else ()), title=f"{path.replace('/', ' ')} of host {host}")
        answer: Served = named if path else Reply(404)

        def at(now_s: float) -> Served:
            minute = (now_s - START_S) / MINUTE_S
            return Failure.TIMEOUT if self.down(host) and BLOW_MIN <= minute < BACK_MIN else answer

        return at


BLOWS: dict[str, Scene] = {
    "budget halved, then doubled": Scene(factors={BLOW_MIN: 0.5, BACK_MIN: 1.0}),
    "budget doubled, then halved": Scene(pages=150, factors={BLOW_MIN: 2.0, BACK_MIN: 1.0}),
    "half of the hosts down": Scene(pages=220, down=lambda host: host % 2 == 0),
    "nine in ten hosts down": Scene(pages=700, down=lambda host: host % 10 > 0),
    "births of ten minutes at once": Scene(births=30),
    "a new site": Scene(new_site=600),
    "a dead site": Scene(down=lambda host: host == 0),
}


class Taken(NamedTuple):
    """The effects of a shock, outside the settling minutes.

    ``most`` is the largest share of the budget spent in a minute, ``least`` the smallest over ten minutes (both 1 if
    all is spent), and ``longest_s`` the longest time without a request to a host that was up and had work. ``newcomer``
    is how many pages of the new site were fetched within ten minutes.
    """

    most: float
    least: float
    longest_s: float
    newcomer: int


def origin(host: int) -> str:
    """Return the host with a number."""
    return f"https://h{host}.test"


def site(host: int) -> Site:
    """Return a site. Pages of only a few words would look like a trap."""
    return Site(f"{origin(host)}/start", scope="host", overrule=("trap",))


def struck(scene: Scene, refresh: str = "expected-gain") -> Taken:
    """Apply a shock and return its effects."""
    sites = [site(host) for host in range(scene.hosts)]
    rules = rules_for(*sites, recrawl=True, budget_per_s=scene.per_s, delay_s=1.0, address_delay_s=0.0, refresh=refresh)
    drive = BusyDrive(scene.web(), rules, workers=1, start_s=START_S).begin()
    for minute in (BLOW_MIN, BACK_MIN):
        drive.run(START_S + minute * MINUTE_S - drive.now_s)
        budget = scene.per_s * scene.factors.get(minute, 1.0)
        joined = [site(scene.hosts)] if scene.new_site and minute == BLOW_MIN else []
        drive.rule(replace(drive.rules, budget_per_s=budget, sites=(*drive.rules.sites, *joined)))
        if minute == BLOW_MIN:
            for host in range(scene.hosts):
                drive.keeper.add_urls([f"{origin(host)}{path}" for path in scene.born_on(host)], 1, drive.now_s)
    drive.run(START_S + END_MIN * MINUTE_S - drive.now_s)
    return _measure(scene, drive)


def _measure(scene: Scene, drive: Drive) -> Taken:
    sent = [(asked.sent_s - START_S) / MINUTE_S for asked in drive.log if asked.purpose == "page"]
    counts = Counter(int(minute) for minute in sent)
    factors = [scene.factors.get(minute // BLOW_MIN * BLOW_MIN, 1.0) for minute in range(END_MIN)]
    shares = [counts[minute] / (scene.per_s * factor * MINUTE_S) for minute, factor in enumerate(factors)]
    calm = [minute for minute in range(END_MIN) if minute % BLOW_MIN >= SETTLING_MIN]
    spans = [shares[first + SETTLING_MIN : first + BLOW_MIN] for first in range(0, END_MIN, BLOW_MIN)]
    newcomer = sum(asked.host == f"h{scene.hosts}.test" for asked in drive.log if asked.purpose == "page")
    return Taken(
        max(shares[minute] for minute in calm),
        min(sum(span) / len(span) for span in spans),
        _longest_s(scene, drive),
        newcomer,
    )


def _longest_s(scene: Scene, drive: Drive) -> float:
    """Return the longest gap for hosts that stay up, until the last request of each."""
    longest_s = 0.0
    for host in range(scene.hosts):
        times = [asked.sent_s for asked in drive.asked_of(f"h{host}.test") if asked.purpose == "page"]
        if not scene.down(host):
            longest_s = max([longest_s, *(after - before for before, after in pairwise(times))])
    return longest_s


def main() -> None:
    """Print a row for each shock."""
    for name, scene in BLOWS.items():
        taken = struck(replace(scene, hosts=40, per_s=2.0))
        print(  # noqa: T201 - what it is for
            f"{name:30} most {taken.most:.3f} least {taken.least:.3f} "
            f"longest wait {taken.longest_s:.0f} s newcomer {taken.newcomer}",
            flush=True,
        )


if __name__ == "__main__":
    main()
