"""MinHash sketches: 128 bytes of a text that estimate its similarity to other texts.

The similarity of two texts is the Jaccard index of their sets of shingles, J = |A and B| / |A or B|. If all shingles
are in a random order, the first of A and the first of B are the same with probability J (Broder 1997); so a sketch
stores the first in many orders, and the share of positions at which two sketches agree estimates J.

- One order serves all positions (one-permutation hashing: Li, Owen & Zhang 2012): the upper seven bits of a shingle's
  number are its *bin*, and each of the 128 bins stores its smallest number.
- An empty bin borrows from the first non-empty one, in an order of its own (optimal densification: Shrivastava 2017).
  So a text of few words is estimated no worse than a long one.
- One byte of each number is stored (b-bit minwise hashing: Li & König 2010). Different numbers agree by chance with
  probability 1/256, which the estimate corrects. The byte also depends on the bin; otherwise a text of one shingle
  would agree with every 256th other one in all positions.

The standard error of the estimate is sqrt(J (1 - J) / 128): .035 at J = .8, .027 at J = .9.

*Bands* find candidates without comparing all pairs: 16 bands of 8 bytes; texts that share one are candidates, with
probability 1 - (1 - J**8)**16:

    J      .3      .5     .6     .7     .8     .9     .95
    P      .001    .061   .237   .613   .947   .9999  1

Using bytes instead of whole numbers makes no real difference (at J = .3 the eighth power of .3027 instead of .3), and
allows reading the bands off a stored sketch. Shingle hashes are not keyed, so that a sketch is the same on all
machines; the code that builds a table of bands salts it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vedette.parse.similarity.shingles import WideHashes, scramble
from vedette.policy import Floats

Bytes = npt.NDArray[np.uint8]

BINS = 128
BANDS = 16
BIN_BITS = 7
BYTE_BITS = 8
FIRST_LENDERS = 8  # with this many, almost every bin of a page has one
CHANCE_MATCH = 1 / (1 << BYTE_BITS)
EMPTY_BIN = np.uint64((1 << 64) - 1)

_BELOW_BIN, _BELOW_BYTE = np.uint64(64 - BIN_BITS), np.uint64(64 - BYTE_BITS)
_SALTS: WideHashes = scramble(np.arange(1, BINS + 1, dtype=np.uint64))
# Row b is the order in which bin b searches for one to borrow from. A full permutation: it always finds one.
_LENDERS = np.argsort(scramble(np.arange(BINS, BINS + BINS * BINS, dtype=np.uint64)).reshape(BINS, BINS), axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class Sketch:
    """The MinHash sketch of a text, one byte per bin, and its bands, for finding candidates."""

    mins: bytes
    bands: WideHashes


def build_sketch(shingles: WideHashes) -> Sketch | None:
    """Build the MinHash sketch of a set of shingles; None for an empty set, which is similar to nothing.

    >>> from vedette.parse.similarity.shingles import shingle_text
    >>> one, other = (build_sketch(shingle_text(text)) for text in ("Page 1, printed today", "Page 2, printed today"))
    >>> estimate_similarity(one.mins, other.mins), len(one.mins), len(one.bands)
    (1.0, 128, 16)
    """
    if not len(shingles):
        return None
    lowest = np.full(BINS, EMPTY_BIN)
    # Signed numbers, as used for indices: others would be copied.
    np.minimum.at(lowest, (shingles >> _BELOW_BIN).view(np.int64), shingles)
    full = lowest != EMPTY_BIN
    if np.count_nonzero(full) < BINS:
        _fill_empty_bins(lowest, full)
    mins = (scramble(lowest ^ _SALTS) >> _BELOW_BYTE).astype(np.uint8)
    return Sketch(mins.tobytes(), compute_bands(mins))


def compute_bands(mins: Bytes) -> WideHashes:
    """Compute the bands of one MinHash sketch, or of many as rows: eight bytes each, as a number."""
    return mins.view("<u8").astype(np.uint64, copy=False)


def estimate_similarity(one: bytes, other: bytes) -> float:
    """Estimate the Jaccard index of two texts by their MinHash sketches: 1 if equal, never below 0."""
    return float(estimate_similarities(one, np.frombuffer(other, np.uint8))[()])


def estimate_similarities(one: bytes, others: Bytes) -> Floats:
    """Estimate the Jaccard index of one text to many, by MinHash sketches in rows."""
    agreeing = np.count_nonzero(others == np.frombuffer(one, np.uint8), axis=-1) / BINS
    likeness: Floats = np.maximum(0.0, (agreeing - CHANCE_MATCH) / (1 - CHANCE_MATCH))
    return likeness


def minhash(values: Iterable[int], functions: Sequence[Callable[[int], int]]) -> tuple[int, ...]:
    """Compute the plain MinHash that sketches approximate: the smallest value under each function.

    >>> h, g = (lambda x: x % 5), (lambda x: (2 * x + 1) % 5)
    >>> minhash([1, 3, 4], [h, g]), minhash([2, 3, 5], [h, g])
    ((1, 2), (0, 0))
    """
    known = tuple(values)
    return tuple(min(map(function, known)) for function in functions)


def _fill_empty_bins(lowest: WideHashes, full: npt.NDArray[np.bool_]) -> None:
    """Fill the empty bins of a MinHash sketch from full ones (optimal densification)."""
    empty = (~full).nonzero()[0]
    lenders = _LENDERS[empty, :FIRST_LENDERS]
    able = full[lenders]
    if not able.any(axis=1).all():
        lenders = _LENDERS[empty]
        able = full[lenders]
    lowest[empty] = lowest[lenders[np.arange(len(empty)), able.argmax(axis=1)]]
