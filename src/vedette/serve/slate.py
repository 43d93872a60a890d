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

    ``site``, ``kind``, ``language``, ``version``, ``after_s`` and ``before_s`` are filters chosen besides the query,
    which add to those in it. ``allowed`` are the private sites (by their prefix) that the user may see.
    ``page`` counts from 1. With ``folded`` False copies are shown one by one. ``audience`` says how learned quality
    counts. Snippets have at most ``snippet_length`` characters. With ``is_partial`` the query is still being typed, and
    its last word may be incomplete. Only if it ``is_explained`` have results reasons (``why``, ``sentence``).
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
    version: str = ""
    is_partial: bool = False
    is_explained: bool = True


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


class PageVersion(NamedTuple):
    """The same page of another release: its label, as in its URL, and its URL."""

    label: str
    url: str


class SearchResult(NamedTuple):
    """One search result as it is shown.

    ``site`` is its host; ``date_s`` the date stated by the page, if any; ``born_s`` when it was first fetched.
    ``similar`` counts copies folded under it, ``versions`` pages of other releases; ``other_versions`` has the newest
    of these, ``version`` is the label of its own release, empty if its URL names none. ``note`` is shown beside it
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
    version: str = ""
    other_versions: tuple[PageVersion, ...] = ()


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
    """List the best passages of search results: a page counts by its score, at least by that of the next one."""
    scores = [max(result.score, 0.0) for result in results]
    weights = [max(scores[rank:]) / (max(scores) or 1.0) for rank in range(len(scores))]
    found = [
        Passage(result, section.heading, section.url, section.snippet.text, section.share * weight)
        for weight, result in zip(weights, results, strict=True)
        for section in result.sections or (ResultSection("", result.url, result.snippet),)
        if section.snippet.text
    ]
    return sorted(found, key=lambda passage: -passage.score)[:n]


class Slate(NamedTuple):
    """The slate that a search shows. ``total`` counts matching pages; ``notes`` are shown above the results.

    ``suggestion`` is another spelling of the query ("did you mean"); ``relaxed`` are words that some results lack. If a
    word is on no page, ``corrected`` is the query that was searched instead, and ``verbatim`` is searched as typed.
    """

    request: SearchRequest
    total: int
    results: tuple[SearchResult, ...] = ()
    notes: tuple[str, ...] = ()
    suggestion: str = ""
    relaxed: tuple[str, ...] = ()
    corrected: str = ""
    verbatim: str = ""

    @property
    def correction_note(self) -> str:
        """Say in one sentence that the query was corrected; empty if it was not."""
        note = (
            f"Showing results for {self.corrected}, because a word you typed does not appear on any page. "
            f"To search for it anyway, type {self.verbatim}"
        )
        return note if self.corrected else ""
