"""Unseen URLs that were looked at and not worth the price: how many, and some of them with what they are worth."""

import json
from math import isfinite
from typing import NamedTuple

from vedette.engine.ports import Book

__all__ = ["BelowPrice", "HeldUrl", "Waiting", "waiting_kept"]

HELD = "held back"
MOST = 5_000
SHOWN = 20
# Each is looked at again after a minute or more; who was not for so long has been fetched, or lies far behind.
LASTS_S = 3_600.0
KEEP_EVERY_S = 60.0


class HeldUrl(NamedTuple):
    """A URL, what a first fetch of it was worth, the price at that moment, and when that was."""

    url: str
    worth: float
    price: float
    at_s: float


class Waiting(NamedTuple):
    """How many were held back in the last hour, and those of them that are worth most."""

    urls: int = 0
    best: tuple[HeldUrl, ...] = ()


class BelowPrice:
    """The latest of them, bounded in number.

    >>> held = BelowPrice()
    >>> held.put("https://a.test/1", 2.0, 5.0, 0.0); held.put("https://a.test/2", 3.0, 5.0, 10.0)
    >>> held.waiting(20.0).urls, held.waiting(20.0).best[0].url, held.waiting(4_000.0).urls
    (2, 'https://a.test/2', 0)
    """

    def __init__(self) -> None:
        self._held: dict[str, HeldUrl] = {}
        self._kept_s: float | None = None

    def __len__(self) -> int:
        return len(self._held)

    def put(self, url: str, worth: float, price: float, now_s: float) -> None:
        """It waits."""
        self._held.pop(url, None)
        self._held[url] = HeldUrl(url, worth, price, now_s)
        while len(self._held) > MOST:
            del self._held[next(iter(self._held))]

    def let_go(self, url: str) -> None:
        """It waits no more."""
        self._held.pop(url, None)

    def waiting(self, now_s: float) -> Waiting:
        """Those of the last hour."""
        lately = [one for one in self._held.values() if abs(now_s - one.at_s) <= LASTS_S]
        return Waiting(len(lately), tuple(sorted(lately, key=lambda one: (-one.worth, one.url))[:SHOWN]))

    def keep_now_and_then(self, book: Book, now_s: float) -> None:
        """Write it down for whoever looks."""
        if self._kept_s is None or abs(now_s - self._kept_s) >= KEEP_EVERY_S:
            waiting = self.waiting(now_s)
            book.set_life(HELD, json.dumps({"at_s": now_s, "urls": waiting.urls, "best": waiting.best}))
            self._kept_s = now_s


def waiting_kept(book: Book, now_s: float) -> Waiting:
    """What was written down last; nothing where that is long ago, or makes no sense."""
    try:
        kept = json.loads(book.life(HELD) or "{}")
        best = tuple(
            HeldUrl(str(url), float(worth), float(price), float(at_s)) for url, worth, price, at_s in kept["best"]
        )
        urls, at_s = int(kept["urls"]), float(kept["at_s"])
    except (TypeError, ValueError, KeyError):
        return Waiting()
    sound = all(isfinite(each) for one in best for each in one[1:])
    return Waiting(urls, best) if sound and abs(now_s - at_s) <= LASTS_S else Waiting()
