"""Which addresses may be asked at all: a page must not lead the crawler into the operator's own network.

Private, loopback, link-local, multicast, reserved and unspecified addresses are refused unless the operator allows
private ones; so are the IPv6 forms that carry such an IPv4 address inside (mapped, 6to4, Teredo, NAT64).
"""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

__all__ = ["is_public"]

NAT64 = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
COMPATIBLE = IPv6Network("::/96")


def is_public(address: str) -> bool:
    """Whether an address literal belongs to the public network; what cannot be read does not.

    >>> [is_public(a) for a in ("93.184.216.34", "127.0.0.1", "10.1.2.3", "::ffff:169.254.169.254", "64:ff9b::a00:1")]
    [True, False, False, False, False]
    """
    try:
        ip = ip_address(address.strip("[]").partition("%")[0])
    except ValueError:
        return False
    inner = _inner(ip) if isinstance(ip, IPv6Address) else None
    return ip.is_global and not ip.is_multicast and (inner is None or (inner.is_global and not inner.is_multicast))


def _inner(ip: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that an IPv6 address stands for, where it does."""
    if ip.ipv4_mapped or ip.sixtofour:
        return ip.ipv4_mapped or ip.sixtofour
    if ip.teredo:
        return ip.teredo[1]
    if ip in COMPATIBLE or any(ip in network for network in NAT64):
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    return None
