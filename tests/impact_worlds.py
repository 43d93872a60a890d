"""A site in sections, to show that unseen URLs are ordered by searches: the words are in links to them.

Served by name, as ``start_server("tests.impact_worlds:sections", 20)``, where the number is the number of sections. All
articles are in one folder and have numbers, so URLs are not informative, but the links on a section's page are.
"""

from dataclasses import dataclass

import xxhash

from vedette.lab.worlds.world import Reply, WorldHost, WorldRequest
from vedette.model import Headers

__all__ = ["ARTICLES", "HOST", "Sections", "is_of", "query", "sections"]

HOST = "sections.test"
ARTICLES, TOPICS = 40, 12
HTML: Headers = (("content-type", "text/html; charset=utf-8"),)
_SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "ri", "so", "tu", "wa")


@dataclass(frozen=True, slots=True)
class Sections:
    """A home page, a page for each section, and the articles of each."""

    number: int
    name: str = "sections"
    start_s: float = 1_700_000_000.0

    def hosts(self) -> tuple[WorldHost, ...]:
        """Return the only host."""
        return (WorldHost(HOST, "127.9.0.1"),)

    def reply(self, question: WorldRequest, now_s: float) -> Reply:
        """Return the same response at any time."""
        del now_s
        first, _, last = question.target.strip("/").partition("/")
        if not first:
            links = "".join(f'<a href="/s/{each}">part {each}</a> ' for each in range(self.number))
            return _page("All sections", links, "home")
        if first in {"s", "a"} and last.isdigit() and int(last) < self.number * (ARTICLES if first == "a" else 1):
            return self._section(int(last)) if first == "s" else self._article(int(last))
        return Reply(404, (("content-type", "text/plain"),), b"nothing\n")

    def _section(self, section: int) -> Reply:
        articles = range(section, self.number * ARTICLES, self.number)
        links = "".join(f'<a href="/a/{each}">{query(section, each // self.number)}</a> ' for each in articles)
        return _page(f"Section {section}", links, f"section {section}")

    def _article(self, number: int) -> Reply:
        words = query(number % self.number, number // self.number)
        return _page(words, f"<h2>About {words}</h2><p>{f'{words}. ' * 4}</p>", f"article {number}")


def sections(number: int) -> Sections:
    """Return a site with this many sections."""
    return Sections(number)


def query(section: int, turn: int) -> str:
    """Return the topic of an article, which is also the query for it."""
    return f"{_word(f'topic {section} {turn % TOPICS}')} {_word(f'topic {section} {(turn + 5) % TOPICS}')}"


def is_of(url: str, section: int, number: int) -> bool:
    """Check whether a URL is an article of a section."""
    folder, _, last = url.rpartition("/")
    return folder.endswith("/a") and int(last) % number == section


def _word(seed: str) -> str:
    number = xxhash.xxh32_intdigest(seed.encode())
    return "".join(_SYLLABLES[number >> shift & 15] for shift in (0, 4, 8, 12))


def _page(title: str, inner: str, seed: str) -> Reply:
    """Return a page with unique words, since pages without new words would be held back as a trap."""
    prose = " ".join(_word(f"{seed} {place}") for place in range(60))
    text = f"<!doctype html><title>{title}</title><h1>{title}</h1>{inner}<p>{prose}.</p>"
    return Reply(200, HTML, text.encode())
