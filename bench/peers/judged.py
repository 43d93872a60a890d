"""Public test collections with human judgments, served to the indexer as the pages of a site."""

import html
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

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


def list_collections(root: Path) -> list[Path]:
    """List the folders of collections, by name."""
    return [folder for folder in sorted(root.iterdir()) if (folder / "docs.jsonl").exists()]


def read_collection(folder: Path) -> Collection:
    """Read a collection from ``docs.jsonl``, ``queries.jsonl`` and ``qrels.tsv``.

    Questions without a relevant document are left out. Ids may be numbers, and the judgments may have a header.
    """
    documents = list(_read_rows(folder / "docs.jsonl"))
    places = {str(document["id"]): place for place, document in enumerate(documents)}
    grades: dict[str, dict[int, float]] = defaultdict(dict)
    for line in (folder / "qrels.tsv").read_text("utf-8").split("\n"):
        question, document, grade = (*line.strip("\r").split("\t"), "", "", "")[:3]
        if document in places and _to_grade(grade) > 0:
            grades[question][places[document]] = _to_grade(grade)
    asked = [Judged(row.get("text") or "", grades[str(row["id"])]) for row in _read_rows(folder / "queries.jsonl")]
    return Collection(folder.name, _to_pages(documents), [each for each in asked if each.grades])


def _to_grade(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # a header
        return 0.0


def _read_rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())


def _to_pages(documents: Sequence[dict[str, Any]]) -> list[KnownPage]:
    links = LinkResolver(SiteIndex([Site(f"http://{HOST}/")]))
    pages = (_to_html(each.get("title") or "", each.get("text") or "") for each in documents)
    return [read_page(f"http://{HOST}/{place}.html", page, links).page for place, page in enumerate(pages)]


def _to_html(title: str, text: str) -> bytes:
    head, body = html.escape(title), html.escape(text)
    page = f"<html><head><title>{head}</title></head><body><main><h1>{head}</h1><p>{body}</p></main></body></html>"
    return page.encode()


__all__ = ["HOST", "NOW_S", "Collection", "Judged", "list_collections", "read_collection"]
