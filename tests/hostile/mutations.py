"""Valid documents, damaged the way the web damages them: truncated, duplicated, moved, mixed, with changed bytes.

Parsers reject random bytes right away; damage to a valid document gets further.
"""

from collections.abc import Sequence
from functools import reduce

from hypothesis import strategies as st

__all__ = ["mutated"]

Edit = tuple[str, float, float, bytes]
NOISE = (
    b"\0",
    b"\xff",
    b"\xfe\xff",
    b"<",
    b">",
    b"&",
    b'"',
    b"'",
    b"\r\n\r\n",
    b"-1",
    b"9" * 40,
    b"\xed\xa0\x80",
    b"]]>",
)


def _edited(data: bytes, edit: Edit) -> bytes:
    kind, one, other, piece = edit
    start, end = sorted((int(one * len(data)), int(other * len(data))))
    match kind:
        case "cut":
            return data[:start] + data[end:]
        case "double":
            return data[:end] + data[start:end] * 3 + data[end:]
        case "move":
            return data[:start] + data[end:] + data[start:end]
        case "replace":
            return data[:start] + piece + data[start + len(piece) :]
        case _:
            return data[:start] + piece + data[start:]


def mutated(seeds: Sequence[bytes], tokens: Sequence[bytes] = (), most_bytes: int = 20_000) -> st.SearchStrategy[bytes]:
    """Return one of the seeds after up to eight edits; inserted pieces are tokens of the format, noise, or seeds."""
    pieces = st.sampled_from([*tokens, *NOISE]) | st.binary(max_size=6) | st.sampled_from(list(seeds))
    places = st.floats(0, 1, allow_nan=False)
    kinds = st.sampled_from(["cut", "double", "move", "replace", "insert", "insert"])
    edits = st.lists(st.tuples(kinds, places, places, pieces), max_size=8)
    return st.builds(lambda seed, each: reduce(_edited, each, seed)[:most_bytes], st.sampled_from(list(seeds)), edits)
