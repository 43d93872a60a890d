"""The joke study (Pandey08, 5.10) with real Jester votes: a thousand items, people who vote "funny" or not.

    jester:FILE

An existing path wins; otherwise it is a file of the ``clicks`` folder in the folder named by VEDETTE_DATA. It has
ratings of jokes by people (``user``, ``joke``, ``rating`` from -10 to 10); 5 and more is funny. Items are jokes
resampled to a power law of quality, as in the study with jokes and quotations: item i has the quality ``best
i^(-2/3)``. It is a joke that is at least as funny, drawn at random among the five nearest; a funny vote for it counts
with the probability that reduces it to its quality. A person votes as a person of the file did; if that one has not
rated the joke, by its mean.
"""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.errors import UsageError
from vedette.policy import Floats, Ints, rng_for

FUNNY_RATING = 5.0
ITEMS = 1_000
EXPONENT = 2 / 3
NEAREST = 5


class JesterVotes(NamedTuple):
    """Jester votes: whether each person (row) finds each joke (column) funny (1, 0, -1 if unrated), and its share."""

    votes: npt.NDArray[np.int8]
    share: Floats


class JesterItems(NamedTuple):
    """Items of the joke study: each item's joke, the probability that a funny vote counts, and its quality."""

    joke: Ints
    accept_rate: Floats
    quality: Floats


def find_ratings(name: str) -> Path:
    """Find the Jester ratings file of a joke study's name."""
    data = os.environ.get("VEDETTE_DATA", "")
    places = [Path(name), *([Path(data) / "clicks" / name] if data else [])]
    for path in places:
        if path.is_file():
            return path
    raise UsageError(
        f"jester:{name} not found: use a path, or set VEDETTE_DATA to a folder that contains clicks/{name}"
    )


def load_ratings(path: Path) -> JesterVotes:
    """Load the Jester joke ratings of a file as votes."""
    try:
        with np.load(path, allow_pickle=False) as file:
            user, joke, rating = (file[name].astype(np.float64) for name in ("user", "joke", "rating"))
    except (OSError, KeyError, ValueError) as error:
        raise UsageError(f"{path.name} contains no ratings: expected arrays user, joke and rating") from error
    votes = np.full((int(user.max()) + 1, int(joke.max()) + 1), -1, np.int8)
    votes[user.astype(np.int64), joke.astype(np.int64)] = rating >= FUNNY_RATING
    rated = np.maximum((votes >= 0).sum(axis=0), 1)
    return JesterVotes(votes, (votes == 1).sum(axis=0) / rated)


def draw_items(jokes: JesterVotes, seed: int) -> JesterItems:
    """Draw a thousand joke study items from the Jester votes by a power law of quality, in random order."""
    rng = rng_for(seed, "jester/shelf")
    by_share = np.argsort(jokes.share, kind="stable")
    ordered = jokes.share[by_share]
    quality = rng.permutation(ordered[-1] * np.arange(1.0, ITEMS + 1) ** -EXPONENT)
    least = np.searchsorted(ordered, quality)
    chosen = np.minimum(least + rng.integers(0, NEAREST, ITEMS), len(ordered) - 1)
    return JesterItems(by_share[chosen].astype(np.int64), quality / ordered[chosen], quality)
