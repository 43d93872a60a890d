"""Robots cache of the coordinator: the robots.txt state of every origin, and what it means for its host.

A robots.txt applies to an origin, delays apply to a host: a host uses the longest crawl-delay of its origins, and
continues with one origin while another's file is unavailable.
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
    """Cache of robots.txt states by origin."""

    def __init__(self) -> None:
        self.states: dict[Origin, RobotsState] = {}

    def get(self, origin: Origin) -> RobotsState:
        """Return the cached robots.txt state of an origin; an empty one at first."""
        return self.states.get(origin, UNKNOWN)

    def observe(
        self, origin: Origin, event: RobotsResponse | RobotsFailure, most_s: float, delay_s: float
    ) -> RobotsState:
        """Update the cached robots.txt state after a response or a failure.

        ``delay_s`` is the usual delay of its host after each response.
        """
        state = robots_state.apply_event(self.get(origin), event, PRODUCT, most_s)
        self.states[origin] = state = _extend_lifetime(state, delay_s, event.now_s)
        return state

    def list_unknown(self, host: HostState) -> list[Origin]:
        """List the origins of a host whose robots.txt is not cached."""
        return [origin for origin in host.origins if self.get(origin).status is RobotsStatus.UNKNOWN]

    def expire_waits(self, host: HostState) -> None:
        """Allow unavailable robots.txt files of a host to be requested again at once."""
        for origin in host.origins:
            state = self.get(origin)
            if state.status is RobotsStatus.WAITING:
                self.states[origin] = replace(state, until_s=0.0)

    def wait_s(self, host: HostState, now_s: float) -> float | None:
        """Return when a robots.txt of the host can be retried, where no origin's file is available now."""
        states = [self.get(origin) for origin in host.origins]
        waits = [state.until_s for state in states if state.status is RobotsStatus.WAITING and state.until_s > now_s]
        return min(waits) if waits and len(waits) == len(states) else None

    def explain_wait(self, host: HostState) -> str:
        """Explain why the robots.txt files of a host are unavailable."""
        waiting = (origin for origin in host.origins if self.get(origin).status is RobotsStatus.WAITING)
        return next((self.describe_failure(host, origin) for origin in waiting), "")

    def describe_failure(self, host: HostState, origin: Origin) -> str:
        """Describe why an origin's robots.txt is unavailable; name the origin if others of the host have theirs."""
        why = self.get(origin).why
        others = (self.get(other).status for other in host.origins if other != origin)
        if all(status in {RobotsStatus.WAITING, RobotsStatus.UNKNOWN} for status in others):
            return f"robots.txt: {why}"
        # More failures in a row than those of robots.txt files are failures of pages.
        if host.failure_streak > sum(self.get(one).failures for one in host.origins):
            return host.rest_trouble
        return f"robots.txt of port {origin.port}: {why}; its other pages are fetched"

    def crawl_delay_s(self, host: HostState) -> float | None:
        """Return the longest Crawl-delay in the robots.txt files of a host; None if there is none."""
        told = (self.get(origin).crawl_delay_s for origin in host.origins)
        return max((delay_s for delay_s in told if delay_s is not None), default=None)


def build_robots_task(origin: Origin, state: RobotsState) -> FetchTask:
    """Build the task that fetches an origin's robots.txt, conditional on the last good copy."""
    return FetchTask(
        0, origin.host, origin.robots_url, "robots", TOP_PRIORITY, validators=state.validators, robots_of=origin
    )


def has_new_rules(before: RobotsState, after: RobotsState) -> bool:
    """Check whether other rules hold than those of the robots.txt that was read before, or than none at all."""
    was_known = before.last_good is not None or before.status is RobotsStatus.UNAVAILABLE
    if not was_known or after.status is RobotsStatus.WAITING:
        return False
    return (before.last_good.rules.rules if before.last_good else ()) != after.rules.rules


def to_event(result: FetchResult) -> RobotsResponse | RobotsFailure | str:
    """Turn the response to a robots.txt request into an event, or into its redirect target."""
    if not isinstance(result, FetchSuccess):
        return RobotsFailure(result.ended_s, str(result.failure))
    if result.location and result.task.hops < robots_state.MAX_REDIRECTS:
        return result.location
    hops = result.task.hops + (result.location is not None)
    return RobotsResponse(result.ended_s, result.status, result.robots_body, hops, result.headers)


def _extend_lifetime(state: RobotsState, delay_s: float, now_s: float) -> RobotsState:
    """Extend the lifetime of a robots.txt copy to twice the host's delay, at most a day.

    A file that expired within every delay would block all pages forever.
    """
    if state.status not in {RobotsStatus.READ, RobotsStatus.UNAVAILABLE}:
        return state
    rests_s = 2 * max(delay_s, state.crawl_delay_s or 0.0)
    return replace(state, until_s=max(state.until_s, now_s + min(rests_s, robots_state.MAX_LIFETIME_S)))
