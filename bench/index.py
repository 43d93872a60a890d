"""How fast are pages indexed, as a share of tantivy's own speed?

Pages come from the git histories of real web sites (``VEDETTE_HISTORIES`` names the folder of bare repositories): the
newest version of every page first, then older ones, until there are enough; each is indexed as a separate page. Still
older ones replace the newest version of their page: these are the updates. Pages are parsed, and documents built,
before anything is measured.

Two ways take turns (ours, tantivy's, tantivy's, ours), each into a new folder: Vedette's ``IndexWriter``, and tantivy's
own calls, with the same fields, documents, deletions and commits, one thread each. Cost is CPU time of the process with
all its threads, until merging has ended. Afterwards the index is queried: for the words of titles, each in any of the
text fields. The last line is one JSON object; the bench fails if both ways do not end with the same number of pages.

    VEDETTE_HISTORIES=FOLDER python bench/index.py [--pages N] [--updates N] [--rounds R] [--batch N]
"""

import argparse
import json
import os
import resource
import sys
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import tantivy

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.peers.git_pages import bodies_of, versions

from vedette.adapters.index_store.tantivy_index import HEAP_BYTES, open_reader, open_writer
from vedette.index.fields import IndexEntry, build_document, tokenize_entry
from vedette.index.query.retrieval import EXACT_FIELDS, TEXT_FIELDS, And, DisMax, Node, Term
from vedette.parse.html.page import parse_page
from vedette.parse.text.charsets import decode_page
from vedette.parse.text.language import detect_language

DAY_S = 86_400
QUERIES = 500
QUERY_WORDS = 3
Documents = Sequence[dict[str, object]]


# --- Which pages ---


def documents(folder: Path, pages: int, updates: int) -> list[dict[str, object]]:
    """Documents of this many pages, and then of this many updates, whose ids are those of pages."""
    known = versions(folder)
    made: list[dict[str, object]] = []
    newest: dict[str, int] = {}
    for number, (version, body) in enumerate(islice(bodies_of(folder, known), pages), 1):
        newest.setdefault(version.url, number)
        made.append(document(number, version.url, body))
    older = [version for version in known[pages:] if version.age and version.url in newest]
    for version, body in islice(bodies_of(folder, older), updates):
        made.append(document(newest[version.url], version.url, body))
    return made


def document(number: int, url: str, body: bytes) -> dict[str, object]:
    """The indexed content of a page."""
    page = parse_page(decode_page(body, "text/html").text)
    headings = tuple(heading for _, heading in page.headings)
    anchors = tuple(link.text for link in page.links[:3])  # of this page, since its in-links are unknown here
    language = detect_language(page.main, page.language)
    entry = IndexEntry(number, url, page.title, headings, page.main, anchors, "html", language, float(number * DAY_S))
    return build_document(entry, tokenize_entry(entry))


# --- Two ways ---


def by_us(folder: Path, made: Documents, batch: int) -> int:
    """Put all in with our writer; how many there are."""
    writer = open_writer(folder)
    for at in range(0, len(made), batch):
        for each in made[at : at + batch]:
            writer.put(each)
        if writer.commit():
            sys.exit("a page was left out")
    writer.close()
    return len(open_reader(folder))


def by_tantivy(folder: Path, made: Documents, batch: int) -> int:
    """The same without any of our code."""
    schema = raw_schema()
    index = raw_index(folder, schema)
    writer = index.writer(HEAP_BYTES, num_threads=1)
    for at in range(0, len(made), batch):
        for each in made[at : at + batch]:
            writer.delete_documents_by_query(tantivy.Query.term_query(schema, "id", each["id"]))
            writer.add_document(tantivy.Document.from_dict(each, schema))
        writer.commit()
    writer.wait_merging_threads()
    index.reload()
    return index.searcher().num_docs


def raw_schema() -> tantivy.Schema:
    """The same fields as ours."""
    builder = tantivy.SchemaBuilder()
    for name in TEXT_FIELDS:
        builder.add_text_field(name, tokenizer_name="spaced")
    for name in EXACT_FIELDS:
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("id", indexed=True, fast=True)
    builder.add_integer_field("date", indexed=True, fast=True)
    return builder.build()


def raw_index(folder: Path, schema: tantivy.Schema) -> tantivy.Index:
    """An index with the same analyzer as ours."""
    index = tantivy.Index(schema, str(folder))
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
    index.register_tokenizer("spaced", builder.filter(tantivy.Filter.remove_long(256)).build())
    return index


def cpu_s() -> float:
    """User and system time of this process so far, of all its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def turn(way: Callable[[Path, Documents, int], int], made: Documents, batch: int) -> tuple[float, int]:
    """CPU seconds of one way in a new folder, and how many pages there are at its end."""
    with TemporaryDirectory(prefix="vedette-bench-") as folder:
        before_s = cpu_s()
        count = way(Path(folder), made, batch)
        return cpu_s() - before_s, count


def turns(made: Documents, batch: int, rounds: int) -> tuple[list[float], list[float]]:
    """CPU seconds of each turn, ours and tantivy's."""
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(rounds):
        pairs = [(turn(by_us, made, batch), turn(by_tantivy, made, batch))]
        later, ours_later = turn(by_tantivy, made, batch), turn(by_us, made, batch)
        pairs.append((ours_later, later))
        if len({count for pair in pairs for _, count in pair}) > 1:
            sys.exit(f"the two ways do not end with the same pages: {pairs}")
        ours += [pair[0][0] for pair in pairs]
        theirs += [pair[1][0] for pair in pairs]
        print(
            f"  ours {ours[-2]:.1f} and {ours[-1]:.1f} s, tantivy {theirs[-2]:.1f} and {theirs[-1]:.1f} s", flush=True
        )
    return ours, theirs


# --- What else it costs ---


def steps_us(made: Documents, batch: int) -> dict[str, float]:
    """CPU microseconds a document: making it, handing it on while a thread indexes, committing (which waits for it)."""
    schema, spent = raw_schema(), {"from_dict": 0.0, "add": 0.0, "commit": 0.0}
    with TemporaryDirectory(prefix="vedette-bench-") as folder:
        writer = raw_index(Path(folder), schema).writer(HEAP_BYTES, num_threads=1)
        for at in range(0, len(made), batch):
            marks = [process_time()]
            ready = [tantivy.Document.from_dict(each, schema) for each in made[at : at + batch]]
            marks.append(process_time())
            for each in ready:
                writer.add_document(each)
            marks.append(process_time())
            writer.commit()
            marks.append(process_time())
            for name, before, after in zip(spent, marks, marks[1:], strict=False):
                spent[name] += after - before
        writer.wait_merging_threads()
    return {name: total * 1e6 / len(made) for name, total in spent.items()}


def commits_ms(folder: Path, made: Documents) -> float:
    """Wall milliseconds of a commit with one changed page, the median."""
    writer, taken = open_writer(folder), []
    for each in made[:20]:
        writer.put(each)
        before = perf_counter()
        writer.commit()
        taken.append((perf_counter() - before) * 1000)
    writer.close()
    return median(taken)


def queries(made: Documents) -> list[Node]:
    """The first words of titles, all of them, each in any field."""
    chosen = made[:: max(1, len(made) // QUERIES)]
    titles = (str(each["title"]).split()[:QUERY_WORDS] for each in chosen)
    return [And(tuple(DisMax(tuple(Term(field, word) for field in TEXT_FIELDS)) for word in words)) for words in titles]


def finding_ms(folder: Path, asked: Sequence[Node], most: int) -> list[float]:
    """Wall milliseconds of each query."""
    reader, taken = open_reader(folder), []
    for node in asked:
        before = perf_counter()
        reader.find(node, most)
        taken.append((perf_counter() - before) * 1000)
    return taken


def used_bytes(folder: Path) -> int:
    """The size of the index on disk."""
    return sum(file.stat().st_size for file in folder.iterdir())


def print_more(made: Documents, batch: int) -> None:
    """Steps, commits, queries and size, for people."""
    for name, cost_us in steps_us(made, batch).items():
        print(f"{name:12}{cost_us:8.1f} us of CPU a page")
    with TemporaryDirectory(prefix="vedette-bench-") as name:
        folder = Path(name)
        pages = by_us(folder, made, batch)
        print(f"{pages} pages, {used_bytes(folder) / pages / 1000:.2f} kB each on disk")
        print(f"{open_reader(folder).deleted_share():.3f} of the index is pages that were replaced")
        asked = queries(made)
        for most in (10, 100, 1000):
            taken = finding_ms(folder, asked, most)
            p50, p99 = median(taken), quantiles(taken, n=100)[98]
            print(f"the best {most:4} of a query of {QUERY_WORDS} words: p50 {p50:.2f} ms, p99 {p99:.2f} ms")
        print(f"a commit of one page: p50 {commits_ms(folder, made):.1f} ms")


def main() -> None:
    """Read, take turns, query; print the tables and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=40_000)
    parser.add_argument("--updates", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--batch", type=int, default=1000)
    given = parser.parse_args()
    if "VEDETTE_HISTORIES" not in os.environ:
        sys.exit("VEDETTE_HISTORIES must name a folder of bare repositories, such as apache+kafka-site/repo")
    made = documents(Path(os.environ["VEDETTE_HISTORIES"]), given.pages, given.updates)
    words = sum(str(each[field]).count(" ") + 1 for each in made for field in TEXT_FIELDS)
    print(f"{len(made)} pages, {words / len(made):.0f} words each", flush=True)
    ours, theirs = turns(made, given.batch, given.rounds)
    share = median(raw / own for own, raw in zip(ours, theirs, strict=True))
    print(f"{'':12}{'documents / CPU s':>18}")
    for name, spent_s in (("ours", ours), ("tantivy", theirs)):
        print(f"{name:12}{len(made) / median(spent_s):18.0f}")
    print_more(made, given.batch)
    print(json.dumps({"docs_per_cpu_s": round(len(made) / median(ours)), "share_of_tantivy": round(share, 3)}))


if __name__ == "__main__":
    main()
