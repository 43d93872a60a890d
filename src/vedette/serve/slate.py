"""The slate of one search: request, results with their reasons, and notes about the whole, as plain values."""

from typing import NamedTuple


class Audience(NamedTuple):
    """The audience of a search: how its results are ordered and which unproven results may be tried.

    ``is_learned`` says whether learned quality counts. At most ``unproven`` of the first ten results are trials, none
    of them before position ``first``. ``seed`` is the user's: the same query shows the same list again. ``promotion``
    names the rule by which they are chosen (``rank.reranking.PROMOTIONS``).
    """

    is_learned: bool = True
    unproven: int = 0
    first: int = 2
    seed: int = 0
    promotion: str = "prospect"


DEFAULT_AUDIENCE = Audience()


class SearchRequest(NamedTuple):
    """A search request: query, filters, page number and audience.

    ``site``, ``kind``, ``language``, ``after_s`` and ``before_s`` are filters chosen besides the query; they add to
    those in the query itself. ``allowed`` are the private sites (by their prefix) that the user may see. ``page``
    counts from 1. With ``folded`` False copies are shown one by one. ``audience`` says how learned quality counts.
    """

    query: str
    n: int = 10
    page: int = 1
    site: str = ""
    kind: str = ""
    language: str = ""
    after_s: float | None = None
    before_s: float | None = None
    allowed: tuple[str, ...] = ()
    folded: bool = True
    audience: Audience = DEFAULT_AUDIENCE


class Reason(NamedTuple):
    """One feature of a search result: its display name, value, weight, and score contribution."""

    feature: str
    value: float
    weight: float
    contribution: float


class Snippet(NamedTuple):
    """A snippet of a result's text, and the parts of it to highlight: pairs of start and end."""

    text: str = ""
    marks: tuple[tuple[int, int], ...] = ()


class SearchResult(NamedTuple):
    """One search result as it is shown.

    ``site`` is its host; ``date_s`` the date stated by the page, if any; ``born_s`` when it was first fetched.
    ``similar`` counts copies folded under it, ``versions`` its pages of other releases. ``note`` is shown beside it
    ("moved down: …", "pinned for this query"), ``sentence`` explains its rank in words. ``has_copy`` means that a
    cached copy may be shown.

    For later learning: ``features`` are the short names and values of everything that counted, including what is too
    small to be listed in ``why``; ``propensity`` is the probability that the result was shown at its position.
    """

    id: int
    url: str
    title: str
    snippet: Snippet
    site: str
    kind: str
    language: str
    fetched_s: float
    born_s: float
    date_s: float | None
    score: float
    why: tuple[Reason, ...] = ()
    sentence: str = ""
    note: str = ""
    similar: int = 0
    has_copy: bool = False
    features: tuple[tuple[str, float], ...] = ()
    propensity: float = 1.0  # nothing is randomized yet
    versions: int = 0


class Slate(NamedTuple):
    """The slate that a search shows. ``total`` counts matching pages; ``notes`` are shown above the results.

    ``suggestion`` is another spelling of the query ("did you mean"); ``relaxed`` are words that some results lack.
    """

    request: SearchRequest
    total: int
    results: tuple[SearchResult, ...] = ()
    notes: tuple[str, ...] = ()
    suggestion: str = ""
    relaxed: tuple[str, ...] = ()
