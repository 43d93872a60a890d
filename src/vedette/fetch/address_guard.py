"""The address guard: which IP addresses may be fetched, to keep the crawler out of the operator's own network.

The table is that of the IANA special-purpose registries, maintained here because the standard library's changes with
its version. IPv4 is public unless listed. IPv6 is public only inside 2000::/3, the range that IANA allocates, unless
listed. Of the forms that embed an IPv4 address, those in use (mapped, 6to4, NAT64) are as public as the embedded
address, and the others (compatible, translated, Teredo, local NAT64) are not. An address with a zone belongs to some
local network.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_NOT_PUBLIC_4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # shared by a provider's customers
            "127.0.0.0/8",  # loopback
            "168.63.129.16/32",  # responds inside every Azure machine, as 169.254.169.254 does elsewhere
            "169.254.0.0/16",  # link-local, and the metadata of most clouds
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # 6to4 relays, deprecated
            "192.168.0.0/16",  # private
            "198.18.0.0/15",  # benchmarking
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)
_ALLOCATED_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments, Teredo among them
            "2001:db8::/32",  # documentation
            "3fff::/20",  # documentation
        ),
    )
)
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_6TO4 = IPv6Network("2002::/16")


def is_public(address: str) -> bool:
    """Check whether an IP address literal belongs to the public network; False if it cannot be parsed.

    >>> [is_public(a) for a in ("93.184.216.34", "127.0.0.1", "10.1.2.3", "::ffff:169.254.169.254", "64:ff9b::a00:1")]
    [True, False, False, False, False]
    """
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    return _is_public_4(ip) if isinstance(ip, IPv4Address) else _is_public_6(ip)


def _is_public_4(ip: IPv4Address) -> bool:
    return not any(ip in network for network in _NOT_PUBLIC_4)


def _is_public_6(ip: IPv6Address) -> bool:
    if ip.scope_id is not None:
        return False
    inner = _extract_ipv4(ip)
    if inner is not None:
        return _is_public_4(inner)
    return ip in _ALLOCATED_6 and not any(ip in network for network in _NOT_PUBLIC_6)


def _extract_ipv4(ip: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address embedded in an IPv6 address (mapped, 6to4, NAT64); None for others."""
    if ip in _MAPPED or ip in _NAT64:
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    if ip in _6TO4:
        return IPv4Address(int(ip) >> 80 & 0xFFFFFFFF)
    return None
