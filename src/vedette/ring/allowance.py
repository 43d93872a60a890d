"""How many pages may be given out: so many a second in all, and of that a part at most for a site that has a share.

Token buckets in world time. A bucket fills at a steady pace up to its burst, and each page takes one. A share is a
limit, not a right: what a site does not take is left in the bucket of all. What must not wait (robots.txt, and what
somebody asked for by name) leaves in any case and is counted; what it takes in advance is bounded, so that it can slow
the rest down and not stop it. A page that comes back unasked was counted all the same.

A fixed number of pages a second says nothing of what they are worth. The price (planned) will weigh that, and replace
this.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import floor, inf

__all__ = ["ALL", "Allowance", "Bucket"]

# The bucket of everybody; those of sites are named by their starts.
ALL = ""


@dataclass(slots=True)
class Bucket:
    """So many a second, and ``burst`` at once; what was taken is counted from when it was last full.

    Counting from there, and not from one look to the next, keeps rounding small where times are large. ``ready_s`` is
    the one measure of whether anything is there, so that whoever comes back at that time finds something.

    >>> bucket = Bucket(per_s=2.0, burst=3.0)
    >>> [bucket.room(10.0), *(bucket.take(10.0) for _ in range(3)), bucket.room(10.0)]
    [3, None, None, None, 0]
    >>> bucket.ready_s, bucket.room(10.5), bucket.room(99.0)
    (10.5, 1, 3)
    """

    per_s: float
    burst: float
    taken: float = 0.0
    full_s: float = -inf
    seen_s: float = -inf

    @property
    def ready_s(self) -> float:
        """When the next may be taken; in the past where it may be now."""
        lacking = self.taken + 1.0 - self.burst
        return self.full_s + lacking / self.per_s if lacking > 0 else -inf

    def room(self, now_s: float) -> int:
        """How many may be taken now."""
        self._look(now_s)
        return max(1, floor(self._level())) if now_s >= self.ready_s else 0

    def take(self, now_s: float) -> None:
        """One is taken; it is for the caller to know that it may be."""
        self._look(now_s)
        if self._level() >= self.burst:
            self.full_s, self.taken = now_s, 0.0
        self.taken += 1.0

    def overdraw(self, now_s: float) -> None:
        """One is taken in any case; no more is owed than comes back in the time of one burst."""
        self._look(now_s)
        if self._level() > -self.burst:
            self.take(now_s)

    def set_pace(self, per_s: float, burst: float) -> None:
        """Another pace from now on; what is there stays, as far as there is room for it."""
        if self.full_s > -inf:
            self.full_s, self.taken = self.seen_s, max(burst - self._level(), 0.0)
        self.per_s, self.burst = per_s, burst

    def _level(self) -> float:
        back = (self.seen_s - self.full_s) * self.per_s if self.taken else inf
        return min(self.burst, self.burst + back - self.taken)

    def _look(self, now_s: float) -> None:
        """A clock that was put back takes nothing away and adds nothing."""
        if now_s < self.seen_s:
            self.full_s -= self.seen_s - now_s
        self.seen_s = now_s


class Allowance:
    """The bucket of all, and those of the sites with a share.

    >>> allowance = Allowance()
    >>> allowance.set_pace(per_s=10.0, burst_s=1.0, shares={"https://example.org/": 0.2})
    >>> allowance.room("https://example.org/", 0.0), allowance.room("https://example.com/", 0.0)
    (2, 10)
    """

    def __init__(self) -> None:
        self._buckets: dict[str, Bucket] = {}

    def set_pace(self, per_s: float, burst_s: float, shares: Mapping[str, float]) -> None:
        """So many pages a second; sites by their starts, each with its part of it. What was taken stays taken."""
        before, self._buckets = self._buckets, {}
        for name, share in {ALL: 1.0, **shares}.items():
            pace, burst = per_s * share, max(1.0, per_s * share * burst_s)
            bucket = self._buckets[name] = before.get(name) or Bucket(pace, burst)
            bucket.set_pace(pace, burst)

    def room(self, site: str, now_s: float) -> int:
        """How many pages of a site may be given out now."""
        return min(bucket.room(now_s) for bucket in self._of(site))

    def lacking(self, site: str, now_s: float) -> str | None:
        """The name of the bucket that keeps a site waiting: its own before that of all; None where none does."""
        names = (site, ALL) if site in self._buckets else (ALL,)
        return next((name for name in names if not self._buckets[name].room(now_s)), None)

    def has_room(self, name: str, now_s: float) -> bool:
        """Whether a bucket has anything."""
        return self._buckets[name].room(now_s) > 0

    def ready_s(self, site: str) -> float:
        """When a page of a site may be given out, if none is before."""
        return max(bucket.ready_s for bucket in self._of(site))

    def take(self, site: str, now_s: float) -> bool:
        """A page of a site is given out, if it may be."""
        if self.lacking(site, now_s) is not None:
            return False
        for bucket in self._of(site):
            bucket.take(now_s)
        return True

    def overdraw(self, site: str, now_s: float) -> None:
        """Something that must not wait is given out."""
        for bucket in self._of(site):
            bucket.overdraw(now_s)

    def _of(self, site: str) -> tuple[Bucket, ...]:
        """What a page of a site takes from."""
        return tuple(self._buckets[name] for name in dict.fromkeys((site, ALL)) if name in self._buckets)
