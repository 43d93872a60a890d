"""For how long connections to each host are held: pages that were not fetched of late cost what others of it do."""

import json
from collections.abc import Mapping, Sequence
from math import isfinite

from vedette.model import origin_of

__all__ = ["HostSeconds"]

MOST_HOSTS = 5_000
# Fetches over which the mean of a host is about taken: it follows a host that became slow within a few pages.
REMEMBERED = 10


class HostSeconds:
    """The mean of each host, bounded in number: who was not asked for longest is forgotten first.

    >>> seconds = HostSeconds().after(["https://a.test/1", "https://a.test/2"], [1.0, 3.0])
    >>> seconds.of(["https://a.test/3", "https://b.test/"])
    [2.0, None]
    """

    def __init__(self, means: Mapping[str, tuple[float, int]] | None = None) -> None:
        self._means = dict(means or {})

    def after(self, urls: Sequence[str], seconds: Sequence[float]) -> "HostSeconds":
        """After requests for these that took so long; the same object."""
        for url, took_s in zip(urls, seconds, strict=True):
            host = origin_of(url).host
            mean_s, seen = self._means.pop(host, (0.0, 0))
            seen = min(seen + 1, REMEMBERED)
            self._means[host] = mean_s + (took_s - mean_s) / seen, seen
        while len(self._means) > MOST_HOSTS:
            del self._means[next(iter(self._means))]
        return self

    def of(self, urls: Sequence[str]) -> list[float | None]:
        """How long a request for each may take; None where nobody knows."""
        return [self._means.get(origin_of(url).host, (None, 0))[0] for url in urls]

    def to_json(self) -> str:
        """For the next run."""
        return json.dumps({host: (round(mean_s, 4), seen) for host, (mean_s, seen) in self._means.items()})

    @classmethod
    def from_json(cls, text: str | None) -> "HostSeconds":
        """What an earlier run wrote; nothing where that makes no sense.

        >>> HostSeconds.from_json(HostSeconds({"a.test": (0.25, 3)}).to_json()).of(["http://a.test/"])
        [0.25]
        >>> HostSeconds.from_json('{"a.test": [-1, 3]}').of(["http://a.test/"]), HostSeconds.from_json("[").of([])
        ([None], [])
        """
        try:
            kept = {str(host): (float(mean_s), int(seen)) for host, (mean_s, seen) in json.loads(text or "{}").items()}
        except (TypeError, ValueError, AttributeError):
            return cls()
        return cls({host: one for host, one in kept.items() if isfinite(one[0]) and one[0] >= 0 and one[1] > 0})
