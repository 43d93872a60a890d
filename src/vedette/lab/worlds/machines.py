"""Kinds of machines for the scale experiment (``machines:NAME``), as hosting companies offer them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from vedette.errors import UsageError


class Machine(NamedTuple):
    """A kind of machine: cores, bytes of memory and disk, and bytes a second of its network."""

    cores: int
    memory_bytes: float
    disk_bytes: float
    bytes_per_s: float


MACHINES: Mapping[str, Machine] = MappingProxyType(
    {"small": Machine(8, 64e9, 2e12, 1e9 / 8), "large": Machine(64, 512e9, 30e12, 10e9 / 8)}
)


def check_machine(name: str) -> None:
    """Refuse a kind of machine that does not exist."""
    if name not in MACHINES:
        raise UsageError(f"there is no world machines:{name}; choose machines:{' or machines:'.join(MACHINES)}")
