"""Public test collections with human judgments, served to the indexer as the pages of a site."""

import html
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.peers.known_pages import NOW_S, KnownPage, read_page

from vedette.discover.urls.scope import SiteIndex
from vedette.engine.links import LinkResolver
from vedette.model import Site

HOST = "collection.test"


class Judged(NamedTuple):
    """A question and the grades of documents that were judged relevant to it, by their places."""

    text: str
    grades: dict[int, float]


class Collection(NamedTuple):
    """A test collection: its documents as pages, and its questions."""

    name: str
    pages: list[KnownPage]
    questions: list[Judged]


def read_collection(folder: Path) -> Collection:
    """Read a collection from ``docs.jsonl``, ``queries.jsonl`` and ``qrels.tsv``."""
    documents = list(_read_lines(folder / "docs.jsonl"))
    places = {document["id"]: place for place, document in enumerate(documents)}
    grades: dict[str, dict[int, float]] = defaultdict(dict)
    for line in (folder / "qrels.tsv").read_text().splitlines():
        question, document, grade = line.split("\t")
        if document in places and float(grade) > 0:
            grades[question][places[document]] = float(grade)
    asked = [Judged(row["text"], grades[row["id"]]) for row in _read_lines(folder / "queries.jsonl")]
    return Collection(folder.name, _to_pages(documents), [each for each in asked if each.grades])


def _read_lines(path: Path) -> Iterator[dict[str, str]]:
    with path.open() as lines:
        yield from map(json.loads, lines)


def _to_pages(documents: Sequence[dict[str, str]]) -> list[KnownPage]:
    links = LinkResolver(SiteIndex([Site(f"http://{HOST}/")]))
    return [
        read_page(f"http://{HOST}/{place}.html", _to_html(document["title"], document["text"]), links).page
        for place, document in enumerate(documents)
    ]


def _to_html(title: str, text: str) -> bytes:
    head, body = html.escape(title), html.escape(text)
    page = f"<html><head><title>{head}</title></head><body><main><h1>{head}</h1><p>{body}</p></main></body></html>"
    return page.encode()


__all__ = ["HOST", "NOW_S", "Collection", "Judged", "read_collection"]
