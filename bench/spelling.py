"""What does the spelling index cost, against symspellpy? CPU time to build it, and a lookup of a misspelled word.

The vocabulary is made of random syllables, the typos have one letter dropped, added or replaced. symspellpy comes from
``.venv-peers`` and is skipped if it is not installed. Ours returns all words within reach, symspellpy the closest. The
last line is one JSON object.

    python bench/spelling.py [--words N] [--typos N]
"""

import argparse
import json
import random
import string
import subprocess
import sys
from pathlib import Path
from time import process_time

from vedette.index.query.spelling import build_deletion_index

PEERS_PYTHON = Path(__file__).parents[1] / ".venv-peers" / "bin" / "python"
PEER = """
import json, sys
from time import process_time
from symspellpy import SymSpell, Verbosity
given = json.load(sys.stdin)
begin = process_time()
peer = SymSpell(2, 7)
for rank, word in enumerate(given["words"]):
    peer.create_dictionary_entry(word, len(given["words"]) - rank)
built = process_time()
for typo in given["typos"]:
    peer.lookup(typo, Verbosity.CLOSEST, 2)
print(json.dumps([built - begin, process_time() - built]))
"""


def draw_words(count: int, rng: random.Random) -> list[str]:
    """Return distinct words of two to five syllables."""
    syllables = [
        first + vowel for first in "bcdfghklmnprstvwz" for vowel in ("a", "e", "i", "o", "u", "en", "or", "ist")
    ]
    words: dict[str, None] = {}
    while len(words) < count:
        words["".join(rng.choices(syllables, k=rng.randint(2, 5)))] = None
    return list(words)


def misspell(word: str, rng: random.Random) -> str:
    """Return the word with one letter dropped, added or replaced."""
    place, letter = rng.randrange(len(word)), rng.choice(string.ascii_lowercase)
    head, tail = word[:place], word[place + 1 :]
    return rng.choice([head + tail, head + letter + word[place:], head + letter + tail])


def time_ours(words: list[str], typos: list[str]) -> list[float]:
    """Return the CPU seconds to build our index, and to look all typos up."""
    begin = process_time()
    index = build_deletion_index(tuple(words))
    built = process_time()
    for typo in typos:
        index.find_near(typo)
    return [built - begin, process_time() - built]


def time_peer(words: list[str], typos: list[str]) -> list[float] | None:
    """Return the same of symspellpy, or None if it is not installed."""
    if not PEERS_PYTHON.exists():
        return None
    given = json.dumps({"words": words, "typos": typos})
    run = subprocess.run([PEERS_PYTHON, "-c", PEER], input=given, capture_output=True, text=True, check=False)
    return json.loads(run.stdout) if run.returncode == 0 else None


def main() -> int:
    """Print a row for each, and both as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=100_000)
    parser.add_argument("--typos", type=int, default=2_000)
    options = parser.parse_args()
    rng = random.Random(1)  # noqa: S311 - the same words in every run
    words = draw_words(options.words, rng)
    typos = [misspell(rng.choice(words), rng) for _ in range(options.typos)]
    rows = {"vedette": time_ours(words, typos), "symspellpy": time_peer(words, typos)}
    for name, row in rows.items():
        shown = f"build {row[0]:.2f} s, lookup {row[1] / len(typos) * 1e3:.2f} ms" if row else "not installed"
        print(f"{name:<12}{shown}")
    print(json.dumps(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
