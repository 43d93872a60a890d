"""What one search shows: results with their reasons, and what is said about the whole. Plain values."""

from typing import NamedTuple


class Audience(NamedTuple):
    """For whom results are ordered.

    ``is_learned`` says whether by what was learned. At most ``unproven`` of the first ten are there to be tried, none
    of them before place ``first``. ``seed`` is the reader's: the same query shows the same list again.
    """

    is_learned: bool = True
    unproven: int = 0
    first: int = 2
    seed: int = 0


DEFAULT_AUDIENCE = Audience()


class SearchRequest(NamedTuple):
    """A search as somebody asked for it.

    ``site``, ``kind``, ``language``, ``after_s`` and ``before_s`` are filters chosen beside the query; they add to
    what the query itself says. ``allowed`` are the private sites (by their start) that the reader may see.
    ``page`` counts from 1. With ``folded`` False copies are shown one by one. What was learned counts as
    ``audience`` says.
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
    """One feature of one result: its name in words, its value, its weight, and what it added to the score."""

    feature: str
    value: float
    weight: float
    contribution: float


class Snippet(NamedTuple):
    """A piece of a page's text, and which parts of it to highlight: pairs of start and end."""

    text: str = ""
    marks: tuple[tuple[int, int], ...] = ()


class SearchResult(NamedTuple):
    """One page as it is shown.

    ``site`` is its host; ``date_s`` what the page says of its date, if anything; ``born_s`` when it was first fetched.
    ``similar`` counts pages folded under it. ``note`` is what is said beside it ("moved down: …", "pinned for this
    query"), ``sentence`` is why it stands where it stands, in words. ``has_copy`` says that a cached copy may be shown.

    What is learned from later: ``features`` are the short names and values of all that counted, also of what is too
    little to be told in ``why``; ``propensity`` is how likely it was to stand where it stands.
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
    propensity: float = 1.0  # no lots are drawn yet


class Slate(NamedTuple):
    """All that a search shows. ``total`` counts pages that match; ``notes`` are said above the results, in words.

    ``suggestion`` is another spelling of the query ("did you mean"); ``relaxed`` are words that not all results have.
    """

    request: SearchRequest
    total: int
    results: tuple[SearchResult, ...] = ()
    notes: tuple[str, ...] = ()
    suggestion: str = ""
    relaxed: tuple[str, ...] = ()
