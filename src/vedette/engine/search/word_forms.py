"""Words that count for a word of the query: its forms in the index, synonyms, another spelling, completions.

A word that no page has is corrected without being asked: its likely spelling counts as another form of it. The results
say so, and offer the query with that word in quotes, which is searched as typed. Only pages that the user may see
matter: otherwise a word would be known to be on a private page by not being corrected.
"""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from vedette.engine.search.ports import IndexSnapshot
from vedette.index.query.parser import ParsedQuery, QueryPart, format_query
from vedette.index.query.planner import WordForms
from vedette.index.query.retrieval import TEXT_FIELDS, And, Or, Term, TermSet
from vedette.index.query.vocabulary import is_stop_word
from vedette.serve.rank.rules import SearchRules

SYNONYM_WEIGHT = 0.8
CORRECTION_WEIGHT = 0.8
COMPLETION_WEIGHT = 0.7
MAX_COMPLETIONS = 6
MAX_UNKNOWN = 3

NO_FORMS: Mapping[str, Sequence[tuple[str, float]]] = MappingProxyType({})


def build_forms(
    shelf: IndexSnapshot, rules: SearchRules, more: Mapping[str, Sequence[tuple[str, float]]] = NO_FORMS
) -> WordForms:
    """Build the lookup of what else counts for a query word; ``more`` has other forms of some words."""
    known: dict[str, Sequence[tuple[str, float]]] = {}

    def forms(word: str) -> Sequence[tuple[str, float]]:
        if word not in known:
            synonyms = rules.get_synonyms((word,)) if rules.synonyms else ()
            named = dict.fromkeys(synonyms, SYNONYM_WEIGHT) | dict(more.get(word, ()))
            known[word] = tuple((dict(shelf.get_word_forms(word)) | named).items())
        return known[word]

    return forms


def is_plain(group: Sequence[QueryPart]) -> bool:
    """Check whether a group of the query is a single word, as typed and without an operator."""
    part = group[0]
    return len(group) == 1 and len(part.words) == 1 and not part.quoted and part.place == "any"


def find_corrections(
    asked: ParsedQuery, forms: WordForms, shelf: IndexSnapshot, access: Sequence[str], begun: Collection[str] = ()
) -> dict[str, str]:
    """Find the words of the query that are on no page that the user may see, and how they are probably spelled.

    A word that is only ``begun`` is left alone.
    """
    plain = [group[0].words[0] for group in asked.every if is_plain(group)]
    checked = [word for word in dict.fromkeys(plain) if word not in begun]
    unknown = [word for word in checked if _is_unknown(word, forms, shelf)]
    if len(unknown) > MAX_UNKNOWN:  # no typos, but another subject or language
        return {}
    unknown = [word for word in unknown if not is_found(word, shelf, access)]
    if not unknown:
        return {}
    better = shelf.suggest_spelling(plain)
    if better is not None and len(better) == len(plain):
        return {word: meant for word, meant in zip(plain, better, strict=True) if word in unknown and word != meant}
    alone = {word: shelf.suggest_spelling([word]) for word in unknown}
    return {word: " ".join(meant) for word, meant in alone.items() if meant}


def _is_unknown(word: str, forms: WordForms, shelf: IndexSnapshot) -> bool:
    return not (is_stop_word(word) or shelf.is_known(word) or forms(word))


def is_found(word: str, shelf: IndexSnapshot, access: Sequence[str]) -> bool:
    """Check whether a page that the user may see has a word."""
    if not any(shelf.finder.df(field, word) for field in TEXT_FIELDS):  # as for most typos; a query takes longer
        return False
    anywhere = Or(tuple(Term(field, word) for field in TEXT_FIELDS))
    return bool(len(shelf.finder.find(And((anywhere, TermSet("access", tuple(access)))), 1).ids))


def find_completions(asked: ParsedQuery, shelf: IndexSnapshot) -> dict[str, Sequence[tuple[str, float]]]:
    """Find how the last word of a query that is being typed may go on."""
    if not asked.every or not is_plain(asked.every[-1]) or asked.text[-1:].isspace():
        return {}
    word = asked.every[-1][0].words[0]
    return {word: [(each, COMPLETION_WEIGHT) for each in shelf.complete_word(word, MAX_COMPLETIONS)]}


def replace_words(asked: ParsedQuery, corrections: Mapping[str, str]) -> str:
    """Return the query with these words corrected."""
    every = [
        ((QueryPart((word,)),) for word in corrections[group[0].words[0]].split())
        if is_plain(group) and group[0].words[0] in corrections
        else (group,)
        for group in asked.every
    ]
    return format_query(asked._replace(every=tuple(group for groups in every for group in groups)))


def quote_words(asked: ParsedQuery, words: Mapping[str, str]) -> str:
    """Return the query with these words in quotes, so that they are searched as typed."""
    every = [
        (group[0]._replace(quoted=True),) if is_plain(group) and group[0].words[0] in words else group
        for group in asked.every
    ]
    return format_query(asked._replace(every=tuple(every)))
