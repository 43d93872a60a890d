"""What a query asks for: plain values between the query language, the plan of retrieval and the pages."""

from typing import Literal, NamedTuple

__all__ = ["Asked", "Part", "Place"]

Place = Literal["any", "title", "url"]


class Part(NamedTuple):
    """One thing to be found: a word, or words that stand next to each other.

    ``words`` are in the form in which they are indexed (``vedette.text``). A word that falls apart there ("3.9.0",
    a run of Han characters) is a phrase as one in quotes is.
    """

    words: tuple[str, ...]
    place: Place = "any"
    quoted: bool = False

    @property
    def is_phrase(self) -> bool:
        """Whether its words must stand next to each other."""
        return len(self.words) > 1


class Asked(NamedTuple):
    """A query, read. ``every`` has groups of alternatives: a page must have one of each group, and nothing of ``none``.

    Sites are host names, domains or host/path prefixes in lower case; kinds are file types ("pdf"), languages
    ISO 639-1 codes; days are seconds since 1970, ``after_s`` inclusive and ``before_s`` exclusive. ``notes`` say in
    words for people what of the query was left out, and why.
    """

    text: str
    every: tuple[tuple[Part, ...], ...] = ()
    none: tuple[Part, ...] = ()
    sites: tuple[str, ...] = ()
    not_sites: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    not_kinds: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    not_languages: tuple[str, ...] = ()
    after_s: float | None = None
    before_s: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is asked for, neither by a word nor by a filter that finds something."""
        dated = self.after_s is not None or self.before_s is not None
        return not (self.every or self.sites or self.kinds or self.languages or dated)
