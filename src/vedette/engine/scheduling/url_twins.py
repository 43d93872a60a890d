"""URL twins: of two spellings of a URL, fetch one first, and the other only if it is still needed then.

Two pairs show that a host serves the same pages over http and https (``duplicate_evidence``); then links over http are
rewritten. Until then few URLs over http are fetched at once where the host also serves https, and one whose https
spelling is waiting lets it go first: links of either kind may be found long before the other.

Where an ending such as ``.html`` makes no difference, the URL without it goes first: if it is a page, the other is
skipped.
"""

from collections.abc import Iterable

from vedette.engine.coordinator.hosts import HostTable
from vedette.engine.coordinator.state import HostState
from vedette.engine.coordinator.trap_filter import LearnedRules
from vedette.engine.ports import UrlFrontier
from vedette.fetch.robots.state import UrlAllowed, check_url
from vedette.model import origin_of

# How many URLs over http are fetched at once if they may be copies, and when to check the others again.
MAX_HTTP_AT_ONCE = 2
TWIN_WAIT_S = 1.0


class UrlTwins:
    """Decide which URLs that were never fetched wait for another spelling."""

    def __init__(self, urls: UrlFrontier, hosts: HostTable, learned: LearnedRules) -> None:
        self._urls, self._hosts, self._learned = urls, hosts, learned
        self._out: set[str] = set()
        self._http_out = 0

    def start_batch(self, host: HostState, drawn: Iterable[str]) -> None:
        """Note the URLs that a host has in flight, and those that were drawn, before these are judged."""
        out = [task.url for task in host.in_flight.values()]
        self._http_out = sum(url.startswith("http:") for url in out)
        self._out = {*out, *drawn}

    def on_request(self, url: str) -> None:
        """Count a URL that is assigned to a fetcher."""
        self._http_out += url.startswith("http:")

    def must_wait(self, url: str, now_s: float) -> bool:
        """Check whether a URL that was never fetched waits."""
        if url.startswith("http:") and self._must_wait_for_https(url, now_s):
            return True
        bare = self._learned.copy_rules.find_bare(url)
        return bare is not None and (bare[0] in self._out or self._is_waiting(bare[0]))

    def _must_wait_for_https(self, url: str, now_s: float) -> bool:
        twin = "https" + url.removeprefix("http")
        is_served = self._is_served(twin, now_s)
        if self._http_out >= MAX_HTTP_AT_ONCE:
            return is_served or bool(self._urls.find_ids([twin])[0])
        return is_served and self._is_waiting(twin)

    def _is_waiting(self, twin: str) -> bool:
        """Check whether a URL waits to be fetched, and let it go first."""
        id_ = int(self._urls.find_ids([twin])[0])
        return bool(id_) and len(self._urls.move_to_front([id_])) > 0

    def _is_served(self, twin: str, now_s: float) -> bool:
        """Check whether an https URL could be fetched: it is in a site, and robots.txt allows it."""
        state = self._hosts.robots.get(origin_of(twin))
        return self._hosts.sites.find_site(twin) is not None and isinstance(check_url(state, twin, now_s), UrlAllowed)
