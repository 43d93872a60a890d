"""Snippets: the part with most of the query, highlighted as words match, within its limit, for any text."""

# ruff: noqa: RUF001 - look-alike letters and full-width signs are tested here
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.index.snippets import Snippet, cut_snippet, find_hits, highlight_words
from vedette.text import split_words

FILLER = "Nothing of note is said in this sentence at all. "
ODD = "aé ßcC+#.\n\t\u00a0かが\u3099ｶﾞ한\u1112\u1161\u11ab日क़ि\u0301\u00ad\u200d!?。ŉ\ud800"
TEXTS = st.text(st.sampled_from(ODD) | st.characters(exclude_categories=()), max_size=300)
WANTED = st.lists(st.lists(TEXTS.map(lambda text: text[:6]).map(lambda text: " ".join(split_words(text))), max_size=3))


def snippet_of(text: str, wanted: list[list[str]], most: int = 200) -> Snippet:
    """Return the best snippet of a text for a query."""
    return cut_snippet(*find_hits(text, wanted), most)


def marked(piece: Snippet) -> list[str]:
    """Return the highlighted parts."""
    return [piece.text[start:end] for start, end in piece.marks]


@pytest.mark.parametrize(
    ("title", "query", "found"),
    [
        ("Gulls of the North Sea", "gulls sea", ["Gulls", "Sea"]),
        ("Seagulls see the sea.", "sea", ["sea"]),
        ("Große STRASSE, kleine Straße", "strasse", ["STRASSE", "Straße"]),
        ("Café, cafe\u0301 und CAFE", "cafe", ["Café", "cafe\u0301", "CAFE"]),
        ("東京都と京都", "京", ["京", "京"]),
        ("東京都と京都", "京 都", ["京都", "京都"]),
        ("C++, C and c++17 in .NET", "cplusplus dotnet", ["C++", "c++", ".NET"]),
        ("Ёлка и елка", "елка", ["Ёлка", "елка"]),
        ("co\u00adop and coop", "coop", ["co\u00adop", "coop"]),
        ("ＡＢＣ abc", "abc", ["ＡＢＣ", "abc"]),
        ("हिन्दी में हिन्द", "हिन्दी", ["हिन्दी"]),
        ("한국어 한국", "한", ["한", "한"]),
        ("ﬁne fine", "fine", ["ﬁne", "fine"]),
        ("nothing here", "gulls", []),
        ("", "gulls", []),
        ("gulls", "", []),
    ],
)
def test_words_are_marked(title: str, query: str, found: list[str]) -> None:
    """Whole words are marked in any spelling; adjacent characters that are words each are marked as one."""
    piece = highlight_words(title, [[word] for word in query.split()])
    assert piece.text == title
    assert marked(piece) == found


@pytest.mark.parametrize("word", ["か\u3099っこう", "\u1112\u1161\u11ab\u1100\u116e\u11a8"])
def test_decomposed_spellings(word: str) -> None:
    """Decomposed Kana and Hangul are composed and marked."""
    piece = highlight_words(f"x {word} y", [split_words(word)])
    assert len(marked(piece)) == 1
    assert split_words(marked(piece)[0]) == split_words(word)


def test_alternatives_fill_one_slot() -> None:
    """Any word of a slot is marked, and two of them count no more than one."""
    text = "Gull, gull, gulls and gulls. " + FILLER * 10 + "A gull and a crab. " + FILLER * 10
    piece = snippet_of(text, [["gull", "gulls"], ["crab"]], 120)
    assert marked(piece) == ["gull", "crab"]


def test_most_different_words_win() -> None:
    """A passage with more different words wins over an earlier one that repeats a word."""
    text = FILLER + "Gulls gulls gulls. " + FILLER * 20 + "Gulls eat fish near boats. " + FILLER * 20
    piece = snippet_of(text, [["gulls"], ["fish"], ["boats"]])
    assert marked(piece) == ["Gulls", "fish", "boats"]
    assert piece.text.startswith("…")
    assert piece.text.endswith("…")


def test_nearness_then_earliness() -> None:
    """Of passages with the same words, the tightest wins, then the first."""
    far, near = "Gulls do not always eat fish. ", "Gulls eat fish. "
    text = FILLER * 9 + far + FILLER * 9 + near + "First. " + FILLER * 9 + near + "Second. " + FILLER * 9
    piece = snippet_of(text, [["gulls"], ["fish"]], 100)
    assert "Gulls eat fish. First." in piece.text


def test_sentences_and_lines() -> None:
    """A passage starts with a sentence or line if one starts nearby, otherwise with a word."""
    assert snippet_of(FILLER * 9 + "Here gulls nest. " + FILLER * 9, [["gulls"]], 60).text.startswith(
        "…Here gulls nest."
    )
    assert snippet_of("no stop " * 50 + "\nHere gulls nest " + "no stop " * 50, [["gulls"]], 60).text.startswith(
        "…Here"
    )
    piece = snippet_of("unending " * 90 + "gulls " + "unending " * 90, [["gulls"]], 100)
    assert set(piece.text.strip("…").split()) == {"unending", "gulls"}


def test_no_match_gives_the_beginning() -> None:
    """Without a matching word, or without a query, the beginning of the text is shown."""
    queries: list[list[list[str]]] = [[["zebra"]], [[]], []]
    for wanted in queries:
        piece = snippet_of(FILLER * 20, wanted, 60)
        assert piece == Snippet("Nothing of note is said in this sentence at all. Nothing of…")


def test_match_at_the_end() -> None:
    """A word at the end of a text is shown with its preceding text, and no ellipsis follows."""
    piece = snippet_of("word " * 200 + "gulls", [["gulls"]], 100)
    assert piece.text.endswith("word gulls")
    assert len(piece.text) > 70


def test_white_space_is_collapsed() -> None:
    """All kinds of white space become single spaces, and a short text is shown completely."""
    piece = snippet_of("  Sea\n\n\t gulls\u00a0\u3000 nest \r\n", [["gulls"], ["nest"]])
    assert piece == Snippet("Sea gulls nest", ((4, 9), (10, 14)))


def test_the_end_of_a_long_text_is_searched() -> None:
    """A word at the end of a very long text is shown."""
    assert marked(snippet_of("a " * 200_000 + "gulls", [["gulls"]])) == ["gulls"]


@pytest.mark.parametrize(
    "piece", ["a", "a ", "gulls ", "日", "\u0301", "क\u093c", "c++ ", ". ", "\n", "か\u3099", "\ud800"]
)
def test_monotonous_texts(piece: str) -> None:
    """Long repetitive texts are no problem."""
    found = snippet_of(piece * 200_000, [["gulls"], ["a"], ["cplusplus"], ["日"], ["が"]])
    assert len(found.text) <= 200


@pytest.mark.parametrize("most", [*range(12), 160])
def test_bound_is_kept(most: int) -> None:
    """A page can limit the length of its snippet: no longer one is shown, and none at all for 0."""
    for text in (FILLER * 9 + "Gulls!", "gulls", "日" * 500, "gulls" * 100, ""):
        piece = snippet_of(text, [["gulls"], ["日"]], most)
        assert len(piece.text) <= most
        assert all(0 <= start < end <= len(piece.text) for start, end in piece.marks)


@given(TEXTS, WANTED, st.integers(-1, 80))
def test_any_text(text: str, wanted: list[list[str]], most: int) -> None:
    """For any text and query, the limit holds, marks are ordered and disjoint, and the result is valid Unicode."""
    for piece in (snippet_of(text, wanted, most), highlight_words(text, wanted)):
        edges = [edge for mark in piece.marks for edge in mark]
        assert edges == sorted(set(edges))
        assert all(0 <= edge <= len(piece.text) for edge in edges)
        piece.text.encode()
    assert len(snippet_of(text, wanted, most).text) <= max(0, most)


@given(TEXTS, st.data())
def test_marks_are_the_words(text: str, data: st.DataObject) -> None:
    """A word of a text is found in it, and nothing is marked without a word of the query."""
    words = split_words(text.encode("utf-8", "replace").decode())
    if words:
        word = data.draw(st.sampled_from(words))
        found = [split_words(part) for part in marked(highlight_words(text, [[word]]))]
        assert found
        assert all(set(part) == {word} for part in found if part)


@given(
    st.text(st.sampled_from("abcAB 1_.,’–\n\t-"), max_size=60),
    st.lists(st.text("abc1", min_size=1, max_size=3), max_size=4),
)
def test_a_plain_text_is_searched_as_any_other(text: str, words: list[str]) -> None:
    """Searching for words finds the same as splitting the text into words."""
    wanted = [[word] for word in words]
    found = highlight_words(text, wanted)
    with_an_odd_letter = highlight_words(f"{text} ß", wanted)
    assert found.marks == with_an_odd_letter.marks
    assert with_an_odd_letter.text.removesuffix("ß").rstrip() == found.text
