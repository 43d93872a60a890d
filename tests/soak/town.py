"""A town whose pages appear and change, and whose hosts fail in turns; a function of host, target and time."""

from dataclasses import dataclass
from hashlib import blake2b

from vedette.lab.worlds.world import NORMAL_DELIVERY, Delivery, Reply, WorldHost, WorldRequest

HOUR_S = 3600.0
FIRST_PAGES = 40
BIRTH_S = 4 * HOUR_S
FAN_OUT = 8
TROUBLE_SPAN_S = 3 * HOUR_S
TROUBLES = ("none", "429", "503", "silent", "reset", "no robots", "slow", "none")
HTML = (("content-type", "text/html; charset=utf-8"),)
TEXT = (("content-type", "text/plain; charset=utf-8"),)


@dataclass(frozen=True, slots=True)
class SoakTown:
    """Hosts in pairs: each pair shares a domain and an address, and each host has its own kind of problems.

    After ``lasts_s``, nothing changes or fails any more, so that a crawler can catch up.
    """

    size: int
    lasts_s: float
    start_s: float = 1_700_000_000.0

    @property
    def name(self) -> str:
        """The name on the command line."""
        return f"soak town {self.size} {self.lasts_s:g}"

    def hosts(self) -> tuple[WorldHost, ...]:
        """Every host, in a fixed order."""
        return tuple(
            WorldHost(f"s{number}.pair{number // 2}.test", f"127.7.9.{number // 2 + 1}") for number in range(self.size)
        )

    def count_pages(self, now_s: float) -> int:
        """Count the pages that each host has by now."""
        return FIRST_PAGES + max(int(min(now_s - self.start_s, self.lasts_s) // BIRTH_S), 0)

    def reply(self, question: WorldRequest, now_s: float) -> Reply:
        """Answer a request as the host does at this time."""
        age_s, trouble = min(now_s - self.start_s, self.lasts_s), self._find_trouble(question.host, now_s)
        if question.target == "/robots.txt":
            return Reply(503, TEXT, b"later\n") if trouble == "no robots" else _robots(question.host)
        number = _number(question.target)
        if number is None or number >= self.count_pages(now_s):
            return Reply(404, TEXT, b"no such page\n")
        if trouble in {"429", "503"}:
            return Reply(int(trouble), (*TEXT, ("retry-after", "1800")), b"not now\n")
        if trouble == "silent":
            return Reply(0, (), b"", Delivery(then="hang"))
        delivery = {
            "reset": Delivery(stop_after_bytes=200, then="reset"),
            "slow": Delivery(bytes_per_s=4000),
        }.get(trouble, NORMAL_DELIVERY)
        return Reply(200, HTML, self._page(question.host, number, age_s), delivery)

    def _find_trouble(self, host: str, now_s: float) -> str:
        if now_s - self.start_s > self.lasts_s:
            return "none"
        kind = TROUBLES[int(host[1 : host.index(".")]) % len(TROUBLES)]
        return kind if _draw(f"{host} {int((now_s - self.start_s) // TROUBLE_SPAN_S)}") % 4 == 0 else "none"

    def _page(self, host: str, number: int, age_s: float) -> bytes:
        last = self.count_pages(self.start_s + age_s)
        further = [*range(FAN_OUT * number + 1, min(FAN_OUT * number + FAN_OUT + 1, last))]
        further += [] if number else range(max(last - 10, 1), last)
        links = "".join(f'<a href="{path(each)}">page {each}</a> ' for each in further)
        version = int(age_s // (HOUR_S * (6 + _draw(f"{host} {number}") % 90)))
        head = f"<!doctype html><title>{host} {number}</title>{links}<a href=/private/{number}>no</a><p>zeppelin "
        return (
            head + " ".join(_word(f"{host} {number} {version if place % 4 else 0} {place}") for place in range(60))
        ).encode()


def open_town(number: int) -> SoakTown:
    """Open a town by a number: the hours that it lasts, times a thousand, and how many hosts it has."""
    return SoakTown(number % 1000, number // 1000 * HOUR_S)


def path(number: int) -> str:
    """Return the path of a page."""
    return f"/p/{number}" if number else "/"


def _number(target: str) -> int | None:
    digits = "0" if target == "/" else target.rpartition("/")[2]
    return int(digits) if digits.isdigit() and target in {path(int(digits)), f"/private/{digits}"} else None


def _robots(host: str) -> Reply:
    delay = "Crawl-delay: 600\n" if _draw(host) % 3 == 0 else ""
    return Reply(200, TEXT, f"User-agent: *\n{delay}Disallow: /private/\n".encode())


def _draw(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest(), "big")


def _word(text: str) -> str:
    return "".join("bacedifoguhajekilomu"[2 * (_draw(text) >> shift & 7) :][:2] for shift in (0, 4, 8, 12))
