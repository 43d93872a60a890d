"""No page leads the crawler into the operator's network: not by link, redirect, sitemap, feed, base or name.

A real coordinator and fetcher crawl a start page with a public name that an override maps to loopback. Everything on it
points to addresses that are in scope, but not allowed. A listener on the loopback addresses must see no connections;
for the others, the state must contain the reason.
"""

import json
import select
import socket
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.hostile.guard_child import Script, command
from tests.tree_runs import PATIENCE_S
from tests.wire_server import Question, Said, WireServer, whole

from vedette.model import ScopeKind

PUBLIC = "93.184.216.34"
# As the URL standard writes them; every spelling below means one of these.
LOOPBACK_HOSTS = ("127.0.0.1", "0.0.0.0", "[::1]", "[::ffff:7f00:1]")  # noqa: S104 - an address to be refused
OTHER_HOSTS = (
    *("10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "169.254.169.254", "168.63.129.16"),
    *("[64:ff9b::7f00:1]", "[fe80::1]", "[fc00::1]", "[2002:7f00:1::]", "[::7f00:1]", "[::ffff:a9fe:a9fe]"),
)
SPELLINGS = (
    *("127.0.0.1", "2130706433", "0x7f.1", "0x7F000001", "127.1", "0177.0.0.1", "127.0.0.1.", "0.0.0.0", "0"),  # noqa: S104 - as above
    *("%31%32%37.0.0.1", "\uff11\uff12\uff17.0.0.1", "127\u30020.0.1", "door.test@127.0.0.1", "door.test:80@127.0.0.1"),
    *("[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::FFFF:7F00:1]", "[0:0:0:0:0:FFFF:127.0.0.1]"),
    *OTHER_HOSTS,
)
# For the control, which does connect: nothing but loopback.
HARMLESS = ("127.0.0.1", "2130706433", "door.test@127.0.0.1")
WAYS = ("link", "redirect", "base", "refresh", "canonical", "sitemap", "feed")
HTML = "Content-Type: text/html; charset=utf-8"
XML = "Content-Type: application/xml"
NAMES = {
    "four.door.test": [["127.0.0.1"]],
    "six.door.test": [["::1"]],
    "mapped.door.test": [["::ffff:127.0.0.1"]],
    "translated.door.test": [["64:ff9b::7f00:1"]],
    "unique.door.test": [["fc00::1"]],
    "metadata.door.test": [["169.254.169.254"]],
    "many.door.test": [["10.0.0.1", "fe80::1", "127.0.0.1", "::1"]],
    "mixed.door.test": [["::1", "127.0.0.1", PUBLIC]],
}


def robots_hosts(spellings: tuple[str, ...]) -> list[str]:
    """List hosts whose robots.txt redirects to one of the spellings."""
    return [f"robots-{number}.door.test" for number in range(len(spellings))]


class Door:
    """The public server's responses for these notations; ``port`` is that of the private listener."""

    def __init__(self, port: int, spellings: tuple[str, ...], names: Iterable[str]) -> None:
        self._port = port
        self._spellings = spellings
        self._numbers = range(len(spellings))
        self._hosts = [*names, *robots_hosts(spellings)]

    def __call__(self, question: Question) -> Said:
        """Respond with one way to lead elsewhere."""
        way, _, number = question.target.strip("/").partition("/")
        if way == "robots.txt":
            return self._robots(question.header("host") or "")
        if way == "sitemap.xml":
            return whole(self._sitemap(), XML)
        if way == "feed.xml":
            return whole(self._feed(), XML)
        target = self._url(way, int(number)) if number.isdigit() else ""
        if way == "redirect":
            return whole(b"", f"Location: {target.encode().decode('latin-1')}", status="302 Found")
        return whole(self._page(way, target).encode(), HTML)

    def _url(self, way: str, number: int) -> str:
        return f"http://{self._spellings[number]}:{self._port}/{way}/{number}"

    def _robots(self, host: str) -> Said:
        """Redirect robots.txt for hosts named by a number."""
        label = host.partition(".")[0]
        if label.startswith("robots-"):
            location = self._url("robots", int(label.removeprefix("robots-"))).encode().decode("latin-1")
            return whole(b"", f"Location: {location}", status="301 Moved Permanently")
        lines = [f"Sitemap: {self._url('robots-sitemap', number)}" for number in self._numbers]
        return whole("\n".join(["Sitemap: http://door.test/sitemap.xml", *lines]).encode(), "Content-Type: text/plain")

    def _page(self, way: str, target: str) -> str:
        match way:
            case "":
                paths = [f"/{each}/{number}" for each in WAYS[:5] for number in self._numbers]
                hosts = [f"http://{name}/" for name in self._hosts]
                return "".join(f'<a href="{each}">x</a>' for each in [*paths, *hosts, "/feed.xml"])
            case "base":
                return f'<base href="{target}"><a href="below">x</a>'
            case "refresh":
                return f'<meta http-equiv="refresh" content="0; url={target}"><title>x</title>'
            case "canonical":
                return f'<link rel="canonical" href="{target}"><title>x</title>'
            case _:
                return f'<a href="{target}">x</a>'

    def _sitemap(self) -> bytes:
        places = "".join(f"<url><loc>{self._url('sitemap', number)}</loc></url>" for number in self._numbers)
        return f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{places}</urlset>'.encode()

    def _feed(self) -> bytes:
        items = "".join(f"<item><link>{self._url('feed', number)}</link></item>" for number in self._numbers)
        return f'<rss version="2.0"><channel><title>x</title>{items}</channel></rss>'.encode()


@pytest.fixture
def inside() -> Iterator[WireServer]:
    """A server that only the operator may contact."""
    with WireServer(lambda _: whole(b"<title>inside</title>", HTML)) as server:
        yield server


def crawl(folder: Path, script: Script) -> dict[str, Any]:
    """Crawl to the end and return the coordinator's last numbers."""
    done = subprocess.run(command(folder, script), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def script_for(door: WireServer, inside: WireServer, hosts: tuple[str, ...], spellings: tuple[str, ...]) -> Script:
    """Put all these hosts in scope, and resolve them to the public server unless their names are private."""
    sites: dict[str, ScopeKind] = {f"http://{host}:{inside.port}/": "host" for host in hosts}
    public = ["door.test", *robots_hosts(spellings)]
    detours = [f"{name}:80=127.0.0.1:{door.port}" for name in (*public, "mixed.door.test")]
    return Script({"http://door.test/": "domain", **sites}, {name: [[PUBLIC]] for name in public}, detours)


def test_no_link_or_redirect_leads_to_a_private_address(tmp_path: Path, inside: WireServer) -> None:
    """After twenty-odd spellings, seven ways and seven names, there is no connection, and each refusal has a reason."""
    wanted = Door(inside.port, SPELLINGS, NAMES)
    with WireServer(wanted) as door, closing(socket.socket(socket.AF_INET6)) as inside_6:
        with suppress(OSError):  # a machine without IPv6
            inside_6.bind(("::1", inside.port))
            inside_6.listen()
        script = script_for(door, inside, (*LOOPBACK_HOSTS, *OTHER_HOSTS), SPELLINGS)
        report = crawl(tmp_path, replace(script, names={**script.names, **NAMES}))
        assert (inside.connections, inside.questions) == (0, [])
        assert select.select([inside_6], [], [], 0)[0] == []
        asked = {(question.header("host") or "", question.target) for question in door.questions}
    # The door was walked through in full, so that there was something to refuse.
    assert {("door.test", f"/{way}/{number}") for way in WAYS[:5] for number in range(len(SPELLINGS))} <= asked
    assert {("door.test", "/sitemap.xml"), ("door.test", "/feed.xml"), ("mixed.door.test", "/")} <= asked
    assert {("robots-0.door.test", "/robots.txt")} <= asked
    refused = [host for host, why in report["hosts_in_trouble"].items() if "address refused" in why]
    assert len(refused) >= len(NAMES) - 1, report


def test_allowed_private_addresses_are_requested(tmp_path: Path, inside: WireServer) -> None:
    """Control: if the operator allows private addresses, the same links are followed."""
    with WireServer(Door(inside.port, HARMLESS, ())) as door:
        crawl(tmp_path, replace(script_for(door, inside, LOOPBACK_HOSTS[:1], HARMLESS), allow_private=True))
    found = {question.target.split("/")[1] for question in inside.questions}
    assert {"link", "redirect", "base", "sitemap", "feed", "robots.txt", "robots"} <= found


def test_a_name_that_turns_inward_is_left(tmp_path: Path) -> None:
    """A name that was public and then resolves to a private address is no longer requested after the next lookup.

    Until then, requests go to the address that was checked, whatever the name resolves to.
    """

    def next_page(question: Question) -> Said:
        number = question.target.strip("/")
        return whole(f'<a href="/{int(number) + 1 if number.isdigit() else 1}">next</a>'.encode(), HTML)

    with WireServer(next_page) as door:
        names = {"door.test": [[PUBLIC], ["127.0.0.1"]]}
        detours = [f"door.test:80=127.0.0.1:{door.port}"]
        report = crawl(tmp_path, Script({"http://door.test/": "host"}, names, detours, speed=3000.0, delay_s=100.0))
        asked = [question.target for question in door.questions]
    # The chain has no end; only the name ends the crawl.
    assert "/" in asked
    assert report["hosts_in_trouble"] == {"door.test": "address refused"}


def test_a_site_with_a_private_address_is_never_requested(tmp_path: Path) -> None:
    """If the site's own name resolves to a private address, it fails without a connection."""
    with WireServer(lambda _: whole(b"", HTML)) as door:
        names = {"door.test": [["127.0.0.1"], [PUBLIC]]}
        detours = [f"door.test:80=127.0.0.1:{door.port}"]
        report = crawl(tmp_path, Script({"http://door.test/": "host"}, names, detours))
        assert door.connections == 0
    assert report["hosts_in_trouble"] == {"door.test": "address refused"}
