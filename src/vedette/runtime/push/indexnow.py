"""Pings (IndexNow) in the hands of the keeper: whose key is good, and what becomes of the URLs.

A key file is fetched by the ordinary crawl: so pauses, robots.txt and guarded addresses hold, and what the file says
is told by its digest. Until it has come, the pings under its key are held. Whoever guesses keys has few tries.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import xxhash

from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.push.push_store import KeyRow, PushBook
from vedette.discover.push.indexnow import MOST_URLS, Ping
from vedette.discover.urls.scope import SiteIndex
from vedette.engine.coordinator.coordinator import Keeper
from vedette.model import origin_of
from vedette.runtime.push.signals import MOST_WAITING, Mention, Signalling

__all__ = ["Pinging", "Taken"]

MOST_KEYS = 16
MOST_ASKED = 3
MOST_TRIES = 6
TRIES_OVER_S = 3_600.0
AGAIN_S = 600.0
# A good key is looked up again after this, since its owner may have taken it back.
GOOD_S = 7 * 86_400.0
# A file that did not come in this time does not come.
PATIENCE_S = 86_400.0
MOST_HELD = 50_000
_MARK = "\ufeff"
_ENDS = ("", "\n", "\r\n")


class Taken(NamedTuple):
    """How a ping was taken, as the protocol says it, and in words."""

    status: int
    words: str


@dataclass(slots=True)
class Pinging:
    """Keys and pings, at work in the keeper; ``held`` are URLs that wait for their key, by its file."""

    book: PushBook
    state: State
    keeper: Keeper
    signalling: Signalling
    held: dict[tuple[str, str], dict[str, None]] = field(default_factory=dict)

    def pinged(self, ping: Ping, now_s: float) -> Taken:
        """Somebody shows a key and names URLs."""
        host = origin_of(ping.key_url).host
        if not SiteIndex(self.keeper.rules.sites).of_host(host) or self._inside(ping) is None:
            return Taken(422, "These URLs belong to no site that is crawled here.")
        place = self.keeper.sited(ping.key_url)
        if place is None:
            return Taken(403, "The key file lies outside of the site that is crawled here: name another keyLocation.")
        row = self.book.key(place, ping.key)
        if row is None or self._is_old(row, now_s):
            return self._ask(KeyRow(place, ping.key, host, "asked", now_s), row, ping, now_s)
        if row.standing == "bad":
            return Taken(403, "The key file does not hold this key.")
        return self._hold(ping, place) if row.standing == "asked" else self._heard(host, ping, now_s)

    def step(self, now_s: float) -> None:
        """Judge the keys whose files have come."""
        for row in self.book.keys_asked(MOST_KEYS):
            verdict = self._verdict(row, now_s)
            if verdict is None:
                continue
            self.book.keep_key(row._replace(standing="good" if verdict else "bad"))
            urls = self.held.pop((row.url, row.key), {})
            if verdict:
                self._signal(row.host, row.url, list(urls), now_s)
            else:
                self.book.ignore(f"indexnow {row.host}", "a key that its file does not hold", max(len(urls), 1), now_s)

    def _inside(self, ping: Ping) -> str | None:
        """The first of its URLs that a site takes."""
        return next((url for url in ping.urls if self.keeper.sited(url) is not None), None)

    def _is_old(self, row: KeyRow, now_s: float) -> bool:
        lasts_s = {"good": GOOD_S, "bad": AGAIN_S, "asked": PATIENCE_S}[row.standing]
        return now_s - row.asked_s > lasts_s

    def _ask(self, row: KeyRow, before: KeyRow | None, ping: Ping, now_s: float) -> Taken:
        """Look a key up, if its host has not been asked for too many."""
        keys = self.book.keys_of(row.host)
        asked = sum(each.standing == "asked" for each in keys)
        tries = sum(each.standing != "good" and now_s - each.asked_s < TRIES_OVER_S for each in keys)
        if asked >= MOST_ASKED or tries >= MOST_TRIES or (before is None and not self._has_room(keys)):
            return Taken(429, "Too many keys were shown for this host. Try again in an hour.")
        self.book.keep_key(row)
        self.keeper.wish([row.url], now_s)
        return self._hold(ping, row.url)

    def _has_room(self, keys: list[KeyRow]) -> bool:
        """A key that proved bad makes room for another; good ones stay."""
        if len(keys) < MOST_KEYS:
            return True
        oldest = min((each for each in keys if each.standing == "bad"), key=lambda each: each.asked_s, default=None)
        if oldest is not None:
            self.book.drop_key(oldest.url, oldest.key)
        return oldest is not None

    def _hold(self, ping: Ping, place: str) -> Taken:
        held = self.held.setdefault((place, ping.key), {})
        room = min(MOST_URLS - len(held), MOST_HELD - sum(map(len, self.held.values())))
        if room < len(ping.urls):
            return Taken(429, "Too many URLs wait for this key to be looked up. Try again later.")
        held.update(dict.fromkeys(ping.urls))
        return Taken(202, "The key is being looked up.")

    def _heard(self, host: str, ping: Ping, now_s: float) -> Taken:
        if self.book.signal_count(f"indexnow {host}") + len(ping.urls) > MOST_WAITING:
            return Taken(429, "Too many URLs of this host wait to be looked at. Try again later.")
        self._signal(host, ping.key_url, list(ping.urls), now_s)
        return Taken(200, "Taken.")

    def _signal(self, host: str, via: str, urls: list[str], now_s: float) -> None:
        self.signalling.heard(f"indexnow {host}", "ping", via, [Mention(url) for url in urls], now_s)

    def _verdict(self, row: KeyRow, now_s: float) -> bool | None:
        """Whether the file holds the key; None where it has not come."""
        id_ = int(self.state.urls.find([row.url])[0])
        page, note = self.state.book.page_of(id_), self.state.book.note_of(id_)
        if page is not None and page.fetched_s >= row.asked_s:
            return page.status == 200 and page.digest in _digests(row.key)
        failed = note is not None and note[1] >= row.asked_s
        return False if failed or now_s - row.asked_s > PATIENCE_S else None


def _digests(key: str) -> Iterator[str]:
    """Of all the ways to write a key into a file."""
    return (xxhash.xxh3_128_hexdigest(f"{mark}{key}{end}".encode()) for mark in ("", _MARK) for end in _ENDS)
