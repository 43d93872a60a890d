"""What pages of a made web say at any time, told as versions: the truth against which a live crawler is measured.

What a URL answers is a pure function of time, so nobody has to be asked over the network. A page is read as the crawler
reads it: title and main text, as the index has them. A box that turns or a new build of the frame is no other version.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import xxhash

from vedette.lab.quality.corpus import corpus_of
from vedette.lab.quality.query_files import occurring
from vedette.lab.quality.scoring import text_scoring
from vedette.lab.quality.workload import MOST_QUERIES, drawn_queries
from vedette.lab.quality.workload_part import Workload, workload_of
from vedette.lab.worlds.history import History, Texts
from vedette.lab.worlds.world import Question, World
from vedette.parse.html.page import read_page
from vedette.parse.text.charsets import decode
from vedette.policy import Ints

__all__ = ["Truth", "Versions"]

NONE = -1


class Truth:
    """Looks at a world, and remembers which different texts each URL had, by number."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._texts: dict[str, list[str]] = {}
        self._read: dict[tuple[str, int], int] = {}
        self._seen: dict[tuple[str, float], int] = {}

    def at(self, url: str, at_s: float) -> int:
        """Which of its texts a URL has at a time; -1 where it has no page that may be found."""
        if (url, at_s) not in self._seen:
            self._seen[url, at_s] = self._looked(url, at_s)
        return self._seen[url, at_s]

    def _looked(self, url: str, at_s: float) -> int:
        host, _, path = url.partition("://")[2].partition("/")
        reply = self._world.reply(Question(host, f"/{path}"), at_s)
        kind = next((value for name, value in reply.headers if name == "content-type"), "")
        if reply.status != 200 or not kind.startswith("text/html"):
            return NONE
        place = (url, xxhash.xxh3_64_intdigest(reply.body))
        if place not in self._read:
            self._read[place] = self._number(url, _said(reply.body, kind))
        return self._read[place]

    def _number(self, url: str, text: str | None) -> int:
        if text is None:
            return NONE
        texts = self._texts.setdefault(url, [])
        if text not in texts:
            texts.append(text)
        return texts.index(text)

    def versions(self, urls: Sequence[str]) -> "Versions":
        """All that was seen of these URLs so far."""
        return Versions(urls, [self._texts.get(url, []) for url in urls])


def _said(body: bytes, kind: str) -> str | None:
    """What the index would have of a page; None where the page does not want to be found."""
    page = read_page(decode(body, kind).text)
    if any("noindex" in value for _, value in page.robots_meta):
        return None
    return f"{page.title}\n{page.main or page.text}"


class Versions(Texts):
    """The texts of some pages in one row, page by page: what the measures of the lab call versions."""

    def __init__(self, urls: Sequence[str], texts: Sequence[Sequence[str]]) -> None:
        self._urls = urls
        self._all = [text for each in texts for text in each]
        self._page = np.repeat(np.arange(len(urls)), [len(each) for each in texts])
        self._first = np.searchsorted(self._page, np.arange(len(urls)))

    def text(self, version: int) -> str:
        """What a version says."""
        return self._all[version]

    def numbered(self, seen: Iterable[int]) -> Ints:
        """What ``Truth.at`` said of each page, as versions; below 0 where there is none."""
        each = np.fromiter(seen, np.int64, len(self._urls))
        return np.where(each >= 0, each + self._first, NONE)

    def workload(self, known: Ints, seed: int) -> Workload:
        """Queries that these versions suggest, with all that answers them: two neighbouring words each."""
        history = self._history()
        queries = drawn_queries(history, known, seed)
        corpus = corpus_of(history, queries.term)
        asked = occurring(queries, corpus)
        most = np.argsort(-asked.frequency, kind="stable")[:MOST_QUERIES]
        return workload_of(corpus, asked.some(most), text_scoring(corpus, known))

    def _history(self) -> History:
        """The versions as the lab wants them; of times it is told nothing, since measures bring their own."""
        pages, versions = len(self._urls), len(self._all)
        nowhere = np.full(pages, NONE)
        return History(
            name="seen",
            begin_s=0.0,
            end_s=0.0,
            urls=self._urls,
            site=np.zeros(pages, np.int64),
            kind=np.zeros(pages, np.uint8),
            born_s=np.zeros(pages),
            died_s=np.full(pages, np.inf),
            moved_to=nowhere,
            version_page=self._page,
            version_at_s=np.zeros(versions),
            digest=np.array([xxhash.xxh3_64_intdigest(text.encode()) for text in self._all], np.uint64),
            words=np.zeros(versions, np.int64),
            wave=np.zeros(versions, np.bool_),
            link_start=np.zeros(versions + 1, np.int64),
            link_to=np.zeros(0, np.int64),
            texts=self,
        )
