"""The query language, from the text to a search in a small index."""

from functools import cache

from tests.fuzz.target import Target, make_folder

from vedette.adapters.index_store.tantivy_index import IndexReader, open_reader, open_writer
from vedette.index.query.parser import MAX_CHARACTERS, format_query, parse_query
from vedette.index.query.planner import build_plan

__all__ = ["QUERY"]

NOW_S = 1.7e9

ANIMALS = ("quagga", "okapi", "gnu", "東京", "größe")
QUERIES = (
    'wild "sea birds" OR gulls -plastic site:https://example.org/docs/',
    'intitle:"gulls" inurl:x -filetype:pdf lang:de-AT after:2024-05 before:7d',
    'this|that (a OR b) + AND -"x y" „z“ 3.9.0 東京 C++ Größe -site:a.b/c',
)
TOKENS = (
    *(b"OR", b"AND", b"NOT", b'"', b"-", b"+", b"(", b")", b"|", b"*", b"~", b"site:", b"intitle:", b"inurl:"),
    *(
        b"filetype:",
        b"lang:",
        b"before:",
        b"after:",
        b"2024-05-01",
        b"7d",
        b"\xed\xa0\x80",
        b"\xe3\x80\x80",
        b"\xc2\xad",
    ),
)


@cache
def _open_index() -> IndexReader:
    folder = make_folder()
    writer = open_writer(folder, 15_000_000)
    for number, name in enumerate(ANIMALS):
        writer.put({"id": number, "title": name, "body": f"the {name} eats 3 9 0 leaves", "access": "public"})
    writer.commit()
    writer.close()
    return open_reader(folder)


def check_query(data: bytes) -> None:
    """Any text is a query: it can be written again, planned and searched for."""
    asked = parse_query(_decode(data), NOW_S)
    written = format_query(asked)
    assert len(asked.text) <= MAX_CHARACTERS
    assert format_query(parse_query(written, NOW_S)) == written or len(written) > MAX_CHARACTERS, (written, asked)
    plan = build_plan(asked, lambda word: ((word, 1.0),), ("public",))
    nodes = (plan.node, *plan.looser)
    assert len(_open_index().find(nodes[len(data) % len(nodes)], 10).ids) <= len(ANIMALS)


def _decode(data: bytes) -> str:
    """Decode as the most careless caller would: with halves of surrogate pairs, which JSON can contain."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


QUERY = Target(check_query, [text.encode() for text in QUERIES], TOKENS, most_bytes=4 * MAX_CHARACTERS)
