"""Result cache: equal searches of the same index share their results for a short while.

Two searches are equal if nothing that results depend on differs: query, filters, page, the private sites that the user
may see, and the audience. Whatever else results depend on (commits to the index, rules, learned reputation) empties the
cache when it changes. Only the age of pages counts without such a change, so results are used for a minute at most.
"""

from vedette.serve.slate import DEFAULT_AUDIENCE, SearchRequest, Slate

MAX_AGE_S = 60.0
MAX_RESULTS = 5000


class ResultCache:
    """Slates by request, the latest last, as long as they have no more results than ``MAX_RESULTS`` together.

    >>> cache, kites = ResultCache(), SearchRequest("kites")
    >>> cache.add(kites, Slate(kites, 0), 0.0)
    >>> cache.find(kites, 59.0) is None, cache.find(kites, 61.0) is None
    (False, True)
    >>> cache.find(kites._replace(allowed=("http://private.example/",)), 1.0) is None
    True
    """

    def __init__(self) -> None:
        self._slates: dict[SearchRequest, tuple[float, Slate]] = {}
        self._size = 0

    def clear(self) -> None:
        """Forget all results, since something changed that they depend on."""
        self._slates.clear()
        self._size = 0

    def find(self, request: SearchRequest, now_s: float) -> Slate | None:
        """Find the results of an equal request that is not too old."""
        made_s, slate = self._slates.get(request, (0.0, None))
        return slate if slate is not None and 0 <= now_s - made_s < MAX_AGE_S else None

    def add(self, request: SearchRequest, slate: Slate, now_s: float) -> None:
        """Add the results of a request; the oldest make room for them."""
        self._drop(request)
        self._slates[request] = now_s, slate
        self._size += _measure(slate)
        while self._size > MAX_RESULTS:
            self._drop(next(iter(self._slates)))

    def _drop(self, request: SearchRequest) -> None:
        _, slate = self._slates.pop(request, (0.0, None))
        self._size -= _measure(slate) if slate is not None else 0


def _measure(slate: Slate) -> int:
    return 1 + len(slate.results)


def normalize_request(request: SearchRequest, *, is_learned: bool) -> SearchRequest:
    """Return the same request for all who get the same results; without learning that is any audience."""
    return request if is_learned else request._replace(audience=DEFAULT_AUDIENCE)
