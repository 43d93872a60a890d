"""What is known of every robots.txt, and what it means for the host that it speaks for.

robots.txt speaks for an origin, pauses are kept for a host: a host rests as long as the longest of its origins' files
asks for, and goes on with one origin while another's file cannot be had.
"""

from dataclasses import replace

from vedette.engine.coordinator.state import KeptHost
from vedette.engine.messages import Errand, Fetched, Result
from vedette.fetch.request import PRODUCT
from vedette.fetch.robots import state as robots_state
from vedette.fetch.robots.state import UNKNOWN, RobotsAnswered, RobotsSilent, RobotsState, Standing
from vedette.model import Origin

__all__ = ["RobotsFiles", "errand_for", "event_of"]

FIRST = float("inf")


class RobotsFiles:
    """The states by origin."""

    def __init__(self) -> None:
        self.states: dict[Origin, RobotsState] = {}

    def of(self, origin: Origin) -> RobotsState:
        """What is known of an origin's file; nothing, at first."""
        return self.states.get(origin, UNKNOWN)

    def observe(
        self, origin: Origin, event: RobotsAnswered | RobotsSilent, most_s: float, delay_s: float
    ) -> RobotsState:
        """The state after an answer, or none; ``delay_s`` is how long its host rests after each answer anyway."""
        state = robots_state.observe(self.of(origin), event, PRODUCT, most_s)
        self.states[origin] = state = _outlasting(state, delay_s, event.now_s)
        return state

    def unknown(self, host: KeptHost) -> list[Origin]:
        """The origins of a host of whose file nothing is known."""
        return [origin for origin in host.origins if self.of(origin).standing is Standing.UNKNOWN]

    def wait_s(self, host: KeptHost, now_s: float) -> float | None:
        """When the first file can be asked for again, where no origin of the host has one that can be had now."""
        states = [self.of(origin) for origin in host.origins]
        waits = [state.until_s for state in states if state.standing is Standing.WAITING and state.until_s > now_s]
        return min(waits) if waits and len(waits) == len(states) else None

    def why(self, host: KeptHost) -> str:
        """Why files of a host cannot be had."""
        states = (self.of(origin) for origin in host.origins)
        return next((f"robots.txt: {state.why}" for state in states if state.standing is Standing.WAITING), "")

    def crawl_delay_s(self, host: KeptHost) -> float | None:
        """The longest pause that a file of the host asks for; None where none does."""
        told = (self.of(origin).crawl_delay_s for origin in host.origins)
        return max((delay_s for delay_s in told if delay_s is not None), default=None)


def errand_for(origin: Origin, state: RobotsState) -> Errand:
    """To fetch an origin's file, if it changed since the last good copy."""
    headers = robots_state.conditional_headers(state)
    return Errand(0, origin.host, origin.robots_url, "robots", FIRST, headers=headers, robots_of=origin)


def event_of(result: Result) -> RobotsAnswered | RobotsSilent | str:
    """What an answer means for the file: an event, or where it is to be asked for instead."""
    if not isinstance(result, Fetched):
        return RobotsSilent(result.ended_s, str(result.failure))
    if result.location and result.errand.hops < robots_state.REDIRECTS_MAX:
        return result.location
    hops = result.errand.hops + (result.location is not None)
    return RobotsAnswered(result.ended_s, result.status, result.robots, hops, result.headers)


def _outlasting(state: RobotsState, delay_s: float, now_s: float) -> RobotsState:
    """Were a file stale after every rest, no page could ever be asked for: it holds for two rests, a day at most."""
    if state.standing not in {Standing.READ, Standing.UNAVAILABLE}:
        return state
    rests_s = 2 * max(delay_s, state.crawl_delay_s or 0.0)
    return replace(state, until_s=max(state.until_s, now_s + min(rests_s, robots_state.LIFETIME_MOST_S)))
