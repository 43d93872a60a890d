"""History of your own crawl: the content of its archive, with the times at which it was observed.

What happened between two fetches of a page is unknown. Everything is assumed to have happened at the fetch that found
it: a page is born when it was first fetched, a version starts when it was first seen, a page dies at the fetch that
found it gone. So changes are as late as possible, several between two fetches are one, and a page that came and went in
between never existed. Copies appear fresher in such a history than they were; policies can be compared on it, but
absolute numbers are not valid.

It ends with the last stored response. What retention has deleted is missing. A page that came back after it was gone
counts as never gone (``missing`` counts those, and unreadable responses). Links are those to pages in the history.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xxhash

from vedette.adapters.archive.replay import ImportedResponse, decode_body, to_answer
from vedette.adapters.archive.warc_reader import ImportedAnswer, scan_warc
from vedette.adapters.crawl_store.reader import open_state_reader
from vedette.discover.urls.scope import SiteIndex
from vedette.engine.fetcher.page_reader import parse_outcome
from vedette.engine.links import LinkResolver
from vedette.engine.messages import FetchSuccess, FetchTask
from vedette.errors import UsageError
from vedette.index.fields import unpack_page
from vedette.lab.worlds.history import FEED, PAGE, SITEMAP, History, MemoryTexts
from vedette.model import Failure, Site, origin_of

MAX_BODY_BYTES = 16 << 20
GONE_STATUSES = (404, 410)
MOVED_STATUSES = (301, 308)
LISTING_KINDS = {"feed": FEED, "sitemap": SITEMAP}


class _Version(NamedTuple):
    """A version of a page in your own crawl: new content found by a fetch."""

    at_s: float
    digest: int
    words: int
    text: str
    links: tuple[str, ...]


@dataclass(slots=True)
class _Life:
    """Life of a page as your own crawl saw it; ``moved_to_url`` is the target of the redirect that replaced it."""

    url: str
    kind: int = PAGE
    died_s: float = inf
    moved_to_url: str = ""
    versions: list[_Version] = field(default_factory=list)


def load_crawl_history(folder: Path) -> History:
    """Load the history of your own crawl from its data folder, which may be in use."""
    with open_state_reader(folder) as view:
        sites = tuple(row.site for row in view.store.list_sites())
    answers = _read_archive(folder)
    lives, missing = _collect_lives(answers, sites)
    if not lives:
        raise UsageError(f"{folder} has no archived pages; crawl a site first")
    return _build_history(folder.name, lives, missing, end_s=answers[-1].fetched_s)


def _read_archive(folder: Path) -> list[ImportedAnswer]:
    """Read every response of your own crawl's archive, by time; damaged records are skipped."""
    found = (one for path in sorted((folder / "warc").glob("*.warc.gz")) for one in scan_warc(path))
    return sorted((one for one in found if isinstance(one, ImportedAnswer)), key=lambda one: (one.fetched_s, one.url))


def _collect_lives(answers: Sequence[ImportedAnswer], sites: Sequence[Site]) -> tuple[list[_Life], int]:
    """Collect the lives of your own crawl's pages by birth, and count what is missing."""
    links, lives, missing = LinkResolver(SiteIndex(sites)), dict[str, _Life](), 0
    for answer in answers:
        if answer.url == origin_of(answer.url).robots_url:
            continue
        life = lives.get(answer.url)
        if 200 <= answer.status < 300:
            life = life or _Life(answer.url)
            missing += life.died_s < inf
            life.died_s, life.moved_to_url = inf, ""
            if not _add_answer(life, answer, links):
                missing += 1
                continue
            lives[answer.url] = life
        elif life is not None and life.died_s == inf and answer.status in GONE_STATUSES + MOVED_STATUSES:
            result = parse_outcome(_fetch_task(answer.url), to_answer(_archived_answer(answer), b""), links)
            life.died_s = answer.fetched_s
            life.moved_to_url = (isinstance(result, FetchSuccess) and result.location) or ""
    return sorted(lives.values(), key=lambda life: life.versions[0].at_s), missing


def _add_answer(life: _Life, answer: ImportedAnswer, links: LinkResolver) -> bool:
    """Add an archived response to a page's life in your own crawl; False if it cannot be read."""
    body = decode_body(_archived_answer(answer), MAX_BODY_BYTES)
    if isinstance(body, Failure):
        return False
    result = parse_outcome(_fetch_task(answer.url), to_answer(_archived_answer(answer), body), links)
    if not isinstance(result, FetchSuccess):
        return False
    life.kind = LISTING_KINDS.get(result.kind, PAGE)
    stored = unpack_page(result.content.stored) if result.content else None
    text = stored.body if stored else ""
    digest = xxhash.xxh3_64_intdigest(text.encode("utf-8", "replace") if text else body)
    if not life.versions or life.versions[-1].digest != digest:
        words = result.content.words if result.content else 0
        life.versions.append(_Version(answer.fetched_s, digest, words, text, result.links))
    return True


def _fetch_task(url: str) -> FetchTask:
    return FetchTask(0, origin_of(url).host, url, "page")


def _archived_answer(answer: ImportedAnswer) -> ImportedResponse:
    return ImportedResponse(answer.url, answer.fetched_s, answer.status, answer.headers, answer.payload, answer.file)


def _build_history(name: str, lives: Sequence[_Life], missing: int, end_s: float) -> History:
    pages = {life.url: number for number, life in enumerate(lives)}
    hosts = list(dict.fromkeys(origin_of(life.url).host for life in lives))
    numbers = {host: number for number, host in enumerate(hosts)}
    versions = [version for life in lives for version in life.versions]
    links = [list(dict.fromkeys(pages[url] for url in version.links if url in pages)) for version in versions]
    return History(
        name=f"live:{name}",
        begin_s=lives[0].versions[0].at_s,
        end_s=end_s,
        urls=tuple(pages),
        site=np.array([numbers[origin_of(life.url).host] for life in lives]),
        kind=np.array([life.kind for life in lives], np.uint8),
        born_s=np.array([life.versions[0].at_s for life in lives]),
        died_s=np.array([life.died_s for life in lives]),
        moved_to=np.array([pages.get(life.moved_to_url, -1) for life in lives]),
        version_page=np.repeat(np.arange(len(lives)), [len(life.versions) for life in lives]),
        version_at_s=np.array([version.at_s for version in versions]),
        digest=np.array([version.digest for version in versions], np.uint64),
        words=np.array([version.words for version in versions]),
        wave=np.zeros(len(versions), bool),
        link_start=np.append(0, np.cumsum([len(each) for each in links])),
        link_to=np.array([page for each in links for page in each], np.int64),
        site_names=tuple(hosts),
        missing=missing,
        texts=MemoryTexts([version.text for version in versions]),
    )
