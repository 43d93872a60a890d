"""What is known of every robots.txt, and what it means for the host that it speaks for.

robots.txt speaks for an origin, pauses are kept for a host: a host rests as long as the longest of its origins' files
asks for, and goes on with one origin while another's file cannot be had.
"""

from dataclasses import replace

from vedette.engine.coordinator.state import HostState
from vedette.engine.messages import FetchResult, FetchSuccess, FetchTask
from vedette.fetch.request import PRODUCT
from vedette.fetch.robots import state as robots_state
from vedette.fetch.robots.state import UNKNOWN, RobotsFailure, RobotsResponse, RobotsState, RobotsStatus
from vedette.model import Origin

TOP_PRIORITY = float("inf")


class RobotsCache:
    """The states by origin."""

    def __init__(self) -> None:
        self.states: dict[Origin, RobotsState] = {}

    def get(self, origin: Origin) -> RobotsState:
        """What is known of an origin's file; nothing, at first."""
        return self.states.get(origin, UNKNOWN)

    def observe(
        self, origin: Origin, event: RobotsResponse | RobotsFailure, most_s: float, delay_s: float
    ) -> RobotsState:
        """The state after an answer, or none; ``delay_s`` is how long its host rests after each answer anyway."""
        state = robots_state.apply_event(self.get(origin), event, PRODUCT, most_s)
        self.states[origin] = state = _extend_lifetime(state, delay_s, event.now_s)
        return state

    def list_unknown(self, host: HostState) -> list[Origin]:
        """The origins of a host of whose file nothing is known."""
        return [origin for origin in host.origins if self.get(origin).status is RobotsStatus.UNKNOWN]

    def wait_s(self, host: HostState, now_s: float) -> float | None:
        """When the first file can be asked for again, where no origin of the host has one that can be had now."""
        states = [self.get(origin) for origin in host.origins]
        waits = [state.until_s for state in states if state.status is RobotsStatus.WAITING and state.until_s > now_s]
        return min(waits) if waits and len(waits) == len(states) else None

    def explain_wait(self, host: HostState) -> str:
        """Why files of a host cannot be had."""
        states = (self.get(origin) for origin in host.origins)
        return next((f"robots.txt: {state.why}" for state in states if state.status is RobotsStatus.WAITING), "")

    def crawl_delay_s(self, host: HostState) -> float | None:
        """The longest pause that a file of the host asks for; None where none does."""
        told = (self.get(origin).crawl_delay_s for origin in host.origins)
        return max((delay_s for delay_s in told if delay_s is not None), default=None)


def build_robots_task(origin: Origin, state: RobotsState) -> FetchTask:
    """To fetch an origin's file, if it changed since the last good copy."""
    return FetchTask(
        0, origin.host, origin.robots_url, "robots", TOP_PRIORITY, validators=state.validators, robots_of=origin
    )


def to_event(result: FetchResult) -> RobotsResponse | RobotsFailure | str:
    """What an answer means for the file: an event, or where it is to be asked for instead."""
    if not isinstance(result, FetchSuccess):
        return RobotsFailure(result.ended_s, str(result.failure))
    if result.location and result.task.hops < robots_state.MAX_REDIRECTS:
        return result.location
    hops = result.task.hops + (result.location is not None)
    return RobotsResponse(result.ended_s, result.status, result.robots_body, hops, result.headers)


def _extend_lifetime(state: RobotsState, delay_s: float, now_s: float) -> RobotsState:
    """Were a file stale after every rest, no page could ever be asked for: it holds for two rests, a day at most."""
    if state.status not in {RobotsStatus.READ, RobotsStatus.UNAVAILABLE}:
        return state
    rests_s = 2 * max(delay_s, state.crawl_delay_s or 0.0)
    return replace(state, until_s=max(state.until_s, now_s + min(rests_s, robots_state.MAX_LIFETIME_S)))
