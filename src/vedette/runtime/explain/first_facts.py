"""What a first fetch of an unseen URL is expected to bring, and why, as plain values, out of what is on disk.

Worth and price come from the keeper where one runs, which alone knows the budget; else they are left out.
"""

import sqlite3
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.impact_store import Expected, by_links, read_told
from vedette.adapters.index_store.indexer_store import read_names
from vedette.frontier.impact.estimates import ByImpact, Weighed
from vedette.frontier.impact.url_features import MOST_CHARACTERS, strings_of
from vedette.model import fingerprint
from vedette.text import numbers_of

__all__ = ["first_facts"]

Told = dict[str, Any]

MOST_MATCHES, MOST_NAMES = 3, 8


def first_facts(id_: int, url: str, depth: int, folder: Path, live: Told | None) -> Told:
    """What is foreseen of a URL that was not fetched; ``gain`` is None where nothing is, ``why`` says why not."""
    index = folder / "index"
    expected, told = Expected(index), read_told(index) or {}
    ids = np.array([id_], np.uint32)
    own, gain = float(expected.known(ids)[0]), float(expected.gains(ids, [url])[0])
    names = _names(url, folder)
    batch = Weighed(np.array([depth]), np.array([id_]), np.array([max(len(names), 1)]), np.array([gain]))
    return {
        "gain": gain if isfinite(gain) else None,
        "weighed": isfinite(own),
        "usual": _usual(expected, url),
        "by_links": by_links(index, id_),
        "why": None if isfinite(gain) else str(told.get("why") or "it has not been worked out yet"),
        "matches": _matches(url, names, told.get("needy")),
        "names": [text[:MOST_CHARACTERS] for text in names],
        "worth": live.get("first_worth") if live else None,
        "price": live.get("price") if live else None,
        "reason": ByImpact().reason((), batch, 0, 0.0),
    }


def _usual(expected: Expected, url: str) -> float | None:
    """What is usual where it lies."""
    usual = float(expected.gains(np.zeros(1, np.uint32), [url])[0])
    return usual if isfinite(usual) else None


def _names(url: str, folder: Path) -> list[str]:
    """What pages call it."""
    generation = Generations(folder).current()
    try:
        return [text for _, text in read_names(generation, [fingerprint(url)], MOST_NAMES)] if generation else []
    except sqlite3.Error:  # it is just being made, or was let go
        return []


def _matches(url: str, names: list[str], needy: object) -> list[Told]:
    """The needy queries all of whose words stand in its address or in links to it, those asked most first."""
    strings = strings_of([url], [(0, text) for text in names])
    owner = np.repeat(strings.anchor, np.diff(strings.start))
    in_links, in_address = (frozenset(strings.words[which].tolist()) for which in (owner, ~owner))
    found = []
    for query, share in _sound(needy):
        words = numbers_of(query.encode("utf-8", "replace")).tolist()
        if words and all(word in in_links or word in in_address for word in words):
            places = [name for name, some in (("links", in_links), ("address", in_address)) if some & set(words)]
            found.append({"query": query, "share": share, "places": places})
    return sorted(found, key=lambda one: -float(str(one["share"])))[:MOST_MATCHES]


def _sound(needy: object) -> list[tuple[str, float]]:
    """What a file says that may be anything."""
    rows = needy if isinstance(needy, list) else []
    return [
        (row[0], float(row[1]))
        for row in rows
        if isinstance(row, list) and len(row) > 1 and isinstance(row[0], str) and isinstance(row[1], int | float)
    ]
