"""Texts of versions in compressed blocks, of which only those are unpacked that somebody reads."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import zstandard

from vedette.errors import StoreCorrupt
from vedette.lab.worlds.history import History, Texts
from vedette.policy import Ints

__all__ = ["Block", "PackedTexts", "TextPacker", "packed_texts"]

BLOCK_BYTES = 1 << 20
# A page's versions lie side by side, and one differs from the next in a few words: no long search finds more.
LEVEL = 3
BLOCKS_AT_HAND = 16


class Block(NamedTuple):
    """Some texts, one behind the other in UTF-8, compressed; and their size when they are not."""

    packed: bytes | memoryview
    size_bytes: int


class PackedTexts(Texts):
    """Text ``n`` is the bytes ``span[n]`` to ``span[n + 1]`` of all blocks unpacked; no text lies in two blocks."""

    def __init__(self, version_text: Ints, span: Ints, blocks: Sequence[Block]) -> None:
        self.version_text, self.span, self.blocks = version_text, span, blocks
        self._ends = np.cumsum([block.size_bytes for block in blocks], dtype=np.int64)
        self._unpacked = lru_cache(BLOCKS_AT_HAND)(self._unpack)

    def text(self, version: int) -> str:
        """What a version says: its words, without markup."""
        number = int(self.version_text[version])
        begin, end = int(self.span[number]), int(self.span[number + 1])
        if begin == end:
            return ""
        block = int(np.searchsorted(self._ends, begin, side="right"))
        start = int(self._ends[block]) - self.blocks[block].size_bytes
        return self._unpacked(block)[begin - start : end - start].decode(errors="replace")

    def _unpack(self, block: int) -> bytes:
        packed, size_bytes = self.blocks[block]
        try:
            return zstandard.ZstdDecompressor().decompress(packed, max_output_size=size_bytes)
        except zstandard.ZstdError:
            raise StoreCorrupt("a block of texts cannot be unpacked; make the history anew") from None


class TextPacker:
    """Packs texts one by one, in the order in which they will have their numbers."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._span = [0]
        self._blocks: list[Block] = []

    def add(self, text: str) -> None:
        """One more text."""
        raw = text.encode(errors="replace")
        self._waiting.append(raw)
        self._waiting_bytes += len(raw)
        self._span.append(self._span[-1] + len(raw))
        if self._waiting_bytes >= BLOCK_BYTES:
            self._close()

    def packed(self, version_text: Ints) -> PackedTexts:
        """All texts; ``version_text`` says which of them each version has."""
        if self._waiting_bytes:
            self._close()
        return PackedTexts(version_text, np.array(self._span, np.int64), tuple(self._blocks))

    def _close(self) -> None:
        self._blocks.append(Block(self._compressor.compress(b"".join(self._waiting)), self._waiting_bytes))
        self._waiting, self._waiting_bytes = [], 0


def packed_texts(history: History) -> PackedTexts:
    """The texts of any history, packed; versions of equal content share one."""
    if isinstance(history.texts, PackedTexts):
        return history.texts
    _, firsts, numbers = np.unique(history.digest, return_index=True, return_inverse=True)
    packer = TextPacker()
    for text in _texts(history.texts, firsts.tolist()):
        packer.add(text)
    return packer.packed(numbers.astype(np.int64))


def _texts(texts: Texts, versions: Iterable[int]) -> Iterable[str]:
    return map(texts.text, versions)
