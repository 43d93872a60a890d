"""News and magazine pages from public repositories, with their main text and date as people or publishers gave them.

- *fundus* (flairNLP/fundus): articles of some 180 news publishers in 30 countries, with the text and the publication
  date that a reader written for that one publisher found, checked by its authors.
- *readability* (mozilla/readability): 130 pages of all kinds, with the main text that Firefox's reader view must show.

Only pages whose expected text has at least ``MIN_WORDS`` words count.
"""

import gzip
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["SETS", "ArticlePage", "load_set"]

MIN_WORDS = 30
_FUNDUS_FOLDER = "tests/resources/parser/test_data"
_READABILITY_FOLDER = "test/test-pages"
_TAGS = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_WORD = re.compile(r"\w+")


class ArticlePage(NamedTuple):
    """A page: its set and name, HTML, expected main text, and expected publication time (ISO 8601) or nothing."""

    set: str
    name: str
    url: str
    html: bytes
    text: str
    published: str


def load_set(histories: Path, name: str) -> list[ArticlePage]:
    """Load the pages of one set; none if its repository is not there."""
    repo, load = SETS[name]
    git = next(
        (path for path in (histories / repo / "repo" / ".git", histories / repo / "repo") if path.is_dir()), None
    )
    found = load(git) if git else iter(())
    return [page for page in found if len(page.text.split()) >= MIN_WORDS]


def _read_files(git: Path, folder: str) -> dict[str, bytes]:
    """Read all files below a folder of the newest commit, by path."""
    listing = subprocess.run(
        ["git", "--git-dir", git, "ls-tree", "-r", "HEAD", folder + "/"], stdout=subprocess.PIPE, check=True, text=True
    ).stdout.splitlines()
    blobs = [(line.split()[2], line.partition("\t")[2]) for line in listing]
    asked = "".join(f"{blob}\n" for blob, _ in blobs).encode()
    out = subprocess.run(
        ["git", "--git-dir", git, "cat-file", "--batch"], input=asked, stdout=subprocess.PIPE, check=True
    ).stdout
    files, at = {}, 0
    for _, path in blobs:
        end = out.index(b"\n", at)
        header = out[at:end].split()
        at = end + 1
        if header[1] != b"missing":
            size = int(header[2])
            files[path] = out[at : at + size]
            at += size + 1
    return files


def _load_fundus(git: Path) -> Iterator[ArticlePage]:
    files = _read_files(git, _FUNDUS_FOLDER)
    for path, packed in files.items():
        if not path.endswith(".html.gz"):
            continue
        folder, _, name = path.rpartition("/")
        expected = json.loads(files.get(f"{folder}/{name.split('_')[0]}.json", b"{}"))
        html = gzip.decompress(packed)
        about = json.loads(files.get(f"{folder}/meta.info", b"{}")).get(name, {})
        version = _match_version(html.decode(errors="replace"), list(expected.values()))
        if version:
            body = "\n".join(_list_paragraphs(version.get("body") or {}))
            yield ArticlePage("fundus", name, about.get("url", ""), html, body, version.get("publishing_date") or "")


def _match_version(html: str, versions: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Find the expectation that belongs to a page: a file of several says nowhere which page each is about."""
    squeezed = " ".join(_WORD.findall(_TAGS.sub(" ", html)))

    def count_shared(version: dict[str, Any]) -> float:
        parts = [" ".join(_WORD.findall(part)) for part in _list_paragraphs(version.get("body") or {})]
        return sum(part in squeezed for part in parts) / max(1, len(parts))

    best = max(versions, key=count_shared, default=None)
    return best if best and count_shared(best) >= 0.5 else None


def _list_paragraphs(body: dict[str, Any]) -> Iterator[str]:
    yield from body.get("summary", [])
    for section in body.get("sections", []):
        yield from section["headline"]
        yield from section["paragraphs"]


def _load_readability(git: Path) -> Iterator[ArticlePage]:
    files = _read_files(git, _READABILITY_FOLDER)
    for path, html in files.items():
        folder, _, name = path.rpartition("/")
        if name != "source.html" or f"{folder}/expected.html" not in files:
            continue
        about = json.loads(files.get(f"{folder}/expected-metadata.json", b"{}"))
        text = _TAGS.sub(" ", files[f"{folder}/expected.html"].decode())
        yield ArticlePage(
            "readability", folder.rpartition("/")[2], "", html, _unescape(text), about.get("publishedTime") or ""
        )


def _unescape(text: str) -> str:
    from html import unescape

    return unescape(text)


SETS = {"fundus": ("flairNLP+fundus", _load_fundus), "readability": ("mozilla+readability", _load_readability)}
