"""Ad matching: which ads a query may show, by exact, phrase and broad targets and negative keywords.

    exact    the query is the target, word for word
    phrase   the query has the words of the target in their order, with others before or after
    broad    the query has all words of the target, in any order

Words are those of ``vedette.text``, so case, accents and punctuation do not matter. A *negative* excludes an ad from
queries that have all its words. A query looks up its own words, not all targets: its time depends on its words (at most
``MAX_WORDS`` count), and on how many targets share their rarest word with it.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from vedette.text import split_words

MAX_WORDS = 32


class MatchType(StrEnum):
    """How closely a query must match an ad target."""

    EXACT = "exact"
    PHRASE = "phrase"
    BROAD = "broad"


class Target(NamedTuple):
    """An ad target: the phrase that triggers an ad; ``ad`` is its number."""

    ad: int
    match_type: MatchType
    text: str
    negatives: tuple[str, ...] = ()


class _ParsedTarget(NamedTuple):
    target: Target
    words: tuple[str, ...]
    negatives: tuple[frozenset[str], ...]


def is_match(target: Target, query: str) -> bool:
    """Check whether an ad target matches a query.

    >>> [is_match(Target(0, way, "red shoes"), "cheap Red Shoes") for way in MatchType]
    [False, True, True]
    """
    return _is_match(_parse_target(target), _split_query(query))


class Matcher:
    """Index of ad targets for matching queries."""

    def __init__(self, targets: Iterable[Target]) -> None:
        read = [each for each in map(_parse_target, targets) if each.words]
        often: dict[str, int] = {}
        for each in read:
            for word in dict.fromkeys(each.words):
                often[word] = often.get(word, 0) + 1
        self._by_word: dict[str, list[_ParsedTarget]] = {}
        for each in read:
            # Every match type needs all words, so the rarest word finds the target, and the fewest others with it.
            rarest = min(each.words, key=lambda word: (often[word], word))
            self._by_word.setdefault(rarest, []).append(each)

    def find_targets(self, query: str) -> list[Target]:
        """Find the ad targets that match a query, by ad; the closest match of each ad."""
        words = _split_query(query)
        found: dict[int, Target] = {}
        for word in dict.fromkeys(words):
            for each in self._by_word.get(word, ()):
                if _is_match(each, words) and _is_closer(each.target, found.get(each.target.ad)):
                    found[each.target.ad] = each.target
        return [found[ad] for ad in sorted(found)]


def _parse_target(target: Target) -> _ParsedTarget:
    away = tuple(frozenset(words) for text in target.negatives if (words := split_words(text)))
    return _ParsedTarget(target, tuple(split_words(target.text)), away)


def _split_query(query: str) -> tuple[str, ...]:
    return tuple(split_words(query)[:MAX_WORDS])


def _is_match(read: _ParsedTarget, words: Sequence[str]) -> bool:
    asked = frozenset(words)
    if not read.words or any(away <= asked for away in read.negatives):
        return False
    if read.target.match_type is MatchType.EXACT:
        return tuple(words) == read.words
    if not asked.issuperset(read.words):
        return False
    return read.target.match_type is MatchType.BROAD or _has_phrase(words, read.words)


def _has_phrase(words: Sequence[str], run: tuple[str, ...]) -> bool:
    size = len(run)
    return any(tuple(words[at : at + size]) == run for at in range(len(words) - size + 1))


def _is_closer(target: Target, other: Target | None) -> bool:
    ways = tuple(MatchType)
    return other is None or ways.index(target.match_type) < ways.index(other.match_type)
