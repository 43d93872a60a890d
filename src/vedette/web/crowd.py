"""How many connections may one address hold open?

A connection costs little, but there is room for so many only, and one that sends nothing, or half of a request, keeps
its place until patience ends. So each address has a share. Who wants more of it loses the connection that has been idle
longest, which browsers expect and mend by themselves; an answer under way is never cut off. A proxy that is trusted
speaks for many, and sees to its own visitors.
"""

import ipaddress
from collections.abc import Sequence
from typing import Protocol

from vedette.web.auth.rate_limits import is_among, network_of

__all__ = ["MOST_PER_ADDRESS", "Crowd", "Guest"]

MOST_PER_ADDRESS = 100  # a tenth of all; an office behind one address has room, too


class Guest(Protocol):
    """A connection."""

    def is_idle(self) -> bool:
        """Whether nothing is lost with it: no whole request is being answered."""

    def leave(self) -> None:
        """End it at once."""


class Crowd:
    """The connections of one server process, by where they come from."""

    def __init__(self, trusted: Sequence[str] = (), most: int = MOST_PER_ADDRESS) -> None:
        self._trusted = tuple(ipaddress.ip_network(each) for each in trusted)
        self._most = most
        self._guests: dict[str, dict[Guest, None]] = {}  # the oldest first

    def __len__(self) -> int:
        return sum(map(len, self._guests.values()))

    def enter(self, guest: Guest, address: str) -> bool:
        """Whether there is room for it, perhaps after another of the same address has left."""
        if is_among(address, self._trusted):
            return True
        network = network_of(address)
        beside = self._guests.get(network, {})
        if len(beside) >= self._most:
            idle = next((each for each in beside if each.is_idle()), None)
            if idle is None:
                return False
            del beside[idle]
            idle.leave()
        self._guests.setdefault(network, beside)[guest] = None
        return True

    def gone(self, guest: Guest, address: str) -> None:
        """It has ended; who never entered may be named, too."""
        network = network_of(address)
        beside = self._guests.get(network, {})
        beside.pop(guest, None)
        if not beside:
            self._guests.pop(network, None)
