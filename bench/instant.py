"""How long does the server take for results while someone types, with tens of thousands of pages?

Pages are made of the sections of real ones (``VEDETTE_HISTORIES`` names the folder of bare repositories that
``bench/known_item.py`` reads): each has a title of its own and a few sections of other pages, cut to some hundred
words. They are indexed as fetched pages are. Then titles and headings are typed letter by letter, a third of them with
two letters swapped, and each keystroke is a request to ``/api/v1/instant`` of the real application, in one process,
without sockets. Times are CPU seconds of the process, since the machine may be busy with other things: what the server
needs for one answer. The last line is one JSON object; the bench fails if p95 is 30 ms or more.

    VEDETTE_HISTORIES=FOLDER python bench/instant.py [--pages N] [--keystrokes N] [--folder FOLDER]

``--folder`` keeps the pages for the next run.
"""

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from http import HTTPStatus
from pathlib import Path
from time import process_time
from urllib.parse import urlencode

import numpy as np
from starlette.types import ASGIApp, Message

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs as a script

from bench.known_item import vedette
from bench.peers.known_pages import NOW_S, KnownPage, known_pages

from vedette.adapters.clock import start_clock
from vedette.adapters.crawl_store.data_folder import open_for_write
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.page_table import PageTable
from vedette.config import Rate, Serve
from vedette.index.fields import StoredPage, pack_page
from vedette.index.sections import split_sections
from vedette.runtime.search.searcher import FolderSearch
from vedette.web.app import create_app
from vedette.web.rendering import Branding

SEED = 11
SECTIONS = 3
SECTION_CHARACTERS = 800
MIN_LETTERS = 2
GOAL_MS = 30.0
HOSTS = 40


def make_pages(known: Sequence[KnownPage], count: int) -> Iterator[KnownPage]:
    """Make pages of the sections of known ones."""
    chance = random.Random(SEED)  # noqa: S311 -- the same each time, no secret
    parts = [
        (part.heading, page.stored.body[part.start : part.end][:SECTION_CHARACTERS].strip())
        for page in known
        for part in split_sections(page.stored, page.stored.body)
        if part.heading and part.end - part.start > SECTION_CHARACTERS // 4
    ]
    for number in range(count):
        page, some = chance.choice(known), chance.sample(parts, SECTIONS)
        url = f"http://h{number % HOSTS}.test/{number // HOSTS}/{page.url.rpartition('/')[2] or 'index.html'}"
        stored = page.stored._replace(
            url=url,
            title=f"{some[0][0]} {page.stored.title}"[:120],
            headings=tuple(heading for heading, _ in some),
            anchors=("",) * SECTIONS,
            body="\n".join(f"{heading}\n{text}" for heading, text in some),
            is_plain=None,
        )
        yield page._replace(
            url=url, stored=stored, print=str(number).encode(), content=page.content._replace(stored=pack_page(stored))
        )


def build_folder(folder: Path, pages: int) -> None:
    """Build a data folder with this many pages."""
    known, _ = known_pages(Path(os.environ["VEDETTE_HISTORIES"]))
    with open_for_write(folder, NOW_S):
        pass
    vedette(folder, list(make_pages(known, pages)), [])
    generations = Generations(folder)
    newest = max(int(path.name) for path in generations.folder.iterdir() if path.name.isdecimal())
    (generations.folder / "current").write_text(f"{newest}\n")


def list_keystrokes(texts: Sequence[StoredPage], count: int) -> list[str]:
    """List what is in the field after each keystroke, of titles and headings."""
    chance = random.Random(SEED + 1)  # noqa: S311 -- the same each time, no secret
    typed: list[str] = []
    while len(typed) < count:
        stored = chance.choice(texts)
        words = chance.choice([stored.title, *stored.headings]).split()[:4]
        text = " ".join(words)
        at = chance.randrange(1, max(len(text) - 1, 2))
        if chance.random() < 1 / 3:
            text = text[:at] + text[at + 1 : at + 2] + text[at : at + 1] + text[at + 2 :]
        typed += [text[:end] for end in range(MIN_LETTERS, len(text) + 1)]
    return typed[:count]


def read_sample(folder: Path) -> list[StoredPage]:
    """Read some pages, whose words are typed."""
    generation = Generations(folder).current()
    assert generation is not None
    table = PageTable(generation)
    return [stored for id_ in table.indexed[:: max(len(table.indexed) // 500, 1)] if (stored := table.read_stored(id_))]


async def type_all(folder: Path, keystrokes: int) -> tuple[list[float], int]:
    """Send each keystroke; return CPU milliseconds of each, and how many found something."""
    search = FolderSearch(folder, start_clock(NOW_S, 1.0), learn=False)
    serve = Serve(rate=Rate(0, 1.0))
    app = create_app(search, serve, Branding(serve.name, serve.address, serve.embed_origins), tuple)
    pages = read_sample(folder)
    took: list[float] = []
    found = 0
    for typed in ["warm up", *list_keystrokes(pages, keystrokes)]:
        before_s = process_time()
        body = await get(app, "/api/v1/instant", urlencode({"q": typed}))
        took.append(1000 * (process_time() - before_s))
        found += bool(json.loads(body)["results"])
    return took[1:], found


async def get(app: ASGIApp, path: str, query: str) -> bytes:
    """Send one request to the application, and return the body of its answer."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(b"host", b"127.0.0.1")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "root_path": "",
    }
    await app(scope, receive, send)
    if sent[0]["status"] != HTTPStatus.OK:
        sys.exit(f"{path}?{query}: status {sent[0]['status']}")
    return b"".join(message.get("body", b"") for message in sent[1:])


def main() -> None:
    """Build, type, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=50_000)
    parser.add_argument("--keystrokes", type=int, default=2_000)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        if not (folder / "index" / "current").exists():
            if "VEDETTE_HISTORIES" not in os.environ:
                sys.exit("VEDETTE_HISTORIES must name a folder of bare repositories, such as apache+kafka-site/repo")
            build_folder(folder, arguments.pages)
        took, found = asyncio.run(type_all(folder, arguments.keystrokes))
    p50, p95, p99 = (round(float(np.quantile(took, share)), 2) for share in (0.5, 0.95, 0.99))
    print(f"{len(took)} keystrokes, {found} with results: p50 {p50} ms, p95 {p95} ms, p99 {p99} ms of CPU time")
    print(json.dumps({"p50_ms": p50, "p95_ms": p95, "p99_ms": p99, "keystrokes": len(took), "found": found}))
    sys.exit(0 if p95 < GOAL_MS else 1)


if __name__ == "__main__":
    main()
