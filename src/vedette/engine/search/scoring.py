"""From candidates to an order with reasons: what their words say, what else is known of them, and the weights."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.engine.search.ports import Shelf, Signals
from vedette.index.features import FEATURES, Feature, Slot, features_of, idf_of
from vedette.index.fields import MOST_WORDS
from vedette.index.query.planner import Wanted
from vedette.index.query.retrieval import TEXT_FIELDS
from vedette.policy import Floats, Ints
from vedette.serve.rank.explain import sentence
from vedette.serve.rank.query_intent import freshness, is_home, wants_fresh
from vedette.serve.rank.scoring import WEIGHTS, scored
from vedette.serve.slate import Reason
from vedette.text import number_of

__all__ = ["ALL_FEATURES", "Known", "Weighed", "slots_of", "weigh"]

NEUTRAL = 0.5
LEAST_SAID = 0.005
# A title that has the words of the query, and hardly any other, names its site.
MOSTLY = 0.7

STATIC: tuple[Feature, ...] = (
    Feature("home", "home page of the site that the query names"),
    Feature("fresh", "a fresh page for a query that wants one"),
    Feature("importance", "links from important pages"),
    Feature("host_importance", "an important site"),
    Feature("popularity", "chosen by readers"),
    Feature("shallow", "a short path in the address"),
    Feature("spam", "looks like spam"),
    Feature("favoured", "raised or lowered by the operator"),
)
ALL_FEATURES = FEATURES + STATIC
_KEYS = tuple(feature.key for feature in ALL_FEATURES)
_HOME = _KEYS.index("home")
_BODY = TEXT_FIELDS.index("body")
_NAMING = ("url_coverage", "title_coverage", "title_exact")
_TEXT = {feature.key: column for column, feature in enumerate(FEATURES)}


class Known(NamedTuple):
    """Pages of which the index says that they have all needed words, and those with the query in order in the text."""

    with_all: Ints
    in_order: Ints


NOTHING = Known(np.zeros(0, np.int64), np.zeros(0, np.int64))


class Weighed(NamedTuple):
    """Candidates with what speaks for them; rows are places in ``ids``."""

    ids: Ints
    signals: Signals
    features: Floats
    contributions: Floats
    scores: Floats

    def reasons(self, row: int) -> tuple[Reason, ...]:
        """What counted for or against a candidate, the weightiest first."""
        added = self.contributions[row]
        order = np.argsort(-np.abs(added), kind="stable").tolist()
        return tuple(
            Reason(
                ALL_FEATURES[column].words,
                float(self.features[row, column]),
                WEIGHTS.get(_KEYS[column], 0.0),
                float(added[column]),
            )
            for column in order
            if abs(added[column]) >= LEAST_SAID
        )

    def counted(self, row: int) -> tuple[tuple[str, float], ...]:
        """Every feature of a candidate that counted, however little: its short name and its value."""
        columns = np.flatnonzero(self.contributions[row])
        values = self.features[row, columns].tolist()
        return tuple((_KEYS[column], value) for column, value in zip(columns.tolist(), values, strict=True))

    @property
    def names_a_site(self) -> bool:
        """Whether the query is the name of a site whose home page is among them."""
        return bool((self.features[:, _HOME] >= MOSTLY).any())

    def sentence(self, row: int, words: str) -> str:
        """Why it stands where it stands."""
        added = dict(zip(_KEYS, self.contributions[row].tolist(), strict=True))
        covered = {field: float(self.features[row, _TEXT[f"{field}_coverage"]]) for field in TEXT_FIELDS}
        return sentence(added, words, covered)


def slots_of(wanted: Sequence[Wanted], shelf: Shelf) -> list[Slot]:
    """The words of a query as numbers, and how telling each is.

    Where no page has a word itself, it tells as much as the commonest that may stand for it.
    """
    pages = len(shelf.finder)
    slots = []
    for slot in wanted:
        words = [word for word, _ in slot.words]
        df = shelf.df(words[0]) or max((shelf.df(word) for word in words[1:]), default=0)
        numbers = tuple(number_of(word) for word in words)
        slots.append(Slot(numbers, tuple(weight for _, weight in slot.words), idf_of(df, pages)))
    return slots


def weigh(
    ids: Ints,
    wanted: Sequence[Wanted],
    shelf: Shelf,
    now_s: float,
    known: Known = NOTHING,
    favoured: Mapping[int, float] = MappingProxyType({}),
) -> Weighed:
    """The scores of candidates for the words of a query; the operator favours some hosts, by their numbers."""
    forward = shelf.forward(ids)
    text = features_of(forward, slots_of(wanted, shelf))
    _see_beyond(text, forward.lengths[:, _BODY] >= MOST_WORDS, ids, known)
    signals = shelf.signals(ids)
    words = [slot.words[0][0] for slot in wanted]
    favours = np.array([favoured.get(host, 0.0) for host in signals.host.tolist()]) if favoured else np.zeros(len(ids))
    features = np.column_stack([text, *_static(text, signals, words, now_s), favours])
    result = scored(features, _KEYS, WEIGHTS)
    return Weighed(ids, signals, features, result.contributions, result.scores)


def _see_beyond(text: Floats, is_cut: npt.NDArray[np.bool_], ids: Ints, known: Known) -> None:
    """Of a text that is longer than what is at hand of it, believe the index that the words are in it."""
    text[is_cut & np.isin(ids, known.with_all), _TEXT["anywhere"]] = 1.0
    for key in ("body_has", "body_near"):
        text[is_cut & np.isin(ids, known.in_order), _TEXT[key]] = 1.0


def _static(text: Floats, signals: Signals, words: Sequence[str], now_s: float) -> tuple[Floats, ...]:
    """What is known of pages beside their words, in the order of ``STATIC`` but for its last."""
    wish = wants_fresh(words, signals.date_s, now_s)
    in_address, in_title, title_share = (text[:, _TEXT[key]] for key in _NAMING)
    return (
        is_home(in_address, in_title, title_share, signals.depth, len(words)),
        wish * freshness(np.where(np.isnan(signals.date_s), signals.born_s, signals.date_s), now_s),
        signals.importance,
        signals.host_importance,
        signals.popularity - NEUTRAL,
        1 / (1 + signals.depth),
        signals.spam,
    )
