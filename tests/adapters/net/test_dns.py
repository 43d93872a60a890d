"""DNS lookups by the system's resolver; no test needs a name server."""

import select
import subprocess
import sys
import threading
from ipaddress import ip_address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tree_runs import PATIENCE_S

from vedette.adapters.net.dns import Lookup, Resolver, resolve_host
from vedette.model import Failure

CLOSE_WHILE_PENDING = """
import socket, threading
from vedette.adapters.net import dns

asked = threading.Event()

def never(*_, **__):
    asked.set()
    threading.Event().wait()

socket.getaddrinfo = never
resolver = dns.Resolver()
for number in range(40):
    resolver.submit(f"slow{number}.test")
assert asked.wait(300)
if CLOSE:
    resolver.close()
print("end")
"""


def answers_of(resolver: Resolver, count: int) -> list[Lookup]:
    """Wait on the descriptor, as an event loop does, until this many lookups are done."""
    found: list[Lookup] = []
    while len(found) < count:
        assert select.select([resolver.fd], [], [], 20)[0], "no answer came"
        resolver.drain()
        found += resolver.take_answers()
    return found


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.1", "127.0.0.1"), ("[::1]", "::1"), ("[2001:DB8:0:0::1]", "2001:db8::1"), ("192.0.2.7", "192.0.2.7")],
)
def test_literals_stand_for_themselves(host: str, address: str) -> None:
    """An address in a URL needs no lookup and has one spelling, without brackets."""
    assert resolve_host(host) == Lookup(host, (address,))


def test_localhost_is_here() -> None:
    """The one name that every machine knows resolves to its own addresses, each once."""
    found = resolve_host("localhost")
    assert found.failure is None
    assert found.addresses
    assert all(ip_address(address).is_loopback for address in found.addresses)
    assert len(set(found.addresses)) == len(found.addresses)


@pytest.mark.parametrize("host", ["invalid", "a.invalid", "a.b.INVALID", "a.invalid."])
def test_invalid_does_not_exist(host: str) -> None:
    """Names under .invalid do not exist (RFC 6761, 6.4)."""
    assert resolve_host(host) == Lookup(host, (), Failure.NAME)


@pytest.mark.parametrize("host", ["", "localhost\0.example.org", "a" * 64 + ".invalid", "\ud800.test", ".."])
def test_what_is_no_name(host: str) -> None:
    """An impossible name does not exist; it is neither an error nor another name."""
    assert resolve_host(host) == Lookup(host, (), Failure.NAME)


@settings(max_examples=50)
@given(st.text(max_size=80).map(lambda text: f"{text}.invalid"))
def test_any_text_has_an_outcome(host: str) -> None:
    """Whatever comes before .invalid does not exist."""
    assert resolve_host(host).addresses == ()


def test_several_at_once() -> None:
    """Every lookup has exactly one answer, even with more lookups than threads."""
    resolver = Resolver(threads=3)
    hosts = [f"127.0.0.{number}" for number in range(1, 30)] + [f"{number}.invalid" for number in range(30)]
    for host in hosts:
        resolver.submit(host)
    found = answers_of(resolver, len(hosts))
    assert sorted(lookup.host for lookup in found) == sorted(hosts)
    assert {lookup.failure for lookup in found if lookup.addresses} == {None}
    assert {lookup.failure for lookup in found if not lookup.addresses} == {Failure.NAME}
    assert (resolver.pending, resolver.take_answers()) == (0, [])
    resolver.close()


def test_the_descriptor_rests_after_draining() -> None:
    """A loop that drained the descriptor is not woken again without a new answer."""
    resolver = Resolver()
    resolver.submit("127.0.0.1")
    answers_of(resolver, 1)
    resolver.drain()
    assert select.select([resolver.fd], [], [], 0)[0] == []
    resolver.submit("127.0.0.2")
    assert [lookup.host for lookup in answers_of(resolver, 1)] == ["127.0.0.2"]
    resolver.close()


def test_closing_ends_the_threads() -> None:
    """A closed resolver leaves no thread behind, even if it is closed twice."""
    before = set(threading.enumerate())
    resolver = Resolver(threads=4)
    for number in range(8):
        resolver.submit(f"{number}.invalid")
    ours = [thread for thread in threading.enumerate() if thread not in before]
    assert ours
    resolver.close()
    resolver.close()
    for thread in ours:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in ours)


@pytest.mark.parametrize("close", [True, False])
def test_a_name_server_that_never_answers(close: bool) -> None:  # noqa: FBT001 - both ways to leave
    """A program exits at once although lookups are in progress, whether or not it closes the resolver."""
    program = CLOSE_WHILE_PENDING.replace("CLOSE", str(close))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")
