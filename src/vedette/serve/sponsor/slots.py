"""How much is a lower slot seen? Factors beside the first slot, learned from clicks, leaning on a first guess.

A showing in slot s of an ad whose rate is c brings c f_s clicks on average. Over many showings, f_s is what was clicked
in the slot by what would have been clicked in the first; ``GUESS_CLICKS`` expected clicks is what the guess is worth.
A lower slot is never believed to be seen more than one above it: where clicks say so, both get their common mean.
"""

import numpy as np

from vedette.decide import Floats

__all__ = ["FIRST_FACTORS", "slot_factors"]

# By a sample of the KDD Cup 2012: clicks in the second and third of three slots, beside the first; then by halves.
FIRST_FACTORS: Floats = np.array([1.0, 0.55, 0.38, 0.19, 0.1])
GUESS_CLICKS = 50.0


def slot_factors(clicked: Floats, expected: Floats, guess: Floats = FIRST_FACTORS) -> Floats:
    """The factors of slots by clicks in each, and by clicks expected of what it showed, had the first slot shown it.

    >>> slot_factors(np.array([400.0, 300.0]), np.array([400.0, 1000.0]), np.array([1.0, 0.5])).round(3).tolist()
    [1.0, 0.31]
    """
    size = min(len(clicked), len(guess))
    weight = expected[:size] + GUESS_CLICKS
    found = (clicked[:size] + GUESS_CLICKS * guess[:size]) / weight
    fitted = _falling(found, weight)
    factors: Floats = fitted / fitted[0] if size else fitted
    return factors


def _falling(values: Floats, weight: Floats) -> Floats:
    """The nearest values that never rise: neighbours that do are joined, as heavy as both."""
    blocks: list[tuple[float, float, int]] = []
    for value, heavy in zip(values.tolist(), weight.tolist(), strict=True):
        mean, total, size = value, heavy, 1
        while blocks and blocks[-1][0] < mean:
            above, more, count = blocks.pop()
            mean, total, size = (mean * total + above * more) / (total + more), total + more, size + count
        blocks.append((mean, total, size))
    return np.repeat([mean for mean, _, _ in blocks], [size for _, _, size in blocks]).astype(np.float64)
