"""What the operator decides for single queries: synonyms, results that stand first, results that are not shown.

A rule is kept by the words of its query in the form in which they are indexed, one space between.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from vedette.text import split_words

PINNED = "pinned for this query"
_NONE: Mapping[str, tuple[str, ...]] = MappingProxyType({})


def rule_key(words: Sequence[str]) -> str:
    """By what the rules of a query are found.

    >>> rule_key(["consumer", "lag"])
    'consumer lag'
    """
    return " ".join(words)


class SearchRules(NamedTuple):
    """Rules by the words they are for. Synonyms are in indexed form too; pinned and hidden are URLs.

    ``favoured`` holds for all queries: hosts, by their numbers, that stand higher (1.0) or lower (-1.0).
    """

    synonyms: Mapping[str, tuple[str, ...]] = _NONE
    pinned: Mapping[str, tuple[str, ...]] = _NONE
    hidden: Mapping[str, tuple[str, ...]] = _NONE
    favoured: Mapping[int, float] = MappingProxyType({})

    def get_pinned(self, words: Sequence[str]) -> tuple[str, ...]:
        """The URLs that stand first for a query, in order; what is hidden is not."""
        hidden = self.get_hidden(words)
        return tuple(url for url in self.pinned.get(rule_key(words), ()) if url not in hidden)

    def get_hidden(self, words: Sequence[str]) -> frozenset[str]:
        """The URLs that are not shown for a query."""
        return frozenset(self.hidden.get(rule_key(words), ()))

    def get_synonyms(self, words: Sequence[str]) -> tuple[str, ...]:
        """What else a word, or words next to each other, may be called."""
        return self.synonyms.get(rule_key(words), ())


NO_RULES = SearchRules()


def parse_rules(
    synonyms: Iterable[tuple[str, str]], pinned: Iterable[tuple[str, str]], hidden: Iterable[tuple[str, str]]
) -> SearchRules:
    """Rules as the operator writes them: pairs of a query, and another word for it or a URL. Synonyms go both ways.

    >>> parse_rules([("K8s", "Kubernetes")], [], []).get_synonyms(["kubernetes"])
    ('k8s',)
    """
    pairs = [(rule_key(split_words(one)), rule_key(split_words(other))) for one, other in synonyms]
    both = [pair for one, other in pairs for pair in ((one, other), (other, one)) if one != other]
    return SearchRules(_group_values(both), _group_values(_key_by_query(pinned)), _group_values(_key_by_query(hidden)))


def _key_by_query(rules: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(rule_key(split_words(query)), url) for query, url in rules]


def _group_values(pairs: Iterable[tuple[str, str]]) -> Mapping[str, tuple[str, ...]]:
    """All values of a key, each once, in order."""
    found: dict[str, dict[str, None]] = {}
    for key, value in pairs:
        if key and value:
            found.setdefault(key, {})[value] = None
    return MappingProxyType({key: tuple(values) for key, values in found.items()})
