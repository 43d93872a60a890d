"""Split of a web into crawled and uncrawled pages; only URLs and link texts of the latter are known.

As in Impact08 (section 6.1): a random sample of the pages counts as uncrawled (*Dataset 1*); of these, the fifth with
the highest importance is then given to the crawler (*Dataset 2*), which would have fetched it first. Here half of all
pages are drawn, while the paper had a small part of billions: a site is small, and most of it is unknown at first.

A policy's knowledge of any page comes from crawled pages alone: how many of them link to it, with which words, and
PageRank over their links. Scores of the engine are known only for crawled pages. The engine is BM25 over all fields
together: a word in the URL counts for two in the text, one in a link for three; idf times a saturated count, summed
over the words of a query, all of which must be in the text. So URLs and links matter for scores, and most of a score is
content. The experiment ``order-joined`` scores as search does.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit

import numpy as np

from vedette.attention import Visibility
from vedette.frontier.impact.matching import QuerySet
from vedette.frontier.impact.url_features import DescribedUrls, TrainingPages, hash_folders, tokenize_texts
from vedette.index.pagerank import page_importance
from vedette.lab.quality.corpus import Corpus, concat_ranges, load_corpus
from vedette.lab.quality.query_files import Queries
from vedette.lab.quality.scoring import QueryMatches, build_tfidf
from vedette.lab.quality.workload import Workload, build_workload, compute_slot_scores, rank_results
from vedette.lab.runs.web_snapshot import WebSnapshot
from vedette.lab.worlds.catalog import locate_world
from vedette.lab.worlds.git.blobs import MAX_BYTES
from vedette.lab.worlds.git.links import NO_PAGE, LinkIndex
from vedette.lab.worlds.git.repository import open_tip, parse_location
from vedette.lab.worlds.history import History
from vedette.parse.html.page import parse_page
from vedette.parse.text.charsets import decode_page
from vedette.policy import Floats, Ints, rng_for
from vedette.text import WordHashes, hash_words, normalize_words

# Only the versions at one moment are read, a few thousand. A version's digest begins its blob's name, by which the
# repository finds it. Worlds that are no repositories have no anchor texts here; only URLs are used then.


if TYPE_CHECKING:
    import pygit2


MAX_LINKS = 2000
_MARKDOWN_LINK = re.compile(r"(?<!!)\[([^\[\]]{1,300})\]\(\s{0,9}<?([^\s()<>]{1,2000}+)")
_HTML_SUFFIXES = (".html", ".htm", ".xhtml", "/")


class Anchor(NamedTuple):
    """An anchor: a link from one page to another, and its words."""

    source: int
    target: int
    text: str


def read_anchors(world: str, web: History) -> list[Anchor]:
    """Read the anchors (links with words) between the pages of a web snapshot, in the order of pages."""
    place = locate_world(world)
    if place.kind != "git" or place.path.is_file():
        return []
    written = f"{place.path}#{place.part}" if place.part else str(place.path)
    repository = open_tip(parse_location(written)).repository
    host = urlsplit(web.urls[0]).netloc if len(web.urls) else ""
    names = [_url_to_name(url) for url in web.urls]
    links = LinkIndex(names, host)
    found: list[Anchor] = []
    for page, digest in enumerate(web.digest.tolist()):
        body = _read_blob(repository, digest)
        found += _resolve_links(page, _extract_links(body, names[page]), links, names)
    return found


def parse_markdown_anchors(source: str) -> list[tuple[str, str]]:
    """Parse the links of a Markdown file to pairs of URL and anchor words.

    >>> parse_markdown_anchors("See [this *one*](b.md#top) and ![no](c.png).")
    [('b.md#top', 'this *one*')]
    """
    return [(match[2], match[1]) for match in _MARKDOWN_LINK.finditer(source)][:MAX_LINKS]


def _read_blob(repository: "pygit2.Repository", digest: int) -> bytes:
    import pygit2

    blob = repository.get(f"{digest:016x}")
    return blob.data[:MAX_BYTES] if isinstance(blob, pygit2.Blob) else b""


def _extract_links(body: bytes, name: str) -> list[tuple[str, str]]:
    is_markdown = b"](" in body and b"<html" not in body[:2000].lower()
    if is_markdown or name.endswith((".md", ".markdown")):
        return parse_markdown_anchors(decode_page(body, "text/plain; charset=utf-8").text)
    if name.endswith(_HTML_SUFFIXES) or not name:
        return [(link.href, link.text) for link in parse_page(decode_page(body, "").text).links][:MAX_LINKS]
    return []


def _resolve_links(
    page: int, written: Sequence[tuple[str, str]], links: LinkIndex, names: Sequence[str]
) -> Iterator[Anchor]:
    for href, text in written:
        target = links.resolve(href, names[page])
        if target not in (NO_PAGE, page) and text.strip():
            yield Anchor(page, target, text)


def _url_to_name(url: str) -> str:
    """Return the name of a page in its folder, from its URL."""
    return unquote_to_bytes(urlsplit(url).path.lstrip("/")).decode(errors="surrogateescape")


URL_WEIGHT, ANCHOR_WEIGHT = 2.0, 3.0
K1, B, USUAL_WORDS = 1.2, 0.6, 600.0
ROUNDING = 1 << 20
UNCRAWLED_SHARE = 0.5
PROMOTED_SHARE = 0.2
MAX_DEPTH = 30  # links away: not reached from the first page


@dataclass(frozen=True, slots=True)
class FieldScoring:
    """BM25 scoring over text, URL and anchors; ``key`` is page and word in one number, ascending; ``extra`` counts."""

    terms: WordHashes
    idf: Floats
    key: Ints
    extra: Floats

    def scores(self, found: QueryMatches) -> Floats:
        """Return the BM25 score over text, URL and anchors of each matching version."""
        scores = np.zeros(len(found.versions))
        for term, times in zip(found.terms, found.times, strict=True):
            tf = times + self._count_in_fields(found.pages, int(term))
            slowed = K1 * (1.0 - B + B * found.lengths / USUAL_WORDS)
            scores += self.idf[np.searchsorted(self.terms, term)] * np.round(tf / (tf + slowed) * ROUNDING) / ROUNDING
        return np.maximum(scores, 1e-9)

    def _count_in_fields(self, pages: Ints, term: int) -> Floats:
        if not len(self.key):
            return np.zeros(len(pages))
        keys = (pages << 32) | term
        at = np.minimum(np.searchsorted(self.key, keys), len(self.key) - 1)
        return np.where(self.key[at] == keys, self.extra[at], 0.0)


class Site(NamedTuple):
    """A site to split: a web at one moment with its anchors, its queries, and which page answers which."""

    seen: WebSnapshot
    anchors: Sequence[Anchor]
    queries: Queries
    corpus: Corpus
    workload: Workload

    @property
    def pages(self) -> int:
        """Return the number of pages of the site."""
        return self.seen.web.pages


class CrawlSplit(NamedTuple):
    """A split of a site into crawled and uncrawled pages, and what an order policy knows about both."""

    crawled: Ints
    uncrawled: Ints
    crawled_facts: TrainingPages
    unseen: DescribedUrls
    query_terms: QuerySet


def build_site(seen: WebSnapshot, anchors: Sequence[Anchor], queries: Queries) -> Site:
    """Build the site of a crawl split with all queries: a crawler with half of it cannot know which find nothing."""
    corpus = load_corpus(seen.web)  # of all words: it is read once, whatever the queries
    # Distinct texts of links to a page: a menu is the same on every page.
    texts = sorted({(each.target, each.text) for each in anchors})
    strings = tokenize_texts(seen.web.urls, texts)
    row = np.repeat(strings.row, np.diff(strings.start))
    counts = np.repeat(np.where(strings.is_anchor, ANCHOR_WEIGHT, URL_WEIGHT), np.diff(strings.start))
    key, at = np.unique((row << 32) | strings.words.astype(np.int64), return_inverse=True)
    plain = build_tfidf(corpus, np.arange(seen.web.pages))
    terms = np.unique(queries.term)
    scoring = FieldScoring(terms, plain.idf(terms), key, np.bincount(at, counts, len(key)).astype(np.float64))
    return Site(seen, anchors, queries, corpus, build_workload(corpus, queries, scoring))


def compute_impacts(site: Site, pages: Ints, seen: Visibility, frequency: Floats | None = None) -> Floats:
    """Compute the impact (expected views) of each page when only these pages are searchable; 0 for the others."""
    versions = np.full(site.pages, -1, np.int64)
    versions[pages] = pages
    workload = site.workload if frequency is None else replace(site.workload, frequency=frequency)
    lists = rank_results(workload, compute_slot_scores(workload, versions), np.arange(workload.queries))
    weights = workload.frequency[lists.row] * seen(lists.rank)
    return np.bincount(workload.slot_page[lists.slot], weights, site.pages).astype(np.float64)


def split_site(site: Site, dataset: int, seed: int, seen: Visibility, frequency: Floats) -> CrawlSplit:
    """Split a site at random into crawled and uncrawled pages; the policy gets the queries' ``frequency``."""
    lots = rng_for(seed, "lab/order/cut").permutation(site.pages)
    uncrawled = np.sort(lots[: int(site.pages * UNCRAWLED_SHARE)])
    crawled = np.setdiff1d(np.arange(site.pages), uncrawled)
    if dataset == 2:
        _, importance = _link_features(site, crawled)
        best = np.argsort(-importance[uncrawled], kind="stable")[: int(len(uncrawled) * PROMOTED_SHARE)]
        crawled = np.union1d(crawled, uncrawled[best])
        uncrawled = np.delete(uncrawled, np.sort(best))
    unseen, facts = (_describe_pages(site, crawled, pages, seed) for pages in (uncrawled, crawled))
    gain = compute_impacts(site, crawled, seen, frequency)[crawled]
    row, query, score = _find_matches(site, crawled)
    columns = {each.name: getattr(facts, each.name) for each in fields(facts)}
    brought = TrainingPages(**columns, page=crawled, gain=gain, found_row=row, found_query=query, found_score=score)
    return CrawlSplit(crawled, uncrawled, brought, unseen, _build_query_terms(site, crawled, frequency))


def _link_features(site: Site, crawled: Ints) -> tuple[Ints, Floats]:
    """Compute link features of a crawl split: in-links from crawled pages, and log PageRank over their links."""
    from_crawled = np.isin(site.seen.source, crawled)
    source, target = site.seen.source[from_crawled], site.seen.target[from_crawled]
    ranks = page_importance(source, target, site.pages)
    return np.bincount(target, minlength=site.pages), np.log(np.maximum(ranks * site.pages, 1e-9))


def _describe_pages(site: Site, crawled: Ints, pages: Ints, seed: int) -> DescribedUrls:
    inlinks, importance = _link_features(site, crawled)
    urls = [site.seen.web.urls[page] for page in pages.tolist()]
    folder, branch = hash_folders(urls)
    place = np.full(site.pages, -1, np.int64)
    place[pages] = np.arange(len(pages))
    has = np.zeros(site.pages, np.bool_)
    has[crawled] = True
    texts = sorted({(int(place[a.target]), a.text) for a in site.anchors if place[a.target] >= 0 and has[a.source]})
    return DescribedUrls(
        depth=_compute_depth(site, crawled)[pages],
        found=rng_for(seed, "lab/order/found").permutation(site.pages)[pages],
        inlinks=inlinks[pages],
        importance=importance[pages],
        folder=folder,
        branch=branch,
        texts=tokenize_texts(urls, texts),
    )


def _compute_depth(site: Site, crawled: Ints) -> Ints:
    """Compute each page's depth: links from the page with the shortest URL, over crawled pages."""
    from_crawled = np.isin(site.seen.source, crawled)
    source, target = site.seen.source[from_crawled], site.seen.target[from_crawled]
    depth = np.full(site.pages, MAX_DEPTH, np.int64)
    first = min(range(site.pages), key=lambda page: (len(site.seen.web.urls[page]), page))
    depth[first] = 0
    for step in range(MAX_DEPTH):
        reached = target[depth[source] == step]
        depth[reached] = np.minimum(depth[reached], step + 1)
    return depth


def _find_matches(site: Site, crawled: Ints) -> tuple[Ints, Ints, Floats]:
    """Find which crawled page (by row) matches which query, and its score."""
    versions = np.full(site.pages, -1, np.int64)
    versions[crawled] = crawled
    scores = compute_slot_scores(site.workload, versions)
    slots = np.flatnonzero(scores > 0)
    row = np.searchsorted(crawled, site.workload.slot_page[slots])
    return row, site.workload.slot_query[slots], scores[slots]


def _build_query_terms(site: Site, crawled: Ints, frequency: Floats) -> QuerySet:
    """Build the query set of a crawl split: queries by their words, with each word's idf among crawled pages."""
    forms = [normalize_words(text) for text in site.queries.texts]
    words = hash_words(b" ".join(form for form in forms if form))
    start = np.append(0, np.cumsum([len(form.split()) for form in forms], dtype=np.int64))
    rows = site.corpus.row_of[crawled]
    having = site.corpus.term[concat_ranges(site.corpus.start[rows], site.corpus.start[rows + 1])]
    terms, df = np.unique(having, return_counts=True)
    at = np.minimum(np.searchsorted(terms, words), len(terms) - 1)
    times = np.where(terms[at] == words, df[at], 0)
    return QuerySet(words, start, frequency, np.asarray(1.0 + np.log(len(crawled) / (1.0 + times))))
