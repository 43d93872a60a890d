"""Are near-duplicates found on real text, and what does it cost?

Pages come from the git histories of real web sites (``VEDETTE_HISTORIES`` names the folder of bare repositories): all
pages of each site, or those whose paths have the smallest hashes. Tags are taken off crudely. Truth is the exact
Jaccard index of the sets of word shingles of all pairs of pages. A pair is *found* if it shares a band and its sketches
estimate at least .8; it is *right* if the index is at least .8. A page is found if the band table, which remembers only
the first page of each band, names an earlier page that is found; it should be if any earlier page is right.

Cost is CPU time: documents of 2 000 words from the same pages, from text to sketch, taking turns with datasketch and
rensa, which get words from a regular expression (from ``.venv-peers``; skipped if they are not installed); and the band
table, filled with pages. The last line is one JSON object.

    VEDETTE_HISTORIES=FOLDER python bench/near_duplicates.py [--pages N] [--rounds R] [--table-pages N]
"""

import argparse
import html
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
import numpy.typing as npt
import xxhash

from vedette.adapters.crawl_store.minhash_bands import BandTable
from vedette.parse.similarity.minhash import Sketch, build_sketch, estimate_similarities
from vedette.parse.similarity.shingles import WideHashes, shingle_text
from vedette.policy import rng_for

SITES = ("apache+kafka-site", "apache+flink-web", "apache+incubator")
BRANCHES = ("asf-site", "HEAD")
ALIKE = 0.8
NEAR = (0.75, 0.85)
WORDS_EACH = 2000
DOCUMENTS = 500
PEERS_PYTHON = Path(__file__).parents[1] / ".venv-peers" / "bin" / "python"
Flags = npt.NDArray[np.bool_]
Likeness = npt.NDArray[np.float32]

_UNSEEN = re.compile(r"<!--.*?-->|<(script|style)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"<[^>]*>")

PEER = r"""
import json, re, sys
from time import process_time
name, texts = sys.argv[1], json.load(sys.stdin)
if name == "datasketch":
    from datasketch import MinHash
    def sketch(shingles):
        made = MinHash(num_perm=128)
        made.update_batch([shingle.encode() for shingle in shingles])
        return made
else:
    from rensa import RMinHash
    def sketch(shingles):
        made = RMinHash(num_perm=128, seed=42)
        made.update(shingles)
        return made.digest()
before_s = process_time()
for text in texts:
    words = re.findall("[a-z]+", text.lower())
    sketch([" ".join(words[at : at + 4]) for at in range(len(words) - 3)])
print(process_time() - before_s)
"""


@dataclass(frozen=True, slots=True)
class Score:
    """How many pairs are right, how many were found, and how many are both."""

    right: int
    found: int
    both: int

    @property
    def precision(self) -> float:
        """The share of the found that are right."""
        return self.both / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        """The share of the right that were found."""
        return self.both / self.right if self.right else 1.0


def texts_of(site: Path, most: int) -> Iterator[str]:
    """The current texts of a site's pages, at most this many."""
    git = ["git", "--git-dir", str(site)]
    listed = next(listing for branch in BRANCHES if (listing := _listing(git, branch)))
    blobs = {path: blob for blob, path in listed if path.endswith((".html", ".htm"))}
    chosen = sorted(sorted(blobs, key=lambda path: xxhash.xxh64_intdigest(path.encode()))[:most])
    wanted = "".join(f"{blobs[path]}\n" for path in chosen).encode()
    content = subprocess.run([*git, "cat-file", "--batch"], input=wanted, stdout=subprocess.PIPE, check=True).stdout
    at = 0
    for _ in chosen:
        start = content.index(b"\n", at) + 1
        at = start + int(content[at:start].split()[2]) + 1
        yield _text(content[start : at - 1].decode("utf-8", "replace"))


def _listing(git: Sequence[str], branch: str) -> list[tuple[str, str]]:
    """Blob and path of every file of a branch; nothing if it does not exist."""
    listing = subprocess.run([*git, "ls-tree", "-r", "-z", branch], capture_output=True, check=False).stdout.decode()
    entries = (entry.partition("\t") for entry in listing.split("\0") if entry)
    return [(about.split()[2], path) for about, _, path in entries]


def _text(page: str) -> str:
    return html.unescape(_TAG.sub(" ", _UNSEEN.sub(" ", page)))


def exact_likeness(sets: Sequence[WideHashes]) -> Likeness:
    """The Jaccard index of all pairs, by the lists of pages that have each shingle."""
    sizes = np.array([len(members) for members in sets])
    shingle_of = np.unique(np.concatenate(sets), return_inverse=True)[1]
    pages = np.repeat(np.arange(len(sets)), sizes)[np.argsort(shingle_of, kind="stable")]
    counts = np.bincount(shingle_of)
    starts = np.cumsum(counts) - counts
    likeness = np.zeros((len(sets), len(sets)), np.float32)
    for page, members in enumerate(np.split(shingle_of, np.cumsum(sizes)[:-1])):
        lengths = counts[members]
        before = np.cumsum(lengths) - lengths
        places = np.arange(lengths.sum()) + np.repeat(starts[members] - before, lengths)
        common = np.bincount(pages[places], minlength=len(sets))
        likeness[page] = common / (sizes + sizes[page] - common)
    return likeness


def candidates_of(sketches: Sequence[Sketch]) -> Flags:
    """Which pairs share a band."""
    bands = np.array([sketch.bands for sketch in sketches])
    shared = np.zeros((len(bands), len(bands)), np.bool_)
    for band in bands.T:
        shared |= band[:, None] == band
    return shared


def found_pairs(sketches: Sequence[Sketch], candidates: Flags) -> Flags:
    """Which candidates are estimated to be alike."""
    mins = np.array([np.frombuffer(sketch.mins, np.uint8) for sketch in sketches])
    found = np.zeros_like(candidates)
    for page, sketch in enumerate(sketches):
        others = np.flatnonzero(candidates[page])
        found[page, others] = estimate_similarities(sketch.mins, mins[others]) >= ALIKE
    return found


def found_pages(sketches: Sequence[Sketch], found: Flags) -> Flags:
    """Which pages the table, used as in a crawl, maps to an earlier similar page."""
    table = BandTable(None, secret=1)
    bands = np.array([sketch.bands for sketch in sketches])
    firsts = [_first_pages(table, at, bands[at : at + 8]) for at in range(0, len(bands), 8)]
    named = np.concatenate(firsts).astype(np.int64)
    return _any_of_each((named > 0) & found[np.arange(len(bands))[:, None], named - 1])


def _any_of_each(rows: Flags) -> Flags:
    return np.asarray(rows.any(axis=1), np.bool_)


def _first_pages(table: BandTable, at: int, bands: WideHashes) -> npt.NDArray[np.uint32]:
    return table.match_or_add(np.arange(at + 1, at + 1 + len(bands), dtype=np.uint32), bands)


def scores_of(sets: Sequence[WideHashes], sketches: Sequence[Sketch]) -> dict[str, Score]:
    """Of all pairs, of those that differ, of those near the threshold, and of pages."""
    likeness = exact_likeness(sets)
    found = found_pairs(sketches, candidates_of(sketches))
    earlier = np.tri(len(sets), k=-1, dtype=np.bool_)
    near = (likeness >= NEAR[0]) & (likeness < NEAR[1])
    right = likeness >= ALIKE
    kinds = {"pairs": earlier, "pairs that differ": earlier & (likeness < 1), "pairs near .8": earlier & near}
    scores = {name: _score(right[kind], found[kind]) for name, kind in kinds.items()}
    scores["pages"] = _score(_any_of_each(right & earlier), found_pages(sketches, found))
    return scores


def _score(right: Flags, found: Flags) -> Score:
    return Score(*(int(np.count_nonzero(kind)) for kind in (right, found, right & found)))


def documents_of(texts: Sequence[str]) -> list[str]:
    """The texts in one, cut into documents of 2 000 words."""
    words = [word for text in texts for word in islice(text.split(), 4 * WORDS_EACH)][: DOCUMENTS * WORDS_EACH]
    return [" ".join(words[at : at + WORDS_EACH]) for at in range(0, len(words) - WORDS_EACH + 1, WORDS_EACH)]


def by_us(documents: Sequence[str]) -> float:
    """CPU seconds from texts to sketches."""
    before_s = process_time()
    for document in documents:
        build_sketch(shingle_text(document))
    return process_time() - before_s


def by_peer(name: str, documents: Sequence[str]) -> float | None:
    """CPU seconds that another library needs, without its start; None if it is not installed."""
    if not PEERS_PYTHON.exists():
        return None
    command = [str(PEERS_PYTHON), "-c", PEER, name]
    done = subprocess.run(command, input=json.dumps(documents), capture_output=True, text=True, check=False)
    return float(done.stdout) if done.returncode == 0 else None


def rates(documents: Sequence[str], rounds: int) -> dict[str, float]:
    """Documents per CPU second, the median of all turns."""
    turns: dict[str, list[float]] = {"ours": [], "rensa": [], "datasketch": []}
    for _ in range(rounds):
        turns["ours"].append(by_us(documents))
        for name in ("rensa", "datasketch"):
            cpu_s = by_peer(name, documents)
            turns[name] += [] if cpu_s is None else [cpu_s]
    return {name: len(documents) / median(cpu_s) for name, cpu_s in turns.items() if cpu_s}


def table_costs_us(pages: int) -> dict[int, float]:
    """CPU microseconds per page in batches of 8 and 64, with this many pages in the table."""
    rng, table = rng_for(1, "bench/near_duplicates"), BandTable(None, secret=1)
    for at in range(0, pages, 1000):
        _first_pages(table, at, _random_bands(rng, 1000))
    return {size: _cost_us(table, pages, [_random_bands(rng, size) for _ in range(4000 // size)]) for size in (8, 64)}


def _random_bands(rng: np.random.Generator, pages: int) -> WideHashes:
    return rng.integers(0, 1 << 64, (pages, 16), dtype=np.uint64)


def _cost_us(table: BandTable, known: int, batches: Sequence[WideHashes]) -> float:
    before_s = process_time()
    for batch in batches:
        _first_pages(table, known, batch)
    return (process_time() - before_s) * 1e6 / sum(map(len, batches))


def print_table(scores: dict[str, Score], per_s: dict[str, float], table_us: dict[int, float]) -> None:
    """For people."""
    print(f"{'':20}{'alike':>9}{'found':>9}{'precision':>11}{'recall':>9}")
    for name, score in scores.items():
        print(f"{name:20}{score.right:9}{score.found:9}{score.precision:11.4f}{score.recall:9.4f}")
    print(f"\n{'':20}{'documents / CPU s':>18}{'against ours':>14}")
    for name, rate in per_s.items():
        print(f"{name:20}{rate:18.0f}{rate / per_s['ours']:13.3f}x")
    for size, cost_us in table_us.items():
        print(f"band table, batches of {size}: {cost_us:.1f} us of CPU a page")


def read_pages(folder: Path, most: int) -> list[str]:
    """The texts of all sites, shared out evenly; pages that say less than a sentence are left out."""
    texts = (text for site in SITES for text in texts_of(folder / site / "repo", most // len(SITES)))
    return [text for text in texts if len(shingle_text(text)) >= 8]


def main() -> None:
    """Read, compare, measure; print the tables and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=6000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--table-pages", type=int, default=1_000_000)
    arguments = parser.parse_args()
    if "VEDETTE_HISTORIES" not in os.environ:
        sys.exit("VEDETTE_HISTORIES must name a folder of bare repositories, such as apache+kafka-site/repo")
    texts = read_pages(Path(os.environ["VEDETTE_HISTORIES"]), arguments.pages)
    sets = [np.unique(shingle_text(text)) for text in texts]
    sketches = [sketch for members in sets if (sketch := build_sketch(members))]
    print(f"{len(texts)} pages, {np.mean([len(members) for members in sets]):.0f} different shingles a page\n")
    scores = scores_of(sets, sketches)
    per_s = rates(documents_of(texts), arguments.rounds)
    table_us = table_costs_us(arguments.table_pages)
    print_table(scores, per_s, table_us)
    figures = {name.replace(" ", "_").replace(".", ""): score for name, score in scores.items()}
    precision = {f"{name}_precision": round(score.precision, 4) for name, score in figures.items()}
    recall = {f"{name}_recall": round(score.recall, 4) for name, score in figures.items()}
    speed = {f"{name}_documents_per_cpu_s": round(rate) for name, rate in per_s.items()}
    costs = {f"table_us_{size}": round(cost, 2) for size, cost in table_us.items()}
    print(json.dumps({"pages": len(texts), **precision, **recall, **speed, **costs}))


if __name__ == "__main__":
    main()
