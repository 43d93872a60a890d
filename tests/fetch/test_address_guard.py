"""Which addresses are public, according to the IANA registries, in every notation."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.fetch.address_guard import is_public

# IANA IPv4 and IPv6 special-purpose address registries: ranges not globally reachable; and RFC 5771, 4291, 3879.
NOT_PUBLIC_4 = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/29",
    "192.0.0.170/31",
    "192.0.2.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "255.255.255.255/32",
]
NOT_PUBLIC_6 = [
    "::/128",
    "::1/128",
    "::/96",
    "::ffff:0:0:0/96",
    "64:ff9b:1::/48",
    "100::/64",
    "100:0:0:1::/64",
    "2001::/32",
    "2001:2::/48",
    "2001:10::/28",
    "2001:db8::/32",
    "3fff::/20",
    "5f00::/16",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
]
# Addresses that well-known public services have, and the registry's own globally reachable exceptions.
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "93.184.216.34",
    "192.31.196.1",
    "192.52.193.1",
    "192.175.48.1",
    "2001:4860:4860::8888",
    "2606:4700:4700::1111",
    "2620:4f:8000::1",
    "2a00:1450:4001:800::200e",
]
PRIVATE_4 = [IPv4Network(text) for text in NOT_PUBLIC_4]

some_private_4 = st.sampled_from(PRIVATE_4).flatmap(lambda network: st.ip_addresses(network=network)).map(IPv4Address)


def forms(inner: IPv4Address) -> list[IPv6Address]:
    """Return the IPv6 addresses that embed an IPv4 address."""
    number = int(inner)
    low = ("::ffff:0:0", "::", "::ffff:0:0:0", "64:ff9b::", "64:ff9b:1::")
    lows = [IPv6Address(int(IPv6Address(prefix)) | number) for prefix in low]
    six_to_four = IPv6Address(int(IPv6Address("2002::")) | number << 80 | 1)
    teredo = IPv6Address(int(IPv6Address("2001:0:808:808::")) | number ^ 0xFFFFFFFF)
    return [*lows, six_to_four, teredo]


@given(st.sampled_from([*NOT_PUBLIC_4, *NOT_PUBLIC_6]).flatmap(lambda text: st.ip_addresses(network=text)))
def test_special_ranges_are_not_public(ip: IPv4Address | IPv6Address) -> None:
    """No address of a special range is public, at its ends or in its middle."""
    assert not is_public(str(ip))


@pytest.mark.parametrize("text", [*NOT_PUBLIC_4, *NOT_PUBLIC_6])
def test_the_ends_of_special_ranges(text: str) -> None:
    """The first and the last address of a range belong to it."""
    network = IPv6Network(text) if ":" in text else IPv4Network(text)
    assert not is_public(str(network[0]))
    assert not is_public(str(network[-1]))


@pytest.mark.parametrize("address", PUBLIC)
def test_the_public_network_is_public(address: str) -> None:
    """Ordinary addresses are allowed; a guard that refuses everything would be useless."""
    assert is_public(address)


@given(some_private_4)
def test_no_wrapping_makes_a_private_address_public(inner: IPv4Address) -> None:
    """A private address stays private in every IPv6 notation."""
    for form in forms(inner):
        assert not is_public(str(form))
        assert not is_public(form.exploded.upper())


@pytest.mark.parametrize("prefix", ["::ffff:", "64:ff9b::"])
def test_public_addresses_behind_a_translator(prefix: str) -> None:
    """In networks without IPv4, a public address in its translated form is public."""
    assert is_public(f"{prefix}8.8.8.8")
    assert not is_public(f"{prefix}10.0.0.1")


@pytest.mark.parametrize("address", ["fe80::1%eth0", "2606:4700::1111%eth0", "8.8.8.8%eth0", "::1%1", "8.8.8.8%"])
def test_a_zone_is_local(address: str) -> None:
    """An address with a zone belongs to a network of this machine, so it isn't public."""
    assert not is_public(address)


@pytest.mark.parametrize(
    "junk",
    [
        *("", "localhost", "8.8.8", "8.8.8.8.8", "010.8.8.8", "8.8.8.8 ", "8.8.8.8\n", "8.8.8.8:80", "134744072"),
        *(
            "0x8.8.8.8",
            "\uff18.8.8.8",
            "]8.8.8.8[",
            "::8::",
            "[",
            "%",
            "\0",
            "\ud800",
            "2606:4700::1111/64",
            "9" * 5000,
        ),
    ],
)
def test_junk_is_not_public(junk: str) -> None:
    """An invalid address literal is not public, and doesn't raise."""
    assert not is_public(junk)


@given(st.text(max_size=50) | st.text("0123456789abcdef:.%[]x", max_size=45))
def test_public_means_a_plain_public_literal(text: str) -> None:
    """Nothing raises, and only literals outside of every special range are public."""
    if is_public(text):
        ip = IPv6Address(text) if ":" in text else IPv4Address(text)
        networks = map(IPv6Network, NOT_PUBLIC_6) if ":" in text else PRIVATE_4
        assert not any(ip in network for network in networks)


@given(st.ip_addresses(v=4))
def test_ipv4_is_public_exactly_outside_the_registry(ip: object) -> None:
    """An address outside every range of the registry is allowed, except those with their own reason."""
    special = [*PRIVATE_4, *map(IPv4Network, ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32"))]
    assert is_public(str(ip)) is not any(ip in network for network in special)
