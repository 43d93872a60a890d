"""The slate of one search: request, results with their reasons, and notes about the whole, as plain values."""

from collections.abc import Sequence
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
SNIPPET_LENGTH = 200


class SearchRequest(NamedTuple):
    """A search request: query, filters, page number and audience.

    ``site``, ``kind``, ``language``, ``after_s`` and ``before_s`` are filters chosen besides the query; they add to
    those in the query itself. ``allowed`` are the private sites (by their prefix) that the user may see. ``page``
    counts from 1. With ``folded`` False copies are shown one by one. ``audience`` says how learned quality counts.
    Snippets have at most ``snippet_length`` characters.
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
    snippet_length: int = SNIPPET_LENGTH


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


class ResultSection(NamedTuple):
    """A section of a result that matches the query: its heading, the URL that leads there, and a snippet of it.

    ``share`` is how well it matches compared with the best section of the page.
    """

    heading: str
    url: str
    snippet: Snippet
    share: float = 1.0


class SearchResult(NamedTuple):
    """One search result as it is shown.

    ``site`` is its host; ``date_s`` the date stated by the page, if any; ``born_s`` when it was first fetched.
    ``similar`` counts copies folded under it, ``versions`` its pages of other releases. ``note`` is shown beside it
    ("moved down: …", "pinned for this query"), ``sentence`` explains its rank in words. ``has_copy`` means that a
    cached copy may be shown. ``sections`` are the best sections under a heading, best first; the snippet is from the
    first, unless the text before all headings matches better.

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
    sections: tuple[ResultSection, ...] = ()


class Passage(NamedTuple):
    """A passage that answers a query, with the result it is from; ``score`` is 1 for the best passage of the best page.

    ``heading`` is empty if the text is not under one.
    """

    result: SearchResult
    heading: str
    url: str
    text: str
    score: float


def list_passages(results: Sequence[SearchResult], n: int) -> list[Passage]:
    """List the best passages of search results: a page counts by the reciprocal of its rank."""
    found = [
        Passage(result, section.heading, section.url, section.snippet.text, section.share / rank)
        for rank, result in enumerate(results, 1)
        for section in result.sections or (ResultSection("", result.url, result.snippet),)
        if section.snippet.text
    ]
    return sorted(found, key=lambda passage: -passage.score)[:n]


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
