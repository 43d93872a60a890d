"""Indexability: whether a page is worth indexing, and if not, why not.

Each objection has a name, so that an operator who knows the site better can overrule it by name; then the next
objection counts, if there is one. They are ordered by certainty: the author's statements first, our suspicions last.
Nothing here prevents a page from being fetched, archived or followed.

Languages written without spaces have few words by any count, so a page is short only if it has few letters too. A page
with a title may be shorter: people search for a room or a part by its name, and one sentence is the answer.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum

THIN_WORDS, THIN_LETTERS = 20, 100
TITLED_THIN_WORDS, TITLED_THIN_LETTERS = 5, 25
FEW_ONWARD_LINKS = 3
FILLED_LINKS = "a script fills in its links"
SPAM_SCORE = 0.5


class RejectReason(StrEnum):
    """Why a page is not worth indexing."""

    NOINDEX = "its author asks search engines not to index it"
    COPY = "it is a copy of another page"
    MISSING = "it says that the page does not exist"
    SCRIPT = "text or links are missing without JavaScript"
    EMPTY = "it has no text"
    THIN = "it has few words and few links"
    SPAM = "it looks like spam"


@dataclass(frozen=True, slots=True)
class PageQuality:
    """The facts about a page that decide whether it is worth indexing.

    ``words`` and ``letters`` count its main text, ``onward_links`` the links to other pages in its own text;
    ``copy_of`` is the page that represents its group, if that is another; ``missing`` and ``spam_reasons`` are the
    results of ``soft404`` and ``spam``.
    """

    words: int
    letters: int
    onward_links: int = 0
    noindex: bool = False
    copy_of: str | None = None
    missing: str | None = None
    needs_script: bool = False
    needs_script_links: bool = False
    spam_score: float = 0.0
    spam_reasons: tuple[str, ...] = ()
    is_titled: bool = False

    @property
    def is_thin(self) -> bool:
        """Whether the main text is too short to answer any query."""
        most_words, most_letters = (
            (TITLED_THIN_WORDS, TITLED_THIN_LETTERS) if self.is_titled else (THIN_WORDS, THIN_LETTERS)
        )
        return self.words < most_words and self.letters < most_letters


@dataclass(frozen=True, slots=True)
class Objection:
    """One objection to indexing a page, by the name for overruling it, and its evidence."""

    kind: RejectReason
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}" if self.detail else str(self.kind)


def find_objection(page: PageQuality, overruled: Collection[RejectReason] = ()) -> Objection | None:
    """Return the first objection to indexing a page that is not overruled; None if it is worth indexing.

    >>> str(find_objection(PageQuality(words=0, letters=0)))
    'it has no text'
    >>> find_objection(PageQuality(words=0, letters=0), overruled=[RejectReason.EMPTY, RejectReason.THIN])
    """
    return next((objection for objection in list_objections(page) if objection.kind not in overruled), None)


def is_excluding(kind: RejectReason, words: int) -> bool:
    """Check whether an objection keeps a page with this many words out of the index, unless it is overruled.

    A page that needs JavaScript is indexed with the text it has without, if that is more than a few words.

    >>> is_excluding(RejectReason.SCRIPT, 4), is_excluding(RejectReason.SCRIPT, 400)
    (True, False)
    """
    return kind is not RejectReason.SCRIPT or words < THIN_WORDS


def list_objections(page: PageQuality) -> Iterator[Objection]:
    """Yield all objections to indexing a page, the most certain first."""
    if page.noindex:
        yield Objection(RejectReason.NOINDEX)
    if page.copy_of is not None:
        yield Objection(RejectReason.COPY, page.copy_of)
    if page.missing is not None:
        yield Objection(RejectReason.MISSING, page.missing)
    yield from _check_length(page)
    if page.spam_score >= SPAM_SCORE:
        yield Objection(RejectReason.SPAM, "; ".join(page.spam_reasons))


def _check_length(page: PageQuality) -> Iterator[Objection]:
    if page.needs_script:
        yield Objection(RejectReason.SCRIPT, "" if page.is_thin else f"{page.words} words are all that it gives")
    elif page.needs_script_links:
        yield Objection(RejectReason.SCRIPT, FILLED_LINKS)
    if page.letters == 0:
        yield Objection(RejectReason.EMPTY)
    if page.is_thin and page.onward_links < FEW_ONWARD_LINKS:
        yield Objection(RejectReason.THIN, f"{page.words} words, {page.onward_links} links")
