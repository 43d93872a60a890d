"""Explain the rank of a search result in one sentence."""

from collections.abc import Mapping

# Below this share of the total, a field is not worth mentioning.
WORTH_SAYING = 0.12
MAX_PLACES = 3
FULL_COVERAGE = 0.99
PLACES = {
    "title": "its title",
    "headings": "its headings",
    "anchors": "links to it",
    "url": "its address",
    "body": "its text",
}
OTHER_REASONS = {
    "home": "it is the home page of the site that the query names",
    "fresh": "it is recent",
    "importance": "important pages link to it",
    "host_importance": "its site is important",
    "popularity": "people often choose it",
}
CAVEATS = {"spam": "though it looks a little like spam"}


def explain_rank(contributions: Mapping[str, float], words: str, covered: Mapping[str, float]) -> str:
    """Explain a result's rank: where the query's words occur, and what else counts, by score contributions.

    ``covered`` is the share of the words in each field; a field without all of them is described as having some.

    >>> added = {"title_phrase": 2.0, "title_bm25": 1.0, "anchors_phrase": 1.5, "body_bm25": 0.1}
    >>> explain_rank(added, "consumer lag", {"title": 1.0, "anchors": 1.0})
    'High because its title and links to it say “consumer lag”.'
    >>> explain_rank(added, "consumer lag", {"title": 1.0, "anchors": 0.5})
    'High because its title says “consumer lag” and links to it have words of it.'
    """
    total = sum(value for value in contributions.values() if value > 0)
    if total <= 0:
        return "Here because nothing else matches better."
    places = _top_places(contributions, total)
    whole = [PLACES[place] for place in places if covered.get(place, 0.0) >= FULL_COVERAGE]
    partly = [PLACES[place] for place in places if PLACES[place] not in whole]
    besides = [said for key, said in OTHER_REASONS.items() if contributions.get(key, 0.0) >= WORTH_SAYING * total]
    against = [said for key, said in CAVEATS.items() if -contributions.get(key, 0.0) >= WORTH_SAYING * total]
    first = [f"{_join(whole)} {'say' if _is_plural(whole) else 'says'} “{words}”"] if whole else []
    of_it = "it" if whole else f"“{words}”"
    second = [f"{_join(partly)} {'have' if _is_plural(partly) else 'has'} words of {of_it}"] if partly else []
    reasons = _join(first + second + besides) or "its words match best"
    return f"High because {', '.join([reasons, *against])}."


_PLURALS = frozenset({PLACES["headings"], PLACES["anchors"]})


def _top_places(contributions: Mapping[str, float], total: float) -> list[str]:
    """Return the fields (title, links, body ...) with the query's words, by contribution, heaviest first."""
    added = dict.fromkeys(PLACES, 0.0)
    for key, value in contributions.items():
        place = key.partition("_")[0]
        if place in added:
            added[place] += value
    loudest = sorted(added, key=lambda place: -added[place])[:MAX_PLACES]
    return [place for place in loudest if added[place] >= WORTH_SAYING * total]


def _is_plural(places: list[str]) -> bool:
    return len(places) > 1 or places[0] in _PLURALS


def _join(things: list[str]) -> str:
    """Join phrases into a list, with "and" before the last."""
    return " and ".join(filter(None, [", ".join(things[:-1]), *things[-1:]]))
