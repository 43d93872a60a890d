"""How many links a second can bring the worth of unseen URLs up to date, and how much memory does it take?

A million URLs are unseen; people ask a hundred thousand queries, of which the neediest thousandth have sketches. Links
come in batches; each names a URL and has words. Timed is all that a link causes: reading the words of URL and link,
matching them against needy queries together with what earlier links said, and working out the expected gain anew. CPU
seconds of this process, the median over batches. The ceiling, in the same run, is reading the words alone
(``tokenize_texts``): nobody can judge links without. The last line is one JSON object.

What a batch costs depends on how many URLs are candidates of needy queries (``pairs_per_link``), and that on whether
queries consist of words that every third link has. The commonest hundred words (``--common``) are in no query here.

    python bench/order.py [--urls 1000000] [--queries 100000] [--share 0.001] [--links 200000] [--batch 5000]
                           [--common 100]
"""

import argparse
import json
import resource
from statistics import median
from time import process_time
from typing import NamedTuple

import numpy as np

from vedette.frontier.impact.estimator import ImpactSettings
from vedette.frontier.impact.extra_trees import fit_forest
from vedette.frontier.impact.forest import Grower
from vedette.frontier.impact.matching import QuerySet
from vedette.frontier.impact.query_need import Improvability
from vedette.frontier.impact.sketches import Sketches
from vedette.frontier.impact.url_features import DescribedUrls, TrainingPages, UrlTexts, hash_folders, tokenize_texts
from vedette.lab.baselines.running_impact import ImpactTracker, select_needy_queries
from vedette.policy import Ints, rng_for
from vedette.text import hash_words

SEED = 1
VOCABULARY = 50_000
CRAWLED = 4_000
FOLDERS = 2_000
GOAL = 30_000


class Links(NamedTuple):
    """A batch of links: the URL of each by number and as written, and its words."""

    url: Ints
    written: list[str]
    words: list[tuple[int, str]]


class Web:
    """URLs and links out of words that are as unequal as those of people."""

    def __init__(self, urls: int) -> None:
        self._rng = rng_for(SEED, "bench/order")
        self._urls = urls
        chance = 1.0 / np.arange(1, VOCABULARY + 1)
        self._reach = np.cumsum(chance / chance.sum())

    def words(self, count: int) -> Ints:
        """Words by number, the first ones most often."""
        return np.minimum(np.searchsorted(self._reach, self._rng.random(count)), VOCABULARY - 1)

    def url(self, number: int, words: list[int]) -> str:
        """Eight words of path in one of many folders."""
        return f"https://host{number % 50}.test/f{number % FOLDERS}/" + "-".join(f"w{word}" for word in words)

    def links(self, count: int) -> Links:
        """Links to URLs that are drawn; a URL has the same words whenever it is named."""
        urls = self._rng.integers(0, self._urls, count)
        own = ((urls[:, None] + 1) * np.arange(1, 6) * 2654435761 % (1 << 32)) / (1 << 32)
        paths = np.minimum(np.searchsorted(self._reach, own), VOCABULARY - 1).tolist()
        said = self.words(3 * count).reshape(-1, 3).tolist()
        written = [self.url(number, words) for number, words in zip(urls.tolist(), paths, strict=True)]
        return Links(urls, written, [(row, " ".join(f"w{word}" for word in each)) for row, each in enumerate(said)])

    def wanted(self, queries: int, common: int) -> QuerySet:
        """Queries of one to three words, asked by Zipf's law; nobody asks for the commonest words."""
        sizes = self._rng.integers(1, 4, queries)
        words = self.words(8 * int(sizes.sum()))
        words = words[words >= common][: int(sizes.sum())]
        telling = np.log1p(words.astype(np.float64))
        numbers = hash_words(" ".join(f"w{word}" for word in words.tolist()).encode())
        return QuerySet(numbers, np.append(0, np.cumsum(sizes)), 1.0 / np.arange(1, queries + 1), telling)


def described(urls: list[str], strings: UrlTexts, inlinks: Ints) -> DescribedUrls:
    """What is known of these URLs."""
    folder, branch = hash_folders(urls)
    return DescribedUrls(inlinks, inlinks, inlinks, np.log1p(inlinks), folder, branch, strings)


def taught(web: Web, wanted: QuerySet, share: float, grow: Grower) -> ImpactTracker:
    """A standing that has learned from crawled pages."""
    links, queries = web.links(CRAWLED), len(wanted)
    rng = rng_for(SEED, "bench/order/taught")
    row, query = rng.integers(0, CRAWLED, 20 * queries), rng.integers(0, queries, 20 * queries)
    score = rng.random(len(row))
    sketches = Sketches.empty(queries).put(query, row, score)
    chosen, few = select_needy_queries(wanted, sketches, Improvability(), share)
    at = np.minimum(np.searchsorted(chosen, query), len(chosen) - 1)
    inside = chosen[at] == query[: len(at)]
    batch = described(links.written, tokenize_texts(links.written, links.words), rng.integers(0, 50, CRAWLED))
    columns = {name: getattr(batch, name) for name in DescribedUrls.__dataclass_fields__}
    gain = rng.gamma(0.3, 1.0, CRAWLED)
    found = (row[inside], at[inside], score[inside])
    standing = ImpactTracker(ImpactSettings(few, grow))
    standing.learn(
        TrainingPages(
            **columns,
            page=np.arange(CRAWLED),
            gain=gain,
            found_row=found[0],
            found_query=found[1],
            found_score=found[2],
        )
    )
    return standing


def main() -> None:
    """Print a table and a JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--share", type=float, default=0.001)
    parser.add_argument("--links", type=int, default=200_000)
    parser.add_argument("--batch", type=int, default=5_000)
    parser.add_argument("--common", type=int, default=100, help="words that are too common to be asked for")
    options = parser.parse_args()
    web = Web(options.urls)
    standing = taught(web, web.wanted(options.queries, options.common), options.share, fit_forest)
    inlinks = np.zeros(options.urls, np.int64)
    worth = np.zeros(options.urls)
    ours, ceiling, pairs = [], [], 0
    for _ in range(options.links // options.batch):
        links = web.links(options.batch)
        begin = process_time()
        tokenize_texts(links.written, links.words)
        ceiling.append(options.batch / (process_time() - begin))
        begin = process_time()
        np.add.at(inlinks, links.url, 1)
        batch = described(links.written, tokenize_texts(links.written, links.words), inlinks[links.url])
        worth[links.url] = standing.estimate_gain(links.url, batch)
        ours.append(options.batch / (process_time() - begin))
        pairs += standing.count_candidates(batch)
    assert standing.model.settings is not None, "it was taught"
    result = {
        "urls": options.urls,
        "queries": options.queries,
        "needy": len(standing.model.settings.queries),
        "pairs_per_link": round(pairs / max(len(ours) * options.batch, 1), 3),
        "links_per_s": round(median(ours)),
        "ceiling_per_s": round(median(ceiling)),
        "share_of_ceiling": round(median(ours) / median(ceiling), 3),
        "standing_mb": round(standing.size_bytes / 1e6, 2),
        "columns_mb": round((worth.nbytes + inlinks.nbytes) / 1e6, 2),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "goal_met": median(ours) >= GOAL,
    }
    for name, value in result.items():
        print(f"{name:18} {value}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
