"""Rate limits: a token bucket for each user, from which every request takes one token.

A bucket holds as many tokens as the rate names, and refills in the rate's time: so a user may spend them all at once,
and then as steadily as they refill. Memory is bounded: with too many users the least recently active one is dropped,
which at worst refills one bucket too early.
"""

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from hashlib import blake2b

from vedette.config import Rate

MAX_CLIENTS = 10_000
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class RateLimiter:
    """The rate limiter: the token buckets of all users, by the process's own clock."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, most: int = MAX_CLIENTS) -> None:
        self._clock = clock
        self._most = most
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens left, and as of when

    def __len__(self) -> int:
        return len(self._buckets)

    def take_token(self, reader: str, rate: Rate) -> float:
        """Take a token from a user's rate limit bucket; return 0, or the seconds until there is one.

        >>> limits = RateLimiter(clock=lambda: 0.0)
        >>> [limits.take_token("wiki", Rate(2, 60.0)) for _ in range(3)]
        [0.0, 0.0, 30.0]
        """
        if not rate.requests:
            return 0.0
        now_s = self._clock()
        tokens = self._refill_tokens(reader, rate, now_s)
        has_token = tokens >= 1
        self._store_bucket(reader, tokens - has_token, now_s)
        return 0.0 if has_token else (1 - tokens) * rate.per_s / rate.requests

    def get_wait_s(self, reader: str, rate: Rate) -> float:
        """Return the seconds until a user's rate limit bucket has a token; 0 if it has one now."""
        return max(1 - self._refill_tokens(reader, rate, self._clock()), 0.0) * rate.per_s / rate.requests

    def _refill_tokens(self, reader: str, rate: Rate, now_s: float) -> float:
        left, then_s = self._buckets.get(reader, (float(rate.requests), now_s))
        return min(left + (now_s - then_s) * rate.requests / rate.per_s, float(rate.requests))

    def _store_bucket(self, reader: str, tokens: float, now_s: float) -> None:
        self._buckets[reader] = (tokens, now_s)
        self._buckets.move_to_end(reader)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)


def hash_address(address: str, salt: bytes) -> str:
    """Return a salted hash of a client address, to count its rate limit without storing the address.

    >>> hash_address("2001:db8::1", b"salt") == hash_address("2001:db8::2", b"salt")
    True
    """
    return blake2b(to_network(address).encode("utf-8", "replace"), key=salt, digest_size=12).hexdigest()


def to_neighborhood(address: str) -> str:
    """Return the network of an address that one customer may have as a whole; a local address represents itself.

    >>> to_neighborhood("2001:470:1:2::3"), to_neighborhood("::ffff:8.8.4.4"), to_neighborhood("10.0.0.1")
    ('2001:470:1::/48', '8.8.4.0/24', '10.0.0.1')
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv6Address):
        ip = ip.ipv4_mapped or ip
    bits = 24 if ip.version == 4 else 48
    return str(ipaddress.ip_network((int(ip), bits), strict=False)) if ip.is_global else address


def to_network(address: str) -> str:
    """Return the network that counts as one client address for limits: an IPv6 user has a whole /64.

    >>> to_network("2001:db8::1"), to_network("192.0.2.1")
    ('2001:db8::/64', '192.0.2.1')
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    if ip.version == 6 and ip.ipv4_mapped is None:
        return str(ipaddress.ip_network((int(ip), 64), strict=False))
    return address


def is_in_networks(address: str, networks: Iterable[Network]) -> bool:
    """Check whether an IP address, in any notation, is in one of some networks; False for invalid ones.

    >>> is_in_networks("::ffff:10.1.2.3", [ipaddress.ip_network("10.0.0.0/8")]), is_in_networks("", [])
    (True, False)
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped:
        ip = ip.ipv4_mapped
    return any(ip in network for network in networks)
