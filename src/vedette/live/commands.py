"""What the command line and the console ask of a running keeper, and what it answers: plain values both ways."""

from dataclasses import dataclass, field
from typing import Literal

from vedette.edges.state import State
from vedette.live.settings import LiveSettings, rules_for
from vedette.ring.keep import Keeper

__all__ = ["Call", "Desk", "Verb", "numbers"]

Verb = Literal["status", "stop", "explain", "fetch", "sites", "site"]


@dataclass(frozen=True, slots=True)
class Call:
    """A question or an order."""

    verb: Verb
    arguments: dict[str, object] = field(default_factory=dict)


class Desk:
    """Answers calls on behalf of a keeper."""

    def __init__(self, settings: LiveSettings, state: State, keeper: Keeper) -> None:
        self._settings = settings
        self._state = state
        self._keeper = keeper
        self.stop_asked = False
        self.sites_changed = False
        self.ending: str | None = None

    def answer(self, call: Call, now_s: float) -> dict[str, object]:
        """What is told to whoever called."""
        if call.verb == "stop":
            self.stop_asked = True
            self.ending = self.ending or "stopped"
            return {}
        if call.verb == "status":
            return {"ending": self.ending, **numbers(self._keeper, now_s)}
        return {"error": f"unknown call {call.verb}"}

    def sites_are_new(self) -> None:
        """The state's sites have changed: keeper and workers go by them from now on."""
        self._keeper.rules = rules_for(self._settings, self._state.book.sites())
        self.sites_changed = True


def numbers(keeper: Keeper, now_s: float) -> dict[str, object]:
    """The state of a crawl as plain numbers."""
    tally = keeper.tally
    counts = keeper.urls.counts()
    return {
        "pages": tally.pages,
        "new_pages": tally.new_pages,
        "unchanged": tally.unchanged,
        "bytes": tally.bytes,
        "requests": tally.requests,
        "robots_requests": tally.robots,
        "redirects": tally.redirects,
        "urls_known": counts.known,
        "urls_waiting": counts.waiting,
        "urls_out": counts.leased,
        "hosts": len(keeper.hosts),
        "hosts_waiting": keeper.waits(now_s),
        "statuses": {str(status): tally.statuses[status] for status in sorted(tally.statuses)},
        "failures": {why: tally.failures[why] for why in sorted(tally.failures)},
        "refusals": {str(why): tally.refusals[why] for why in sorted(tally.refusals)},
        "hosts_in_trouble": {host.name: host.trouble for host in keeper.hosts.values() if host.trouble},
    }
