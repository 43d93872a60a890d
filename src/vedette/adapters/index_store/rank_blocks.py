"""Rank blocks of a shard: what it sends to other shards about the importance of its pages, and what they have sent.

The importance job of the indexer reads what came from each other shard, ``rank/in-N``, and writes ``rank/out``, which
the exchanger of the shard carries to the others. What flows to a page is given by the fingerprint of its URL.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from vedette.adapters.files.atomic import replace_file
from vedette.policy import Floats, Ints

FOLDER, OUT = "rank", "out"
# Smaller changes are not sent.
MIN_CHANGE = 1e-3


@dataclass(frozen=True, slots=True)
class RankBlock:
    """What a shard tells all others: its pages, by the fingerprints of their URLs in order, and their importance.

    ``dangling`` is the importance of its pages without links; ``of_pages`` and ``of_hosts`` are samples of the
    importance of pages and hosts. ``targets`` are pages of other shards, and ``flows`` what flows to each.
    """

    prints: Ints
    dangling: float
    of_pages: Floats
    of_hosts: Floats
    hosts: int
    targets: Ints
    flows: Floats

    def is_like(self, before: "RankBlock") -> bool:
        """Check whether another block says almost the same, so that the exchange comes to an end."""
        if not (np.array_equal(self.prints, before.prints) and np.array_equal(self.targets, before.targets)):
            return False
        change = abs(self.dangling - before.dangling) + float(np.abs(self.flows - before.flows).sum())
        return change <= MIN_CHANGE * (self.dangling + float(self.flows.sum()))

    def pack(self) -> bytes:
        """Pack the block into bytes."""
        packed = BytesIO()
        numbers = np.array([self.dangling, self.hosts], np.float64)
        arrays = (self.prints, self.of_pages, self.of_hosts, numbers, self.targets, self.flows.astype(np.float32))
        np.savez(packed, *arrays, allow_pickle=False)
        return packed.getvalue()


def unpack_block(packed: bytes) -> RankBlock | None:
    """Unpack a block; None if these are no bytes of one."""
    with suppress(ValueError, KeyError, OSError, BadZipFile), np.load(BytesIO(packed), allow_pickle=False) as file:
        prints, of_pages, of_hosts, numbers, targets, flows = (file[f"arr_{place}"] for place in range(6))
        if len(targets) == len(flows) and numbers.shape == (2,):
            flows = flows.astype(np.float64)
            return RankBlock(prints, float(numbers[0]), of_pages, of_hosts, int(numbers[1]), targets, flows)
    return None


def write_block(folder: Path, block: RankBlock) -> None:
    """Write the block of a shard, for its exchanger, unless it says almost the same as before."""
    with suppress(FileNotFoundError):
        before = unpack_block((folder / FOLDER / OUT).read_bytes())
        if before is not None and block.is_like(before):
            return
    (folder / FOLDER).mkdir(exist_ok=True)
    with replace_file(folder / FOLDER / OUT) as file:
        file.write(block.pack())


def receive_block(folder: Path, shard: int, packed: bytes) -> None:
    """Keep the block that another shard has sent, in place of the one before."""
    (folder / FOLDER).mkdir(exist_ok=True)
    with replace_file(folder / FOLDER / f"in-{shard}") as file:
        file.write(packed)


def read_blocks(folder: Path) -> Mapping[int, RankBlock]:
    """Read the blocks of all other shards, as far as they have arrived."""
    files = {int(file.name[3:]): file for file in (folder / FOLDER).glob("in-*") if file.name[3:].isdigit()}
    found = {number: unpack_block(files[number].read_bytes()) for number in sorted(files)}
    return {number: block for number, block in found.items() if block is not None}


def find_newest_block_s(folder: Path) -> float:
    """Return when the newest block of another shard arrived; 0 if none has."""
    return max((file.stat().st_mtime for file in (folder / FOLDER).glob("in-*")), default=0.0)
