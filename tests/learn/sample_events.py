"""Sample events: people search one query, read from the top, and like pages according to their quality."""

import numpy as np

from vedette.learn.events import ClickEvent, SearchEvent, ShownResult

DAY_S = 86_400.0
EXAMINED = 0.8 ** np.arange(10)


def made_record(
    quality: dict[int, float], searches: int, *, seed: int = 1, policy: str = "linear/1", people: int = 10**6
) -> tuple[list[SearchEvent], list[ClickEvent]]:
    """Return searches of different people, each with all pages in a random order; users stay on pages they like."""
    rng = np.random.default_rng([seed, searches])
    slates, events = [], []
    for number in range(searches):
        order = rng.permutation(list(quality)).tolist()
        shown = tuple(ShownResult(int(page), place, 5.0) for place, page in enumerate(order, 1))
        id_, at_s = f"{seed:04x}{policy[:1]}{number:027d}", DAY_S + 60.0 * number
        mark = f"{int(rng.integers(people)) * 2654435761 % 2**32:08x}{number:08x}"
        slates.append(SearchEvent(id_, at_s, "red kites", "red kites", 10, mark, policy=policy, results=shown))
        events.append(ClickEvent(id_, "view", 0, at_s, 0.5, mark))
        looked = rng.random(len(order)) < EXAMINED[: len(order)]
        for place, page in enumerate(order):
            if looked[place] and rng.random() < quality[page]:
                events.append(ClickEvent(id_, "click", int(page), at_s + 2.0, 2.0 + place * 60.0, mark))
    return slates, events
