"""Is the main text of a page found, and its date, and what does it cost?

Pages come from public repositories (``VEDETTE_HISTORIES`` names the folder; ``peers/article_pages.py`` lists them),
with the main text that their authors expect. The figures are precision, recall and F1 over runs of four words, each
page with the same weight. A date is right if its day is the expected one. *Visible* dates are found without metadata
and URL, from what readers see; htmldate always gets the whole page.

The rivals trafilatura, readability-lxml, resiliparse and htmldate take turns with ours, each in a process of its own
(``.venv-peers``, installed at the first run). The last line is one JSON object.

    VEDETTE_HISTORIES=FOLDER python bench/reading.py [--rounds N]
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import process_time, time

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs as a script

from bench.peers.article_pages import SETS, ArticlePage, load_set
from bench.peers.environment import PYTHON, ROOT, install_rivals

from vedette.compiled import get_form
from vedette.parse.html.page import parse_page
from vedette.parse.text.charsets import decode_page
from vedette.parse.text.dates import PageDates, find_dates

READERS = {"trafilatura": "trafilatura", "readability": "readability-lxml", "resiliparse": "resiliparse"}
DATER = "htmldate"
RUN_WORDS = 4
_WORD = re.compile(r"\w+")


def count_runs(text: str) -> Counter[tuple[str, ...]]:
    """The runs of four words of a text, with their counts."""
    words = _WORD.findall(text.lower())
    return Counter(tuple(words[at : at + RUN_WORDS]) for at in range(max(1, len(words) - RUN_WORDS + 1)) if words)


def score_text(expected: str, found: str) -> tuple[float, float, float]:
    """Shares of the runs of both texts that are common, only found, and only expected."""
    wanted, given = count_runs(expected), count_runs(found)
    both = (wanted & given).total()
    extra, missing = given.total() - both, wanted.total() - both
    total = max(1, both + extra + missing)
    return both / total, extra / total, missing / total


def summarize(scores: Sequence[tuple[float, float, float]]) -> tuple[float, float, float]:
    """Precision, recall and F1 over pages."""
    both, extra, missing = (sum(column) for column in zip(*scores, strict=True))
    precision, recall = both / max(both + extra, 1e-9), both / max(both + missing, 1e-9)
    return precision, recall, 2 * precision * recall / max(precision + recall, 1e-9)


def read_ours(htmls: Sequence[str]) -> tuple[list[str], float]:
    """The main text of each page, and the CPU seconds it took."""
    start_s = process_time()
    return [parse_page(html).main for html in htmls], process_time() - start_s


def ask_rival(name: str, htmls: Sequence[str]) -> tuple[list[str], float]:
    """What another library finds in each page, and the CPU seconds it took."""
    command = [str(PYTHON), str(ROOT / "bench/peers/rival_readers.py"), name]
    done = subprocess.run(command, input=json.dumps(htmls).encode(), stdout=subprocess.PIPE, check=True)
    answer = json.loads(done.stdout)
    return answer["found"], answer["cpu_s"]


def date_ours(pages: Sequence[ArticlePage], htmls: Sequence[str], *, visible_only: bool) -> tuple[list[str], float]:
    """The day on which each page was published, as we find it, and the CPU seconds it took with parsing."""
    start_s, days = process_time(), []
    for page, html in zip(pages, htmls, strict=True):
        parsed = parse_page(html)
        stated = ((), (), "") if visible_only else (parsed.stamps, parsed.linked_data, page.url)
        days.append(_format_day(find_dates(*stated, "", time(), parsed.date_lines)))
    return days, process_time() - start_s


def _format_day(dates: PageDates) -> str:
    return datetime.fromtimestamp(dates.published_s, UTC).date().isoformat() if dates.published_s else ""


def main() -> None:
    """Print the table of texts, the table of dates, and the JSON object."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=3)
    rounds = options.parse_args().rounds
    histories = Path(os.environ.get("VEDETTE_HISTORIES", ""))
    pages = [page for name in SETS for page in load_set(histories, name)]
    if not pages:
        sys.exit(f"VEDETTE_HISTORIES must name a folder with {' or '.join(repo for repo, _ in SETS.values())}.")
    usable = install_rivals({**READERS, DATER: DATER})
    rivals = [name for module, name in READERS.items() if module in usable]
    htmls = [decode_page(page.html, "text/html").text for page in pages]
    result = {"pages": Counter(page.set for page in pages), "text": print_texts(pages, htmls, rounds, rivals)}
    dated = [(page, html) for page, html in zip(pages, htmls, strict=True) if page.published]
    result["dates"] = print_dates(dated, [DATER] if DATER in usable else [])
    print(json.dumps(result | {"form": get_form()}))


def print_texts(
    pages: Sequence[ArticlePage], htmls: Sequence[str], rounds: int, rivals: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Print and return F1 by set, and CPU milliseconds per page, of ours and the rivals."""
    costs: dict[str, list[float]] = {name: [] for name in ("vedette", *rivals)}
    found: dict[str, list[str]] = {}
    for _ in range(rounds):
        for name, spent in costs.items():
            found[name], cpu_s = read_ours(htmls) if name == "vedette" else ask_rival(name, htmls)
            spent.append(1000 * cpu_s / len(pages))
    table: dict[str, dict[str, float]] = {}
    print(f"{'':18}" + "".join(f"{name + ': precision, recall, F1':>40}" for name in SETS) + f"{'CPU ms':>10}")
    for name, texts in found.items():
        scores = [score_text(page.text, text) for page, text in zip(pages, texts, strict=True)]
        parts = {
            each: summarize([score for score, page in zip(scores, pages, strict=True) if page.set == each])
            for each in dict.fromkeys(page.set for page in pages)
        }
        table[name] = {each: round(part[2], 3) for each, part in parts.items()} | {
            "cpu_ms": round(median(costs[name]), 2)
        }
        row = "".join(f"{' '.join(f'{figure:.3f}' for figure in part):>40}" for part in parts.values())
        print(f"{name:18}{row}{table[name]['cpu_ms']:10.2f}")
    return table


def print_dates(dated: Sequence[tuple[ArticlePage, str]], rivals: Sequence[str]) -> dict[str, dict[str, float]]:
    """Print and return how many dates are right, wrong and missing, and CPU milliseconds per page."""
    pages, htmls = [page for page, _ in dated], [html for _, html in dated]
    found = {
        "vedette": date_ours(pages, htmls, visible_only=False),
        "vedette, visible": date_ours(pages, htmls, visible_only=True),
        **{name: ask_rival(name, htmls) for name in rivals},
    }
    table: dict[str, dict[str, float]] = {}
    for name, (days, cpu_s) in found.items():
        counts = Counter(
            "right" if day == page.published[:10] else "wrong" if day else "missing"
            for page, day in zip(pages, days, strict=True)
        )
        cpu_ms = round(1000 * cpu_s / max(len(pages), 1), 2)
        table[name] = {**{kind: counts[kind] for kind in ("right", "wrong", "missing")}, "cpu_ms": cpu_ms}
        shown = ", ".join(f"{counts[kind]} {kind}" for kind in ("right", "wrong", "missing"))
        print(f"{name:18} of {len(pages)} dates {shown}; CPU ms {cpu_ms:.2f}")
    return table


if __name__ == "__main__":
    main()
