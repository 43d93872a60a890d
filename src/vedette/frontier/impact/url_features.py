"""Features of an unseen URL: its words, the anchor texts of links to it, its folder, and its importance."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import xxhash

from vedette.frontier.unseen import UnseenUrls
from vedette.policy import Floats, Ints
from vedette.text import WordHashes, hash_words, normalize_words

Flags = npt.NDArray[np.bool_]
# How much of a URL and of a link text is read; the rest is ignored.
MAX_TEXT_LENGTH = 300
MAX_WORDS = 32


class UrlTexts(NamedTuple):
    """The words of unseen URLs and their anchors: string ``i`` is ``words[start[i]:start[i + 1]]`` of ``row[i]``.

    Strings come in any order. ``is_anchor`` distinguishes link texts from the URL's own words.
    """

    words: WordHashes
    start: Ints
    row: Ints
    is_anchor: Flags


@dataclass(frozen=True, slots=True)
class DescribedUrls(UnseenUrls):
    """Unseen URLs with all their features; ``folder`` and ``branch`` are hashes of their folders."""

    importance: Floats
    folder: Ints
    branch: Ints
    texts: UrlTexts


@dataclass(frozen=True, slots=True)
class TrainingPages(DescribedUrls):
    """Training data for impact: the features of URLs before their first fetch, and the gain of the fetch.

    ``gain`` is what each page brought, in the unit that worth should have. Page ``found_row`` answers query
    ``found_query`` with ``found_score``; missing pairs score 0.
    """

    page: Ints
    gain: Floats
    found_row: Ints
    found_query: Ints
    found_score: Floats


def tokenize_texts(urls: Sequence[str], anchors: Sequence[tuple[int, str]]) -> UrlTexts:
    """Tokenize unseen URLs (row by row) and anchor texts (each with the row it links to) into words.

    >>> strings = tokenize_texts(["https://a.test/low-tide.html"], [(0, "When is low tide?")])
    >>> strings.start.tolist(), strings.row.tolist(), strings.is_anchor.tolist()
    ([0, 5, 9], [0, 0], [False, True])
    """
    forms = [normalize_words(unquote(url[:MAX_TEXT_LENGTH].partition("://")[2])) for url in urls]
    forms += [normalize_words(text[:MAX_TEXT_LENGTH]) for _, text in anchors]
    cut = [form.split()[:MAX_WORDS] for form in forms]
    words = hash_words(b" ".join(word for form in cut for word in form))
    start = np.append(0, np.cumsum([len(form) for form in cut], dtype=np.int64))
    rows = np.append(np.arange(len(urls)), np.array([row for row, _ in anchors], np.int64))
    return UrlTexts(words, start, rows, np.arange(len(forms)) >= len(urls))


def hash_folders(urls: Sequence[str]) -> tuple[Ints, Ints]:
    """Hash the folder of each unseen URL, and its branch: host and first folder.

    >>> folder, branch = hash_folders(["https://a.test/b/c/d", "https://a.test/b/c/e", "https://a.test/b/f"])
    >>> folder[0] == folder[1], folder[1] == folder[2], branch[1] == branch[2]
    (np.True_, np.False_, np.True_)
    """
    folders = [_hash(url.rstrip("/").rpartition("/")[0]) for url in urls]
    branches = [_hash("/".join(url.split("/", 4)[:4])) for url in urls]
    return np.array(folders, np.int64), np.array(branches, np.int64)


def _hash(text: str) -> int:
    return xxhash.xxh64_intdigest(text.encode("utf-8", "replace")) >> 1


def complete_batch(batch: UnseenUrls) -> DescribedUrls:
    """Complete a batch of unseen URLs without features: no words, no folder, and importance by in-links."""
    if isinstance(batch, DescribedUrls):
        return batch
    nowhere, count = np.zeros(len(batch), np.int64), np.maximum(batch.inlinks, 0)
    nothing = UrlTexts(np.zeros(0, np.uint32), np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.bool_))
    plain = {each.name: getattr(batch, each.name) for each in fields(UnseenUrls)}
    return DescribedUrls(**plain, importance=np.log1p(count), folder=nowhere, branch=nowhere, texts=nothing)


def concatenate_ranges(starts: Ints, ends: Ints) -> Ints:
    """Concatenate the ranges from each start to its end (exclusive), to index the words of URL texts.

    >>> concatenate_ranges(np.array([3, 9]), np.array([5, 10])).tolist()
    [3, 4, 9]
    """
    sizes = ends - starts
    before = np.cumsum(sizes) - sizes
    numbers: Ints = np.arange(sizes.sum()) + np.repeat(starts - before, sizes)
    return numbers
