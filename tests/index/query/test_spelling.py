"""Did you mean: typos are corrected, known words are kept, and no input fails."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.index.query.spelling import (
    SpellChecker,
    build_deletion_index,
    build_spell_checker,
    correct_words,
    edit_cost,
    max_edits,
)
from vedette.index.query.vocabulary import build_vocabulary
from vedette.text import split_words

PAGES = {
    **dict.fromkeys(split_words("the and of for from with"), 60_000),
    **dict.fromkeys(split_words("javascript python search database configuration"), 6_000),
    **dict.fromkeys(split_words("kafka stream engine install installation connector receive separate"), 3_000),
    **dict.fromkeys(split_words("streams word base data java script form house accommodation beginning"), 2_000),
    **dict.fromkeys(split_words("wordpress elasticsearch zookeeper international occurrence mouse horse"), 1_000),
    **dict.fromkeys(split_words("konfiguration straße press переменная 2024 mp3 python3"), 400),
    **dict.fromkeys(split_words("recieve pythn steams"), 2),
}
LETTERS = st.sampled_from("aeinrstx")


def spelling_of(pages: dict[str, int]) -> SpellChecker:
    """Return the spelling checker of an index."""
    return build_spell_checker(build_vocabulary(pages.items(), lambda _, words: list(words), []))


SPELLING = spelling_of(PAGES)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("pyhton", "python"),
        ("kafak streams", "kafka streams"),
        ("javscript", "javascript"),
        ("zokeeper", "zookeeper"),
        ("konnector", "connector"),
        ("hous", "house"),
        ("acommodation", "accommodation"),
        ("begining", "beginning"),
        ("occurence", "occurrence"),
        ("seperate", "separate"),
        ("instal", "install"),
        ("internatoinal", "international"),
        ("serch enigne", "search engine"),
        ("elasticsaerch 2024", "elasticsearch 2024"),
        ("переменая", "переменная"),
        ("recieve", "receive"),
        ("kafka steams", "kafka streams"),
    ],
)
def test_slips_are_put_right(typed: str, meant: str) -> None:
    """A missing, doubled, changed or moved letter is corrected, even in a word that is on a page or two."""
    assert correct_words(typed.split(), SPELLING) == tuple(meant.split())


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("kafkastreams", "kafka streams"),
        ("searchengine with python", "search engine with python"),
        ("word press", "wordpress"),
        ("install java script", "install javascript"),
        ("elastic search", "elasticsearch"),
    ],
)
def test_words_are_split_and_joined(typed: str, meant: str) -> None:
    """Joined words are split, and split words are joined, if the index has them that way."""
    assert correct_words(typed.split(), SPELLING) == tuple(meant.split())


@pytest.mark.parametrize(
    "typed",
    ["python", "form", "horse", "mouse house", "2023", "mp4", "python4", "ab", "xyz", "qqqqqqqqq", "the of and", ""],
)
def test_nothing_better(typed: str) -> None:
    """Words in the index, numbers, short words and gibberish are left alone."""
    assert correct_words(typed.split(), SPELLING) is None


def test_neighbours_decide() -> None:
    """Of two equally close and frequent words, the one that occurs next to the following word is chosen."""
    spelling = spelling_of({"mouse": 500, "house": 500, "trap": 800, "roof": 800, "the": 9_000})
    together = {("mouse", "trap"): 90, ("house", "roof"): 90}

    def followed(one: str, other: str) -> int:
        return together.get((one, other), 0)

    assert correct_words(["xouse", "trap"], spelling, followed) == ("mouse", "trap")
    assert correct_words(["xouse", "roof"], spelling, followed) == ("house", "roof")


def test_split_that_no_page_has() -> None:
    """If no page has the two words in a row, the split is not suggested."""
    assert correct_words(["kafkastreams"], SPELLING, lambda _one, _other: 0) is None
    assert correct_words(["kafkastreams"], SPELLING, lambda _one, _other: 50) == ("kafka", "streams")


def test_words_that_stand_apart_on_pages() -> None:
    """Two words that are often next to each other on pages are not joined."""
    assert correct_words(["word", "press"], SPELLING, lambda _one, _other: 900) is None


def test_questions_about_pairs_are_few() -> None:
    """However long the query, the number of index searches is bounded."""
    asked = []

    def followed(one: str, other: str) -> int:
        asked.append((one, other))
        return 1

    correct_words(["kafkastreamsx", "pyhton", "java", "script"] * 500, SPELLING, followed)
    assert len(asked) <= 60


def test_far_behind_nothing_is_lost() -> None:
    """Words beyond the examined ones stay unchanged."""
    typed = ["pyhton", *["the"] * 40]
    assert correct_words(typed, SPELLING) == ("python", *["the"] * 40)


@given(st.lists(st.one_of(st.text(st.characters(exclude_categories=())), st.sampled_from(sorted(PAGES))), max_size=6))
def test_any_query(typed: list[str]) -> None:
    """Any words give another query or nothing; frequent words and numbers stay unless they are joined."""
    better = correct_words(typed, SPELLING)
    if better is None:
        return
    assert better != tuple(typed)
    kept = [word for word in typed if re.search(r"\d", word)]
    assert [word for word in better if re.search(r"\d", word)] == kept


def edited(word: str, place: int, letter: str, kind: int) -> str:
    """Return a word with one letter removed, inserted, changed or moved."""
    before, behind = word[:place], word[place:]
    ways = (before + behind[1:], before + letter + behind, before + letter + behind[1:])
    return (*ways, before + behind[1:2] + behind[:1] + behind[2:])[kind]


EDITS = st.tuples(st.integers(0, 20), LETTERS, st.integers(0, 3))
LONG = st.text(LETTERS, min_size=4, max_size=16)


@given(LONG, st.lists(EDITS, min_size=1, max_size=2))
def test_neighbours_are_found(word: str, edits: list[tuple[int, str, int]]) -> None:
    """One edit of a short word, or up to two of a longer one, is found again."""
    typed = word
    for place, letter, kind in edits:
        typed = edited(typed, place, letter, kind)
    if max_edits(typed) >= len(edits):
        assert build_deletion_index((word,)).find_near(typed) == [0]


def distance(one: str, other: str) -> int:
    """Return the number of letters to delete, insert, replace or swap, by the textbook's table."""
    table = [[max(i, j) if not min(i, j) else 0 for j in range(len(other) + 1)] for i in range(len(one) + 1)]
    for i in range(1, len(one) + 1):
        for j in range(1, len(other) + 1):
            best = min(table[i - 1][j], table[i][j - 1]) + 1
            best = min(best, table[i - 1][j - 1] + (one[i - 1] != other[j - 1]))
            if i > 1 and j > 1 and one[i - 1] == other[j - 2] and one[i - 2] == other[j - 1]:
                best = min(best, table[i - 2][j - 2] + 1)
            table[i][j] = best
    return table[-1][-1]


SHORT = st.text(st.sampled_from("abc"), max_size=8)


@given(SHORT, SHORT)
def test_cost_is_a_distance_at_a_discount(meant: str, typed: str) -> None:
    """A typo costs between half and all of its edits, and more if the first letter is wrong."""
    edits, first = distance(meant, typed), 0.5 * (meant[:1] != typed[:1])
    assert edits / 2 + first <= edit_cost(meant, typed) <= edits + first
    assert (edit_cost(meant, typed) == 0) == (meant == typed)
    assert edit_cost(meant, typed) == edit_cost(typed, meant)


@given(SHORT, SHORT, st.sampled_from([1.0, 2.0]))
def test_giving_up_early_loses_nothing(meant: str, typed: str, most: float) -> None:
    """With a limit, costs within it are the same as without."""
    whole = edit_cost(meant, typed)
    assert edit_cost(meant, typed, most) == whole if whole <= most else edit_cost(meant, typed, most) > most


def test_usual_slips_are_cheap() -> None:
    """Swapped and doubled letters cost less than a wrong letter, and a wrong first letter costs more."""
    assert edit_cost("receive", "recieve") < edit_cost("receive", "receave")
    assert edit_cost("letter", "leter") < edit_cost("letter", "leter"[:-1] + "x")
    assert edit_cost("kafka", "tafka") > edit_cost("kafka", "kafta")


def test_crowd_of_alike_words() -> None:
    """Work is bounded for thousands of words with the same prefix, and the most frequent are still found."""
    crowd = {f"internal{a}{b}{c}": 2 for a in "abcdefghij" for b in "klmnopqrst" for c in "abcdefghijklmnop"}
    spelling = spelling_of({**crowd, "internalise": 900})
    assert len(spelling.deletions.find_near("internalisse")) <= 100
    assert correct_words(["internalisse"], spelling) == ("internalise",)


def test_empty_index() -> None:
    """An empty index suggests nothing."""
    assert correct_words(["anything", "at", "all"], spelling_of({})) is None
