"""Search rules of the operator for single queries: synonyms, pinned results and hidden results.

A rule is keyed by the words of its query in indexed form, separated by one space.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from vedette.text import split_words

PINNED = "pinned for this query"
_NONE: Mapping[str, tuple[str, ...]] = MappingProxyType({})


def rule_key(words: Sequence[str]) -> str:
    """Return the key by which the search rules of a query are looked up.

    >>> rule_key(["consumer", "lag"])
    'consumer lag'
    """
    return " ".join(words)


class SearchRules(NamedTuple):
    """The operator's search rules by query words. Synonyms are in indexed form; pinned and hidden are URLs.

    ``favoured`` applies to all queries: hosts, by their numbers, that rank higher (1.0) or lower (-1.0).
    """

    synonyms: Mapping[str, tuple[str, ...]] = _NONE
    pinned: Mapping[str, tuple[str, ...]] = _NONE
    hidden: Mapping[str, tuple[str, ...]] = _NONE
    favoured: Mapping[int, float] = MappingProxyType({})

    def get_pinned(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the URLs pinned to the top for a query, in order, without hidden ones."""
        hidden = self.get_hidden(words)
        return tuple(url for url in self.pinned.get(rule_key(words), ()) if url not in hidden)

    def get_hidden(self, words: Sequence[str]) -> frozenset[str]:
        """Return the URLs that a search rule hides for a query."""
        return frozenset(self.hidden.get(rule_key(words), ()))

    def get_synonyms(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the synonyms of a word or phrase in the search rules."""
        return self.synonyms.get(rule_key(words), ())


NO_RULES = SearchRules()


def parse_rules(
    synonyms: Iterable[tuple[str, str]], pinned: Iterable[tuple[str, str]], hidden: Iterable[tuple[str, str]]
) -> SearchRules:
    """Parse the operator's search rules: pairs of a query and a synonym or URL. Synonyms go both ways.

    >>> parse_rules([("K8s", "Kubernetes")], [], []).get_synonyms(["kubernetes"])
    ('k8s',)
    """
    pairs = [(rule_key(split_words(one)), rule_key(split_words(other))) for one, other in synonyms]
    both = [pair for one, other in pairs for pair in ((one, other), (other, one)) if one != other]
    return SearchRules(_group_values(both), _group_values(_key_by_query(pinned)), _group_values(_key_by_query(hidden)))


def _key_by_query(rules: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(rule_key(split_words(query)), url) for query, url in rules]


def _group_values(pairs: Iterable[tuple[str, str]]) -> Mapping[str, tuple[str, ...]]:
    """Group search rule values by key, each once, in order."""
    found: dict[str, dict[str, None]] = {}
    for key, value in pairs:
        if key and value:
            found.setdefault(key, {})[value] = None
    return MappingProxyType({key: tuple(values) for key, values in found.items()})
