"""Recorded logs of searches and clicks, and simulated visitors that click by a model fitted to such a log.

A line of the log is tab-separated: session, milliseconds, Q, query, nothing, ten results; or session, milliseconds, C,
result. A click belongs to the last search of its session. Other lines are skipped.

Graded queries may be numbered differently from those in the log (in one public log they are, by up to a few dozen),
while results have the same numbers. So a query gets the grades of the graded query that shares most results with it, if
that is at least half of its own; otherwise it has none.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vedette.learn.clicks.examination import CascadeModel, ClickLog, PositionModel
from vedette.learn.clicks.impressions import Bools
from vedette.policy import Floats, Ints

RESULTS_PER_PAGE = 10


class SearchLog(NamedTuple):
    """A recorded log of searches and clicks by time; ``pair`` numbers (query, result) pairs, ``grade`` is by pair."""

    query: Ints
    pair: Ints
    clicked: Bools
    grade: Floats

    def to_clicks(self) -> ClickLog:
        """Convert the recorded search log to the ``ClickLog`` that click models are fitted to."""
        return ClickLog(self.pair, self.clicked, len(self.grade))


def read_grades(lines: Iterable[str]) -> Mapping[tuple[str, str], float]:
    """Read the relevance grades of recorded (query, result) pairs from three-column lines with a heading."""
    rows = (line.rstrip("\n").split("\t") for line in lines)
    return {(row[0], row[1]): float(row[2]) for row in rows if len(row) == 3 and row[2].isdigit()}


def read_log(path: Path, grades: Mapping[tuple[str, str], float]) -> SearchLog:
    """Read a recorded log of searches and clicks from a file; a result without a grade gets NaN."""
    shown: list[tuple[str, list[str]]] = []
    clicked: list[list[bool]] = []
    latest: dict[str, int] = {}
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            cells = line.rstrip("\n").split("\t")
            if len(cells) >= 5 + RESULTS_PER_PAGE and cells[2] == "Q":
                latest[cells[0]] = len(shown)
                shown.append((cells[3], cells[5 : 5 + RESULTS_PER_PAGE]))
                clicked.append([False] * RESULTS_PER_PAGE)
            elif len(cells) >= 4 and cells[2] == "C" and cells[0] in latest:
                search = latest[cells[0]]
                if cells[3] in shown[search][1]:
                    clicked[search][shown[search][1].index(cells[3])] = True
    return _build_log(shown, clicked, grades)


def _build_log(
    shown: list[tuple[str, list[str]]], clicked: list[list[bool]], grades: Mapping[tuple[str, str], float]
) -> SearchLog:
    numbers: dict[tuple[str, str], int] = {}
    queries: dict[str, int] = {}
    query = np.array([queries.setdefault(text, len(queries)) for text, _ in shown], np.int64)
    pair = [[numbers.setdefault((text, one), len(numbers)) for one in results] for text, results in shown]
    meant = _match_graded_queries(numbers, grades)
    grade = np.array([grades.get((meant.get(text, ""), one), np.nan) for text, one in numbers])
    return SearchLog(query, np.array(pair, np.int64), np.array(clicked, bool), grade)


def _match_graded_queries(
    pairs: Iterable[tuple[str, str]], grades: Mapping[tuple[str, str], float]
) -> Mapping[str, str]:
    """Match each query of a recorded click log to the graded query that shares most results with it."""
    graded: defaultdict[str, list[str]] = defaultdict(list)
    for text, one in grades:
        graded[one].append(text)
    shared: defaultdict[str, Counter[str]] = defaultdict(Counter)
    results: Counter[str] = Counter()
    for text, one in pairs:
        results[text] += 1
        shared[text].update(graded[one])
    # Of equally many the first by name, so that nothing depends on the order of a file.
    best = {text: min(found.items(), key=lambda each: (-each[1], each[0])) for text, found in shared.items() if found}
    return {text: other for text, (other, count) in best.items() if 2 * count >= results[text]}


def split_halves(log: SearchLog) -> tuple[SearchLog, SearchLog]:
    """Split a recorded search log into its earlier and its later half."""
    middle = len(log.query) // 2
    first, second = (
        log._replace(query=log.query[part], pair=log.pair[part], clicked=log.clicked[part])
        for part in (slice(0, middle), slice(middle, None))
    )
    return first, second


def draw_position_clicks(model: PositionModel, result: Ints, rng: np.random.Generator) -> Bools:
    """Draw recorded-log visitors' clicks by a position-based click model: each position independently."""
    return rng.random(result.shape) < model.examined[: result.shape[1]] * model.attraction[result]


def draw_cascade_clicks(model: CascadeModel, result: Ints, rng: np.random.Generator) -> Bools:
    """Draw recorded-log visitors' clicks by a cascade click model: read from the top until satisfied or tired."""
    searches, places = result.shape
    clicked = np.zeros((searches, places), bool)
    reads = np.ones(searches, bool)
    for place in range(places):
        clicked[:, place] = reads & (rng.random(searches) < model.attraction[result[:, place]])
        content = clicked[:, place] & (rng.random(searches) < model.satisfaction)
        reads &= ~content & (rng.random(searches) < model.perseverance)
    return clicked


def examination_probabilities(model: PositionModel | CascadeModel, result: Ints) -> Floats:
    """Return the probability that a fitted click model examines each position of recorded searches."""
    if isinstance(model, PositionModel):
        return np.broadcast_to(model.examined[: result.shape[1]], result.shape).copy()
    passed = model.perseverance * (1 - model.attraction[result] * model.satisfaction)
    chances = np.cumprod(passed, axis=1)
    return np.concatenate([np.ones((len(result), 1)), chances[:, :-1]], axis=1)
