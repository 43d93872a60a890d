"""Worlds for testing that a crawler is polite, loses nothing and is not held up; each host has its own behavior.

Served by name, as ``start_server("tests.tree_worlds:strict_town", 200)``, where the number is the number of hosts. A
page links to eight other pages and to one that robots.txt disallows. Everything is a function of host, target and world
time.
"""

from dataclasses import dataclass, field
from math import inf
from typing import Literal

import xxhash

from vedette.lab.worlds.world import NORMAL_DELIVERY, Delivery, Reply, WorldHost, WorldRequest
from vedette.model import Headers

__all__ = ["Manners", "Town", "good_part", "kill_town", "plain_town", "ring_town", "slow_town", "strict_town"]

Trouble = Literal["none", "503", "429", "silent", "slow", "sometimes 429"]

FAN_OUT = 8
HTML: Headers = (("content-type", "text/html; charset=utf-8"),)
TEXT: Headers = (("content-type", "text/plain; charset=utf-8"),)
SILENT = Reply(0, (), b"", Delivery(then="hang"))
TRICKLE = Delivery(bytes_per_s=20)
CRAWL_DELAYS_S = (1.1, 1.4, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9, 10, 12, 15, 18, 22, 27, 33, 40)
_SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "wa")
FILLER = b"<p>" + b"Nothing is lost, and nobody is hurried. " * 12 + b"</p>"


@dataclass(frozen=True, slots=True)
class Manners:
    """The behavior of one host; ``robots`` is the fault of its robots.txt until the world has that age."""

    name: str
    address: str
    pages: int
    crawl_delay_s: float | None = None
    robots: Trouble = "none"
    robots_until_s: float = inf
    page: Trouble = "none"

    @property
    def is_good(self) -> bool:
        """Check whether every request gets the requested response at once."""
        return self.page == "none" and self.robots == "none"


@dataclass(frozen=True, slots=True)
class Town:
    """Hosts with their behaviors."""

    name: str
    manners: tuple[Manners, ...]
    start_s: float = 1_700_000_000.0
    _by_name: dict[str, Manners] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {each.name: each for each in self.manners})

    def hosts(self) -> tuple[WorldHost, ...]:
        """Return every host in a fixed order."""
        return tuple(WorldHost(each.name, each.address) for each in self.manners)

    def urls(self) -> list[str]:
        """Return every page that may be requested."""
        return [f"http://{each.name}{_path(number)}" for each in self.manners for number in range(each.pages)]

    def reply(self, question: WorldRequest, now_s: float) -> Reply:
        """Respond as the host's behavior requires."""
        manners = self._by_name[question.host]
        age_s = now_s - self.start_s
        if question.target == "/robots.txt":
            trouble = manners.robots if age_s < manners.robots_until_s else "none"
            return _in_trouble(trouble, question, age_s) or _robots(manners)
        number = _number(question.target, manners.pages)
        if number is None:
            return Reply(404, TEXT, b"no such page\n")
        return _in_trouble(manners.page, question, age_s) or _page(manners, number)


def _in_trouble(trouble: Trouble, question: WorldRequest, age_s: float) -> Reply | None:
    if trouble == "silent":
        return SILENT
    if trouble == "slow":
        return Reply(200, HTML, FILLER, TRICKLE)
    if trouble == "503":
        return Reply(503, TEXT, b"come back later\n")
    if trouble == "429" or (trouble == "sometimes 429" and _draw(question.host, int(age_s // 50)) % 4 == 0):
        wait_s = 15 + _draw(question.host, int(age_s)) % 40
        return Reply(429, (*TEXT, ("retry-after", str(wait_s))), b"too much\n")
    return None


def _draw(host: str, number: int) -> int:
    return xxhash.xxh64_intdigest(f"{host} {number}".encode())


def _robots(manners: Manners) -> Reply:
    delay = f"Crawl-delay: {manners.crawl_delay_s}\n" if manners.crawl_delay_s is not None else ""
    return Reply(200, TEXT, f"User-agent: *\n{delay}Disallow: /private/\n".encode())


def _page(manners: Manners, number: int) -> Reply:
    further = range(FAN_OUT * number + 1, min(FAN_OUT * number + FAN_OUT + 1, manners.pages))
    links = "".join(f'<a href="{_path(each)}">{each}</a> ' for each in further)
    head = f"<!doctype html><title>{manners.name} {number}</title>{links}<a href='/private/{number}'>no</a>"
    return Reply(200, HTML, head.encode() + _prose(manners.name, number), NORMAL_DELIVERY)


def _prose(name: str, number: int) -> bytes:
    """Return words unique to this page, since pages without new words would be held back as a trap."""
    numbers = [xxhash.xxh32_intdigest(f"{name} {number} {place}".encode()) for place in range(40)]
    words = ["".join(_SYLLABLES[each >> shift & 15] for shift in (0, 4, 8)) for each in numbers]
    return f"<p>{' '.join(words)}.</p>".encode()


def _path(number: int) -> str:
    return f"/p/{number}" if number else "/"


def _number(target: str, pages: int) -> int | None:
    """Return the number of the page at a path; disallowed pages exist, too, so that requests for them are visible."""
    digits = "0" if target == "/" else target.rpartition("/")[2]
    if not digits.isdigit() or target not in {_path(int(digits)), f"/private/{digits}"} or int(digits) >= pages:
        return None
    return int(digits)


def _address(number: int) -> str:
    return f"127.7.{number // 250}.{number % 250 + 1}"


def strict_town(hosts: int) -> Town:
    """Return hosts with twenty crawl delays, 429s, problems of robots.txt, and some addresses for four hosts."""
    troubles: list[tuple[Trouble, float]] = [("none", 0.0)] * 20
    troubles[:6] = [("503", 120.0), ("429", 200.0), ("silent", 150.0), ("503", inf), ("429", inf), ("silent", inf)]
    manners = []
    for number in range(hosts):
        shared = number // 4 % 2 == 0
        robots, until_s = troubles[number * 7 % len(troubles)]
        manners.append(
            Manners(
                f"h{number:03}.test",
                _address(number // 4 * 4 if shared else number),
                pages=400,
                crawl_delay_s=CRAWL_DELAYS_S[number % len(CRAWL_DELAYS_S)] if number % 11 else None,
                robots=robots,
                robots_until_s=until_s,
                page="sometimes 429" if number % 3 == 0 else "none",
            )
        )
    return Town(f"strict town {hosts}", tuple(manners))


def kill_town(hosts: int) -> Town:
    """Return hosts with fifty pages each, two minutes apart: a crawl that lasts long enough to be killed often."""
    manners = (
        Manners(f"k{number:03}.test", _address(number // 2 * 2), pages=50, crawl_delay_s=120) for number in range(hosts)
    )
    return Town(f"kill town {hosts}", tuple(manners))


def plain_town(hosts: int) -> Town:
    """Return good hosts only, each with a few pages."""
    return Town(f"plain town {hosts}", tuple(_good(number, pages=12) for number in range(hosts)))


def slow_town(hosts: int) -> Town:
    """Return a town in which one host in ten is good, with endless pages; the others never deliver a page."""
    bad: tuple[tuple[Trouble, Trouble], ...] = (
        *(("none", "silent"), ("none", "slow"), ("none", "429"), ("silent", "none"), ("429", "none")),
        *(("none", "silent"), ("slow", "none"), ("none", "429"), ("503", "none")),
    )
    manners = []
    for number in range(hosts):
        if number % 10 == 0:
            manners.append(_good(number, pages=100_000))
        else:
            robots, page = bad[number % 10 - 1]
            manners.append(Manners(f"bad{number:04}.test", _address(number), pages=50, robots=robots, page=page))
    return Town(f"slow town {hosts}", tuple(manners))


def good_part(hosts: int) -> Town:
    """Return only the good hosts of the slow town."""
    return Town(f"good part {hosts}", tuple(each for each in slow_town(hosts).manners if each.is_good))


def _good(number: int, pages: int) -> Manners:
    return Manners(f"good{number:04}.test", _address(number), pages=pages)


@dataclass(frozen=True, slots=True)
class Ring(Town):
    """Hosts in a ring: all pages except the start page are only linked from the next host."""

    def reply(self, question: WorldRequest, now_s: float) -> Reply:
        """Return a page whose links all lead to the next host."""
        manners = self._by_name[question.host]
        number = _number(question.target, manners.pages)
        if question.target == "/robots.txt" or number is None:
            return Town.reply(self, question, now_s)
        place = self.manners.index(manners)
        following = self.manners[(place + 1) % len(self.manners)].name
        further = range(RING_FAN_OUT * number + 1, min(RING_FAN_OUT * number + RING_FAN_OUT + 1, manners.pages))
        links = "".join(f'<a href="http://{following}{_path(each)}">{each}</a> ' for each in further)
        head = f"<!doctype html><title>{manners.name} {number}</title>{links}"
        return Reply(200, HTML, head.encode() + _prose(manners.name, number), NORMAL_DELIVERY)


RING_FAN_OUT = 3
RING_PAGES = 30


def ring_town(hosts: int) -> Ring:
    """Return a ring of hosts, every fourth one at the same address, so that shards share links and addresses."""
    manners = (Manners(f"ring{number:03}.test", _address(number % (hosts // 4)), RING_PAGES) for number in range(hosts))
    return Ring(f"ring town {hosts}", tuple(manners))
