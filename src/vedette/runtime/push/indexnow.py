"""IndexNow pings in the coordinator: verify their keys and turn the URLs into push signals.

A key file is fetched by the ordinary crawl, so that delays, robots.txt and address rules apply, and is compared by its
digest. Until it has been fetched, the pings under its key are held. Key guesses are limited to a few tries of each
client, so that one who guesses does not lock out the owner of a host, and to one a minute for each host in all.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import xxhash

from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.push.push_store import PingKeyRow, PushStore
from vedette.discover.push.indexnow import MAX_URLS, Ping
from vedette.discover.urls.scope import SiteIndex
from vedette.engine.coordinator.coordinator import Coordinator
from vedette.model import origin_of
from vedette.runtime.push.signals import MAX_WAITING, Mention, SignalHandler

MAX_KEYS = 16
MAX_PENDING_KEYS = 8
MAX_TRIES = 6
MAX_HOST_TRIES = 60
TRIES_OVER_S = 3_600.0
MAX_REMEMBERED_TRIES = 10_000
BAD_KEY_TTL_S = 600.0
# A good key is checked again after this, since its owner may have revoked it.
GOOD_KEY_TTL_S = 7 * 86_400.0
# A file that did not arrive in this time will not arrive.
KEY_TIMEOUT_S = 86_400.0
MAX_HELD = 50_000
_BOM = "\ufeff"
_LINE_ENDS = ("", "\n", "\r\n")


class PingResult(NamedTuple):
    """Response to an IndexNow ping: the protocol's status, and a message."""

    status: int
    words: str


class _Try(NamedTuple):
    """A try of an unknown IndexNow key: the time, the host and the client."""

    at_s: float
    host: str
    client: str


@dataclass(slots=True)
class PingHandler:
    """Handle IndexNow keys and pings in the coordinator; ``held`` are URLs that wait for their key, by its file."""

    store: PushStore
    state: State
    coordinator: Coordinator
    signals: SignalHandler
    held: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)
    _tries: deque[_Try] = field(default_factory=deque)

    def on_ping(self, ping: Ping, now_s: float, client: str = "") -> PingResult:
        """Handle an IndexNow ping, which has a key and names URLs; ``client`` tells one client from others."""
        host = origin_of(ping.key_url).host
        if not SiteIndex(self.coordinator.rules.sites).find_by_host(host) or self._find_in_scope(ping) is None:
            return PingResult(422, "These URLs belong to no site that is crawled here.")
        place = self.coordinator.normalize_url(ping.key_url)
        if place is None:
            return PingResult(403, "The key file is outside of the site that is crawled here: use another keyLocation.")
        row = self.store.get_key(place, ping.key)
        if row is None or self._is_old(row, now_s):
            wanted = PingKeyRow(place, ping.key, host, "asked", now_s)
            is_known = row is not None and row.standing == "good"  # only its file has to be fetched again
            if not is_known and self._is_limited(_Try(now_s, host, client)):
                return PingResult(429, "Too many different keys for this host. Try again in an hour.")
            return self._request_key(wanted, row, ping, now_s)
        if row.standing == "bad":
            return PingResult(403, "The key file does not contain this key.")
        return self._hold_urls(ping, place) if row.standing == "asked" else self._accept(host, ping, now_s)

    def step(self, now_s: float) -> None:
        """Verify the IndexNow keys whose files have been fetched."""
        for row in self.store.list_pending_keys(MAX_KEYS):
            verdict = self._check_key(row, now_s)
            if verdict is None:
                continue
            self.store.save_key(row._replace(standing="good" if verdict else "bad"))
            urls = self.held.pop((row.url, row.key), {})
            if verdict:
                self._send_signals(row.host, row.url, list(urls), now_s)
            else:
                self.store.count_ignored(
                    f"indexnow {row.host}", "a key that its file does not contain", max(len(urls), 1), now_s
                )

    def _find_in_scope(self, ping: Ping) -> str | None:
        """Return the first URL of an IndexNow ping that is in the scope of a site."""
        return next((url for url in ping.urls if self.coordinator.normalize_url(url) is not None), None)

    def _is_old(self, row: PingKeyRow, now_s: float) -> bool:
        lasts_s = {"good": GOOD_KEY_TTL_S, "bad": BAD_KEY_TTL_S, "asked": KEY_TIMEOUT_S}[row.standing]
        return now_s - row.asked_s > lasts_s

    def _request_key(self, row: PingKeyRow, before: PingKeyRow | None, ping: Ping, now_s: float) -> PingResult:
        """Request the key file of an IndexNow ping, unless too many of its host are being fetched already."""
        keys = self.store.list_keys(row.host)
        pending = sum(each.standing == "asked" for each in keys)
        if pending >= MAX_PENDING_KEYS or (before is None and not self._make_room(keys)):
            return PingResult(429, "Too many different keys for this host. Try again in an hour.")
        self.store.save_key(row)
        self.coordinator.request_urls([row.url], now_s)
        return self._hold_urls(ping, row.url)

    def _is_limited(self, attempt: _Try) -> bool:
        """Check whether a client has tried too many IndexNow keys of a host, or all clients together have.

        Tries are remembered in memory only, as they say where requests came from.
        """
        while self._tries and attempt.at_s - self._tries[0].at_s >= TRIES_OVER_S:
            self._tries.popleft()
        of_host = [each for each in self._tries if each.host == attempt.host]
        of_client = sum(each.client == attempt.client for each in of_host)
        if of_client >= MAX_TRIES or len(of_host) >= MAX_HOST_TRIES or len(self._tries) >= MAX_REMEMBERED_TRIES:
            return True
        self._tries.append(attempt)
        return False

    def _make_room(self, keys: list[PingKeyRow]) -> bool:
        """Make room for another IndexNow key of a host by deleting a bad one; good ones stay."""
        if len(keys) < MAX_KEYS:
            return True
        oldest = min((each for each in keys if each.standing == "bad"), key=lambda each: each.asked_s, default=None)
        if oldest is not None:
            self.store.delete_key(oldest.url, oldest.key)
        return oldest is not None

    def _hold_urls(self, ping: Ping, place: str) -> PingResult:
        held = self.held.setdefault((place, ping.key), {})
        room = min(MAX_URLS - len(held), MAX_HELD - sum(map(len, self.held.values())))
        if room < len(ping.urls):
            return PingResult(429, "Too many URLs are waiting for this key to be checked. Try again later.")
        held.update(dict.fromkeys(ping.urls))
        return PingResult(202, "The key is being checked.")

    def _accept(self, host: str, ping: Ping, now_s: float) -> PingResult:
        if self.store.count_signals(f"indexnow {host}") + len(ping.urls) > MAX_WAITING:
            return PingResult(429, "Too many URLs of this host are waiting. Try again later.")
        self._send_signals(host, ping.key_url, list(ping.urls), now_s)
        return PingResult(200, "Taken.")

    def _send_signals(self, host: str, via: str, urls: list[str], now_s: float) -> None:
        self.signals.on_signals(f"indexnow {host}", "ping", via, [Mention(url) for url in urls], now_s)

    def _check_key(self, row: PingKeyRow, now_s: float) -> bool | None:
        """Check whether the fetched IndexNow key file contains the key; None if it has not been fetched."""
        id_ = int(self.state.urls.find_ids([row.url])[0])
        page, note = self.state.store.get_page(id_), self.state.store.get_note(id_)
        if page is not None and page.fetched_s >= row.asked_s:
            return page.status == 200 and page.digest in _list_digests(row.key)
        failed = note is not None and note[1] >= row.asked_s
        return False if failed or now_s - row.asked_s > KEY_TIMEOUT_S else None


def _list_digests(key: str) -> Iterator[str]:
    """Yield the digests of all ways to write an IndexNow key into a file."""
    return (xxhash.xxh3_128_hexdigest(f"{mark}{key}{end}".encode()) for mark in ("", _BOM) for end in _LINE_ENDS)
