"""Hash functions of the synthetic web: every fact of it is a hash of its position and time.

``mix`` is the finalizer of splitmix64 (Steele, Lea & Flood 2014); ``mix_all`` does the same for an array, to the same
bits, so that a fact computed for one page and for a million pages never disagrees.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import xxhash

from vedette.policy import Floats

HashArray = npt.NDArray[np.uint64]

MASK_64 = (1 << 64) - 1
_GAMMA, _MULTIPLIER_1, _MULTIPLIER_2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
LCG_MULTIPLIER, LCG_INCREMENT = 0x5851F42D4C957F2D, 0x14057B7EF767814F
"""Knuth's linear congruential generator modulo 2 ** 64; the upper half of its states is good enough to pick words."""


def mix(word: int) -> int:
    """Mix a 64-bit hash word (splitmix64); overflow is cut off."""
    word = (word + _GAMMA) & MASK_64
    word = ((word ^ (word >> 30)) * _MULTIPLIER_1) & MASK_64
    word = ((word ^ (word >> 27)) * _MULTIPLIER_2) & MASK_64
    return word ^ (word >> 31)


def mix_all(words: HashArray) -> HashArray:
    """Mix every 64-bit hash word of an array: ``mix``, to the same bits; unsigned arrays cut off overflow.

    >>> mix_all(np.array([7], dtype=np.uint64)).tolist() == [mix(7)]
    True
    """
    words = words + np.uint64(_GAMMA)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(_MULTIPLIER_1)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(_MULTIPLIER_2)
    return words ^ (words >> np.uint64(31))


def hash_key(*parts: int | str) -> int:
    """Return a 64-bit hash key for a named thing, such as one host of the synthetic world with a seed."""
    return xxhash.xxh64_intdigest("/".join(map(str, parts)).encode("utf-8", "surrogatepass"))


def fraction(word: int) -> float:
    """Convert the upper 53 bits of a hash word to a number in [0, 1)."""
    return (word >> 11) * 2.0**-53


def fractions(words: HashArray) -> Floats:
    """Convert every hash word of an array to a number in [0, 1): ``fraction`` for arrays."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def lcg_stream(key: int) -> Iterator[int]:
    """Generate an endless stream of 32-bit pseudo-random numbers from a hash key, cheaper than ``mix`` for each."""
    state = mix(key)
    while True:
        state = (state * LCG_MULTIPLIER + LCG_INCREMENT) & MASK_64
        yield state >> 32
